"""Every kernel of the device computes what the CPU's does."""

from __future__ import annotations

import os

from tests.e2e import child

os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(child.library())
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf  # noqa: E402  (reads the variable when it is imported)

from tests.conformance import sweep  # noqa: E402

DEVICE = "/device:TFP:0"


def test_every_kernel_agrees_with_the_cpu() -> None:
    """Writes the table to `OPS_TABLE` if that is set."""
    tf.config.set_soft_device_placement(False)
    kernels = sweep.registered("TFP")
    assert len(kernels) > 50
    results, unknown = [], []
    for op in sorted(kernels):
        for types in kernels[op]:
            result = sweep.check(op, types, DEVICE)
            if result is None:
                unknown.append((op, types))
            else:
                results.append(result)
    table = os.environ.get("OPS_TABLE")
    if table:
        lines = ["| op | type | calls | largest error | tolerance |", "|---|---|---|---|---|"]
        lines += [
            f"| {r.op} | {r.dtype} | {r.calls} | {r.error:.1e} | {r.tolerance:.0e} |"
            for r in results
        ]
        with open(table, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    wrong = [f"{r.op} {r.dtype}: {r.problem}" for r in results if r.problem]
    print(f"{len(results)} kernels compared, {len(unknown)} without cases")
    assert not wrong, "\n".join(wrong)
    assert sum(r.calls > 0 for r in results) > 200
