"""Exceptions and constants of mlf2rust, as data: each row has its reason."""

from __future__ import annotations

from dataclasses import dataclass

from converters.mlf.model import Interface


@dataclass(frozen=True)
class DType:
    """How a TVM dtype is stored: bits of an element, Rust type and zero, `DType` variant."""

    bits: int
    rust: str
    zero: str
    variant: str


#: float16 has no stable Rust type: its bits are handed out. int4 is packed two to a byte by TVM.
DTYPES = {
    "float16": DType(16, "u16", "0", "Float16"),
    "float32": DType(32, "f32", "0.0", "Float32"),
    "float64": DType(64, "f64", "0.0", "Float64"),
    "int4": DType(4, "u8", "0", "Int4"),
    "int8": DType(8, "i8", "0", "Int8"),
    "int16": DType(16, "i16", "0", "Int16"),
    "int32": DType(32, "i32", "0", "Int32"),
    "int64": DType(64, "i64", "0", "Int64"),
    "uint8": DType(8, "u8", "0", "UInt8"),
    "uint16": DType(16, "u16", "0", "UInt16"),
    "uint32": DType(32, "u32", "0", "UInt32"),
    "uint64": DType(64, "u64", "0", "UInt64"),
    "bool": DType(8, "u8", "0", "Bool"),
}

#: TIR assumes 16 even where the archive asks for less.
MIN_ALIGNMENT = 16
MAX_ALIGNMENT = 4096

#: Flags the C is compiled with, and why.
C_FLAGS = {
    "-std=gnu11": "TVM's C uses attributes; _Static_assert needs C11",
    "-ffunction-sections": "unused kernels leave the firmware",
    "-fdata-sections": "unused constants leave the firmware",
    "-fno-math-errno": "expf and sqrtf need no errno",
    "-w": "TVM's C warns by the hundred; the layout checks are compiled with -Wall -Werror",
    "-Wno-incompatible-pointer-types": (
        "TVM up to 0.14 passes a pointer to its static pool, which gcc 14 rejects"
    ),
}

#: Runtime functions that the crate provides, and how.
RUNTIME_FUNCTIONS = {
    "TVMBackendAllocWorkspace": "the model's own arena",
    "TVMBackendFreeWorkspace": "the model's own arena",
    "TVMAPISetLastError": "dropped: the code says which call failed",
}

#: Runtime functions that cannot be provided without TVM's runtime, and what to do.
UNPROVIDED_FUNCTIONS = {
    "TVMBackendParallelLaunch": "export without parallel loops (target attribute -num-cores=1)",
    "TVMBackendParallelBarrier": "export without parallel loops (target attribute -num-cores=1)",
    "TVMFuncCall": "export with the AOT executor and target c",
    "TVMBackendGetFuncFromEnv": "export with the AOT executor and target c",
}

#: Modules that a model's may not be named like, and why.
RESERVED_MODULES = {
    "support": "the crate's own module",
    "ffi": "a module inside each model's",
    "lib": "src/lib.rs is the root of the crate",
    "main": "src/main.rs would be a program",
}

#: Packages that would hide crates of Rust itself.
RESERVED_CRATES = frozenset({"alloc", "core", "proc_macro", "std", "test"})

#: More parameters, and deeper nested arrays, are what clippy calls too many and too complex.
CLIPPY_PARAMETERS = 7
CLIPPY_RANK = 5

#: Headers the crate brings itself.
OWN_HEADERS = frozenset(
    {
        "tvm/runtime/c_runtime_api.h",
        "tvm/runtime/c_backend_api.h",
        "tvm/runtime/crt/module.h",
        "tvm/runtime/metadata_types.h",
        "dlpack/dlpack.h",
    }
)

#: Members that a C compiler alone makes nothing of.
CPP_SUFFIXES = (".cc", ".cpp", ".cxx", ".C", ".cu")
OBJECT_SUFFIXES = (".o", ".obj", ".a", ".so", ".s", ".S")

#: Headers of the C compiler.
STANDARD_HEADERS = frozenset(
    {
        "assert.h", "complex.h", "float.h", "inttypes.h", "limits.h", "math.h", "stdarg.h",
        "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Refusal:
    """A form of archive that cannot become a crate: what it is, and what to do instead."""

    what: str
    advice: str


REFUSALS = {
    "operator": Refusal(
        "operator-style archive: single functions without an entry point",
        "build the whole model with relay.build and export that",
    ),
    "graph": Refusal(
        "graph executor: the model runs only inside TVM's interpreter",
        "build with Executor('aot', {'interface-api': 'c', 'unpacked-api': True})",
    ),
    "objects": Refusal(
        "object files without a C entry point (target llvm)",
        "build with target c and interface-api c",
    ),
    "cpp": Refusal(
        "C++ sources; an embedded crate compiles C only", "build with target c, or c -keys=..."
    ),
    "no_interface": Refusal(
        "neither an interface header nor kTvmgenMetadata",
        "build with interface-api c, or with TVM 0.9 or newer for the packed interface",
    ),
    "packed_pools": Refusal(
        "packed interface with external workspace pools",
        "build with interface-api c, which hands pools to the caller",
    ),
    "io_offsets": Refusal(
        "I/O in pools without the C source that holds the offsets",
        "give the whole archive instead of the header",
    ),
    "mangled": Refusal(
        "module name that is not a C identifier, so the exported C cannot compile",
        "export again with mod_name made of letters, digits and '_'",
    ),
}


def wants_token(model: Interface) -> bool:
    """Tells whether a model may exist only once: its C or its crate holds state between calls."""
    return bool(model.hidden_state)
