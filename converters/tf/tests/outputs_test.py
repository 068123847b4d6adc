"""Outputs that the caller wants."""

from __future__ import annotations

from pathlib import Path

import keras
import pytest
import tensorflow as tf

from converters.tf.errors import FileError
from converters.tf.load.model import LoadOptions, load
from converters.tf.tests.checks import check
from tools.codegen.conversion import UsageError


def test_outputs_that_are_wanted(tmp_path: Path) -> None:
    x = keras.Input((3,), name="x")
    parts = {"a": keras.layers.Dense(2)(x), "b": keras.layers.Dense(4)(x)}
    keras.Model(x, parts).save(tmp_path / "m.keras")
    loaded = load(tmp_path / "m.keras", LoadOptions(outputs=("b",)))
    graph = check(loaded)
    assert [(p.name, p.value.shape[-1]) for p in graph.outputs] == [("b", 4)]
    assert len(graph.nodes) == 1
    with pytest.raises(UsageError, match="--output c: the model has no such output; it has a, b"):
        load(tmp_path / "m.keras", LoadOptions(outputs=("c",)))


def test_the_part_of_a_frozen_graph_that_is_wanted(tmp_path: Path) -> None:
    """What trains or reads files is not looked at, and a result may be one of several."""
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, 4], name="x")
        parts = tf.split(x * 2.0, 2, axis=1, name="parts")
        tf.exp(parts[0], name="power")
        tf.io.write_file("written", tf.strings.as_string(tf.reduce_sum(x)), name="write")
        tf.compat.v1.placeholder(tf.float32, [3], name="rate")
    path = tmp_path / "m.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    with pytest.raises(FileError, match="WriteFile may do more than compute"):
        load(path, LoadOptions())
    loaded = load(path, LoadOptions(outputs=("parts:1", "power")))
    assert [port.name for port in loaded.trace.inputs] == ["x"]
    assert loaded.trace.outputs == ("parts:1", "power")
    check(loaded)
    for name, what in (("part", "no such node; nothing reads"), ("parts:2", "has 2 results")):
        with pytest.raises(UsageError, match=what):
            load(path, LoadOptions(outputs=(name,)))
