"""Each op alone in a crate with its own runtime, compiled and run.

Such a crate has the least of the kernels, so that what was left out of them and is needed shows.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from converters.tf import ir
from converters.tf.emit.crate import emit_crate
from converters.tf.emit.options import Options, Profile
from converters.tf.tests.crates.crates import compile_and_test, recorded, rustfmt
from converters.tf.tests.crates.crates import write as write_files
from converters.tf.tests.crates.graphs import GRAPHS, mlp
from converters.tf.tests.crates.more_graphs import MORE, transposed

# A crate of one op leaves code unused, and assertions change no result.
_FLAGS = ("-Adead_code", "-Cdebug-assertions=off")


def _solo(graph: ir.Graph, node: ir.Node) -> ir.Graph:
    """Returns a graph of one node; what others make for it is an input.

    Levels stay with what reads them: random numbers are none.
    """
    makers = [n for n in graph.nodes if isinstance(n.op, ir.DynamicLevels) and n is not node]
    nodes = [*(n for n in makers if not set(n.outputs).isdisjoint(node.inputs)), node]
    made = {value for n in nodes for value in n.outputs}
    inputs: dict[ir.Value, ir.Value] = {}
    for value in (value for n in nodes for value in n.inputs):
        if value is not None and not value.is_constant and value not in made:
            inputs.setdefault(value, replace(value, name=f"x{len(inputs)}"))
    nodes = [
        replace(n, inputs=tuple(v if v is None else inputs.get(v, v) for v in n.inputs))
        for n in nodes
    ]
    return ir.Graph(
        f"{graph.name}_{graph.nodes.index(node)}",
        tuple(ir.Port(v.name, v) for v in inputs.values()),
        tuple(ir.Port(f"y{i}", v) for i, v in enumerate(node.outputs)),
        tuple(nodes),
    )


def _kind(node: ir.Node) -> tuple[object, ...]:
    """Returns what decides which kernels a node needs, as far as a name tells."""
    op = node.op
    each = isinstance(op, ir.Unary | ir.Binary | ir.Compare)
    return (
        type(op).__name__,
        "" if each else str(getattr(op, "kind", "")),
        getattr(op, "groups", 1) > 1,
        getattr(op, "log", False),
        str(node.outputs[0].dtype),
        tuple(value is None for value in node.inputs),
    )


def _solos() -> list[ir.Graph]:
    found: dict[tuple[object, ...], ir.Graph] = {}
    for make in (*GRAPHS, *MORE, mlp, transposed):
        graph = make()
        for node in graph.nodes:
            if node.inputs and (kind := _kind(node)) not in found:
                found[kind] = _solo(graph, node)
    return list(found.values())


@pytest.mark.parametrize("profile", list(Profile))
@pytest.mark.parametrize("graph", _solos(), ids=lambda graph: str(graph.name))
def test_an_op_alone(
    graph: ir.Graph, profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without optimizing, inputs and outputs are on the stack several times.
    monkeypatch.setenv("RUST_MIN_STACK", str(1 << 28))
    features = recorded(graph)
    options = Options(graph.name, "graphs.py", profile=profile)
    write_files(emit_crate(graph, options, features, rustfmt()), tmp_path)
    assert "test result: ok" in compile_and_test(tmp_path, graph.name, _FLAGS)
