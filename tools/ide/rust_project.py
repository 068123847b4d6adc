"""Crates as rules_rust describes them -> `rust-project.json` of rust-analyzer."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

EXEC_ROOT: Final = "__EXEC_ROOT__/"
OUTPUT_BASE: Final = "__OUTPUT_BASE__/"


def merge(specs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Joins the descriptions of one crate: a library and its tests have the same root module.

    Args:
        specs: What `rust_analyzer_aspect` wrote, a description per target.

    Returns:
        One description per crate, in the order of `crate_id`. Dependencies and conditions are those
        of all its targets; the type is that of the library.
    """
    found: dict[str, dict[str, Any]] = {}
    for spec in specs:
        name = spec["crate_id"]
        crate = found.setdefault(name, {**spec, "deps": set(), "cfg": set(), "aliases": {}})
        crate["deps"] |= set(spec["deps"]) - {name}
        crate["cfg"] |= set(spec["cfg"])
        crate["aliases"] |= spec.get("aliases", {})
        crate["env"] = {**crate["env"], **spec["env"]}
        crate["is_workspace_member"] |= spec["is_workspace_member"]
        crate["source"] = {
            kind: sorted({*crate["source"][kind], *spec["source"][kind]})
            for kind in ("include_dirs", "exclude_dirs")
        }
        if spec["crate_type"] == "rlib":
            crate["crate_type"], crate["display_name"] = "rlib", spec["display_name"]
        if "proc_macro_dylib_path" in spec:
            crate["proc_macro_dylib_path"] = spec["proc_macro_dylib_path"]
    return [found[name] for name in sorted(found)]


def project(
    specs: Iterable[Mapping[str, Any]], exec_root: pathlib.Path, sysroot: pathlib.Path
) -> dict[str, Any]:
    """Describes all crates of the checkout.

    Args:
        specs: What `rust_analyzer_aspect` wrote, a description per target.
        exec_root: The folder below which Bazel's outputs and external repositories are.
        sysroot: The Rust toolchain. Its sources are named if the component `rust-src` is there.

    Returns:
        The content of `rust-project.json`; paths of the checkout are relative to its root.
    """

    def placed(text: str) -> str:
        base = exec_root.parent.parent
        return text.replace(EXEC_ROOT, f"{exec_root}/").replace(OUTPUT_BASE, f"{base}/")

    merged = merge(specs)
    index = {crate["crate_id"]: at for at, crate in enumerate(merged)}
    names = {crate["crate_id"]: crate["display_name"].replace("-", "_") for crate in merged}
    crates = []
    for crate in merged:
        dylib = placed(crate.get("proc_macro_dylib_path", ""))
        root = placed(crate["root_module"])
        folders = [placed(folder) for folder in crate["source"]["include_dirs"]]
        crates.append(
            {
                "display_name": crate["display_name"],
                "root_module": root,
                "edition": crate["edition"],
                "deps": [
                    {"crate": index[dep], "name": crate["aliases"].get(dep, names[dep])}
                    for dep in sorted(crate["deps"])
                    if dep in index
                ],
                "cfg": sorted(crate["cfg"]),
                "target": crate["target"],
                "env": {name: placed(value) for name, value in sorted(crate["env"].items())},
                "is_workspace_member": crate["is_workspace_member"],
                "source": {
                    "include_dirs": sorted({str(pathlib.PurePath(root).parent), *folders}),
                    "exclude_dirs": [placed(each) for each in crate["source"]["exclude_dirs"]],
                },
                "is_proc_macro": crate["crate_type"] == "proc-macro",
                **({"proc_macro_dylib_path": dylib} if dylib else {}),
            }
        )
    library = sysroot / "lib/rustlib/src/rust/library"
    return {
        "sysroot": str(sysroot),
        **({"sysroot_src": str(library)} if library.is_dir() else {}),
        "crates": crates,
    }
