"""Runs the demo graph on a device and says what happened, node by node."""

from __future__ import annotations

import dataclasses
import statistics
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tools.quickstart import demo

Array = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a device made of the demo graph.

    Attributes:
        values: Value of each case.
        devices: Device on which each node of the graph ran, as the run's own statistics say it.
        microseconds: Median time of each node.
    """

    values: dict[str, Array]
    devices: dict[str, str]
    microseconds: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the report.

    Attributes:
        case: Name of the node.
        op: Op type.
        device: Device on which it ran; empty if the run's statistics do not name it.
        difference: Largest absolute difference from the CPU's value.
        microseconds: Median time on the device.
        cpu_microseconds: Median time on the CPU.
        problem: What is wrong, or empty.
    """

    case: str
    op: str
    device: str
    difference: float
    microseconds: float
    cpu_microseconds: float
    problem: str


def run(device: str, repetitions: int) -> Outcome:
    """Runs the demo graph, every node pinned to `device`, with soft placement off.

    Graph rewriting is off too, so that every node really runs.

    Args:
        device: Device string such as `/device:TFP:0`.
        repetitions: How often the graph runs; the values are those of the first run, because
            random nodes go on with every run.

    Returns:
        Values, devices and times.
    """
    config = tf.compat.v1.ConfigProto(allow_soft_placement=False)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    options = tf.compat.v1.RunOptions(trace_level=tf.compat.v1.RunOptions.FULL_TRACE)
    graph, tensors = demo.build(device)
    values: dict[str, Array] = {}
    devices: dict[str, str] = {}
    times: dict[str, list[float]] = {}
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        for repetition in range(repetitions):
            metadata = tf.compat.v1.RunMetadata()
            found = session.run(tensors, options=options, run_metadata=metadata)
            if repetition == 0:
                values = found
            for stats in metadata.step_stats.dev_stats:
                for node in stats.node_stats:
                    name = node.node_name.split(":")[0]
                    devices[name] = stats.device
                    elapsed = node.op_end_rel_nanos - node.op_start_rel_nanos
                    times.setdefault(name, []).append(elapsed / 1000)
    names = [operation.name for operation in graph.get_operations()]
    return Outcome(
        values=values,
        devices={name: devices.get(name, "") for name in names},
        microseconds={name: statistics.median(times[name]) for name in names if name in times},
    )


def compare(device: Outcome, cpu: Outcome, device_type: str, tolerance: float) -> list[Row]:
    """Compares the two outcomes.

    Args:
        device: Outcome on the device.
        cpu: Outcome on the CPU.
        device_type: Type of the device on which all nodes should have run.
        tolerance: Largest absolute difference that is accepted.

    Returns:
        One row per case, then one per further node that ran elsewhere.
    """
    rows = []
    for case in demo.CASES:
        found, expected = device.values[case.name], cpu.values[case.name]
        difference = largest_difference(found, expected)
        where = device.devices[case.name]
        problem = ""
        if f"/device:{device_type}:" not in where:
            problem = f"ran on {where or 'no device that the run names'}"
        elif case.exact and found.tobytes() != expected.tobytes():
            problem = "differs in some bit"
        elif not difference <= tolerance:
            problem = f"differs by more than {tolerance:g}"
        rows.append(
            Row(
                case=case.name,
                op=case.op,
                device=where,
                difference=difference,
                microseconds=device.microseconds.get(case.name, float("nan")),
                cpu_microseconds=cpu.microseconds.get(case.name, float("nan")),
                problem=problem,
            )
        )
    cases = {case.name for case in demo.CASES}
    for name, where in device.devices.items():
        if name not in cases and where and f"/device:{device_type}:" not in where:
            rows.append(Row(name, "", where, 0.0, 0.0, 0.0, f"ran on {where}"))
    return rows


def largest_difference(found: Array, expected: Array) -> float:
    """Returns the largest absolute difference; infinity if shape, type or any NaN differs."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return float("inf")
    if found.size == 0:
        return 0.0
    a, b = found.astype(np.float64), expected.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0.0, np.abs(a - b))
    return float(np.where(np.isnan(gap), np.inf, gap).max())
