"""Calls of ops that draw random numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tests.conformance.cases import Call

Types = Mapping[str, np.dtype[Any]]

PHILOX = 1
"""The algorithm's number."""

_SHAPES = ((), (0,), (3,), (5, 7), (1000,))


def _uniform_int(types: Types) -> Iterator[Call]:
    for shape in _SHAPES:
        limits = {"minval": np.array(-3, types["Tout"]), "maxval": np.array(12, types["Tout"])}
        call = {"shape": np.array(shape, types["T"]), **limits}
        yield Call(call, {"seed": 5, "seed2": 6})


def _stateless(types: Types) -> Iterator[Call]:
    for shape in _SHAPES:
        call = {
            "shape": np.array(shape, types["Tshape"]),
            "key": np.array([77], np.uint64),
            "counter": np.array([3, 2**63 + 5], np.uint64),
            "alg": np.array(PHILOX, np.int32),
        }
        yield Call(call, {"dtype": types["dtype"]})


def _stateless_int(types: Types) -> Iterator[Call]:
    low = 1 if types["dtype"].kind == "u" else -3
    limits = {"minval": np.array(low, types["dtype"]), "maxval": np.array(12, types["dtype"])}
    for call in _stateless(types):
        yield Call({**call.inputs, **limits})


def _key(types: Types) -> Iterator[Call]:
    for seed in ((0, 0), (7, -9), (2**31 - 1, 1)):
        yield Call({"seed": np.array(seed, types["Tseed"])})


CALLS: Mapping[str, Callable[[Types], Iterator[Call]]] = {
    "RandomUniformInt": _uniform_int,
    "StatelessRandomGetKeyCounter": _key,
    "StatelessRandomGetKeyCounterAlg": _key,
    "StatelessRandomNormalV2": _stateless,
    "StatelessRandomUniformFullIntV2": _stateless,
    "StatelessRandomUniformIntV2": _stateless_int,
    "StatelessRandomUniformV2": _stateless,
    "StatelessTruncatedNormalV2": _stateless,
}
"""Calls by op."""
