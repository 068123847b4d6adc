"""The stages in a row: headers in, text by file name out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.codegen.rustfmt import format_rust
from tools.ffigen import api, emit, parse, read, rules


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
    include_dir: Path,
    rustfmt: str = "",
    header_rules: Sequence[rules.HeaderRule] = rules.HEADERS,
    tables: Sequence[rules.TableRule] = rules.TABLES,
) -> Generated:
    """Runs all stages.

    Args:
        include_dir: The folder of the headers.
        rustfmt: The formatter; empty leaves the text as the templates have it.
        header_rules: The headers, each with its module.
        tables: The tables of function groups.

    Raises:
        CodegenError: The headers, or the rules about them, are refused; every problem is in it.
        OSError: rustfmt can't be started.
    """
    paths = tuple(rule.path for rule in header_rules)
    headers = read.read(parse.parse(include_dir, paths), paths)
    crate = api.rust_crate(headers, header_rules, tables)
    files = emit.emit(crate)
    return Generated(crate, format_rust(files, rustfmt) if rustfmt else files)


def unlisted_headers(include_dir: Path) -> list[str]:
    """Returns the headers of the covered folders that stand in no table, sorted.

    Args:
        include_dir: TensorFlow's include folder.
    """
    known = {rule.path for rule in rules.HEADERS}
    known |= rules.EXCLUDED_HEADERS.keys() | rules.OTHER_VERSIONS.keys()
    found = (
        str(path.relative_to(include_dir))
        for folder in rules.COVERED_FOLDERS
        for path in (include_dir / folder).rglob("*.h")
    )
    return sorted(set(found) - known)
