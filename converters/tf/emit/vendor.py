"""The runtime and the kernels as source: the files that a model needs, as modules of its crate.

Tests and the kernels' registration tables are left out; `crate::` paths get the module in front.
Which files a model needs is read from the paths in them (`modules`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from converters.tf.emit.modules import Crate, Needed

ALLOW = "#![allow(dead_code, unused_imports, unused_macros, clippy::all)]\n"


def vendor(
    runtime: Mapping[str, str], kernels: Mapping[str, str], uses: Iterable[str]
) -> dict[str, str]:
    """Returns the files of the runtime that a model needs, by path below `src/runtime`.

    Args:
        runtime: Sources of the runtime by path below its `src`.
        kernels: Sources of the kernels by path below their `src`.
        uses: Paths below the runtime that the model names, such as `dense::Dense` or
            `kernels::ops::elementwise::unary::Tanh`.
    """
    own = Crate({path: strip(text) for path, text in runtime.items()})
    kernel = Crate({path: strip(text) for path, text in kernels.items()})
    paths = [tuple(use.split("::")) for use in uses]
    # Who uses a module by its name calls its functions.
    paths = [(*path, "*") if path in own.modules else path for path in paths]
    needed = own.closure(path for path in paths if path[0] != "kernels")
    wanted = [path[1:] for path in paths if path[0] == "kernels"]
    wanted = [(*path, "*") if path in kernel.modules else path for path in wanted]
    of_kernels = kernel.closure([*wanted, *own.named_below("kernels", needed)])
    out = {"mod.rs": _root(own, needed, ALLOW) + "pub mod kernels;\n"}
    out |= _files(own, needed, "crate::runtime")
    out["kernels/mod.rs"] = _root(kernel, of_kernels, "")
    moved = _files(kernel, of_kernels, "crate::runtime::kernels")
    out |= {f"kernels/{path}": text for path, text in moved.items()}
    return dict(sorted(out.items()))


def read_sources(folder: Path) -> dict[str, str]:
    """Returns the Rust files below a folder, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in sorted(folder.rglob("*.rs"))
    }


def _root(crate: Crate, needed: Needed, allow: str) -> str:
    """Returns the file that declares the modules of a crate, with the documentation of `lib.rs`."""
    lines = crate.text((), Needed(frozenset(), needed.whole | needed.declared)).split("\n")
    doc = "".join(f"{line}\n" for line in lines if line.startswith("//!"))
    modules = "\n".join(line for line in lines if line.startswith(("#[", "pub ", "mod ")))
    return f"{doc}{allow}\n{modules}\n".replace("pub use tfp_kernels as kernels;\n", "")


def _files(crate: Crate, needed: Needed, root: str) -> dict[str, str]:
    return {
        crate.modules[at].file: _moved(_squeezed(crate.text(at, needed).split("\n")), root)
        for at in needed.whole | needed.declared
        if at
    }


def _moved(text: str, root: str) -> str:
    return re.sub(r"(?<![\w:])(\$?)crate::", rf"\1{root}::", text)


# Most files are copied into several crates.
@functools.lru_cache(maxsize=2048)
def strip(text: str) -> str:
    """Returns a source without its tests and without registration tables."""
    return _without_tables(_without_tests(text))


def _without_tests(text: str) -> str:
    """Removes items that are only compiled for tests; rustfmt's layout tells where they end."""
    lines = text.split("\n")
    out: list[str] = []
    index = 0
    while index < len(lines):
        if re.fullmatch(r"\s*#\[cfg\((test|all\(test, .*\))\)\]", lines[index]):
            while out and out[-1].lstrip().startswith(("///", "#[")):
                out.pop()
            indent = lines[index][: len(lines[index]) - len(lines[index].lstrip())]
            index = _after_item(lines, index + 1, indent)
            continue
        out.append(lines[index])
        index += 1
    return _squeezed(out)


def _without_tables(text: str) -> str:
    """Removes every `static ...: KernelDef` with its documentation, inside of macros too."""
    lines = text.split("\n")
    out: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        if re.match(r"\s*pub static \S+: (\S*\bKernelDef|&\[&(?:\[&)?KernelDef\]+) =", line):
            while out and re.match(r"\s*(///|#\[doc)", out[-1]):
                out.pop()
            indent = line[: len(line) - len(line.lstrip())]
            index = _after_item(lines, index, indent)
            continue
        out.append(line)
        index += 1
    return _squeezed(out)


def _after_item(lines: list[str], index: int, indent: str) -> int:
    """Returns the line after the item that starts at `index` with this indent."""
    while index < len(lines) and lines[index].startswith(f"{indent}#["):
        index += 1
    if lines[index].rstrip().endswith((";", "},", "{}")) and lines[index].startswith(indent):
        return index + 1
    while index < len(lines):
        line = lines[index]
        if re.match(rf"{re.escape(indent)}[}}\])]+[;,)]*$", line):
            return index + 1
        index += 1
    return index


def _squeezed(lines: list[str]) -> str:
    out: list[str] = []
    for line in lines:
        if not line.strip() and (not out or not out[-1].strip()):
            continue
        out.append(line)
    while out and not out[-1].strip():
        out.pop()
    return "\n".join(out) + "\n"
