"""Models that carry values from call to call in variables of TensorFlow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.load.tracer import plain_array
from converters.tf.lower.states import with_states
from converters.tf.lower.trace import Loaded

FLAG = "--stateful"


def carried_notes(names: Iterable[str], owner: str) -> tuple[str, ...]:
    """Returns what to say of variables that a call does not leave to the next one.

    Args:
        names: Their names.
        owner: Who carries them.
    """
    known = ", ".join(names)
    if not known:
        return ()
    what = f"{owner} carries them from call to call; here every call starts with the values in"
    return (f"variables {known}: {what} the file (to carry them, pass {FLAG})",)


def stateful(loaded: Loaded) -> Loaded:
    """Returns a model whose variables that it carries on are inputs and outputs.

    Raises:
        UnsupportedError: A variable changes in a loop or a branch, or holds text.
    """
    trace, states = with_states(loaded.trace)
    if not states:
        return loaded

    def predict(arrays: Mapping[str, Array]) -> dict[str, Array]:
        for name, state in states.items():
            variable = loaded.held[name]
            variable.assign(tf.cast(arrays[state.given], variable.dtype))
        found = loaded.predict(arrays)
        after = {s.following: plain_array(loaded.held[n].numpy()) for n, s in states.items()}
        return found | after

    return replace(loaded, trace=trace, predict=predict, states=tuple(states.values()))
