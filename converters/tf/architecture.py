"""The files that describe the source model: its layers, how they are connected, its weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from converters.tf import ir
from converters.tf.emit.npz import npz_bytes
from converters.tf.trace import Trace, TraceFunction

FOLDER = "saved_model_from_tensorflow"


def description_files(trace: Trace) -> dict[str, bytes]:
    """Returns the files by name.

    `computation_graph.json` has for every outermost layer the layers before and after it, over all
    its calls; `model_architecture.json` the Keras description of each with its connections;
    `model_weights.npz` the variables as float32 under `<layer>_weight_<i>`, in Keras' order and
    layout.
    """
    connections = layer_connections(trace)
    graph = {name.lower(): edges for name, edges in connections.items()}
    return {
        "computation_graph.json": _json(graph),
        "model_architecture.json": _json(_architecture(trace, connections)),
        "model_weights.npz": npz_bytes(_weights(trace)),
    }


def layer_connections(trace: Trace) -> dict[str, dict[str, list[str]]]:
    """Returns for every outermost layer, inputs included, the names before and after it."""
    function = trace.main
    names = {port.node: port.name for port in trace.inputs}
    order = [port.name for port in trace.inputs]
    order += [layer.path.split("/")[0] for layer in trace.layers]
    order += [_outermost(n.layer) for n in function.nodes.values() if n.layer]
    result = {name: _empty() for name in dict.fromkeys(order)}
    origins: dict[str, tuple[str, ...]] = {}
    for name in result:
        origins.setdefault(name, ())
    for node in function.nodes.values():
        layer = _outermost(node.layer)
        for ref in node.inputs:
            for before in _origins(function, names, ref.node, {}):
                if before != layer and layer:
                    _connect(result, before, layer)
    return result


def _empty() -> dict[str, list[str]]:
    return {"inbounds": [], "outbounds": []}


def _outermost(path: str) -> str:
    return path.split("/")[0]


def _origins(
    function: TraceFunction,
    names: Mapping[str, str],
    start: str,
    seen: dict[str, bool],
) -> list[str]:
    """Returns the layers and inputs that a node comes from, through nodes of no layer."""
    found: list[str] = []
    stack = [start]
    while stack:
        name = stack.pop()
        if name in seen:
            continue
        seen[name] = True
        node = function.nodes[name]
        if name in names:
            found.append(names[name])
        elif node.layer:
            found.append(_outermost(node.layer))
        else:
            stack.extend(r.node for r in node.inputs)
    return found


def _connect(graph: dict[str, dict[str, list[str]]], before: str, after: str) -> None:
    for name, key, other in ((before, "outbounds", after), (after, "inbounds", before)):
        edges = graph.setdefault(name, _empty())[key]
        if other not in edges:
            edges.append(other)


def _architecture(trace: Trace, connections: Mapping[str, dict[str, list[str]]]) -> dict[str, Any]:
    config = trace.architecture.get("config")
    described = config.get("layers", []) if isinstance(config, dict) else []
    layers = {}
    for layer in described:
        name = layer.get("name") or layer.get("config", {}).get("name", "")
        entry = {k: v for k, v in layer.items() if k not in ("inbound_nodes", "build_config")}
        entry["connections"] = connections.get(name, _empty())
        layers[name] = entry
    kinds = {layer.path: layer.kind for layer in trace.layers}
    for name, edges in connections.items():
        if name not in layers:
            layers[name] = {"class_name": kinds.get(name, ""), "connections": edges}
    return {
        "name": trace.name,
        "class_name": trace.architecture.get("class_name", ""),
        "inputs": [_port(p.name, p.dtype, p.shape) for p in trace.inputs],
        "outputs": list(trace.outputs),
        "layers": layers,
    }


def _port(name: str, dtype: str, shape: tuple[int | None, ...]) -> dict[str, object]:
    return {"name": name, "dtype": dtype, "shape": list(shape)}


def _weights(trace: Trace) -> dict[str, ir.Array]:
    known = {v.name: v.data for v in trace.variables.values() if v.data is not None}
    arrays: dict[str, ir.Array] = {}
    placed: set[str] = set()
    for path, names in trace.weights.items():
        for index, name in enumerate(names):
            data = known.get(name)
            if data is not None:
                arrays[f"{_key(path)}_weight_{index}"] = data.astype("float32")
                placed.add(name)
    for name, data in known.items():
        if name not in placed:
            arrays[_key(name)] = data.astype("float32")
    return arrays


def _key(path: str) -> str:
    return path.replace("/", ".")


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True, default=str) + "\n").encode()
