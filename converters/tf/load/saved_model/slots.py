"""SavedModels without what an optimizer keeps of each variable.

Keras 2 saves a compiled model with its optimizer. TensorFlow creates the optimizer's slot variables
by a method of its class, which is not installed here, and no signature reads them.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tensorflow.core.protobuf import saved_model_pb2

_FILE = "saved_model.pb"


@contextlib.contextmanager
def without_slots(path: Path) -> Iterator[Path]:
    """Gives a folder that TensorFlow loads: that of a SavedModel, or a temporary one.

    The temporary folder has a description without slot variables, and links to all other files.

    Args:
        path: The folder, which stays as it is.
    """
    model = saved_model_pb2.SavedModel.FromString((path / _FILE).read_bytes())
    owners = [
        node
        for meta in model.meta_graphs
        for node in meta.object_graph_def.nodes
        if node.slot_variables
    ]
    if not owners:
        yield path
        return
    for node in owners:
        node.ClearField("slot_variables")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, path.resolve().name)
        copy.mkdir()
        (copy / _FILE).write_bytes(model.SerializeToString())
        for entry in path.iterdir():
            if entry.name != _FILE:
                (copy / entry.name).symlink_to(entry.resolve())
        yield copy
