"""The repository's defaults for Rust and Python targets."""

load("@pip//:requirements.bzl", "requirement")
load("@rules_python//python:defs.bzl", "py_binary", "py_library", "py_test")
load("@rules_rust//rust:defs.bzl", "rust_binary", "rust_clippy", "rust_library", "rust_proc_macro", "rust_shared_library", "rust_test")
load("@rust_config//:config.bzl", "HAS_CLIPPY")

_EDITION = "2024"

# For tests whose reference is TensorFlow's CPU. Where there is no AVX-512 its oneDNN is off by default; then it has no
# grouped convolutions, no gradients of dilated ones, and another softmax of infinity.
ONEDNN = {"TF_ENABLE_ONEDNN_OPTS": "1"}

def _flags(kwargs, optimized):
    return kwargs.pop("rustc_flags", []) + ([] if optimized else ["-Copt-level=0"])

def _clippy(name, clippy, testonly = False):
    if clippy and HAS_CLIPPY:
        rust_clippy(
            name = name + "_clippy",
            testonly = testonly,
            deps = [":" + name],
        )

def tfp_rust_library(name, clippy = True, **kwargs):
    """A `rust_library` of the repository's edition; warnings of clippy are errors.

    Args:
      name: name of the target.
      clippy: whether clippy judges it; off for crates that a generator writes.
      **kwargs: as for `rust_library`.
    """
    rust_library(name = name, edition = _EDITION, **kwargs)
    _clippy(name, clippy, kwargs.get("testonly", False))

def tfp_rust_binary(name, clippy = True, optimized = None, **kwargs):
    """A `rust_binary` of the repository's edition; warnings of clippy are errors.

    Args:
      name: name of the target.
      clippy: whether clippy judges it; off for crates that a generator writes.
      optimized: whether its own code is; if None, unless it is for tests alone. Its crates are.
      **kwargs: as for `rust_binary`.
    """
    if optimized == None:
        optimized = not kwargs.get("testonly", False)
    rust_binary(name = name, edition = _EDITION, rustc_flags = _flags(kwargs, optimized), **kwargs)
    _clippy(name, clippy, kwargs.get("testonly", False))

def tfp_rust_proc_macro(name, clippy = True, **kwargs):
    """A `rust_proc_macro` of the repository's edition; warnings of clippy are errors.

    Args:
      name: name of the target.
      clippy: whether clippy judges it; off for crates that a generator writes.
      **kwargs: as for `rust_proc_macro`.
    """
    rust_proc_macro(name = name, edition = _EDITION, **kwargs)
    _clippy(name, clippy, kwargs.get("testonly", False))

def tfp_rust_shared_library(name, clippy = True, **kwargs):
    """A `rust_shared_library` of the repository's edition; warnings of clippy are errors.

    Args:
      name: name of the target.
      clippy: whether clippy judges it; off for crates that a generator writes.
      **kwargs: as for `rust_shared_library`.
    """
    rust_shared_library(name = name, edition = _EDITION, **kwargs)
    _clippy(name, clippy, kwargs.get("testonly", False))

def tfp_rust_test(name, clippy = True, optimized = False, **kwargs):
    """A `rust_test` of the repository's edition; warnings of clippy are errors.

    Args:
      name: name of the target.
      clippy: whether clippy judges it; off for crates that a generator writes.
      optimized: whether its own code is, which takes three times as long to compile. Its crates are.
      **kwargs: as for `rust_test`.
    """
    if "crate" not in kwargs:
        kwargs["edition"] = _EDITION
    rust_test(name = name, rustc_flags = _flags(kwargs, optimized), **kwargs)
    _clippy(name, clippy, testonly = True)

# TensorFlow is imported in half of the time where its bytecode is there.
_BYTECODE_OF = {requirement("tensorflow-cpu"): Label("//tools/build/bytecode:site")}

def _with_bytecode(deps):
    return deps + [_BYTECODE_OF[dep] for dep in deps if dep in _BYTECODE_OF]

def tfp_py_library(name, deps = [], **kwargs):
    """A `py_library`; mypy and ruff read it through `//tools/build:python_lint_test`.

    Args:
      name: name of the target.
      deps: Python targets that it imports.
      **kwargs: as for `py_library`.
    """
    py_library(name = name, deps = _with_bytecode(deps), **kwargs)

def tfp_py_binary(name, srcs, main = None, deps = [], **kwargs):
    """A `py_binary`; mypy and ruff read it through `//tools/build:python_lint_test`.

    Args:
      name: name of the target.
      srcs: its files; the first is the program.
      main: the program, if it is another file.
      deps: Python targets that it imports.
      **kwargs: as for `py_binary`.
    """
    py_binary(name = name, srcs = srcs, main = main or srcs[0], deps = _with_bytecode(deps), **kwargs)

def tfp_py_test(name, srcs, deps = [], args = [], **kwargs):
    """Runs the pytest files `srcs` as one Bazel test.

    Args:
      name: name of the test, `<what>_test`.
      srcs: pytest files and the conftest.py that they share; files that end in `_test.py` are run.
      deps: Python targets that they import.
      args: further arguments of pytest.
      **kwargs: as for `py_test`.
    """
    cases = [src for src in srcs if src.endswith("_test.py")]
    if not cases:
        fail("{}: no file of srcs ends in _test.py".format(name))
    py_test(
        name = name,
        srcs = srcs + [Label("//tools/build:pytest_main.py")],
        args = ["$(rootpath {})".format(case) for case in cases] + args,
        data = kwargs.pop("data", []) + cases,
        main = Label("//tools/build:pytest_main.py"),
        deps = {dep: None for dep in _with_bytecode(deps) + [requirement("pytest")]}.keys(),
        **kwargs
    )

def tfp_checked_in(name, generated, folder = "src"):
    """Sources that a generator writes and that are in the checkout, too, for people without Bazel.

    Makes a test `<name>_test` that compares the two, and a program `<name>_update` that copies.

    Args:
      name: prefix of the targets.
      generated: labels of the generated files.
      folder: the folder of this package that holds their copies and nothing else.
    """
    where = native.package_name() + "/" + folder
    paths = ["$(rootpath {})".format(file) for file in generated]
    tfp_py_binary(
        name = name + "_update",
        srcs = [Label("//tools/build:checked_in.py")],
        args = ["--folder=" + where] + paths,
        data = generated,
        main = Label("//tools/build:checked_in.py"),
        deps = [requirement("absl-py")],
    )
    py_test(
        name = name + "_test",
        size = "small",
        srcs = [
            Label("//tools/build:checked_in_test.py"),
            Label("//tools/build:pytest_main.py"),
        ],
        args = ["$(rootpath {})".format(Label("//tools/build:checked_in_test.py"))],
        data = generated + native.glob([folder + "/*"]),
        env = {
            "FOLDER": where,
            "GENERATED": " ".join(paths),
            "UPDATE": "//{}:{}_update".format(native.package_name(), name),
        },
        main = Label("//tools/build:pytest_main.py"),
        deps = [requirement("pytest")],
    )
