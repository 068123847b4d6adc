"""Says what is installed, whether the device works, and which nodes of a model it would not run.

Exit status: 0 if the device works, 1 if it does not, 2 if TensorFlow or the model can't be used.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from . import _device, _gpu, _models, _placement


@dataclasses.dataclass(frozen=True)
class Installation:
    """What is there.

    Attributes:
        tfp_plugin: Version of the wheel.
        library: The plug-in that is loaded, or None.
        tensorflow: Its version.
        keras: Its version, or None.
        python: Its version.
        devices: Names of the devices, such as `TFP:0`.
        problem: Why the device does not work, or empty.
        note: What else should be known, or empty.
        ops: Kernels per op of the device.
        gpu: What the plug-in says of GPUs, or None if it does not know them.
    """

    tfp_plugin: str
    library: str | None
    tensorflow: str
    keras: str | None
    python: str
    devices: list[str]
    problem: str
    note: str
    ops: dict[str, int]
    gpu: _gpu.Report | None


def fallbacks(concrete_function: Any) -> tuple[_placement.Fallback, ...]:
    """Returns the nodes of a traced function that would run on the CPU.

    Args:
        concrete_function: What `tf.function(f).get_concrete_function(...)` returns.

    Returns:
        One entry per node, with the reason.
    """
    kernels = _placement.registered(_device.device_type())
    return _placement.place(kernels, concrete_function.graph.as_graph_def()).fallbacks


def installation() -> Installation:
    """Looks at this process; imports TensorFlow and computes something on the first device.

    Raises:
        ImportError: If TensorFlow can't be imported.
    """
    import tensorflow as tf

    try:
        import keras

        keras_version = str(keras.__version__)
    except ImportError:
        keras_version = None
    devices = _device.devices()
    note = _device.served(str(tf.__version__))
    problem = _computes(devices[0]) if devices else note or _device.absence()
    path = _device.library()
    return Installation(
        tfp_plugin=_device.version(),
        library=str(path) if path is not None else None,
        tensorflow=str(tf.__version__),
        keras=keras_version,
        python=sys.version.partition(" ")[0],
        devices=devices,
        problem=problem,
        note=note if note != problem else "",
        ops=_placement.registered(_device.device_type()).ops(),
        gpu=_gpu.report(path) if path is not None and devices else None,
    )


def _computes(device: str) -> str:
    """Runs one op on a device; returns what went wrong, or nothing."""
    import tensorflow as tf

    try:
        with tf.device(f"/device:{device}"):
            y = tf.raw_ops.Relu(features=tf.constant([-1.0, 2.0]))
        if f"device:{device}" not in y.device or y.numpy().tolist() != [0.0, 2.0]:
            return f"Relu of [-1, 2] is {y.numpy().tolist()} on {y.device}"
    except Exception as error:
        return f"Relu fails on {device}: {(str(error).splitlines() or [repr(error)])[0]}"
    return ""


def report(found: Installation, entries: Sequence[_models.Entry], ops: bool) -> list[str]:
    """Writes the answer for people; returns its lines."""
    lines = [
        f"tfp_plugin  {found.tfp_plugin}",
        f"library     {found.library or 'none'}",
        f"TensorFlow  {found.tensorflow}",
        f"Keras       {found.keras or 'none'}",
        f"Python      {found.python}",
        f"devices     {', '.join(found.devices) or 'none'}",
        f"ops         {len(found.ops)} with {sum(found.ops.values())} kernels",
    ]
    if ops:
        lines += [f"  {name} ({count})" for name, count in found.ops.items()]
    lines += _gpu.lines(found.gpu, ops)
    if found.note:
        lines.append(f"note        {found.note}")
    if found.problem:
        lines.append(f"problem     {found.problem}")
    for entry in entries:
        placement = entry.placement
        lines += ["", f"{entry.name}: {placement.nodes} nodes, {_on_device(placement)}"]
        lines += _grouped((each.op, each.reason, each.node) for each in placement.fallbacks)
        lines += _grouped((each.op, each.how, each.node) for each in placement.replaced)
    return lines


def _grouped(rows: Iterable[tuple[str, str, str]]) -> list[str]:
    """Returns a line per op and text, with how many nodes it is true of and the first one."""
    groups: dict[tuple[str, str], list[str]] = {}
    for op, text, node in rows:
        groups.setdefault((op, text), []).append(node)
    lines = []
    for (op, text), nodes in sorted(groups.items()):
        count = f" ({len(nodes)} nodes)" if len(nodes) > 1 else ""
        lines.append(f"  {op}{count}: {text}; {nodes[0]}")
    return lines


def _on_device(placement: _placement.Placement) -> str:
    count = len(placement.fallbacks)
    return f"{count} would run on the CPU" if count else "all on the device"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tfp_plugin.check", description=__doc__)
    parser.add_argument(
        "model",
        nargs="?",
        type=pathlib.Path,
        help="a SavedModel's folder, a .keras or an .h5 file: say which nodes fall back to the CPU",
    )
    parser.add_argument("--version", action="version", version=f"tfp_plugin {_device.version()}")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--ops", action="store_true", help="list the ops that the device has")
    options = parser.parse_args(arguments)
    # TensorFlow's notices about its own build say nothing about the device.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    named = os.environ.get(_device.LIBRARY_VARIABLE)
    if named and not pathlib.Path(named).exists():
        # TensorFlow can't be imported then.
        print(
            f"tfp_plugin.check: {_device.LIBRARY_VARIABLE} names {named}, which does not exist",
            file=sys.stderr,
        )
        return 2
    try:
        found = installation()
    except ImportError as error:
        print(
            f"tfp_plugin.check: TensorFlow can't be imported ({error}): install it with `pip "
            "install tensorflow-cpu`",
            file=sys.stderr,
        )
        return 2
    entries: list[_models.Entry] = []
    if options.model is not None:
        try:
            entries = _models.read(options.model, _placement.registered(_device.device_type()))
        except _models.ModelError as error:
            print(f"tfp_plugin.check: {error}", file=sys.stderr)
            return 2
    if options.json:
        answer = dataclasses.asdict(found)
        if options.model is not None:
            answer["model"] = str(options.model)
            answer["entries"] = [dataclasses.asdict(entry) for entry in entries]
        print(json.dumps(answer, indent=2))
    else:
        print("\n".join(report(found, entries, options.ops)))
    return 1 if found.problem else 0


if __name__ == "__main__":
    sys.exit(main())
