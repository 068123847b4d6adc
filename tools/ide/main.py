"""Writes what rust-analyzer, pyright, clangd and VS Code need, into the checkout.

Builds the generated sources and the description of every crate, and compiles nothing else.
Exit status: 0 if all is written, 1 if a build failed, 2 for wrong usage or a file that can't be
changed.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any, Final

from absl import app, flags

from tools.ide import projects, rust_project

_ONLY = flags.DEFINE_list(
    "only", ["rust", "python", "c", "vscode"], "What to write: rust, python, c, vscode."
)
_JSON = flags.DEFINE_bool("json", False, "Print what was written as JSON.")

_ASPECTS: Final = (
    "@rules_rust//rust:defs.bzl%rust_analyzer_aspect",
    "//tools/ide:defs.bzl%generated_sources_aspect",
)
_SPEC: Final = ".rust_analyzer_crate_spec.json"
_KINDS: Final = ("rust", "python", "c", "vscode")


class BuildError(Exception):
    """Bazel failed; it has said why."""


def _bazel(workspace: pathlib.Path, *arguments: str) -> str:
    """Runs the launcher; returns its standard output."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BUILD_")}
    done = subprocess.run(
        [str(workspace / "tools/bazel"), *arguments],
        cwd=workspace,
        env=kept,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BuildError(f"`tools/bazel {' '.join(arguments)}` ended with {done.returncode}")
    return done.stdout


def _specs(workspace: pathlib.Path, exec_root: pathlib.Path) -> list[dict[str, Any]]:
    """Builds the descriptions of all crates, and the sources that generators write."""
    with tempfile.TemporaryDirectory() as folder:
        events = pathlib.Path(folder) / "events.json"
        _bazel(
            workspace,
            "build",
            f"--aspects={','.join(_ASPECTS)}",
            "--output_groups=rust_analyzer_crate_spec,generated_sources",
            f"--build_event_json_file={events}",
            "--",
            *projects.RUST_TARGETS,
        )
        files = projects.outputs(events.read_text(encoding="utf-8"))
    names = sorted(name for name in files if name.endswith(_SPEC))
    return [json.loads((exec_root / name).read_text(encoding="utf-8")) for name in names]


def _write(workspace: pathlib.Path, name: str, text: str, what: str) -> dict[str, str]:
    path = workspace / name
    path.parent.mkdir(exist_ok=True)
    # Replaced as a whole: an editor that watches the file never reads half of it.
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
    return {"file": name, "what": what}


def _all(workspace: pathlib.Path, wanted: Sequence[str]) -> list[dict[str, str]]:
    """Writes the wanted files; returns them with what is in each."""
    info = _bazel(workspace, "info", "output_base", "execution_root").splitlines()
    places = dict(line.split(": ", 1) for line in info)
    base, exec_root = (pathlib.Path(places[key]) for key in ("output_base", "execution_root"))
    external = base / "external"
    written = []
    if "rust" in wanted:
        specs = _specs(workspace, exec_root)
        library = (external / "rust_sysroot/lib").resolve()
        project = rust_project.project(specs, exec_root, library.parent)
        text = json.dumps(project, indent=1) + "\n"
        what = f"{len(project['crates'])} crates"
        if "sysroot_src" not in project:
            what += "; without the standard library: `rustup component add rust-src` brings it"
        written.append(_write(workspace, "rust-project.json", text, what))
    if "python" in wanted:
        _bazel(workspace, "build", "--nobuild", "//tools/ide:wheels")
        packages = sorted(external.glob("pip_*/site-packages"))
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        text = json.dumps(projects.pyright(packages, version), indent=2) + "\n"
        what = f"{len(packages)} wheels"
        written.append(_write(workspace, "pyrightconfig.json", text, what))
    if "c" in wanted:
        headers = [external / "pip_tensorflow_cpu/site-packages/tensorflow/include"]
        found = [folder for folder in headers if folder.is_dir()]
        what = "TensorFlow's headers" if found else "no header of TensorFlow is unpacked yet"
        written.append(_write(workspace, "compile_flags.txt", projects.compile_flags(found), what))
    if "vscode" in wanted:
        name = ".vscode/settings.json"
        path = workspace / name
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        text = projects.merged(before, projects.vscode("rust-project.json"), name)
        written.append(_write(workspace, name, text, "settings beside yours"))
    return written


def main(argv: Sequence[str]) -> int:
    """Writes; returns the exit status."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    unknown = sorted(set(_ONLY.value) - set(_KINDS))
    if unknown:
        raise app.UsageError(f"--only={','.join(unknown)}: expected {', '.join(_KINDS)}")
    workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if workspace is None:
        print("ide: run it with `tools/bazel run //tools:ide`", file=sys.stderr)
        return 2
    begin = time.monotonic()
    try:
        written = _all(pathlib.Path(workspace), _ONLY.value)
    except BuildError as error:
        print(f"ide: {error}", file=sys.stderr)
        return 1
    except projects.SettingsError as error:
        print(f"ide: {error}", file=sys.stderr)
        return 2
    if _JSON.value:
        print(json.dumps(written, indent=2))
    else:
        for row in written:
            print(f"wrote {row['file']}: {row['what']}")
        print(f"{time.monotonic() - begin:.0f} s; run it again when crates, ops or wheels change")
    return 0


if __name__ == "__main__":
    app.run(main)
