"""Exceptions and choices, as data: each row has its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HeaderRule:
    """A header that becomes a Rust module.

    Attributes:
        path: Relative to the include folder.
        module: The module's name.
        optional: No function of it has to exist in a library, with the reason; else empty.
    """

    path: str
    module: str
    optional: str = ""


HEADERS: tuple[HeaderRule, ...] = (
    HeaderRule("xla/tsl/c/tsl_status.h", "tsl_status"),
    HeaderRule("tensorflow/c/c_api_macros.h", "c_api_macros"),
    HeaderRule("tensorflow/c/tf_attrtype.h", "tf_attrtype"),
    HeaderRule("tensorflow/c/tf_datatype.h", "tf_datatype"),
    HeaderRule("tensorflow/c/tf_status.h", "tf_status"),
    HeaderRule("tensorflow/c/tf_buffer.h", "tf_buffer"),
    HeaderRule("tensorflow/c/tf_tensor.h", "tf_tensor"),
    HeaderRule("tsl/platform/ctstring_internal.h", "ctstring_internal"),
    HeaderRule("tensorflow/c/tf_tstring.h", "tf_tstring"),
    HeaderRule("tensorflow/c/tf_file_statistics.h", "tf_file_statistics"),
    HeaderRule("tensorflow/c/c_api.h", "c_api"),
    HeaderRule("tensorflow/c/c_api_experimental.h", "c_api_experimental"),
    HeaderRule("tensorflow/c/env.h", "env"),
    HeaderRule("tensorflow/c/ops.h", "ops"),
    HeaderRule("tensorflow/c/experimental/stream_executor/stream_executor.h", "stream_executor"),
    HeaderRule(
        "tensorflow/core/common_runtime/next_pluggable_device/c/tf_rendezvous_c_api.h",
        "tf_rendezvous_c_api",
    ),
    HeaderRule("tensorflow/c/kernels.h", "kernels"),
    HeaderRule(
        "tensorflow/c/kernels_experimental.h",
        "kernels_experimental",
        "the wheels of 2.20 and 2.21 export none of its functions",
    ),
    HeaderRule("tensorflow/c/eager/c_api.h", "eager_c_api"),
    HeaderRule("tensorflow/c/eager/c_api_experimental.h", "eager_c_api_experimental"),
    HeaderRule(
        "tensorflow/c/eager/c_api_unified_experimental.h",
        "eager_c_api_unified_experimental",
        "declared without the export macro, so that a build may hide them",
    ),
    HeaderRule(
        "tensorflow/c/eager/dlpack.h",
        "eager_dlpack",
        "functions with C++ linkage: a symbol is a compiler's mangled name",
    ),
    HeaderRule("tensorflow/c/experimental/grappler/grappler.h", "grappler"),
    HeaderRule(
        "tensorflow/c/experimental/pluggable_profiler/pluggable_profiler.h", "pluggable_profiler"
    ),
    HeaderRule(
        "tensorflow/c/experimental/filesystem/filesystem_interface.h", "filesystem_interface"
    ),
    HeaderRule("xla/pjrt/c/pjrt_c_api.h", "pjrt_c_api"),
    HeaderRule(
        "tensorflow/c/experimental/next_pluggable_device/c_api.h",
        "next_pluggable_device",
        "no library of the wheels exports one of its functions",
    ),
)

# The oldest TensorFlow whose C API has every required function, and its major version.
MINIMUM_VERSION = (2, 16)

_CXX = "C++ only: classes, templates or namespaces, which have no C ABI"
_INTERNAL = "internal to TensorFlow: defines the opaque types in terms of C++ classes"
EXCLUDED_HEADERS: dict[str, str] = {
    "tensorflow/c/c_api_internal.h": _INTERNAL,
    "tensorflow/c/c_api_macros_internal.h": "macros over C++ statements, used inside TensorFlow",
    "tensorflow/c/conversion_macros.h": "function-like macros over C++ casts",
    "tensorflow/c/eager/abstract_context.h": _CXX,
    "tensorflow/c/eager/abstract_function.h": _CXX,
    "tensorflow/c/eager/abstract_op_attrs.h": _CXX,
    "tensorflow/c/eager/abstract_operation.h": _CXX,
    "tensorflow/c/eager/abstract_tensor_handle.h": _CXX,
    "tensorflow/c/eager/c_api_internal.h": _INTERNAL,
    "tensorflow/c/eager/c_api_unified_experimental_internal.h": _INTERNAL,
    "tensorflow/c/eager/graph_function.h": _CXX,
    "tensorflow/c/eager/immediate_execution_context.h": _CXX,
    "tensorflow/c/eager/immediate_execution_distributed_manager.h": _CXX,
    "tensorflow/c/eager/immediate_execution_operation.h": _CXX,
    "tensorflow/c/eager/immediate_execution_tensor_handle.h": _CXX,
    "tensorflow/c/eager/tape.h": _CXX,
    "tensorflow/c/eager/tfe_cancellation_manager_internal.h": _INTERNAL,
    "tensorflow/c/eager/tfe_context_internal.h": _INTERNAL,
    "tensorflow/c/eager/tfe_executor_internal.h": _INTERNAL,
    "tensorflow/c/eager/tfe_monitoring_internal.h": _INTERNAL,
    "tensorflow/c/eager/tfe_op_attrs_internal.h": _INTERNAL,
    "tensorflow/c/eager/tfe_op_internal.h": _INTERNAL,
    "tensorflow/c/eager/tfe_tensor_debug_info_internal.h": _INTERNAL,
    "tensorflow/c/eager/tfe_tensorhandle_internal.h": _INTERNAL,
    "tensorflow/c/experimental/filesystem/modular_filesystem.h": _CXX,
    "tensorflow/c/experimental/filesystem/modular_filesystem_registration.h": _CXX,
    "tensorflow/c/experimental/next_pluggable_device/tensor_pjrt_buffer_util.h": _CXX,
    "tensorflow/c/experimental/stream_executor/stream_executor_internal.h": _INTERNAL,
    "tensorflow/c/kernels/tensor_shape_utils.h": _CXX,
    "tensorflow/c/safe_ptr.h": _CXX,
    "tensorflow/c/tensor_interface.h": _CXX,
    "tensorflow/c/tf_buffer_internal.h": _INTERNAL,
    "tensorflow/c/tf_status_helper.h": _CXX,
    "tensorflow/c/tf_status_internal.h": _INTERNAL,
    "tensorflow/c/tf_tensor_helper.h": _CXX,
    "tensorflow/c/tf_tensor_internal.h": _INTERNAL,
    "xla/tsl/c/tsl_status_helper.h": _CXX,
    "xla/tsl/c/tsl_status_internal.h": _INTERNAL,
}
# Headers that the TensorFlow in use lacks, and others have.
OTHER_VERSIONS: dict[str, str] = {
    "tensorflow/c/logging.h": "variadic functions; gone after 2.20",
}
# Folders whose headers must each stand in one of the tables above.
COVERED_FOLDERS = ("tensorflow/c", "xla/tsl/c")

INLINE_REASON = "inline function: no library has its symbol"
FUNCTION_MACRO_REASON = "function-like macro: no value, no symbol"
# By C name, or by symbol for C++ overloads.
EXCLUDED_ITEMS: dict[str, str] = {
    "TF_CAPI_EXPORT": "attribute of declarations, no value",
    "tensorflow::Tensor": "C++ class, declared for the function below only",
    "_Z19TFE_NewTensorHandleRKN10tensorflow6TensorEP10TSL_Status": (
        "C++ overload over a C++ class; the C function of the same name takes a TF_Tensor"
    ),
}

# Entry points that a plug-in defines and TensorFlow looks up: a function type, no symbol to find.
ENTRY_POINTS: dict[str, str] = {
    "SE_InitPlugin": "defined by a device plug-in",
    "TF_InitKernel": "defined by a kernel plug-in",
    "TF_InitGraph": "defined by a graph-optimizer plug-in",
    "TF_InitProfiler": "defined by a profiler plug-in",
    "TF_InitPlugin": "defined by a file-system plug-in",
}

# Single functions that a library may lack although the rest of their header is required.
OPTIONAL_FUNCTIONS: dict[str, str] = {
    "TF_TensorDefaultAlignment": "2.16 does not have it",
}


@dataclass(frozen=True)
class TableRule:
    """A table of header groups that is resolved in one go.

    Attributes:
        name: The Rust struct.
        required: Modules whose required functions must exist.
        optional: Modules that may be missing as a whole, though they have required functions.
        source: How `global()` fills it: `process` or `find`.
        doc: What the table is for.
    """

    name: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    source: str
    doc: str


TABLES: tuple[TableRule, ...] = (
    TableRule(
        "PluginApi",
        (
            "tf_status",
            "tf_buffer",
            "tf_datatype",
            "tf_tensor",
            "kernels",
            "kernels_experimental",
            "ops",
            "env",
            "next_pluggable_device",
        ),
        (
            "tsl_status",
            "tf_tstring",
            "c_api",
            "c_api_experimental",
            "eager_c_api",
            "eager_c_api_experimental",
            "grappler",
        ),
        "process",
        "What a plug-in calls. `libtensorflow_framework` has the required groups; the optional "
        "ones are in `libtensorflow_cc`, or in some versions only.",
    ),
    TableRule(
        "ClientApi",
        (
            "tf_status",
            "tf_buffer",
            "tf_datatype",
            "tf_tensor",
            "tf_tstring",
            "c_api",
            "c_api_experimental",
            "eager_c_api",
            "eager_c_api_experimental",
            "eager_c_api_unified_experimental",
            "eager_dlpack",
            "env",
            "ops",
            "kernels",
            "kernels_experimental",
        ),
        ("tsl_status", "grappler"),
        "find",
        "What a program calls that uses TensorFlow as a library.",
    ),
)
