"""The Python toolchain: a CPython that the lock has wheels for, with a digest of its library as an input."""

_PROBE = """\
import hashlib, pathlib, sys, sysconfig
assert (3, 11) <= sys.version_info[:2] <= (3, 13), sys.version
digest = hashlib.sha256(sys.version.encode())
library = pathlib.Path(sysconfig.get_path("stdlib"))
for path in sorted(library.rglob("*")):
    if path.suffix in (".py", ".so") and "site-packages" not in path.parts and "dist-packages" not in path.parts:
        digest.update(str(path.relative_to(library)).encode() + b"\\0" + path.read_bytes())
print(digest.hexdigest())
"""

_BUILD = """\
load("@bazel_tools//tools/python:toolchain.bzl", "py_runtime_pair")

package(default_visibility = ["//visibility:public"])

exports_files(["python3"])

py_runtime(
    name = "runtime",
    files = ["library.sha256"],
    interpreter = "python3",
    python_version = "PY3",
    stub_shebang = "{shebang}",
)

py_runtime_pair(
    name = "pair",
    py3_runtime = ":runtime",
)

toolchain(
    name = "toolchain",
    exec_compatible_with = ["@platforms//os:linux"],
    toolchain = ":pair",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)
"""

# The search path of actions. Programs start by a stub that any Python runs; where the path has none,
# it is the toolchain's own, by a name that other machines do not share.
_ACTION_PATH = ["/bin", "/usr/bin", "/usr/local/bin"]

def _shebang(rctx, python):
    for folder in _ACTION_PATH:
        if rctx.path(folder + "/python3").exists:
            return "#!/usr/bin/env python3"
    return "#!{}".format(python)

def _python_impl(rctx):
    named = rctx.os.environ.get("TFP_PYTHON", "")
    python = rctx.path(named) if named else (rctx.which("python3.11") or rctx.which("python3"))
    if not python:
        fail("python: no python3 on PATH; start tools/bazel, which brings one, or set TFP_PYTHON to a Python from 3.11 to 3.13")
    where = rctx.execute([python, "-c", "import sys; print(sys.executable)"])
    python = rctx.path(where.stdout.strip()).realpath if where.return_code == 0 and where.stdout.strip() else python
    probe = rctx.execute([python, "-I", "-c", _PROBE])
    if probe.return_code != 0:
        fail("python: {} is not a working Python from 3.11 to 3.13; set TFP_PYTHON to one.\n{}".format(python, probe.stderr))
    rctx.file("library.sha256", probe.stdout)
    rctx.symlink(python, "python3")
    rctx.file("BUILD", _BUILD.replace("{shebang}", _shebang(rctx, python)))

host_python = repository_rule(
    implementation = _python_impl,
    configure = True,
    doc = "Declares a CPython from 3.11 to 3.13, from `TFP_PYTHON` or `PATH`, as the Python toolchain.",
    environ = ["PATH", "TFP_PYTHON"],
)
