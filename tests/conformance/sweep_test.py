"""Every kernel of the device computes what the CPU's does."""

from __future__ import annotations

import os
import pathlib

from tests.e2e import child

os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(child.library())
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

from tests.conformance import sweep

DEVICE = "/device:TFP:0"


def test_every_kernel_agrees_with_the_cpu() -> None:
    """Writes the table to `OPS_TABLE` if that is set."""
    tf.config.set_soft_device_placement(False)
    kernels = sweep.registered("TFP")
    assert len(kernels) > 50
    results, unknown = [], []
    for op in sorted(kernels):
        for kernel in kernels[op]:
            if not sweep.is_swept(op, kernel.types):
                continue
            result = sweep.check(op, kernel, DEVICE)
            if result is None:
                unknown.append((op, kernel.types))
            else:
                results.append(result)
    table = os.environ.get("OPS_TABLE")
    if table:
        lines = ["| op | types | calls | largest error | tolerance |", "|---|---|---|---|---|"]
        lines += [
            f"| {r.op} | {r.dtype} | {r.calls} | {r.error:.1e} | {r.tolerance:.0e} |"
            for r in results
        ]
        pathlib.Path(table).write_text("\n".join(lines) + "\n", encoding="utf-8")
    wrong = [f"{r.op} {r.dtype}: {r.problem}" for r in results if r.problem]
    print(f"{len(results)} kernels compared")
    assert not unknown, f"no calls in tests/conformance for {unknown}"
    assert not wrong, "\n".join(wrong)
    # The CPU has no kernel of some types; there is nothing to compare with then.
    assert sum(r.calls > 0 for r in results) > 0.9 * len(results)
