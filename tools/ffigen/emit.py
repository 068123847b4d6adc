"""Rust items to text: one file per module, the crate root and the tables."""

from __future__ import annotations

from pathlib import Path

from tools.codegen.render import environment, generated_header, render
from tools.codegen.rust import doc_comment
from tools.ffigen.api import RustCrate

TOOL = "tools/ffigen"
_TEMPLATES = Path(__file__).resolve().parent / "templates"


def emit(crate: RustCrate) -> dict[str, str]:
    """Writes the crate as text; equal input gives equal bytes.

    Args:
        crate: From the api stage.

    Returns:
        Text by file name: `lib.rs`, `bindings.rs` (what `lib.rs` includes; a build script's crate
        root includes it too), `tables.rs` and one file per module.
    """
    env = environment(_TEMPLATES)
    env.filters["doc"] = _doc
    files = {
        f"{module.name}.rs": render(
            env,
            "module.rs.jinja",
            {"module": module, "marker": generated_header(TOOL, module.header)},
        )
        for module in crate.modules
    }
    values = {"crate": crate, "marker": generated_header(TOOL, "TensorFlow's C headers")}
    for name in ("tables", "bindings", "lib"):
        files[f"{name}.rs"] = render(env, f"{name}.rs.jinja", values)
    return dict(sorted(files.items()))


def _doc(lines: tuple[str, ...], indent: int = 0, marker: str = "///") -> str:
    return doc_comment(lines, indent, marker)
