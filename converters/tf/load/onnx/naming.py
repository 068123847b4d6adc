"""Names of layers and weights, from what exporters write."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from converters.tf.load.onnx.file import Node
from converters.tf.load.onnx.values import Known, Value

# Modules that only say that it is a model.
_NO_LAYERS = frozenset(["StatefulPartitionedCall", "PartitionedCall", "model", ""])
# What weights are called whose own name says nothing, by operator and operand.
_ROLES = {
    "BatchNormalization": ("", "scale", "shift", "mean", "variance"),
    "Conv": ("", "weight", "bias"),
    "ConvTranspose": ("", "weight", "bias"),
    "GRU": ("", "weight", "recurrent_weight", "bias"),
    "Gemm": ("", "weight", "bias"),
    "LSTM": ("", "weight", "recurrent_weight", "bias"),
    "MatMul": ("weight", "weight"),
    "PRelu": ("", "slope"),
    "RNN": ("", "weight", "recurrent_weight", "bias"),
}
_WORD = re.compile(r"[A-Za-z]{2}")


@dataclass
class Names:
    """Names that were handed out."""

    _counts: dict[str, int] = field(default_factory=dict)

    def layer(self, node: Node, args: Sequence[Value | None]) -> str:
        """Returns the path of a node's layer.

        PyTorch's exporters write it into the node's name or beside it; else the path of a weight
        says it, or the node's own name.
        """
        known = [(i, a) for i, a in enumerate(args) if isinstance(a, Known)]
        for index, arg in known:
            roles = _ROLES.get(node.op, ())
            arg.role = arg.role or (roles[index] if index < len(roles) else "value")
        path = _scopes(node) or _path(node)
        if path:
            return path
        for _, arg in known:
            owner = "/".join(_parts(arg.name)[:-1])
            if _WORD.search(owner):
                return owner
        word = node.name.rpartition("/")[2] or node.op.rpartition(".")[2]
        if node.name:
            return word
        count = self._counts[word] = self._counts.get(word, -1) + 1
        return f"{word}_{count}" if count else word

    def weight(self, known: Known) -> str:
        """Returns the name of a constant in its layer: the last part of its own, or its role."""
        parts = _parts(known.name)
        named = len(parts) > 1 and _WORD.search(parts[-1])
        return parts[-1] if named else known.role or "value"


def _parts(name: str) -> list[str]:
    """Returns the modules of a name like `layer1.0.conv1.weight`: layer1.0, conv1, weight."""
    if "::" in name:
        return []
    parts: list[str] = []
    for word in re.split(r"[./]", name):
        if word.isdigit() and parts:
            parts[-1] += f".{word}"
        elif word:
            parts.append(word)
    return parts


def _path(node: Node) -> str:
    """Returns the modules in a name like `/layer1/layer1.0/conv1/Conv`."""
    words = [w for w in node.name.split("/") if w not in _NO_LAYERS]
    if len(words) < 2:
        return ""
    path: list[str] = []
    for word in words[:-1]:
        if path and word.startswith(f"{path[-1]}."):
            path.pop()
        path.append(word)
    return "/".join(path)


def _scopes(node: Node) -> str:
    """Returns the modules that PyTorch's newer exporter notes: '', 'layer1.0.conv1', 'conv2d'."""
    modules = [word for word in node.scopes[:-1] if word]
    return "/".join(_parts(modules[-1])) if modules else ""
