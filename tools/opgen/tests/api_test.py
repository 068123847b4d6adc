"""What is decided about names, parameters and enums; and the program's exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.codegen.errors import CodegenError
from tools.opgen.api import RustOp, function_name, type_name
from tools.opgen.tests import suite


def only(text: str) -> RustOp:
    (op,) = suite.crate_of(text).ops
    return op


def test_names() -> None:
    assert function_name("Conv2DBackpropInputV2") == "conv2d_backprop_input_v2"
    assert function_name("Xlog1py") == "xlog1py"
    assert type_name("TopKV2") == "TopKV2"
    assert type_name("Company>Op") == "CompanyOp"
    assert type_name("lower_case") == "LowerCase"


def test_parameters_are_inputs_then_required_attributes() -> None:
    op = only(
        """
        op { name: "A"
          input_arg { name: "b" type_attr: "T" } input_arg { name: "a" type: DT_INT32 }
          attr { name: "z" type: "int" } attr { name: "o" type: "int" default_value { i: 1 } }
          attr { name: "T" type: "type" } attr { name: "c" type: "bool" }
        }
        """
    )
    assert [p.name for p in op.parameters] == ["b", "a", "z", "c"]
    assert op.options is not None
    assert [f.name for f in op.options.fields] == ["o"]
    assert op.values == ("z.into()", "options.o.into()", "c.into()")


def test_names_of_one_function_are_distinct() -> None:
    op = only(
        'op { name: "A" attr { name: "T" type: "int" } attr { name: "t" type: "int" }'
        ' attr { name: "cx" type: "int" } attr { name: "ref" type: "int" } }'
    )
    assert [p.name for p in op.parameters] == ["t", "t_", "cx_", "r#ref"]


def test_two_functions_of_one_name_are_refused() -> None:
    with pytest.raises(CodegenError, match="two items would be the Rust function `a_b`"):
        suite.crate_of('op { name: "AB_" } op { name: "A_B" } op { name: "a_b" }')


def test_equal_sets_in_another_order_share_an_enum() -> None:
    crate = suite.crate_of(
        """
        op { name: "A" attr { name: "x" type: "string" allowed_values { list { s: "p" s: "q" } } } }
        op { name: "B" attr { name: "y" type: "string" allowed_values { list { s: "q" s: "p" } } } }
        """
    )
    (enum,) = crate.enums
    assert enum.name == "AX"
    assert enum.uses == ("A.x", "B.y")
    assert enum.variants == (("P", "p"), ("Q", "q"))


def test_private_ops_have_no_wrapper() -> None:
    assert not suite.crate_of('op { name: "_A" }').ops


def test_one_group_needs_no_feature() -> None:
    files = suite.generated('op { name: "Custom" }', group="mine").files
    assert "cfg(feature" not in files["items.rs"]
    assert "pub mod mine;" in files["items.rs"]
    assert set(files) == {"enums.rs", "items.rs", "lib.rs", "mine.rs", "type_sets.rs"}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.opgen.main", *arguments]
    root = suite.HERE.parents[2]
    environment = {"PYTHONPATH": ":".join([str(root), *sys.path])}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=root, env=environment
    )


def test_program(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.pbtxt", tmp_path / "bad.pbtxt"
    good.write_text('op { name: "Custom" }')
    bad.write_text('op { name: "A" } op { name: "A" }')
    out = tmp_path / "out"
    done = run(f"--op_list={good}", f"--out={out}", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert '"ops": 1' in done.stdout
    before = sorted(out.iterdir())
    refused = run(f"--op_list={bad}", f"--out={out}")
    assert refused.returncode == 1
    assert "bad.pbtxt: error: op A: registered twice" in refused.stderr
    assert sorted(out.iterdir()) == before
    missing = run(f"--op_list={tmp_path / 'none.pb'}", f"--out={out}")
    assert missing.returncode == 2
    assert "none.pb" in missing.stderr
    assert run().returncode == 2
