"""Variables that a model carries from call to call become inputs and outputs of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from converters.tf.ir import Array
from converters.tf.lower.assigned import WRITERS, carried, flat, writes
from converters.tf.lower.trace import Carried, TensorRef, Trace, TraceFunction, TraceInput
from tools.codegen.conversion import Problem, UnsupportedError
from tools.codegen.names import Scope


def with_states(trace: Trace) -> tuple[Trace, dict[str, Carried]]:
    """Returns a model whose variables that it carries on are inputs and outputs.

    Args:
        trace: The model.

    Returns:
        The model, and what is carried, by the placeholder of the variable.

    Raises:
        UnsupportedError: A variable changes in a loop or a branch, or holds text.
    """
    kept = carried(trace)
    if not kept:
        return trace, {}
    main = flat(trace.main, trace.functions, frozenset(kept))
    last = _last_writers(main, trace.functions, kept)
    problems = [
        Problem(f"variable {trace.variables[name].name}", what, "carry it by hand")
        for name in kept
        if (what := _problem(trace, name, last.get(name)))
    ]
    if problems:
        raise UnsupportedError.of(problems)
    taken = [*(port.name for port in trace.inputs), *trace.outputs]
    firsts = [
        (v.name, v.data) for v in map(trace.variables.__getitem__, kept) if v.data is not None
    ]
    states = dict(zip(kept, named(firsts, taken), strict=True))
    ports = [
        TraceInput(state.given, name, str(state.first.dtype.name), state.first.shape)
        for name, state in states.items()
    ]
    given = len(trace.inputs)
    others = [name for name in main.arguments[given:] if name not in states]
    main = replace(
        main,
        arguments=(*main.arguments[:given], *states, *others),
        results=(*main.results, *(TensorRef(last[name], 0) for name in states)),
    )
    found = replace(
        trace,
        main=main,
        inputs=(*trace.inputs, *ports),
        outputs=(*trace.outputs, *(state.following for state in states.values())),
        variables={k: v for k, v in trace.variables.items() if k not in states},
    )
    return found, states


def named(firsts: Iterable[tuple[str, Array]], taken: Iterable[str]) -> list[Carried]:
    """Returns variables as inputs and outputs with names of their own.

    Args:
        firsts: The name of each, and what it holds before the first step.
        taken: Names of the model's own inputs and outputs.
    """
    scope = Scope(taken)
    return [Carried(scope.unique(n), scope.unique(f"{n}_next"), first) for n, first in firsts]


def _problem(trace: Trace, name: str, writer: str | None) -> str:
    data = trace.variables[name].data
    if data is None or data.dtype.kind in "OSU":
        return "it holds no numbers"
    return "" if writer is not None else "it changes in a loop or a branch"


def _last_writers(
    main: TraceFunction, functions: Mapping[str, TraceFunction], kept: Sequence[str]
) -> dict[str, str]:
    """Returns the node that writes each variable last; none if a loop or a branch writes it."""
    last: dict[str, str] = {}
    inside: set[str] = set()
    for node in main.nodes.values():
        for place, ref in enumerate(node.inputs):
            if ref.node in kept and writes(node, place, functions):
                last[ref.node] = node.name
                inside |= set() if node.op in WRITERS else {ref.node}
    return {name: writer for name, writer in last.items() if name not in inside}
