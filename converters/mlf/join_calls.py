"""Finds the calls of operators that a profiler is told."""

from __future__ import annotations

from dataclasses import replace

from converters.mlf.model import HiddenState, Interface
from converters.mlf.parse.c_calls import callers
from tools.codegen.conversion import Problem, UsageError

_STATE = HiddenState("the profiler that the C's calls of operators are told to", 0)


def with_callers(model: Interface) -> Interface:
    """Returns the model with the functions whose calls are told; it then exists once.

    Raises:
      UsageError: there is no C of the model, or it calls no function that is known as an operator.
    """
    prefix = model.symbol_prefix
    sources = {source.name: source.text for source in model.sources}
    found = callers(sources, (f"{prefix}_run", f"{prefix}___tvm_main__"))
    if not found:
        what = "is object code" if not model.sources else "has C that calls no operator"
        advice = "leave it out: the traits measure whole runs of every model"
        raise UsageError(Problem("--profile_calls", f"model {model.name!r} {what}", advice))
    return replace(model, callers=found, hidden_state=(*model.hidden_state, _STATE))
