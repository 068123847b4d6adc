"""`tfp_dependencies`: the repositories that this repository's packages load."""

load("@rules_python//python:pip.bzl", "pip_parse")
load("@rules_rust//rust:repositories.bzl", "rules_rust_dependencies")
load("//tools/workspace/buildifier:buildifier.bzl", "buildifier_repository")
load("//tools/workspace/cc:cc.bzl", "cc_toolchains")
load("//tools/workspace/crates:crates.bzl", "crates_repository")
load("//tools/workspace/python:python.bzl", "host_python")
load("//tools/workspace/rust:rust.bzl", "rust_config", "rust_std", "rust_sysroot")
load("//tools/workspace/tensorflow:tensorflow.bzl", "WHEEL_ANNOTATIONS", "tensorflow_repository")
load("//tools/workspace/vulkan:vulkan.bzl", "lavapipe_repository")

# A workspace has one set.
# buildifier: disable=unnamed-macro
def tfp_dependencies():
    """Declares toolchains, crates, wheels and TensorFlow, each fetched when a build needs it.

    Call it after `tfp_rule_sets`, and `tfp_toolchains` after it.
    """
    rules_rust_dependencies()
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
    pip_parse(
        name = "pip",
        timeout = 3600,
        annotations = WHEEL_ANNOTATIONS,
        python_interpreter_target = "@host_python//:python3",
        requirements_lock = Label("//tools/workspace/python:requirements.lock.txt"),
    )
    tensorflow_repository(name = "tensorflow")
    lavapipe_repository(name = "lavapipe")
    buildifier_repository(name = "buildifier")
