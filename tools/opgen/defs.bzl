"""Rust wrappers of TensorFlow's ops, and of custom ones."""

load("//tools/build:defs.bzl", "tfp_rust_library")

# By `Label`, because the macros are called in other repositories, too.
_OPGEN = Label("//tools/opgen")
_LIBRARY_OPS = Label("//tools/opgen:library_ops")
_RUSTFMT = Label("@rust_sysroot//:bin/rustfmt")
_RUSTC_LIB = Label("@rust_sysroot//:rustc_lib")
_TENSORFLOW = Label("@tensorflow//:libtensorflow_cc.so.2")
_FRAMEWORK = Label("@tensorflow//:libtensorflow_framework.so.2")

# The groups of rules.py that TensorFlow's ops fill, each a module and a feature; rules_test
# compares the two.
OP_GROUPS = [
    "array",
    "audio",
    "batch",
    "boosted_trees",
    "clustering",
    "container",
    "control_flow",
    "data_flow",
    "dataset",
    "debug",
    "distribute",
    "image",
    "io",
    "linalg",
    "lookup",
    "math",
    "nn",
    "parsing",
    "quantization",
    "ragged",
    "random",
    "risc",
    "rnn",
    "script",
    "sparse",
    "spectral",
    "string",
    "summary",
    "tpu",
    "training",
    "variable",
    "xla",
]

# Files of every crate, beside one per group.
_FILES = ["enums", "items", "lib", "type_sets"]

def op_files(name, groups):
    """The files that `op_sources` of this name writes for these groups, without `smoke.rs`."""
    return ["{}/{}.rs".format(name, file) for file in groups + _FILES]

def op_sources(name, op_list, groups, docs = None, group = None, smoke = False, **kwargs):
    """Generates the sources of a crate of op wrappers; `<name>/lib.rs` is its root.

    Args:
      name: name of the target, and of the folder of its files.
      op_list: file with a serialized OpList, or its text form (`.pbtxt`).
      groups: modules that the ops fill.
      docs: target with Python op wrappers, whose docstrings become the documentation.
      group: module of the ops for which opgen has no rule; by default `other`.
      smoke: write `smoke.rs` too, which calls every function.
      **kwargs: as for `genrule`.
    """
    command = [
        "$(execpath {})".format(_OPGEN),
        "--op_list=$(execpath {})".format(op_list),
        "--rustfmt=$(execpath {})".format(_RUSTFMT),
        "--out=$(RULEDIR)/" + name,
    ]
    if group:
        command.append("--group=" + group)
    if smoke:
        command.append("--smoke")
    if docs:
        command.append("$(execpaths {})".format(docs))
    native.genrule(
        name = name,
        srcs = [op_list] + ([docs] if docs else []),
        outs = op_files(name, groups) + ([name + "/smoke.rs"] if smoke else []),
        cmd = " ".join(command),
        tools = [
            _OPGEN,
            _RUSTFMT,
            _RUSTC_LIB,
        ],
        **kwargs
    )

def custom_op_library(name, op_list = None, library = None, module = "other", **kwargs):
    """A crate of wrappers of custom ops; give `op_list` or `library`.

    Args:
      name: name of the crate.
      op_list: file with a serialized OpList, or its text form (`.pbtxt`).
      library: shared library of custom ops, which is loaded to get its OpList.
      module: the one module of the crate.
      **kwargs: as for `rust_library`.
    """
    if (op_list == None) == (library == None):
        fail("{}: give op_list or library".format(name))
    if library:
        op_list = name + "_ops.pb"
        native.genrule(
            name = name + "_op_list",
            testonly = kwargs.get("testonly", False),
            srcs = [
                library,
                _TENSORFLOW,
                _FRAMEWORK,
            ],
            outs = [op_list],
            cmd = " ".join([
                "$(execpath {})".format(_LIBRARY_OPS),
                "--tensorflow=$(execpath {})".format(_TENSORFLOW),
                "--library=$(execpath {})".format(library),
                "--out=$@",
            ]),
            tools = [_LIBRARY_OPS],
        )
    op_sources(
        name = name + "_sources",
        testonly = kwargs.get("testonly", False),
        group = module,
        groups = [module],
        op_list = op_list,
    )
    tfp_rust_library(
        name = name,
        srcs = [":" + name + "_sources"],
        clippy = False,
        crate_root = name + "_sources/lib.rs",
        deps = [Label("//bindings/core:tfp_core")],
        **kwargs
    )
