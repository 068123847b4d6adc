"""Programs of several ops: what Python's gradients of them are at one point.

The Rust tests have the same programs under the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from bindings.client.tests.gradient_cases import variants

Program = Callable[..., Any]

# The point of `lists.rs`.
_X = [[0.5, -1.25, 2.0], [1.5, 0.75, -0.5]]
_ROW = [3]
_DOUBLE = tf.float64
_raw = tf.raw_ops


def _rows(x: Any) -> Any:
    handle = _raw.EmptyTensorList(element_shape=_ROW, max_num_elements=10, element_dtype=_DOUBLE)
    for row in (x[0], x[1], x[1]):
        handle = _raw.TensorListPushBack(input_handle=handle, tensor=row)
    return handle


def _total(value: Any) -> Any:
    return tf.reduce_sum(tf.square(value) * value)


def _stacked(handle: Any) -> Any:
    stack = _raw.TensorListStack(input_handle=handle, element_shape=_ROW, element_dtype=_DOUBLE)
    return _total(stack)


def _pop(x: Any) -> Any:
    rest, item = _raw.TensorListPopBack(
        input_handle=_rows(x), element_shape=_ROW, element_dtype=_DOUBLE
    )
    return _stacked(rest) * _total(item)


def _get_and_set(x: Any) -> Any:
    handle = _rows(x)
    item = _raw.TensorListGetItem(
        input_handle=handle, index=0, element_shape=_ROW, element_dtype=_DOUBLE
    )
    handle = _raw.TensorListSetItem(input_handle=handle, index=1, item=tf.square(item))
    return _stacked(handle)


def _gather(x: Any) -> Any:
    found = _raw.TensorListGather(
        input_handle=_rows(x), indices=[2, 0], element_shape=_ROW, element_dtype=_DOUBLE
    )
    return _total(found)


def _split(x: Any) -> Any:
    handle = _raw.TensorListSplit(
        tensor=x, element_shape=[-1, 3], lengths=tf.constant([1, 1], tf.int64)
    )
    item = _raw.TensorListGetItem(
        input_handle=handle, index=1, element_shape=[1, 3], element_dtype=_DOUBLE
    )
    return _total(item)


def _concat(x: Any) -> Any:
    joined, _ = _raw.TensorListConcat(
        input_handle=_rows(x), element_dtype=_DOUBLE, element_shape=_ROW
    )
    return _total(joined)


def _concat_v2(x: Any) -> Any:
    joined, _ = _raw.TensorListConcatV2(
        input_handle=_rows(x),
        element_shape=_ROW,
        leading_dims=tf.constant([], tf.int64),
        element_dtype=_DOUBLE,
    )
    return _total(joined)


_LISTS: dict[str, Program] = {
    "push and stack": lambda x: _stacked(_rows(x)),
    "pop": _pop,
    "get and set": _get_and_set,
    "from a tensor": lambda x: _stacked(_raw.TensorListFromTensor(tensor=x, element_shape=_ROW)),
    "resize": lambda x: _stacked(_raw.TensorListResize(input_handle=_rows(x), size=2)),
    "gather": _gather,
    "scatter": lambda x: _stacked(
        _raw.TensorListScatter(tensor=x, indices=[1, 0], element_shape=_ROW)
    ),
    "scatter to a length": lambda x: _stacked(
        _raw.TensorListScatterV2(tensor=x, indices=[1, 0], element_shape=_ROW, num_elements=2)
    ),
    "concat": _concat,
    "concat of a shape": _concat_v2,
    "scatter into a list": lambda x: _stacked(
        _raw.TensorListScatterIntoExistingList(
            input_handle=_rows(x), tensor=tf.square(x), indices=[2, 0]
        )
    ),
    "split": _split,
}


def _function(x: Any, y: Any) -> Any:
    square = tf.function(lambda x, y: (tf.square(x) * y, tf.identity(y)))
    first, second = square(x, y)
    return first + second


def _nested(x: Any, y: Any) -> Any:
    inner = tf.function(lambda: y * y * y)
    return tf.function(lambda x: tf.exp(x) * inner())(x)


def _branch(x: Any, y: Any) -> Any:
    return tf.function(
        lambda x, y: 2.0 * tf.cond(x > y, lambda: tf.sin(x) * y, lambda: tf.square(x) * x)
    )(x, y)


def _case(index: int) -> Program:
    branches = [
        lambda x: tf.square(x),
        lambda x: tf.square(x) * x,
        lambda x: tf.identity(x),
    ]

    def call(x: Any, index: Any) -> Any:
        return tf.switch_case(index, [lambda f=f: f(x) for f in branches])

    return lambda x: tf.function(call)(x, tf.constant(index))


def _power(x: Any, y: Any) -> Any:
    def call(x: Any, y: Any) -> Any:
        return tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * x), (0, y))[1]

    return tf.function(call)(x, y)


def _nested_loops(x: Any, y: Any) -> Any:
    def inner(v: Any) -> Any:
        return tf.while_loop(lambda i, _: i < 2, lambda i, w: (i + 1, w * x), (0, v))[1]

    def body(v: Any) -> Any:
        return (tf.cond(v > 10.0, lambda: v + x, lambda: inner(v)),)

    def call(y: Any) -> Any:
        found = tf.while_loop(lambda v: v < 1e6, body, (y,), maximum_iterations=2)
        return found[0]

    return tf.function(call)(y)


_CALLS: dict[str, tuple[Program, list[float]]] = {
    "function": (_function, [3.0, 2.0]),
    "nested functions": (_nested, [0.5, 2.0]),
    "first branch": (_branch, [2.0, 0.5]),
    "second branch": (_branch, [2.0, 5.0]),
    "case 0": (_case(0), [3.0]),
    "case 1": (_case(1), [3.0]),
    "case 7": (_case(7), [3.0]),
    "loop": (_power, [2.0, 5.0]),
    "nested loops": (_nested_loops, [2.0, 5.0]),
}


def _numbers(values: Any) -> str:
    return " ".join(repr(float(value)) for value in values)


def _gradient(program: Program, x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = program(x)
    return tf.reshape(tape.gradient(y, x), [-1])


def lines() -> Iterator[str]:
    """Returns a line per program: gradients; of calls the value before, and second ones after."""
    for name, program in (_LISTS | variants.PROGRAMS).items():
        # Some of Python's functions ask for shapes of variants, which only graphs keep.
        gradient = tf.function(_gradient)(program, tf.constant(_X, _DOUBLE))
        yield f"program {name.replace(' ', '_')} {_numbers(gradient.numpy())}"
    for name, (program, point) in _CALLS.items():
        xs = [tf.constant(value, _DOUBLE) for value in point]
        zero = tf.UnconnectedGradients.ZERO
        with tf.GradientTape() as outer:
            outer.watch(xs)
            with tf.GradientTape() as inner:
                inner.watch(xs)
                y = program(*xs)
            grads = inner.gradient(y, xs, unconnected_gradients=zero)
        seconds = outer.gradient(grads[0], xs, unconnected_gradients=zero)
        yield f"program {name.replace(' ', '_')} {_numbers([y, *grads, *seconds])}"
