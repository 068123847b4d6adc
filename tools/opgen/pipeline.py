"""The stages in a row: an OpList and docstrings in, text by file name out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tools.codegen.rustfmt import format_rust
from tools.opgen import api, docstrings, emit, read, rules, smoke


@dataclass(frozen=True)
class Generated:
    """The result of a run.

    Attributes:
        crate: The Rust items.
        files: Text by file name.
    """

    crate: api.RustCrate
    files: dict[str, str]


def generate(
    op_list: bytes,
    name: str,
    sources: Mapping[str, str],
    rustfmt: str = "",
    group: str = rules.DEFAULT_GROUP,
    with_smoke: bool = False,
) -> Generated:
    """Runs all stages.

    Args:
        op_list: Serialized OpList, or its text form if `name` ends in `.pbtxt`.
        name: The name of its file.
        sources: Sources of Python op wrappers by file name; may be empty.
        rustfmt: The formatter; empty leaves the text as the templates have it.
        group: The group of ops for which no rule names one.
        with_smoke: Write `smoke.rs` too, which calls every function.

    Raises:
        CodegenError: The input is refused; every problem is in it.
        OSError: rustfmt can't be started.
    """
    ops = read.read_op_list(op_list, name)
    crate = api.rust_crate(ops, docstrings.parse_docstrings(sources), name, group)
    files = emit.emit(crate, name)
    if with_smoke:
        files["smoke.rs"] = smoke.emit(crate, name)
    return Generated(crate, format_rust(files, rustfmt) if rustfmt else files)
