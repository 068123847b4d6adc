"""Branches, loops, lists and parts of tensors whose place the model's inputs say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.lower.convert import convert
from converters.tf.lower.trace import Loaded
from converters.tf.tests.checks import check, ops
from tools.codegen.conversion import UnsupportedError

_IMAGE = tf.TensorSpec((None, 6, 4), tf.float32, "x")
_ROW = tf.TensorSpec((None, 4), tf.float32, "x")
_PLACE = tf.TensorSpec((), tf.int32, "place")


def _traced(folder: Path, body: Callable[..., Any], *inputs: tf.TensorSpec) -> Loaded:
    module = tf.Module()
    module.call = tf.function(lambda *x: {"y": body(*x)}, input_signature=inputs)
    tf.saved_model.save(module, str(folder), signatures=module.call)
    return load(folder, LoadOptions())


def _given(place: int, **more: Array) -> dict[str, Array]:
    x = np.random.default_rng(5).normal(size=(3, 6, 4)).astype(np.float32)
    return {"x": x, "place": np.asarray(place, np.int32), **more}


def test_branches_of_different_shapes_are_refused(tmp_path: Path) -> None:
    def body(x: Any) -> Any:
        return tf.cond(x[0, 0] > 0, lambda: tf.reduce_sum(x, 1, keepdims=True), lambda: x)

    loaded = _traced(tmp_path, body, tf.TensorSpec((1, 4), tf.float32, "x"))
    with pytest.raises(UnsupportedError, match=r"branches give \[1, 1\] or \[1, 4\]"):
        convert(loaded.trace)


def test_one_of_many_branches(tmp_path: Path) -> None:
    def body(x: Any, place: Any) -> Any:
        return tf.switch_case(place, [lambda: x * 2, lambda: tf.sin(x), lambda: -x])

    loaded = _traced(tmp_path, body, _IMAGE, _PLACE)
    for place in (-1, 0, 1, 2, 3):
        check(loaded, given=_given(place))


@pytest.mark.parametrize("place", [-6, -1, 0, 3, 5])
def test_one_place_of_an_axis(place: int, tmp_path: Path) -> None:
    def body(x: Any, place: Any) -> Any:
        return tf.concat([x[:, place], x[:, 1:4, :][:, place // 3], x[:, ::-2, place % 4]], 1)

    check(_traced(tmp_path, body, _IMAGE, _PLACE), given=_given(place))


def test_a_place_outside_of_an_axis_is_an_error(tmp_path: Path) -> None:
    graph = convert(_traced(tmp_path, lambda x, place: x[:, place], _IMAGE, _PLACE).trace)
    for place in (6, -7):
        with pytest.raises(ValueError, match="an index is not below 6"):
            interpret(graph, _given(place))


@pytest.mark.parametrize("place", [0, 1, 4])
def test_a_part_of_known_size(place: int, tmp_path: Path) -> None:
    def body(x: Any, place: Any) -> Any:
        return tf.slice(x, [0, place, 1], [-1, 2, 2])

    check(_traced(tmp_path, body, _IMAGE, _PLACE), given=_given(place))


def test_a_part_of_open_size_is_refused(tmp_path: Path) -> None:
    loaded = _traced(tmp_path, lambda x, place: x[:, place:], _IMAGE, _PLACE)
    with pytest.raises(UnsupportedError, match="whose length the inputs say"):
        convert(loaded.trace)


@pytest.mark.parametrize("rows", [1, 3, 6])
@pytest.mark.parametrize("place", [-2, 0, 2, 5, 9])
def test_rows_of_a_cache_are_written(place: int, rows: int, tmp_path: Path) -> None:
    def body(x: Any, place: Any, new: Any) -> Any:
        return keras.ops.slice_update(x, tf.stack([0, place, 0]), new)

    new = tf.TensorSpec((None, rows, 4), tf.float32, "new")
    data = np.random.default_rng(6).normal(size=(3, rows, 4)).astype(np.float32)
    check(_traced(tmp_path, body, _IMAGE, _PLACE, new), given=_given(place, new=data))


@pytest.mark.parametrize("start", [(1, 2), (0, 0), (9, -3)])
@pytest.mark.parametrize("rows", [(2, 2), (6, 1), (6, 4)])
def test_a_part_is_written_at_a_known_place(
    start: tuple[int, int], rows: tuple[int, int], tmp_path: Path
) -> None:
    def body(x: Any) -> Any:
        part = x[:, : rows[0], : rows[1]] * 2.0
        return keras.ops.slice_update(x, [0, *start], part)

    graph = check(_traced(tmp_path, body, _IMAGE))
    assert "Update" not in ops(graph)


def test_many_rows_are_written_at_a_known_place(tmp_path: Path) -> None:
    def body(x: Any) -> Any:
        return keras.ops.slice_update(x, [0, 7], x[:, :100] * 2.0)

    check(_traced(tmp_path, body, tf.TensorSpec((None, 130), tf.float32, "x")))


@pytest.mark.parametrize("moves", [1, 2, 3])
@pytest.mark.parametrize("place", [-2, 0, 1, 9])
def test_a_part_is_written_that_is_smaller_in_several_axes(
    place: int, moves: int, tmp_path: Path
) -> None:
    def body(x: Any, place: Any, new: Any) -> Any:
        first, second = place if moves & 1 else 2, place if moves & 2 else 1
        return keras.ops.slice_update(x, tf.stack([0, first, second]), new)

    new = tf.TensorSpec((None, 2, 3), tf.float32, "new")
    data = np.random.default_rng(6).normal(size=(3, 2, 3)).astype(np.float32)
    check(_traced(tmp_path, body, _IMAGE, _PLACE, new), given=_given(place, new=data))


@pytest.mark.parametrize("size", [0, 3, 6])
@pytest.mark.parametrize("grows", [True, False])
def test_a_loop_over_time(size: int, grows: bool, tmp_path: Path) -> None:
    if not grows:
        size = 6
    weight = tf.constant(np.random.default_rng(3).normal(size=(4, 4)), tf.float32)

    def body(x: Any) -> Any:
        state = tf.zeros_like(x[:, 0])
        states = tf.TensorArray(tf.float32, size, dynamic_size=grows)
        for t in tf.range(6):
            state = tf.tanh(x[:, t] + tf.matmul(state, weight))
            states = states.write(t, state)
        return tf.transpose(states.stack(), [1, 0, 2])

    assert "Gather" not in ops(check(_traced(tmp_path, tf.autograph.to_graph(body), _IMAGE)))


def test_a_list_grows_without_a_loop(tmp_path: Path) -> None:
    def body(x: Any) -> Any:
        rows = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        for number in range(3):
            rows = rows.write(number, x * number)
        return tf.transpose(rows.stack(), [1, 0, 2])

    check(_traced(tmp_path, body, _ROW))


def test_a_list_that_grows_in_a_branch_is_refused(tmp_path: Path) -> None:
    def body(x: Any) -> Any:
        rows, count = tf.TensorArray(tf.float32, 0, dynamic_size=True), 0
        for t in tf.range(6):
            if t % 2 == 0:
                rows = rows.write(count, x)
                count += 1
        return tf.transpose(rows.stack(), [1, 0, 2])

    loaded = _traced(tmp_path, tf.autograph.to_graph(body), _ROW)
    with pytest.raises(UnsupportedError, match="give the TensorArray its size"):
        convert(loaded.trace)


def test_steps_end_where_each_example_says(tmp_path: Path) -> None:
    def body(x: Any, lengths: Any) -> Any:
        state = tf.zeros_like(x[:, 0])
        for t in tf.range(6):
            state = tf.where((t < lengths)[:, None], tf.tanh(state * 0.5 + x[:, t]), state)
        return state

    lengths = tf.TensorSpec((None,), tf.int32, "lengths")
    check(_traced(tmp_path, tf.autograph.to_graph(body), _IMAGE, lengths), whole=8)
