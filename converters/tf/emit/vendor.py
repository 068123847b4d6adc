"""The runtime and the kernels as source: the files that a model needs, as modules of its crate.

Tests and the kernels' registration tables are left out; `crate::` paths get the module in front.
A file needs those that its text names as `crate::<module>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_USE = re.compile(r"\bcrate::(?:\{([^}]*)\}|(\w+))")
_MODULE = re.compile(r"^((?:#\[[^\n]*\]\n)*)(pub |pub\(crate\) |)mod (\w+);\n", re.MULTILINE)
ALLOW = "#![allow(dead_code, unused_imports, unused_macros, clippy::all)]\n"


def vendor(
    runtime: Mapping[str, str], kernels: Mapping[str, str], uses: Iterable[str]
) -> dict[str, str]:
    """Returns the files of the runtime that a model needs, by path below `src/runtime`.

    Args:
        runtime: Sources of the runtime by path below its `src`.
        kernels: Sources of the kernels by path below their `src`.
        uses: Paths below the runtime that the model names, such as `dense::Dense` or
            `kernels::unary::Tanh`.
    """
    runtime = {path: strip(text) for path, text in runtime.items()}
    kernels = {path: strip(text) for path, text in kernels.items()}
    own: set[str] = set()
    wanted: set[str] = set()
    for use in uses:
        parts = use.split("::")
        if parts[0] == "kernels":
            wanted.add(parts[1])
        else:
            own.add(parts[0])
    own = _closure(own, runtime)
    for module in own - {"kernels"}:
        for path in files_of(module, runtime):
            wanted.update(re.findall(r"\bcrate::kernels::(\w+)", runtime[path]))
    wanted = _closure(wanted, kernels)
    out = {"mod.rs": _root(runtime["lib.rs"], own - {"kernels"}, "kernels")}
    for module in own - {"kernels"}:
        for path in files_of(module, runtime):
            out[path] = _moved(runtime[path], "crate::runtime")
    out["kernels/mod.rs"] = _root(kernels["lib.rs"], wanted, None)
    for module in wanted:
        for path in files_of(module, kernels):
            out[f"kernels/{path}"] = _moved(kernels[path], "crate::runtime::kernels")
    return dict(sorted(out.items()))


def read_sources(folder: Path) -> dict[str, str]:
    """Returns the Rust files below a folder, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in sorted(folder.rglob("*.rs"))
    }


def files_of(module: str, sources: Mapping[str, str]) -> Iterator[str]:
    """Yields the files of a module: its own and those below it, without tests."""
    for path in sources:
        inside = path == f"{module}.rs" or path.startswith(f"{module}/")
        if inside and not path.endswith("tests.rs") and "/tests/" not in path:
            yield path


def _closure(modules: set[str], sources: Mapping[str, str]) -> set[str]:
    """Returns modules with all that they name."""
    done: set[str] = set()
    todo = set(modules)
    while todo:
        module = todo.pop()
        done.add(module)
        for path in files_of(module, sources):
            todo |= set(_used(sources[path])) - done
    return done


def _used(text: str) -> Iterator[str]:
    code = "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("//"))
    for several, one in _USE.findall(code):
        if one:
            yield one
        for name in several.split(","):
            if name.strip():
                yield name.strip().split("::")[0]


def _root(lib: str, modules: Iterable[str], inner: str | None) -> str:
    """Returns the file that declares the modules, with the attributes of `lib`."""
    doc = "".join(line + "\n" for line in lib.split("\n") if line.startswith("//!"))
    declared = {
        name: f"{attributes}{visible}mod {name};\n"
        for attributes, visible, name in _MODULE.findall(lib)
    }
    names = sorted([*modules, *([inner] if inner else [])])
    body = "".join(declared.get(name, f"pub mod {name};\n") for name in names)
    return f"{doc}{ALLOW if inner else ''}\n{body}"


def _moved(text: str, root: str) -> str:
    return re.sub(r"(?<![\w:])(\$?)crate::", rf"\1{root}::", text)


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
        if re.match(r"\s*pub static \S+: (KernelDef|&\[&def::KernelDef\]) =", line):
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
