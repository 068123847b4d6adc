"""Joins what header, metadata, Relay text and user say about inputs and outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod

from converters.mlf.errors import MismatchError
from converters.mlf.model import IoSlot, Override, Pool, PoolKind, Tensor
from converters.mlf.parse.c_header import Header
from converters.mlf.parse.metadata import ModuleFacts, TensorFacts
from converters.mlf.parse.relay import Signature, TensorType
from converters.mlf.rules import DTYPES
from tools.codegen.conversion import Problem, UnsupportedError

#: TVM 0.11 printed the address of an object where the size macro's number belongs.
GARBAGE_SIZE_MACROS = ("0.11",)


def sanitise(name: str) -> str:
    """Returns a tensor or pool name as TVM writes it in C: only ASCII letters, digits and `_`."""
    return re.sub(r"[^A-Za-z0-9]", "_", name)


def tensors_of(
    header: Header,
    facts: ModuleFacts,
    signature: Signature | None,
    model: str,
    overrides: Sequence[Override],
    problems: list[Problem],
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Returns inputs and outputs in struct field order.

    Appends to `problems` what disagrees, with both values.

    Raises:
      UnsupportedError: types that no source tells; the message names every such tensor.
    """
    unknown: list[Problem] = []
    sides = []
    for side, listed, types in (
        ("inputs", facts.inputs, signature.inputs if signature else ()),
        ("outputs", facts.outputs, (signature.outputs or ()) if signature else ()),
    ):
        fields = header.structs.get(side, ())
        if not fields:
            problems.append(Problem(header.where, f"struct {header.prefix}_{side} has no field"))
        by_field = _listed(fields, listed, side, facts, problems)
        typed = _typed(fields, types)
        tensors = []
        for name in fields:
            override = _override(overrides, model, name)
            tensor = _tensor(
                name, side, header, facts, by_field.get(name), typed.get(name), override, problems
            )
            if tensor is None:
                size = _macro(name, header) or 0
                what, example = "nothing tells its dtype and size", "float32[1,2,3]"
                if size > 0:
                    what = f"{size} bytes by the header's macro; nothing tells its dtype"
                    example = f"int8[{size}]" if size % 4 else f"float32[{size // 4}]"
                unknown.append(
                    Problem(
                        f"{facts.where} {side[:-1]} {name!r}",
                        what,
                        f"give --shape {model}.{name}={example} with the right type",
                    )
                )
            else:
                tensors.append(tensor)
        sides.append(tuple(tensors))
    # Types would not help where names disagree: the caller reports that.
    if unknown and not problems:
        raise UnsupportedError(*unknown)
    return sides[0], sides[1]


def _override(overrides: Sequence[Override], model: str, name: str) -> Override | None:
    for item in overrides:
        if item.model in ("", model) and sanitise(item.tensor) == name:
            return item
    return None


def _listed(
    fields: Sequence[str],
    listed: tuple[TensorFacts, ...] | None,
    side: str,
    facts: ModuleFacts,
    problems: list[Problem],
) -> dict[str, TensorFacts]:
    if listed is None:
        return {}
    by_name = {sanitise(t.name): t for t in listed}
    # The header has the order of the fields; what was added to it by hand, --shape describes.
    if set(by_name) <= set(fields):
        return by_name
    if len(listed) != len(fields):
        problems.append(
            Problem(
                facts.where,
                f"{len(listed)} {side} in metadata.json ({', '.join(t.name for t in listed)}), "
                f"{len(fields)} in the header ({', '.join(fields)})",
            )
        )
        return {}
    numbered = all(re.fullmatch(r"output[0-9]*", t.name) for t in listed)
    if side == "outputs" and numbered:
        return dict(zip(fields, listed, strict=True))
    problems.append(
        Problem(
            facts.where,
            f"{side} are {', '.join(sorted(by_name))} in metadata.json, "
            f"{', '.join(sorted(fields))} in the header",
        )
    )
    return {}


def _typed(fields: Sequence[str], types: Sequence[TensorType]) -> dict[str, TensorType]:
    by_name = {sanitise(t.name): t for t in types if t.name}
    if by_name:
        return {name: by_name[name] for name in fields if name in by_name}
    return dict(zip(fields, types, strict=True)) if len(types) == len(fields) else {}


def _tensor(
    name: str,
    side: str,
    header: Header,
    facts: ModuleFacts,
    listed: TensorFacts | None,
    typed: TensorType | None,
    override: Override | None,
    problems: list[Problem],
) -> Tensor | None:
    where = f"{facts.where} {side[:-1]} {name!r}"
    dtype = listed.dtype if listed else ""
    size = listed.size if listed else None
    shape: tuple[int, ...] | None = None
    for source, type_dtype, type_shape in (
        ("the model text", typed.dtype if typed else "", typed.shape if typed else None),
        ("--shape", override.dtype if override else "", override.shape if override else None),
    ):
        if type_shape is None:
            continue
        if dtype and type_dtype != dtype:
            problems.append(Problem(where, f"dtype {dtype} in metadata, {type_dtype} in {source}"))
            continue
        if type_dtype not in DTYPES:
            continue
        if shape is not None and shape != type_shape:
            problems.append(
                Problem(
                    where,
                    f"shape {list(shape)} in the model text, {list(type_shape)} in {source}",
                    "leave the flag out: the C works on the archive's layout",
                )
            )
            continue
        dtype, shape = type_dtype, type_shape
        bytes_of_shape = -(-prod(shape) * DTYPES[dtype].bits // 8)
        if size is None:
            size = bytes_of_shape
        elif size != bytes_of_shape:
            problems.append(
                Problem(
                    where,
                    f"size {size} bytes, but {source} says {dtype}{list(shape)}: "
                    f"{bytes_of_shape} bytes",
                )
            )
    if size is None or not dtype:
        return None
    if dtype not in DTYPES:
        raise UnsupportedError(
            Problem(where, f"dtype {dtype!r}; supported are {', '.join(sorted(DTYPES))}")
        )
    if size * 8 % DTYPES[dtype].bits:
        problems.append(Problem(where, f"{size} bytes are not a multiple of the size of {dtype}"))
    if size <= 0 or size > 1 << 32:
        problems.append(Problem(where, f"size {size} bytes; expected 1 to {1 << 32}"))
    _check_macro(name, size, side, header, facts, where, problems)
    return Tensor(name, dtype, size, shape)


def _macro(name: str, header: Header) -> int | None:
    define = header.defines.get(f"{header.prefix}_{name}_size".upper())
    return define.integer() if define is not None else None


def _check_macro(
    name: str,
    size: int,
    side: str,
    header: Header,
    facts: ModuleFacts,
    where: str,
    problems: list[Problem],
) -> None:
    other = header.structs.get("outputs" if side == "inputs" else "inputs", ())
    if name in other or facts.tvm_version.startswith(GARBAGE_SIZE_MACROS):
        return
    define = header.defines.get(f"{header.prefix}_{name}_size".upper())
    macro = _macro(name, header)
    ambiguous = f"{name}_size".lower() == "workspace_size" or any(
        f"{pool}_{kind}_pool".lower() == name.lower()
        for pool in header.structs.get("workspace_pools", ())
        for kind in ("workspace", "constant")
    )
    if macro is not None and macro != size and not ambiguous:
        line = define.line if define is not None else 0
        problems.append(
            Problem(where, f"size {size} bytes, but the header's macro (line {line}) says {macro}")
        )


def io_slots(
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    pools: Sequence[Pool],
    offsets: Mapping[tuple[str, str], tuple[str, int]],
    alignment: int,
    where: str,
) -> dict[str, tuple[IoSlot, ...]]:
    """Returns where inputs and outputs lie in the pools; checks bounds, alignment and overlap.

    Raises:
      MismatchError: an offset is missing, leaves its pool, is not aligned, or two tensors of one
        side overlap; one error lists all such problems.
    """
    problems: list[Problem] = []
    by_name = {p.name: p for p in pools}
    result: dict[str, tuple[IoSlot, ...]] = {}
    for side, tensors in (("inputs", inputs), ("outputs", outputs)):
        slots: list[IoSlot] = []
        for tensor in tensors:
            place = offsets.get((side, tensor.name))
            what = f"{where} {side[:-1]} {tensor.name!r}"
            if place is None or place[0] not in by_name:
                names = ", ".join(by_name) or "none"
                problems.append(
                    Problem(what, f"lies in pool {place}; pools of the header: {names}")
                )
                continue
            pool, offset = by_name[place[0]], place[1]
            end = offset + tensor.size
            if pool.kind is not PoolKind.WORKSPACE:
                problems.append(Problem(what, f"lies in constant pool {pool.name!r}"))
            if end > pool.size:
                problems.append(
                    Problem(what, f"ends at byte {end} of pool {pool.name!r} of {pool.size} bytes")
                )
            if offset % alignment:
                problems.append(Problem(what, f"offset {offset} is not a multiple of {alignment}"))
            for slot in slots:
                apart = offset >= slot.offset + slot.tensor.size or end <= slot.offset
                if slot.pool == pool.name and not apart:
                    problems.append(Problem(what, f"overlaps {slot.tensor.name!r}"))
            slots.append(IoSlot(tensor, pool.name, offset))
        result[side] = tuple(slots)
    if problems:
        raise MismatchError(*problems)
    return result
