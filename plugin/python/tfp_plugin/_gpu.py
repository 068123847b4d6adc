"""The GPUs that the loaded libtfp.so sees, and what they computed."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Gpu:
    """A device that Vulkan lists.

    Attributes:
        index: Its number for `TFP_GPU`.
        name: Its name.
        kind: `discrete`, `integrated`, `virtual`, `software` or `other`.
        driver: Name and version of the driver.
        api: The version of Vulkan that the driver offers.
        memory: Bytes that device and host share.
        unusable: Why it can't be used, or empty.
    """

    index: int
    name: str
    kind: str
    driver: str
    api: str
    memory: int
    unusable: str


@dataclasses.dataclass(frozen=True)
class Calls:
    """What became of an op's calls in this process.

    Attributes:
        types: The types that the GPU's body serves.
        done: Calls that the GPU computed.
        form: Calls that the CPU computed, since the body does not serve their types, shapes or
            attributes.
        memory: Calls that the CPU computed, since a tensor was not in the GPU's memory.
        small: Calls that the CPU computed, since it ends sooner.
    """

    types: tuple[str, ...]
    done: int
    form: int
    memory: int
    small: int


@dataclasses.dataclass(frozen=True)
class Reads:
    """What the CPU did with the GPU's memory for an op, in this process.

    Attributes:
        calls: Calls of the CPU's kernels that read of that memory, or were given copies.
        read: Bytes that the CPU read there.
        largest: Most bytes that it read there for one call.
        copied: Bytes that the GPU copied to the host's memory for the CPU's kernels.
    """

    calls: int
    read: int
    largest: int
    copied: int


@dataclasses.dataclass(frozen=True)
class Report:
    """What libtfp.so says.

    Attributes:
        asked: What `TFP_BACKEND` asks for, or the default.
        gpu: Index of the GPU that computes, or None if the CPU does.
        problem: Why the CPU computes though a GPU was asked for, or empty.
        none: Why there is not a list of GPUs, or empty.
        gpus: What Vulkan lists.
        ops: The ops with a body for the GPU.
        cpu: The ops that the CPU computed with the GPU's memory.
    """

    asked: str
    gpu: int | None
    problem: str
    none: str
    gpus: tuple[Gpu, ...]
    ops: Mapping[str, Calls]
    cpu: Mapping[str, Reads]


def report(library: pathlib.Path) -> Report | None:
    """Asks a library that is loaded.

    Args:
        library: The file of the plug-in.

    Returns:
        What it says; None if it is not a library that knows GPUs.
    """
    try:
        ask = ctypes.CDLL(str(library)).tfp_gpu_report
    except (OSError, AttributeError):
        return None
    ask.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
    ask.restype = ctypes.c_size_t
    # The counts may grow between two calls.
    buffer = ctypes.create_string_buffer(ask(None, 0) + 4096)
    length = ask(buffer, len(buffer))
    if not 0 < length <= len(buffer):
        return None
    return _read(json.loads(buffer.raw[:length]))


def _read(found: Mapping[str, Any]) -> Report:
    ops = {
        name: Calls(**{**calls, "types": tuple(calls["types"])})
        for name, calls in found["ops"].items()
    }
    gpus = tuple(Gpu(**each) for each in found["gpus"])
    cpu = {name: Reads(**reads) for name, reads in found["cpu"].items()}
    return Report(**{**found, "gpus": gpus, "ops": ops, "cpu": cpu})


def lines(found: Report | None, ops: bool) -> list[str]:
    """Writes the answer for people.

    Args:
        found: What the library says.
        ops: Whether to list the ops with a body.
    """
    if found is None:
        return []
    where = "the CPU" if found.gpu is None else f"Vulkan, GPU {found.gpu}"
    written = [f"backend     {where} (TFP_BACKEND={found.asked})"]
    if found.problem:
        written.append(f"            {found.problem}")
    if found.none and not found.problem:
        written.append(f"GPUs        none: {found.none}")
    for each in found.gpus:
        about = f"{each.driver}; Vulkan {each.api}; {each.memory / 2**30:.1f} GiB; {each.kind}"
        state = f"not usable: {each.unusable}" if each.unusable else "usable"
        written.append(f"GPU {each.index}       {each.name} ({about}): {state}")
    if found.gpus:
        written.append(f"GPU ops     {len(found.ops)} have a body for the GPU")
    if found.gpus and ops:
        written += [f"  {name} ({', '.join(calls.types)})" for name, calls in found.ops.items()]
    if found.cpu and ops:
        written.append(f"GPU memory  {len(found.cpu)} ops were computed by the CPU")
        written += [
            f"  {name}: {each.calls} calls, {each.read} bytes in place, {each.copied} in copies"
            for name, each in found.cpu.items()
        ]
    return written
