"""Small archives made by hand, one for each dialect of the format, with what their models compute.

The C has the shapes that TVM prints; every model is small enough to be checked by reading it.
"""

# Lines of C stay whole.
# ruff: noqa: E501

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

PROLOGUE = '#include "tvm/runtime/c_runtime_api.h"\n#include "tvm/runtime/c_backend_api.h"\n'


def tar_of(files: Mapping[str, str | bytes]) -> bytes:
    """Returns a plain tar with `./`-prefixed members, as TVM packs them."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as file:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def metadata(
    modules: Mapping[str, Mapping[str, object]],
    version: int = 7,
    tvm: str = "0.14.0",
) -> str:
    """Returns the text of `metadata.json`; each module gives the fields of `main[0]`."""
    described = {}
    for name, main in modules.items():
        entry: dict[str, object] = {
            "model_name": name,
            "export_datetime": "2024-01-02 03:04:05Z",
            "style": "full-model",
            "executors": ["aot"],
            "target": {"1": "c -keys=cpu"} if version == 5 else ["c -keys=cpu "],
            "memory": {
                "functions": {
                    "main": [
                        {
                            "device": 1,
                            "constants_size_bytes": 0,
                            "io_size_bytes": 32,
                            "workspace_size_bytes": 0,
                            **main,
                        }
                    ],
                    "operator_functions": [],
                }
            },
        }
        if tvm:
            entry["external_dependencies"] = [
                {
                    "short_name": "tvm_standalone_crt",
                    "url": "./runtime",
                    "url_type": "mlf_path",
                    "version_spec": tvm,
                }
            ]
        described[name] = entry
    if version == 7:
        top: dict[str, object] = {"version": 7, "modules": described}
    else:
        top = {"version": version, **next(iter(described.values()))}
    return json.dumps(top, indent=2, sort_keys=True)


def header(
    mod: str,
    inputs: list[str],
    outputs: list[str],
    pools: Mapping[str, int] | None = None,
    devices: list[str] | None = None,
    defines: str = "",
    io_pools: bool = False,
    extra: str = "",
) -> str:
    """Returns an interface header as TVM prints it; `pools` are workspace pools."""
    upper = f"TVMGEN_{mod}".upper()
    p = f"tvmgen_{mod}"

    def struct(part: str, fields: list[str]) -> str:
        body = "".join(f"  void* {f};\n" for f in fields)
        return f'/*!\n * \\brief {part} of "{mod}" \n */\nstruct {p}_{part} {{\n{body}}};\n\n'

    text = f"#ifndef {upper}_H_\n#define {upper}_H_\n#include <stdint.h>\n\n"
    text += '#ifdef __cplusplus\nextern "C" {\n#endif\n\n' + defines + extra
    text += struct("inputs", inputs) + struct("outputs", outputs)
    if devices:
        text += struct("devices", devices)
    if pools:
        text += struct("workspace_pools", list(pools))
    params = [] if io_pools else [f"struct {p}_inputs* inputs", f"struct {p}_outputs* outputs"]
    if io_pools:
        for side in ("inputs", "outputs"):
            text += (
                f"struct {p}_{side} {p}_map_{side} (\n"
                f"  struct {p}_workspace_pools* workspace_pools\n);\n"
            )
    params += [f"struct {p}_workspace_pools* workspace_pools"] if pools else []
    params += [f"struct {p}_devices* devices"] if devices else []
    text += f"int32_t {p}_run(\n  " + ",\n  ".join(params) + "\n);\n"
    for name, size in (pools or {}).items():
        text += f"#define {upper}_{name.upper()}_WORKSPACE_POOL_SIZE {size}\n"
    return text + "\n#ifdef __cplusplus\n}\n#endif\n\n" + f"#endif // {upper}_H_\n"


@dataclass(frozen=True)
class Dialect:
    """One hand-made input.

    Attributes:
      files: archive members; empty for a vendor's header.
      golden: arrays named `<model>_<tensor>`.
      flags: further command-line flags.
      vendor: header text and C of the static library, or None.
      extra_c: C that a program around the model would bring (drivers).
    """

    files: Mapping[str, str | bytes]
    golden: Mapping[str, np.ndarray]
    flags: tuple[str, ...] = ()
    vendor: tuple[str, str] | None = None
    extra_c: str = ""


_X = np.array([1.5, -2.0, 0.25, 8.0], dtype=np.float32)
_IO: dict[str, object] = {
    "inputs": {"x": {"dtype": "float32", "size": 16}},
    "outputs": {"y": {"dtype": "float32", "size": 16}},
}
_SIZES = "#define TVMGEN_DEFAULT_X_SIZE 16\n#define TVMGEN_DEFAULT_Y_SIZE 16\n"
_RELAY = "def @main(%x: Tensor[(1, 4), float32] /* ty */) -> Tensor[(1, 4), float32] {\n  %x\n}\n"
_H = "codegen/host/include/tvmgen_default.h"
_C0 = "codegen/host/src/default_lib0.c"
_C1 = "codegen/host/src/default_lib1.c"

_DOUBLE = (
    PROLOGUE + "TVM_DLL int32_t tvmgen_default___tvm_main__(float* x, float* y) {\n"
    "  for (int32_t i = 0; i < 4; ++i) { y[i] = x[i] * 2.000000e+00f; }\n  return 0;\n}\n"
)
_ENTRY = (
    PROLOGUE + "#include <tvmgen_default.h>\n"
    "TVM_DLL int32_t tvmgen_default___tvm_main__(void* x,void* output0);\n"
    "int32_t tvmgen_default_run(struct tvmgen_default_inputs* inputs,"
    "struct tvmgen_default_outputs* outputs) {return tvmgen_default___tvm_main__("
    "inputs->x,outputs->y);\n}\n;"
)
_TWICE = {"default_x": _X, "default_y": _X * 2}


def plain_v7() -> Dialect:
    """Metadata with inputs and outputs, macros, shapes: TVM 0.12 and later."""
    files = {
        "metadata.json": metadata({"default": _IO}),
        _H: header("default", ["x"], ["y"], defines=_SIZES),
        _C0: _ENTRY,
        _C1: _DOUBLE,
        "src/default.relay": _RELAY,
    }
    return Dialect(files, _TWICE)


def tvm_0_8() -> Dialect:
    """Version 5: no size macros, no types in the metadata; shapes only in relay.txt."""
    files = {
        "metadata.json": metadata({"default": {}}, version=5, tvm=""),
        _H: header("default", ["x"], ["y"]),
        _C0: _ENTRY,
        _C1: _DOUBLE,
        "src/relay.txt": _RELAY,
    }
    return Dialect(files, _TWICE)


def codegen_only() -> Dialect:
    """Header and C without metadata, as vendors' samples carry them; the user gives the types."""
    files = {
        _H: header("default", ["x"], ["y"], defines=_SIZES),
        _C0: _ENTRY,
        _C1: _DOUBLE,
    }
    return Dialect(files, _TWICE, flags=("--shape=x=float32[2,2]", "--shape=y=float32[4]"))


def patched_inputs() -> Dialect:
    """An input that was added to header and C by hand, and not to the metadata."""
    mask = np.array([1, 0, -1, 2], dtype=np.int8)
    entry = _ENTRY.replace("(void* x,", "(void* x,void* mask,")
    double = _DOUBLE.replace("(float* x,", "(float* x, int8_t* mask,").replace(
        "* 2.000000e+00f", "* mask[i]"
    )
    files = {
        "metadata.json": metadata({"default": _IO}),
        _H: header("default", ["x", "mask"], ["y"], defines=_SIZES),
        _C0: entry.replace("inputs->x,", "inputs->x,inputs->mask,"),
        _C1: double,
        "src/default.relay": _RELAY,
    }
    golden: dict[str, np.ndarray] = {"default_x": _X, "default_mask": mask, "default_y": _X * mask}
    return Dialect(files, golden, flags=("--shape=mask=int8[4]",))


def version_6() -> Dialect:
    """Version 6: the target is a list; the output's type is given by the user."""
    files = {
        "metadata.json": metadata({"default": {}}, version=6, tvm=""),
        _H: header("default", ["x"], ["y"]),
        _C0: _ENTRY,
        _C1: _DOUBLE,
        "src/relay.txt": "def @main(%x: Tensor[(1, 4), float32]) {\n  %x\n}\n",
    }
    return Dialect(files, _TWICE, flags=("--shape=y=float32[2,2]",))


def tvm_0_9() -> Dialect:
    """Version 7 before 0.11: no inputs and outputs in the metadata."""
    files = {
        "metadata.json": metadata({"default": {}}, tvm="0.9.0"),
        _H: header("default", ["x"], ["y"]),
        _C0: _ENTRY,
        _C1: _DOUBLE,
        "src/default.relay": _RELAY,
    }
    return Dialect(files, _TWICE)


def tvm_0_11() -> Dialect:
    """TVM 0.11: size macros are garbage, outputs are called `output` in the metadata."""
    main: dict[str, object] = {
        "inputs": {"x": {"dtype": "float32", "size": 16}},
        "outputs": {"output": {"dtype": "float32", "size": 16}},
    }
    garbage = "#define TVMGEN_DEFAULT_X_SIZE -1582571184\n#define TVMGEN_DEFAULT_Y_SIZE 71634\n"
    files = {
        "metadata.json": metadata({"default": main}, tvm="0.11.1"),
        _H: header("default", ["x"], ["y"], defines=garbage),
        _C0: _ENTRY,
        _C1: _DOUBLE,
    }
    return Dialect(files, _TWICE)


def internal_pools() -> Dialect:
    """Static pools inside lib0.c, passed as pointers to arrays as TVM up to 0.14 does."""
    lib0 = (
        PROLOGUE + '__attribute__((section(".rodata.tvm"), ))\n'
        "static struct global_const_workspace {\n"
        "  float fused_constant_let[4] __attribute__((aligned(16))); // 16 bytes, aligned offset: 0\n"
        "} global_const_workspace = {\n  .fused_constant_let = {\n"
        "    0x1p+0, 0x1p+1, 0x1.8p+1, 0x1p+2\n  },\n};// of total size 16 bytes\n"
        '__attribute__((section(".bss.noinit.tvm"), aligned(16)))\n'
        "static uint8_t global_workspace[48];\n#include <tvmgen_default.h>\n"
        "TVM_DLL int32_t tvmgen_default___tvm_main__(void* x,void* output0,"
        "uint8_t* global_const_workspace_0_var,uint8_t* global_workspace_1_var);\n"
        "int32_t tvmgen_default_run(struct tvmgen_default_inputs* inputs,"
        "struct tvmgen_default_outputs* outputs) {return tvmgen_default___tvm_main__(inputs->x,"
        "outputs->y,&global_const_workspace,&global_workspace);\n}\n;"
    )
    lib1 = (
        PROLOGUE + "TVM_DLL int32_t tvmgen_default___tvm_main__(float* x, float* y, "
        "uint8_t* global_const_workspace_0_var, uint8_t* global_workspace_1_var) {\n"
        "  void* constant_let = (&(global_const_workspace_0_var[0]));\n"
        "  void* sid_let = (&(global_workspace_1_var[16]));\n"
        "  for (int32_t i = 0; i < 4; ++i) {\n"
        "    ((float*)sid_let)[i] = x[i] + ((float*)constant_let)[i];\n  }\n"
        "  for (int32_t i = 0; i < 4; ++i) { y[i] = ((float*)sid_let)[i]; }\n  return 0;\n}\n"
    )
    files = {
        "metadata.json": metadata({"default": _IO}),
        _H: header("default", ["x"], ["y"], defines=_SIZES),
        _C0: lib0,
        _C1: lib1,
    }
    constant = np.array([1, 2, 3, 4], dtype=np.float32)
    return Dialect(files, {"default_x": _X, "default_y": _X + constant})


def io_in_pools() -> Dialect:
    """Inputs and outputs in workspace pools; the run overwrites its input (USMP with U4)."""
    lib0 = (
        PROLOGUE + "#include <tvmgen_default.h>\n"
        "struct tvmgen_default_inputs tvmgen_default_map_inputs(\n"
        "  struct tvmgen_default_workspace_pools* workspace_pools\n\n){\n"
        "struct tvmgen_default_inputs ret = {\n"
        "\t.x_0 = &((uint8_t*)workspace_pools->sram)[16],\n"
        "\t.bias = &((uint8_t*)workspace_pools->dtcm)[0],\n};\nreturn ret;\n}\n\n"
        "struct tvmgen_default_outputs tvmgen_default_map_outputs(\n"
        "  struct tvmgen_default_workspace_pools* workspace_pools\n\n){\n"
        "struct tvmgen_default_outputs ret = {\n"
        "\t.y = &((uint8_t*)workspace_pools->sram)[16],\n};\nreturn ret;\n}\n\n"
        "TVM_DLL int32_t tvmgen_default___tvm_main__(uint8_t* dtcm_0_var,uint8_t* sram_1_var);\n"
        "int32_t tvmgen_default_run(struct tvmgen_default_workspace_pools* workspace_pools) "
        "{return tvmgen_default___tvm_main__(((uint8_t*)workspace_pools->dtcm),"
        "((uint8_t*)workspace_pools->sram));\n}\n;"
    )
    lib1 = (
        PROLOGUE
        + "TVM_DLL int32_t tvmgen_default___tvm_main__(uint8_t* dtcm_0_var, uint8_t* sram_1_var) {\n"
        "  void* x_let = (&(sram_1_var[16]));\n  void* bias_let = (&(dtcm_0_var[0]));\n"
        "  for (int32_t i = 0; i < 4; ++i) {\n"
        "    ((float*)x_let)[i] = ((float*)x_let)[i] - (float)((int16_t*)bias_let)[i];\n  }\n"
        "  return 0;\n}\n"
    )
    main: dict[str, object] = {
        "inputs": {
            "x:0": {"dtype": "float32", "size": 16},
            "bias": {"dtype": "int16", "size": 8},
        },
        "outputs": {"y": {"dtype": "float32", "size": 16}},
    }
    relay = "def @main(%x:0: Tensor[(2, 2), float32], %bias: Tensor[(4), int16]) {\n  %0\n}\n"
    files = {
        "metadata.json": metadata({"default": main}),
        _H: header(
            "default", ["x_0", "bias"], ["y"], pools={"dtcm": 16, "sram": 40}, io_pools=True
        ),
        _C0: lib0,
        _C1: lib1,
        "src/default.relay": relay,
    }
    bias = np.array([1, -2, 3, 300], dtype=np.int16)
    golden: dict[str, np.ndarray] = {
        "default_x_0": _X,
        "default_bias": bias,
        "default_y": _X - bias.astype(np.float32),
    }
    return Dialect(files, golden)


_DEVICE_ENTRY = (
    PROLOGUE + "#include <tvmgen_default.h>\n"
    "TVM_DLL int32_t tvmgen_default___tvm_main__(void* x,void* output0,void* ethos_u);\n"
    "int32_t tvmgen_default_run(struct tvmgen_default_inputs* inputs,"
    "struct tvmgen_default_outputs* outputs,struct tvmgen_default_devices* devices) "
    "{return tvmgen_default___tvm_main__(inputs->x,outputs->y,devices->ethos_u);\n}\n;"
)


def device_hooks() -> Dialect:
    """A device whose hooks the C calls; the driver is written in Rust."""
    lib1 = (
        PROLOGUE
        + "TVM_DLL int32_t tvmgen_default___tvm_main__(float* x, float* y, void* ethos_u) {\n"
        "  if (TVMDeviceEthosUActivate(ethos_u) != 0 ) return -1;\n"
        "  if (TVMDeviceEthosUOpen(ethos_u) != 0 ) return -1;\n"
        "  for (int32_t i = 0; i < 4; ++i) { y[i] = x[i] * 2.000000e+00f; }\n"
        "  if (TVMDeviceEthosUClose(ethos_u) != 0 ) return -1;\n"
        "  if (TVMDeviceEthosUDeactivate(ethos_u) != 0 ) return -1;\n  return 0;\n}\n"
    )
    files = {
        "metadata.json": metadata({"default": _IO}),
        _H: header("default", ["x"], ["y"], devices=["ethos_u"], defines=_SIZES),
        _C0: _DEVICE_ENTRY,
        _C1: lib1,
    }
    return Dialect(files, _TWICE)


def device_raw() -> Dialect:
    """A device that only its vendor's C driver touches, through the handle."""
    lib1 = (
        PROLOGUE + "int32_t vendor_scale(void* handle, float* x, float* y, int32_t n);\n"
        "TVM_DLL int32_t tvmgen_default___tvm_main__(float* x, float* y, void* ethos_u) {\n"
        "  if (vendor_scale(ethos_u, x, y, 4) != 0 ) return -1;\n  return 0;\n}\n"
    )
    driver = (
        "#include <stdint.h>\nint32_t vendor_scale(void* handle, float* x, float* y, int32_t n) {\n"
        "  for (int32_t i = 0; i < n; ++i) y[i] = x[i] * *(const float*)handle;\n"
        "  return *(const float*)handle == 0.0f ? 7 : 0;\n}\n"
    )
    files = {
        "metadata.json": metadata({"default": _IO}),
        _H: header("default", ["x"], ["y"], devices=["ethos_u"], defines=_SIZES),
        _C0: _DEVICE_ENTRY,
        _C1: lib1,
    }
    return Dialect(files, {}, extra_c=driver)


_VENDOR_TYPES = (
    "/* The generated model library expects the following inputs/outputs:\n * Inputs:\n"
    " *    Tensor[(1, 4), float32]\n * Outputs:\n *    Tensor[(1, 4), float32]\n */\n\n"
)


def vendor_async() -> Dialect:
    """A vendor's header and library without metadata, for an accelerator that works on its own."""
    extra = (
        _VENDOR_TYPES + "#define TVMGEN_DEFAULT_BIAS_LEN 2\n"
        "extern const int32_t tvmgen_default_bias_data[] __attribute__((weak)) = {-83, 80};\n"
        "extern void TI_NPU_init();\nextern volatile int32_t tvmgen_default_finished;\n"
    )
    text = header("default", ["x"], ["y"], extra=extra)
    library = (
        "#include <pthread.h>\n#include <unistd.h>\n" + '#include "tvmgen_default.h"\n'
        "volatile int32_t tvmgen_default_finished;\nstatic int ready;\n"
        "static float *from, *to;\nvoid TI_NPU_init() { ready = 1; }\n"
        "static void* work(void* nothing) {\n  usleep(20000);\n"
        "  for (int i = 0; i < 4; ++i) to[i] = from[i] * 2.0f;\n"
        "  __atomic_thread_fence(__ATOMIC_SEQ_CST);\n  tvmgen_default_finished = 1;\n"
        "  return nothing;\n}\n"
        "int32_t tvmgen_default_run(struct tvmgen_default_inputs* inputs,\n"
        "                           struct tvmgen_default_outputs* outputs) {\n"
        "  pthread_t thread;\n  if (!ready) return 0x305;\n"
        "  from = inputs->x;\n  to = outputs->y;\n"
        "  if (pthread_create(&thread, 0, work, 0)) return -1;\n"
        "  return pthread_detach(thread);\n}\n"
    )
    return Dialect({}, {}, vendor=(text, library))


_PACKED_METADATA = (
    "#include <inttypes.h>\n#include <tvm/runtime/metadata_types.h>\n"
    "#include <tvm/runtime/c_runtime_api.h>\n"
    "static const int64_t kTvmgenMetadata_inputs_0_shape[2] = {\n1L, \n4L};\n"
    "static const struct TVMTensorInfo kTvmgenMetadata_inputs[1] = {\n{\n"
    '"x" /* name*/, \nkTvmgenMetadata_inputs_0_shape, \n2L /* num_shape*/, \n'
    "{2, 32, 1} /* dtype*/}\n};\n"
    "static const int64_t kTvmgenMetadata_outputs_0_shape[2] = {\n1L, \n4L};\n"
    "static const struct TVMTensorInfo kTvmgenMetadata_outputs[1] = {\n{\n"
    '"output0" /* name*/, \nkTvmgenMetadata_outputs_0_shape, \n2L /* num_shape*/, \n'
    "{2, 32, 1} /* dtype*/}\n};\n"
    "static const struct TVMTensorInfo kTvmgenMetadata_workspace_pools[0] = {\n};\n"
    "static const struct TVMConstantInfo kTvmgenMetadata_constant_pools[0] = {\n};\n"
    "static const struct TVMMetadata kTvmgenMetadata[1] = {\n{\n1L /* version*/, \n"
    "kTvmgenMetadata_inputs, \n1L /* num_inputs*/, \nkTvmgenMetadata_outputs, \n"
    "1L /* num_outputs*/, \nkTvmgenMetadata_workspace_pools, \n0L /* num_workspace_pools*/, \n"
    'kTvmgenMetadata_constant_pools, \n0L /* num_constant_pools*/, \n"default" /* mod_name*/}\n};\n'
    "TVM_DLL int32_t tvmgen_default_get_c_metadata(TVMValue* arg_values, int* arg_tcodes, int "
    "num_args, TVMValue* ret_values, int* ret_tcodes, void* resource_handle) {\n"
    "    ret_values[0].v_handle = (void*) &kTvmgenMetadata;\n"
    "    ret_tcodes[0] = kTVMOpaqueHandle;\n    return 0;\n};\n"
)
_PACKED_SIGNATURE = (
    "(TVMValue* args, int* type_code, int num_args, TVMValue* out_value, int* out_type_code, "
    "void* resource_handle)"
)
_PACKED_KERNEL = (
    PROLOGUE + "TVM_DLL int32_t tvmgen_default___tvm_main__(void* args, int32_t* arg_type_ids, "
    "int32_t num_args, void* out_ret_value, int32_t* out_ret_tcode, void* resource_handle) {\n"
    "  int32_t x_code = arg_type_ids[0];\n"
    "  void* x = (((TVMValue*)args)[0].v_handle);\n  void* y = (((TVMValue*)args)[1].v_handle);\n"
    "  void* x_1 = (((DLTensor*)x)[0].data);\n  void* y_1 = (((DLTensor*)y)[0].data);\n"
    "  int64_t* shape = (((DLTensor*)x)[0].shape);\n"
    '  if (!(((DLTensor*)x)[0].ndim == 2)) { TVMAPISetLastError("ndim"); return -1; }\n'
    "  if (!(shape[0] == 1 && shape[1] == 4 && num_args == 2)) return -1;\n"
    "  if (((DLTensor*)x)[0].dtype.code != 2 || ((DLTensor*)x)[0].dtype.bits != 32) return -1;\n"
    "  if (x_code != 7 || ((DLTensor*)x)[0].byte_offset != 0) return -1;\n"
    "  if (((DLTensor*)y)[0].strides != NULL) return -1;\n"
    "  for (int32_t i = 0; i < 4; ++i) { ((float*)y_1)[i] = ((float*)x_1)[i] * 2.0f; }\n"
    "  return 0;\n}\n"
)


def packed() -> Dialect:
    """The packed interface; types come from kTvmgenMetadata."""
    entry = (
        PROLOGUE + f"TVM_DLL int32_t tvmgen_default___tvm_main__{_PACKED_SIGNATURE};\n\n"
        f"int32_t tvmgen_default_run{_PACKED_SIGNATURE} {{\nTVMValue tensors[2];\n"
        "tensors[0] = ((TVMValue*)args)[0];\ntensors[1] = ((TVMValue*)args)[1];\n"
        "return tvmgen_default___tvm_main__((void*)tensors, type_code, num_args, out_value, "
        "out_type_code, resource_handle);\n}\n;"
    )
    main: dict[str, object] = {
        "inputs": {"x": {"dtype": "float32", "size": 16}},
        "outputs": {"output": {"dtype": "float32", "size": 16}},
    }
    files = {
        "metadata.json": metadata({"default": main}),
        _C0: entry,
        _C1: _PACKED_METADATA,
        "codegen/host/src/default_lib2.c": _PACKED_KERNEL,
    }
    return Dialect(files, {"default_x": _X, "default_output0": _X * 2})


def packed_system_lib() -> Dialect:
    """Packed entry over unpacked kernels, with the registry of a system library."""
    entry = (
        PROLOGUE + "#include <tvm/runtime/crt/module.h>\n"
        f"TVM_DLL int32_t tvmgen_default_run{_PACKED_SIGNATURE};\n"
        f"TVM_DLL int32_t tvmgen_default_get_c_metadata{_PACKED_SIGNATURE};\n"
        "static TVMBackendPackedCFunc _tvm_func_array[] = {\n"
        "    (TVMBackendPackedCFunc)tvmgen_default_run,\n"
        "    (TVMBackendPackedCFunc)tvmgen_default_get_c_metadata,\n};\n"
        "static const TVMFuncRegistry _tvm_func_registry = {\n"
        '    "\\002\\000tvmgen_default_run\\000tvmgen_default_get_c_metadata\\000",'
        "    _tvm_func_array,\n};\nstatic const TVMModule _tvm_system_lib = {\n"
        "    &_tvm_func_registry,\n};\nconst TVMModule* TVMSystemLibEntryPoint(void) {\n"
        "    return &_tvm_system_lib;\n}\n"
        "TVM_DLL int32_t tvmgen_default___tvm_main__(void* x,void* output0);\n"
        "int32_t tvmgen_default_run(void* args, void* type_code, int num_args, void* out_value, "
        "void* out_type_code, void* resource_handle) {\nreturn tvmgen_default___tvm_main__("
        "((DLTensor*)(((TVMValue*)args)[0].v_handle))[0].data,"
        "((DLTensor*)(((TVMValue*)args)[1].v_handle))[0].data);\n}\n;"
    )
    entry = entry.replace(f"TVM_DLL int32_t tvmgen_default_run{_PACKED_SIGNATURE};\n", "").replace(
        "static TVMBackendPackedCFunc",
        "int32_t tvmgen_default_run(void*, void*, int, void*, void*, void*);\n"
        "static TVMBackendPackedCFunc",
    )
    files = {
        "metadata.json": metadata({"default": {}}, tvm="0.10.0"),
        _C0: entry,
        _C1: _PACKED_METADATA,
        "codegen/host/src/default_lib2.c": _DOUBLE,
    }
    return Dialect(files, {"default_x": _X, "default_output0": _X * 2})


def awkward_names() -> Dialect:
    """Names that are Rust keywords or clash: across sides, after case changes, with macros."""
    inputs = ["type", "self", "aB", "a_b", "workspace", "x"]
    outputs = ["x", "input_type", "fn"]
    sizes = dict.fromkeys(inputs, 16)
    defines = "#define TVMGEN_MYNET_WORKSPACE_SIZE 16\n#define TVMGEN_MYNET_WORKSPACE_SIZE 144\n"
    defines += "#define TVMGEN_MYNET_X_SIZE 16\n#define TVMGEN_MYNET_X_SIZE 4\n"
    body = "".join(f"  ((float*)outputs->{o})[0] = 0.0f;\n" for o in outputs)
    for number, name in enumerate(inputs, 1):
        for output in outputs:
            body += (
                f"  ((float*)outputs->{output})[0] += {number}.0f * ((float*)inputs->{name})[0];\n"
            )
    entry = (
        PROLOGUE + "#include <tvmgen_MyNet.h>\n"
        "int32_t tvmgen_MyNet_run(struct tvmgen_MyNet_inputs* inputs,"
        "struct tvmgen_MyNet_outputs* outputs) {\n" + body + "  return 0;\n}\n;"
    )
    main: dict[str, object] = {
        "inputs": {n: {"dtype": "float32", "size": s} for n, s in sizes.items()},
        "outputs": {n: {"dtype": "float32", "size": 4} for n in outputs},
    }
    files = {
        "metadata.json": metadata({"MyNet": main}),
        "codegen/host/include/tvmgen_mynet.h": header("mynet", inputs, outputs, defines=defines),
        "codegen/host/src/MyNet_lib0.c": entry,
    }
    golden: dict[str, np.ndarray] = {
        f"MyNet_{n}": np.full(4, i, np.float32) for i, n in enumerate(inputs, 1) if n != "x"
    }
    golden |= {"MyNet_input_x": np.full(4, 6, np.float32)}
    total = np.array([sum(i * i for i in range(1, 7))], dtype=np.float32)
    golden |= {f"MyNet_output_{n}": total for n in outputs}
    return Dialect(files, golden)


_DTYPES = {
    "float16": np.float16, "float32": np.float32, "float64": np.float64, "int8": np.int8,
    "int16": np.int16, "int32": np.int32, "int64": np.int64, "uint8": np.uint8,
    "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
}  # fmt: skip


def all_dtypes() -> Dialect:
    """One input and one output of every dtype, copied; pools aligned to 64 bytes; odd lengths."""
    names = [*_DTYPES, "int4"]
    ins, outs = [f"i_{n}" for n in names], [f"o_{n}" for n in names]
    copies = []
    sizes = {n: 5 * np.dtype(t).itemsize for n, t in _DTYPES.items()} | {"int4": 3}
    for name in names:
        copies.append(
            f"  if ((uintptr_t)inputs->i_{name} % 64 || (uintptr_t)outputs->o_{name} % 64) return 0x100;\n"
            f"  memcpy(outputs->o_{name}, inputs->i_{name}, {sizes[name]});\n"
        )
    entry = (
        PROLOGUE + "#include <string.h>\n#include <tvmgen_default.h>\n"
        'static const float __attribute__((section(".rodata.tvm"), aligned(64))) c[1] = {0x1p+0};\n'
        "int32_t tvmgen_default_run(struct tvmgen_default_inputs* inputs,"
        "struct tvmgen_default_outputs* outputs) {\n" + "".join(copies) + "  return 0;\n}\n;"
    )
    main: dict[str, object] = {
        "inputs": {f"i_{n}": {"dtype": n, "size": s} for n, s in sizes.items()},
        "outputs": {f"o_{n}": {"dtype": n, "size": s} for n, s in sizes.items()},
    }
    files = {
        "metadata.json": metadata({"default": main}),
        _H: header("default", ins, outs),
        _C0: entry,
    }
    golden: dict[str, np.ndarray] = {}
    for number, (name, kind) in enumerate(_DTYPES.items()):
        values = (np.arange(5) * (number + 1)).astype(kind)
        golden |= {f"default_i_{name}": values, f"default_o_{name}": values}
    packed4 = np.array([0x21, 0x43, 0x05], dtype=np.uint8)
    return Dialect(files, golden | {"default_i_int4": packed4, "default_o_int4": packed4})


DIALECTS: Mapping[str, Callable[[], Dialect]] = {
    f.__name__: f
    for f in (
        plain_v7, tvm_0_8, version_6, tvm_0_9, tvm_0_11, internal_pools, io_in_pools, device_hooks,
        device_raw, vendor_async, packed, packed_system_lib, awkward_names, all_dtypes, codegen_only,
        patched_inputs,
    )
}  # fmt: skip
