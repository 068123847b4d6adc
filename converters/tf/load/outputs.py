"""The outputs that the caller wants of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from converters.tf.ir import Array
from converters.tf.lower.trace import Loaded
from tools.codegen.conversion import Problem, UsageError

FLAG = "--output"
# Names that a message lists, at most.
_MOST = 12


def with_outputs(loaded: Loaded, wanted: Sequence[str]) -> Loaded:
    """Returns a model with some of its outputs, in its order, and those that are states.

    Args:
        loaded: The model.
        wanted: Their names; none for all.

    Raises:
        UsageError: It has no such output.
    """
    if not wanted:
        return loaded
    trace = loaded.trace
    problems = [
        Problem(f"{FLAG} {name}", f"the model has no such output; it has {listed(trace.outputs)}")
        for name in wanted
        if name not in trace.outputs
    ]
    if problems:
        raise UsageError.of(problems)
    names = {*wanted, *(state.following for state in loaded.states)}
    pairs = zip(trace.outputs, trace.main.results, strict=True)
    kept = [(name, result) for name, result in pairs if name in names]
    main = replace(trace.main, results=tuple(result for _, result in kept))

    def predict(arrays: Mapping[str, Array]) -> dict[str, Array]:
        return {name: array for name, array in loaded.predict(arrays).items() if name in names}

    outputs = tuple(name for name, _ in kept)
    return replace(loaded, trace=replace(trace, main=main, outputs=outputs), predict=predict)


def listed(names: Sequence[str]) -> str:
    """Returns names for a message: all, or the first and how many more there are."""
    more = len(names) - _MOST
    text = ", ".join(names[:_MOST])
    return f"{text} and {more} more" if more > 0 else text
