"""The files that describe the source model: its layers, how they are connected, its weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from converters.tf import ir
from converters.tf.describe.overview import Row, overview_png
from converters.tf.emit.npz import npz_bytes
from converters.tf.lower.trace import Trace, TraceFunction

FOLDER = "saved_model_from_tensorflow"


def description_files(trace: Trace) -> dict[str, bytes]:
    """Returns the files by name.

    `computation_graph.json` has for every outermost layer the layers before and after it, over all
    its calls; `model_architecture.json` the Keras description of each with its connections;
    `model_overview.png` is a picture of them; `model_weights.npz` has the variables as float32
    under `<layer>_weight_<i>`, in Keras' order and layout.
    """
    connections = layer_connections(trace)
    graph = {name.lower(): edges for name, edges in connections.items()}
    return {
        "computation_graph.json": _json(graph),
        "model_architecture.json": _json(_architecture(trace, connections)),
        "model_overview.png": overview_png(trace.name, overview_rows(trace, connections)),
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
    edges: dict[tuple[str, str], None] = {}
    found: dict[str, list[str]] = {}
    for node in function.nodes.values():
        layer = _outermost(node.layer)
        for ref in node.inputs if layer else ():
            if ref.node not in found:
                found[ref.node] = _origins(function, names, ref.node)
            edges.update(((before, layer), None) for before in found[ref.node] if before != layer)
    for before, after in edges:
        result.setdefault(before, _empty())["outbounds"].append(after)
        result.setdefault(after, _empty())["inbounds"].append(before)
    return result


def overview_rows(trace: Trace, connections: Mapping[str, dict[str, list[str]]]) -> list[Row]:
    """Returns the rows of the picture: inputs, outermost layers, outputs."""
    function = trace.main
    inputs = {port.name: port.shape for port in trace.inputs}
    kinds = {layer.path: layer.kind for layer in trace.layers}
    index = {name: i for i, name in enumerate(connections)}
    shapes = _shapes(function) | inputs
    sizes = _sizes(trace)
    rows = [
        Row(
            name,
            "input" if name in inputs else kinds.get(name, ""),
            _shape_text(shapes.get(name)),
            sizes.get(name, 0),
            tuple(index[before] for before in edges["inbounds"]),
        )
        for name, edges in connections.items()
    ]
    names = {port.node: port.name for port in trace.inputs}
    for name, result in zip(trace.outputs, function.results, strict=True):
        before = dict.fromkeys(_origins(function, names, result.node))
        shape = function.nodes[result.node].shape if result.index == 0 else None
        indices = tuple(index[b] for b in before)
        rows.append(Row(name, "output", _shape_text(shape), 0, indices))
    return rows


def _shapes(function: TraceFunction) -> dict[str, tuple[int | None, ...] | None]:
    """Returns the shape of what each outermost layer gives to others first."""
    found: dict[str, tuple[int | None, ...] | None] = {}
    readers = [(_outermost(n.layer), ref) for n in function.nodes.values() for ref in n.inputs]
    readers += [("", ref) for ref in function.results]
    for reader, ref in readers:
        node = function.nodes[ref.node]
        layer = _outermost(node.layer)
        if layer and layer != reader and ref.index == 0:
            found.setdefault(layer, node.shape)
    return found


def _sizes(trace: Trace) -> dict[str, int]:
    """Returns the elements of each outermost layer's weights; shared ones count where first."""
    known = {v.name: v.data.size for v in trace.variables.values() if v.data is not None}
    sizes: dict[str, int] = {}
    for path, names in trace.weights.items():
        for name in names:
            layer = _outermost(path)
            sizes[layer] = sizes.get(layer, 0) + known.pop(name, 0)
    return sizes


def _shape_text(shape: tuple[int | str | None, ...] | None) -> str:
    if shape is None:
        return ""
    words = [str(d) if d is not None else "?" if i else "batch" for i, d in enumerate(shape)]
    return f"[{', '.join(words)}]"


def _empty() -> dict[str, list[str]]:
    return {"inbounds": [], "outbounds": []}


def _outermost(path: str) -> str:
    return path.split("/")[0]


def _origins(
    function: TraceFunction,
    names: Mapping[str, str],
    start: str,
) -> list[str]:
    """Returns the layers and inputs that a node comes from, through nodes of no layer."""
    found: list[str] = []
    seen: set[str] = set()
    stack = [start]
    while stack:
        name = stack.pop()
        if name in seen:
            continue
        seen.add(name)
        node = function.nodes[name]
        if name in names:
            found.append(names[name])
        elif node.layer:
            found.append(_outermost(node.layer))
        else:
            stack.extend(r.node for r in node.inputs)
    return found


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


def _port(name: str, dtype: str, shape: tuple[int | str | None, ...]) -> dict[str, object]:
    return {"name": name, "dtype": dtype, "shape": list(shape)}


def _weights(trace: Trace) -> dict[str, ir.Array]:
    found = {v.name: v.data for v in trace.variables.values() if v.data is not None}
    # Text that a layer keeps, such as the token of a mask, is not a weight.
    known = {name: data for name, data in found.items() if data.dtype.kind not in "SUO"}
    arrays: dict[str, ir.Array] = {}
    placed: set[str] = set()
    for path, names in trace.weights.items():
        for index, name in enumerate(names):
            data = known.get(name)
            if data is not None:
                arrays[f"{_key(path)}_weight_{index}"] = data.astype("float32", copy=False)
                placed.add(name)
    for name, data in known.items():
        if name not in placed:
            arrays[_key(name)] = data.astype("float32", copy=False)
    return arrays


def _key(path: str) -> str:
    return path.replace("/", ".")


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True, default=str) + "\n").encode()
