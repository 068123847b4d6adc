"""Reads tensor types out of Relay text: the signature of `@main`, or a vendor's header comment."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TENSOR = re.compile(r"Tensor\[\(([0-9, ]{0,200})\),\s{0,8}([a-z]{1,8}[0-9]{0,3})\]")
_PARAM = re.compile(r"%([^\s,()]{1,256}?)(?: /\*[^*]{0,256}\*/)?:\s{0,8}Tensor\[")
MAX_SIGNATURE = 1 << 20


@dataclass(frozen=True)
class TensorType:
    """Shape and dtype word ("float32") of a tensor; the name is empty when the text has none."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Signature:
    """Types of `@main`; `outputs` is None when the text does not give the return type."""

    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...] | None


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(d) for d in text.split(",") if d.strip().isdigit())


def parse_tensor_types(text: str) -> tuple[TensorType, ...]:
    """Returns every `Tensor[(shape), dtype]` in `text`, in order, without names."""
    return tuple(TensorType("", _shape(m[1]), m[2]) for m in _TENSOR.finditer(text))


def parse_main_signature(text: str) -> Signature | None:
    """Returns the types of `def @main(...)`, or None when there is no such function.

    Parameters whose type is not a static tensor are left out.
    """
    start = text.find("def @main(")
    if start < 0:
        return None
    line_end = text.find("{\n", start, start + MAX_SIGNATURE)
    head = text[start : line_end if line_end > 0 else start + MAX_SIGNATURE]
    depth = 0
    close = len(head)
    for found in re.finditer(r"[()]", head):
        depth += 1 if found.group() == "(" else -1
        if depth == 0:
            close = found.start()
            break
    params, tail = head[:close], head[close:]
    inputs = []
    for param in _PARAM.finditer(params):
        tensor = _TENSOR.match(params, param.end() - len("Tensor["))
        if tensor is not None:
            inputs.append(TensorType(param[1], _shape(tensor[1]), tensor[2]))
    outputs = parse_tensor_types(tail) if "->" in tail else ()
    return Signature(tuple(inputs), outputs or None)
