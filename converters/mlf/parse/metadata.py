"""Parses `metadata.json`, versions 5, 6 and 7 with their sub-dialects, into plain facts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from converters.mlf.errors import FormatError
from tools.codegen.conversion import Problem, UnsupportedError

MAX_TEXT = 16 << 20
MAX_DEPTH = 24
MAX_SIZE = 1 << 40
VERSIONS = (5, 6, 7)

_MODULE_KEYS = frozenset(
    {
        "model_name", "export_datetime", "style", "executors", "target",
        "external_dependencies", "memory", "version",
    }
)  # fmt: skip
_MAIN_KEYS = frozenset(
    {
        "device", "workspace_size_bytes", "constants_size_bytes", "io_size_bytes",
        "inputs", "outputs",
    }
)  # fmt: skip


@dataclass(frozen=True)
class TensorFacts:
    """One entry of `main[].inputs` or `.outputs`: unsanitised name, dtype word, size in bytes."""

    name: str
    dtype: str
    size: int


@dataclass(frozen=True)
class ModuleFacts:
    """What `metadata.json` says about one module.

    Attributes:
      key: key under `modules` (version 7), or `model_name`.
      style: "full-model" or "operator".
      executors: for instance ("aot",).
      tvm_version: version of TVM as `external_dependencies` names it; empty before 0.9.
      inputs: tensors of the main function; None where the dialect does not list them.
      outputs: likewise.
      workspace_size: bytes of workspace that the main function needs; None if not stated.
      where: file and key, for messages.
    """

    key: str
    style: str
    executors: tuple[str, ...]
    tvm_version: str
    inputs: tuple[TensorFacts, ...] | None
    outputs: tuple[TensorFacts, ...] | None
    workspace_size: int | None
    where: str


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        count = Counter(key for key, _ in pairs)
        twice = sorted(key for key in count if count[key] > 1)
        raise ValueError(f"key {twice[0]!r} is there twice")
    return result


def _depth(text: str) -> int:
    depth = deepest = 0
    for found in re.finditer(r'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', text):
        token = found.group()
        if token in ("[", "{"):
            depth += 1
            deepest = max(deepest, depth)
        elif token in ("]", "}"):
            depth -= 1
    return deepest


class _Reader:
    """Typed access to decoded JSON; every error names the file and the key path."""

    def __init__(self, where: str) -> None:
        self.where = where

    def fail(self, path: str, what: str) -> FormatError:
        return FormatError(Problem(f"{self.where} {path}".rstrip(), what))

    def mapping(self, value: object, path: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self.fail(path, f"expected an object, found {_kind(value)}")
        return value

    def sequence(self, value: object, path: str) -> list[Any]:
        if not isinstance(value, list):
            raise self.fail(path, f"expected a list, found {_kind(value)}")
        return value

    def text(self, value: object, path: str) -> str:
        if not isinstance(value, str):
            raise self.fail(path, f"expected a string, found {_kind(value)}")
        if not value.isprintable():
            raise self.fail(path, f"{value!r} holds a character that cannot be printed")
        return value

    def size(self, value: object, path: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.fail(path, f"expected a number of bytes, found {_kind(value)}")
        if not 0 <= value <= MAX_SIZE:
            raise self.fail(path, f"{value} bytes; expected 0 to {MAX_SIZE}")
        return value

    def known(self, value: Mapping[str, Any], keys: frozenset[str], path: str) -> None:
        unknown = sorted(set(value) - keys)
        if unknown:
            raise self.fail(
                path, f"unknown key {unknown[0]!r}; known are {', '.join(sorted(keys))}"
            )


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", type(None): "null"}
    return names.get(type(value), repr(value)[:40])


def parse_metadata(text: str, where: str) -> tuple[ModuleFacts, ...]:
    """Parses the text of `metadata.json`.

    Args:
      text: the member's text.
      where: archive and member, for messages.

    Returns:
      One entry per module, sorted by name.

    Raises:
      FormatError: not JSON, or not of a known form.
      UnsupportedError: a version other than 5, 6 and 7.
    """
    reader = _Reader(where)
    if len(text) > MAX_TEXT:
        raise reader.fail("", f"{len(text)} characters; at most {MAX_TEXT} are accepted")
    if _depth(text) > MAX_DEPTH:
        raise reader.fail("", f"nested deeper than {MAX_DEPTH} levels")
    try:
        top = reader.mapping(json.loads(text, object_pairs_hook=_no_duplicates), "")
    except (ValueError, RecursionError) as err:
        raise reader.fail("", f"not JSON: {err}") from err
    version = top.get("version")
    if version not in VERSIONS or isinstance(version, bool):
        raise UnsupportedError(
            Problem(
                f"{where} version",
                f"Model Library Format version {version!r}; versions 5, 6 and 7 are supported",
                "export with TVM 0.8 or 0.9 to 0.18",
            )
        )
    if version == 7 and "modules" in top:
        reader.known(top, frozenset({"version", "modules"}), "")
        modules = reader.mapping(top["modules"], "modules")
        if not modules:
            raise reader.fail("modules", "empty; expected at least one model")
        return tuple(
            _module(reader, key, reader.mapping(modules[key], f"modules.{key}"), f"modules.{key}")
            for key in sorted(modules)
        )
    name = reader.text(top.get("model_name"), "model_name")
    return (_module(reader, name, top, ""),)


def _module(reader: _Reader, key: str, data: Mapping[str, Any], path: str) -> ModuleFacts:
    def at(field: str) -> str:
        return f"{path}.{field}" if path else field

    style = reader.text(data.get("style", "full-model"), at("style"))
    if style != "operator":
        reader.known(data, _MODULE_KEYS, path)
    name = reader.text(data.get("model_name"), at("model_name"))
    if path and name != key:
        raise reader.fail(at("model_name"), f"{name!r}, but its key is {key!r}")
    executors = tuple(
        reader.text(e, at("executors"))
        for e in reader.sequence(data.get("executors", []), at("executors"))
    )
    version = ""
    for index, item in enumerate(
        reader.sequence(data.get("external_dependencies", []), at("external_dependencies"))
    ):
        where = at(f"external_dependencies[{index}]")
        entry = reader.mapping(item, where)
        if entry.get("short_name") == "tvm_standalone_crt":
            version = reader.text(entry.get("version_spec"), f"{where}.version_spec")
    inputs: tuple[TensorFacts, ...] | None = None
    outputs: tuple[TensorFacts, ...] | None = None
    workspace: int | None = None
    if style == "full-model":
        memory = reader.mapping(data.get("memory"), at("memory"))
        functions = reader.mapping(memory.get("functions"), at("memory.functions"))
        entries = reader.sequence(functions.get("main"), at("memory.functions.main"))
        for index, item in enumerate(entries):
            where = at(f"memory.functions.main[{index}]")
            entry = reader.mapping(item, where)
            reader.known(entry, _MAIN_KEYS, where)
            size = reader.size(
                entry.get("workspace_size_bytes", 0), f"{where}.workspace_size_bytes"
            )
            workspace = size if workspace is None else max(workspace, size)
            found = tuple(
                _tensors(reader, entry[side], f"{where}.{side}") if side in entry else None
                for side in ("inputs", "outputs")
            )
            for side, old, new in (("inputs", inputs, found[0]), ("outputs", outputs, found[1])):
                if old and new and old != new:
                    raise reader.fail(f"{where}.{side}", f"{new}; another device lists {old}")
            inputs, outputs = found[0] or inputs, found[1] or outputs
    return ModuleFacts(
        key,
        style,
        executors,
        version,
        inputs,
        outputs,
        workspace,
        f"{reader.where} {path}".rstrip(),
    )


def _tensors(reader: _Reader, value: object, path: str) -> tuple[TensorFacts, ...]:
    result = []
    for key, item in reader.mapping(value, path).items():
        name = reader.text(key, path)
        entry = reader.mapping(item, f"{path}.{name}")
        reader.known(entry, frozenset({"dtype", "size"}), f"{path}.{name}")
        dtype = reader.text(entry.get("dtype"), f"{path}.{name}.dtype")
        size = reader.size(entry.get("size"), f"{path}.{name}.size")
        result.append(TensorFacts(name, dtype, size))
    return tuple(sorted(result, key=lambda t: natural_key(t.name)))


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Returns a sort key that orders `output2` before `output10`."""
    return tuple(
        (0, int(part), "") if part[0] in "0123456789" else (1, 0, part)
        for part in re.findall(r"[0-9]{1,18}|[^0-9]+", name)
    )
