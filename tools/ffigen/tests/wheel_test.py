"""ffigen over the headers of the installed TensorFlow: complete, and its tables are current."""

from __future__ import annotations

import re

import pytest

from tools.ffigen import api, model, parse, pipeline, read, rules
from tools.ffigen.tests import suite, wheel


@pytest.fixture(scope="module")
def headers() -> tuple[model.Header, ...]:
    paths = tuple(rule.path for rule in rules.HEADERS)
    return read.read(parse.parse(wheel.include_dir(), paths), paths)


@pytest.fixture(scope="module")
def crate(headers: tuple[model.Header, ...]) -> api.RustCrate:
    return api.rust_crate(headers)


def test_every_c_header_has_a_row() -> None:
    missing = pipeline.unlisted_headers(wheel.include_dir())
    lines = "\n".join(f'    "{path}": "REASON",' for path in missing)
    assert not missing, f"rules.py: add to HEADERS, or paste into EXCLUDED_HEADERS:\n{lines}"


def test_every_row_has_a_header() -> None:
    rows = [rule.path for rule in rules.HEADERS] + list(rules.EXCLUDED_HEADERS)
    assert len(rows) == len(set(rows))
    assert [path for path in rows if not (wheel.include_dir() / path).is_file()] == []


def test_every_exception_is_used(headers: tuple[model.Header, ...]) -> None:
    items = [item for header in headers for item in header.items]
    names = {item.name for item in items}
    names |= {item.symbol for item in items if isinstance(item, model.Function)}
    rows = [*rules.EXCLUDED_ITEMS, *rules.ENTRY_POINTS, *rules.OPTIONAL_FUNCTIONS]
    assert [name for name in rows if name not in names] == []


def test_every_exception_has_a_reason() -> None:
    tables = (
        rules.EXCLUDED_HEADERS,
        rules.EXCLUDED_ITEMS,
        rules.ENTRY_POINTS,
        rules.OPTIONAL_FUNCTIONS,
    )
    assert all(reason for table in tables for reason in table.values())


def test_every_function_is_there_or_has_a_reason(
    headers: tuple[model.Header, ...], crate: api.RustCrate
) -> None:
    declared = {
        item.symbol
        for header in headers
        for item in header.items
        if isinstance(item, model.Function) and not item.inline
    }
    generated = {f.link_name or f.c_name for m in crate.modules for f in m.functions}
    left_out = declared - generated
    assert left_out <= set(rules.EXCLUDED_ITEMS) | set(rules.ENTRY_POINTS)
    assert len(generated) >= 640


def test_every_export_macro_was_seen(crate: api.RustCrate) -> None:
    """A declaration that the parser skipped would still show in the header's text."""
    names = {f.c_name for m in crate.modules for f in m.functions}
    pattern = re.compile(r"TF_CAPI_EXPORT[^;]*?\b(\w+)\s*\(", re.DOTALL)
    for rule in rules.HEADERS:
        text = (wheel.include_dir() / rule.path).read_text(encoding="utf-8")
        text = re.sub(r"//[^\n]*|#define[^\n]*(\\\n[^\n]*)*", "", text)
        exported = set(pattern.findall(text))
        assert exported - names - set(rules.ENTRY_POINTS) == set(), rule.path


def test_every_size_macro_is_there(crate: api.RustCrate) -> None:
    constants = {item.name: item for m in crate.modules for item in m.items if item.kind == "const"}
    found = 0
    for rule in rules.HEADERS:
        text = (wheel.include_dir() / rule.path).read_text(encoding="utf-8")
        for name in re.findall(r"^#define (\w+_STRUCT_SIZE)\s", text, re.MULTILINE):
            assert constants[name].type == "usize"
            found += 1
    assert found >= 19


def test_no_group_is_left_without_a_table(crate: api.RustCrate) -> None:
    groups = {module.name for module in crate.modules if module.functions}
    in_tables = {name for table in rules.TABLES for name in (*table.required, *table.optional)}
    assert in_tables == groups


def test_the_build_macro_names_every_module() -> None:
    text = (suite.HERE.parent / "defs.bzl").read_text(encoding="utf-8")
    listed = re.findall(r'^    "(\w+)",$', text, re.MULTILINE)
    wanted = [rule.module for rule in rules.HEADERS]
    lines = "\n".join(f'    "{name}",' for name in wanted)
    assert listed == wanted, f"defs.bzl: paste into _MODULES:\n{lines}"
