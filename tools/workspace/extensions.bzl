"""The repositories of `tfp_dependencies` and `tfp_toolchains` for MODULE.bazel."""

load("@rules_python//python/pip_install:pip_repository.bzl", "whl_library")

# The only reader of lock files that rules_python has.
# buildifier: disable=bzl-visibility
load("@rules_python//python/pip_install:requirements_parser.bzl", "parse")
load("//tools/workspace/buildifier:buildifier.bzl", "buildifier_repository")
load("//tools/workspace/cc:cc.bzl", "cc_toolchains")
load("//tools/workspace/crates:crates.bzl", "crates_repository")
load("//tools/workspace/python:python.bzl", "host_python")
load("//tools/workspace/rust:rust.bzl", "rust_config", "rust_std", "rust_sysroot")
load("//tools/workspace/tensorflow:tensorflow.bzl", "WHEEL_ANNOTATIONS", "tensorflow_repository")
load("//tools/workspace/vulkan:vulkan.bzl", "lavapipe_repository")

_REQUIREMENTS = """\
def _clean(name):
    return name.replace("-", "_").replace(".", "_").lower()

def requirement(name):
    return Label("@pip_" + _clean(name) + "//:pkg")
"""

def _clean(name):
    return name.replace("-", "_").replace(".", "_").lower()

def _wheels_impl(rctx):
    rctx.file("BUILD", 'exports_files(glob(["*.json"]))\n')
    rctx.file("requirements.bzl", _REQUIREMENTS)
    for name, annotation in rctx.attr.annotations.items():
        rctx.file(_clean(name) + ".json", annotation)

_wheels = repository_rule(
    implementation = _wheels_impl,
    attrs = {"annotations": attr.string_dict()},
    doc = "The function `requirement`, as pip_parse has it, over repositories of modules.",
)

def _tfp_impl(module_ctx):
    cc_toolchains(name = "cc")
    rust_config(name = "rust_config")
    rust_sysroot(name = "rust_sysroot")
    rust_std(name = "rust_std_aarch64", triple = "aarch64-unknown-linux-gnu")
    rust_std(name = "rust_std_wasm32", optional = True, triple = "wasm32-unknown-unknown")
    crates_repository(
        name = "crates",
        cargo = "@rust_sysroot//:bin/cargo",
        lock = Label("//tools/workspace/crates:Cargo.lock"),
        manifest = Label("//tools/workspace/crates:Cargo.toml"),
    )
    host_python(name = "host_python")
    _wheels(name = "pip", annotations = WHEEL_ANNOTATIONS)
    lock = module_ctx.read(Label("//tools/workspace/python:requirements.lock.txt"))
    for name, requirement in parse(lock).requirements:
        whl_library(
            name = "pip_" + _clean(name),
            annotation = "@pip//:{}.json".format(_clean(name)) if name in WHEEL_ANNOTATIONS else None,
            python_interpreter_target = "@host_python//:python3",
            repo = "pip",
            repo_prefix = "pip_",
            requirement = requirement,
            timeout = 3600,
        )
    tensorflow_repository(name = "tensorflow")
    lavapipe_repository(name = "lavapipe")
    buildifier_repository(name = "buildifier")

tfp = module_extension(
    implementation = _tfp_impl,
    doc = "Toolchains, crates, wheels and TensorFlow, each fetched when a build needs it.",
)
