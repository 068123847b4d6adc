"""Raw Rust bindings of TensorFlow's C API."""

load("@rust_config//:config.bzl", "HAS_RUSTFMT")

# The modules of rules.py, in its order, each a file; modules_test compares the two.
_MODULES = [
    "tsl_status",
    "c_api_macros",
    "tf_attrtype",
    "tf_datatype",
    "tf_status",
    "tf_buffer",
    "tf_tensor",
    "ctstring_internal",
    "tf_tstring",
    "tf_file_statistics",
    "c_api",
    "c_api_experimental",
    "env",
    "ops",
    "stream_executor",
    "tf_rendezvous_c_api",
    "kernels",
    "kernels_experimental",
    "eager_c_api",
    "eager_c_api_experimental",
    "eager_c_api_unified_experimental",
    "eager_dlpack",
    "grappler",
    "pluggable_profiler",
    "filesystem_interface",
    "pjrt_c_api",
    "next_pluggable_device",
]

def sys_files(name):
    """The files that `tfp_sys_sources` of this name writes."""
    return ["{}/{}.rs".format(name, file) for file in _MODULES + ["bindings", "lib", "tables"]]

def tfp_sys_sources(name, **kwargs):
    """Generates the sources of crate tfp_sys from TensorFlow's headers; `lib.rs` is the root.

    Args:
      name: name of the target, and of the folder of its files.
      **kwargs: as for `genrule`.
    """
    native.genrule(
        name = name,
        srcs = [
            "@tensorflow//:c_headers",
            "@tensorflow//:include_dir",
        ],
        outs = sys_files(name),
        cmd = " ".join([
            "$(execpath //tools/ffigen)",
            "--c_api_header=$(execpath @tensorflow//:include_dir)",
            "--out=$(RULEDIR)/" + name,
        ] + (["--rustfmt=$(execpath @rust_sysroot//:bin/rustfmt)"] if HAS_RUSTFMT else [])),
        tools = ["//tools/ffigen"] + ([
            "@rust_sysroot//:bin/rustfmt",
            "@rust_sysroot//:rustc_lib",
        ] if HAS_RUSTFMT else []),
        **kwargs
    )
