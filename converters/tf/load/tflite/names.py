"""Names of layers, inputs and outputs, from what TFLite's converter leaves of TensorFlow's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from converters.tf.load.tflite.file import Operator, Subgraph

# The ops that a layer with weights is named after, where a name joins several.
_MAIN = re.compile(r"(MatMul|Conv\w*|convolution|depthwise\w*|separable\w*|transpose)\d*", re.I)
# Scopes inside of a layer.
_INNER = re.compile(
    r"(batchnorm|convolution|moments|Tensordot|strided_slice|while|[A-Z]\w*)(_\d+)?"
)
# What TensorFlow and its converter name what has no name.
_NAMELESS = re.compile(
    r"(Stateful|Stateless)?PartitionedCall(_\d+)?|arith\.constant\d*|Identity(_\d+)?|Const(_\d+)?"
    r"|model_outputs|\d*"
)
_PREFIX = re.compile(r"^(serving_default|signature_wrapper)_(?=.)")


def _parts(name: str) -> list[str]:
    """Returns the names that a tensor's name joins, without numbers of outputs."""
    parts = [re.sub(r":\d+$", "", part).strip() for part in name.split(";")]
    return [part for part in parts if part and not _NAMELESS.fullmatch(part.split("/")[-1])]


def _layer(name: str) -> str:
    """Returns the scope of an op; a name without scopes is one itself."""
    scopes = name.split("/")
    own = scopes[:-1] or scopes
    while len(own) > 1 and _INNER.fullmatch(own[-1]):
        own = own[:-1]
    return "/".join(own)


def _operator_layer(graph: Subgraph, operator: Operator) -> str:
    constants = [i for i in operator.inputs[1:] if i >= 0 and graph.tensors[i].data is not None]
    names = [graph.tensors[i].name for i in [*operator.outputs[:1], *constants]]
    parts = [part for name in names for part in _parts(name)]
    chosen = [part for part in parts if _MAIN.fullmatch(part.split("/")[-1])] or parts
    return _layer(chosen[0]) if chosen else ""


def layers(graph: Subgraph) -> list[str]:
    """Returns the path of the layer of every operator, without a scope that all have."""
    found = [_operator_layer(graph, o) for o in graph.operators]
    scopes = {path.split("/")[0] for path in found if path}
    deep = all("/" in path for path in found if path)
    cut = 1 if len(scopes) == 1 and deep else 0
    taken: dict[str, int] = {}
    result = []
    for path, operator in zip(found, graph.operators, strict=True):
        if path:
            result.append("/".join(path.split("/")[cut:]))
            continue
        base = operator.kind.lower()
        taken[base] = taken.get(base, 0) + 1
        result.append(base if taken[base] == 1 else f"{base}_{taken[base]}")
    return result


def port_names(names: Iterable[str], default: str) -> list[str]:
    """Returns names of inputs or outputs from those of their tensors, each once."""
    result: list[str] = []
    for index, name in enumerate(names):
        parts = _parts(name)
        base = _PREFIX.sub("", parts[0].split("/")[-1]) if parts else f"{default}_{index}"
        result.append(unique(base, result))
    return result


def unique(name: str, taken: Sequence[str]) -> str:
    """Returns a name, with a number if it is taken."""
    found, count = name, 1
    while found in taken:
        found, count = f"{name}_{count}", count + 1
    return found
