"""The profile that TensorBoard reads has an event for every kernel of the device."""

from __future__ import annotations

import os
import pathlib
from typing import Any

from tests.e2e import child

os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(child.library())
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["TFP_NUM_DEVICES"] = "2"

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2


def profile(folder: pathlib.Path) -> dict[str, list[dict[str, Any]]]:
    """Runs a few kernels on both devices; returns their events by plane."""
    tf.profiler.experimental.start(str(folder))
    for device, steps in (("/device:TFP:0", 3), ("/device:TFP:1", 1)):
        with tf.device(device):
            x = tf.ones([4, 5])
            for _ in range(steps):
                tf.linalg.matmul(x, x, transpose_b=True, name="product").numpy()
                tf.nn.relu(x).numpy()
    tf.profiler.experimental.stop()
    (path,) = folder.rglob("*.xplane.pb")
    space = xplane_pb2.XSpace.FromString(path.read_bytes())
    found: dict[str, list[dict[str, Any]]] = {}
    for plane in space.planes:
        if not plane.name.startswith("/device:TFP"):
            continue
        events = found.setdefault(plane.name, [])
        for line in plane.lines:
            assert line.timestamp_ns >= 0 and line.name.startswith("kernels, thread")
            for event in line.events:
                stats = {
                    plane.stat_metadata[s.metadata_id].name: s.str_value or s.int64_value
                    for s in event.stats
                }
                name = plane.event_metadata[event.metadata_id].name
                events.append({"name": name, "duration": event.duration_ps, **stats})
    return found


def test_every_kernel_is_an_event(tmp_path: pathlib.Path) -> None:
    planes = profile(tmp_path / "first")
    assert sorted(planes) == ["/device:TFP:0", "/device:TFP:1"]
    for plane, steps in (("/device:TFP:0", 3), ("/device:TFP:1", 1)):
        products = [e for e in planes[plane] if e["name"] == "MatMul"]
        assert len(products) == steps
        assert sum(e["name"] == "Relu" for e in planes[plane]) == steps
        for event in products:
            assert event["tensor_shapes"] == "(float32[4,5], float32[4,5])"
            assert event["bytes_accessed"] == 160
            assert event["tf_op"].endswith(":MatMul")
            assert 0 < event["duration"] < 10**12


def test_each_profile_starts_anew(tmp_path: pathlib.Path) -> None:
    """And what happens between two profiles is in neither."""
    with tf.device("/device:TFP:0"):
        tf.nn.relu(tf.ones([3])).numpy()
    planes = profile(tmp_path / "second")
    assert sum(e["name"] == "Relu" for e in planes["/device:TFP:0"]) == 3
