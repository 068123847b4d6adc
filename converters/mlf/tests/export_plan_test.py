"""The archive that tvm_export writes, without TVM: a hand-made plan becomes a crate that runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from converters.mlf.convert import Request, convert
from converters.mlf.tests.build import build, run_rust
from converters.mlf.tvm_export_lower import Loaded, load_model, plan_module
from converters.mlf.tvm_export_plan import (
    Call,
    ConstantPool,
    Place,
    Plan,
    TensorPlan,
    archive_files,
    archive_tar,
)
from tools.codegen.conversion import UsageError

KERNELS = (
    "void tvmgen_net_add(float* a, float* b, float* c) {\n"
    "  for (int i = 0; i < 3; ++i) { c[i] = a[i] + b[i]; }\n}\n"
)


def hand_made() -> Plan:
    pool = ConstantPool()
    pool.add(b"\x01\x02\x03")
    weights = pool.add(np.array([1, 2, 3], np.float32).tobytes())
    assert weights == Place("constant", 16) and pool.add(b"\x01\x02\x03").index == 0
    add = "tvmgen_net_add"
    hidden = Place("workspace", 16)
    return Plan(
        name="net",
        inputs=(TensorPlan("x", "float32", (1, 3)),),
        outputs=(TensorPlan("y", "float32", (1, 3)), TensorPlan("x", "float32", (3,))),
        constants=pool.content(),
        workspace_size=28,
        calls=(
            Call(add, (Place("input", 0), weights, hidden)),
            Call(add, (hidden, weights, Place("output", 0))),
            Call("", (Place("output", 1), hidden), 12),
        ),
        kernels=KERNELS,
        prototypes=("void tvmgen_net_add(float* a, float* b, float* c);",),
        producer="0.27.0",
        script="",
    )


def test_a_plan_becomes_a_crate_that_runs(tmp_path: Path) -> None:
    files = archive_files(hand_made())
    (tmp_path / "net.tar").write_bytes(archive_tar(files))
    x = np.array([10, 20, 30], np.float32)
    step = np.array([1, 2, 3], np.float32)
    golden = {"net_input_x": x, "net_output_y": x + 2 * step, "net_output_x": x + step}
    np.savez(tmp_path / "golden.npz", allow_pickle=False, **golden)
    result = convert(Request(mlf=tmp_path / "net.tar", golden=tmp_path / "golden.npz"))
    api = result.crate.models[0]
    assert [(p.pool.name, p.pool.kind.value, p.pool.size) for p in api.pools] == [
        ("flash", "constant", 28),
        ("sram", "workspace", 28),
    ]
    built = build(result, tmp_path / "crate")
    assert "1 passed" in run_rust(built, built.folder / "tests" / "golden.rs", test=True)


def test_without_pools_there_is_no_pool_struct() -> None:
    plan = hand_made()
    bare = Plan(**{**vars(plan), "constants": b"", "workspace_size": 0, "calls": ()})
    text = archive_files(bare)["codegen/host/include/tvmgen_net.h"]
    assert "workspace_pools" not in text and "_POOL_" not in text


@pytest.mark.parametrize("name", ["Net", "1net", "my-net", ""])
def test_other_module_names_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="expected a lower-case C identifier"):
        plan_module(Loaded("model.onnx", None), name)


def test_other_model_files_are_refused_or_tvm_is_asked_for() -> None:
    with pytest.raises(UsageError, match=r"pip install apache-tvm|neither an \.onnx"):
        load_model(Path("model.pb"))
