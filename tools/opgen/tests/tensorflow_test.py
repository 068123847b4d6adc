"""The rules against the TensorFlow in use: nothing skipped, nothing without a name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.codegen import names
from tools.opgen import api, docstrings, rules
from tools.opgen.enums import allowed_strings
from tools.opgen.model import OpDef
from tools.opgen.tests import suite


def public() -> list[OpDef]:
    return [op for op in suite.tensorflow_ops() if not op.name.startswith(rules.PRIVATE_PREFIX)]


def test_every_public_op_has_a_function(capsys: pytest.CaptureFixture[str]) -> None:
    crate = suite.tensorflow_crate().crate
    assert {op.op.name for op in crate.ops} == {op.name for op in public()}
    with capsys.disabled():
        print(f"\n{len(crate.ops)} of {len(suite.tensorflow_ops())} ops have a function", end=" ")
    assert len(crate.ops) == len(public()) >= 1625


def test_every_set_of_strings_has_a_name_and_every_name_a_set() -> None:
    found = {frozenset(allowed_strings(a)) for op in public() for a in op.attrs} - {frozenset()}
    unnamed = sorted(sorted(values) for values in found - set(rules.ENUMS))
    assert not unnamed, f"rules.ENUMS needs rows for {unnamed}"
    assert not set(rules.ENUMS) - found, "rules.ENUMS has rows for no op"
    assert not names.collisions(rules.ENUMS.values())


def test_every_op_has_a_group_and_every_group_is_listed() -> None:
    crate = suite.tensorflow_crate().crate
    groups = [group.name for group in crate.groups]
    assert rules.DEFAULT_GROUP not in groups
    starlark = Path(suite.HERE.parent / "defs.bzl").read_text(encoding="utf-8")
    listed = re.findall(r'"(\w+)",', starlark.split("OP_GROUPS = [")[1].split("]")[0])
    assert listed == groups
    manifest = Path(suite.HERE.parents[2] / "bindings/ops/Cargo.toml").read_text(encoding="utf-8")
    features = re.findall(r"^(\w+) = \[\]$", manifest, re.MULTILINE)
    assert features == groups
    assert re.findall(r'^    "(\w+)",$', manifest, re.MULTILINE) == groups


def test_every_group_rule_is_used() -> None:
    files = [doc.file for doc in docstrings.parse_docstrings(suite.op_wrappers()).values()]
    stems = {"/" + file.removesuffix(".py") for file in files}
    unused = [end for end in rules.GROUPS if not any(s.endswith("/" + end) for s in stems)]
    assert not unused
    found = [op.name for op in public()]
    assert not [p for p in rules.GROUP_PREFIXES if not any(op.startswith(p) for op in found)]


def test_functions_have_the_names_of_python() -> None:
    for op, doc in docstrings.parse_docstrings(suite.op_wrappers()).items():
        assert api.function_name(op) == doc.function.lstrip("_"), op


def test_most_ops_are_documented() -> None:
    crate = suite.tensorflow_crate().crate
    bare = [op.op.name for op in crate.ops if op.doc[0].startswith("The op `")]
    assert len(bare) < 300, bare


def test_bytes_lists_are_ops_of_this_tensorflow() -> None:
    ops = {op.name: op for op in public()}
    for name, attr in rules.BYTES_LISTS:
        assert ops[name].attr(attr).type == "list(string)"


def test_every_type_of_attribute_and_argument_occurs() -> None:
    types = {attr.type for op in public() for attr in op.attrs}
    assert {"func", "list(func)", "tensor", "list(shape)", "list(type)"} <= types
    assert any(arg.is_ref for op in public() for arg in op.inputs)


def test_deprecated_ops_say_so() -> None:
    files = suite.tensorflow_crate().files
    count = sum(text.count("#[deprecated(note = ") for text in files.values())
    assert count == sum(op.deprecation is not None for op in public()) >= 60


def test_the_smoke_file_calls_every_op() -> None:
    text = suite.tensorflow_crate().files["smoke.rs"]
    assert set(re.findall(r'^ +\("(\w+)", \|cx\|', text, re.MULTILINE)) == {
        op.name for op in public()
    }
