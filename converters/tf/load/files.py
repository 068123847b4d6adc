"""Looks at a model file before anything trusts it."""

from __future__ import annotations

import json
import lzma
import mmap
import stat
import struct
import zipfile
import zlib
from enum import Enum
from pathlib import Path

from converters.tf.errors import FileError
from tools.codegen.conversion import Problem

# A zip member that unpacks to more than this is checked for its ratio.
_LARGE = 64 << 20
# What deflate reaches only for made-up content; weights of zeros are stored by Keras unpacked.
_MOST_RATIO = 100
# Largest description of an architecture.
_LARGEST_CONFIG = 256 << 20
# What a damaged member raises, by how it is packed; `RuntimeError` if it is encrypted.
_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError)
# How a global heap of HDF5 starts: its name, version and reserved bytes.
_HEAP = b"GCOL\x01\0\0\0"
# Deepest nesting of a description; Keras recurses.
_DEEPEST_CONFIG = 200


class Kind(Enum):
    """File formats."""

    KERAS = ".keras (version 3)"
    HDF5 = ".h5"
    SAVED_MODEL = "SavedModel"
    GRAPH_DEF = "frozen GraphDef"
    TFLITE = ".tflite"
    ONNX = ".onnx"


def kind_of(path: Path) -> Kind:
    """Returns the format, by content.

    Raises:
        FileError: There is no such file, or it is not a model.
    """
    if path.is_dir():
        if (path / "saved_model.pb").is_file():
            return Kind.SAVED_MODEL
        if (path / "config.json").is_file():
            raise FileError(Problem(str(path), "an unpacked .keras model", "zip it again"))
        raise FileError(Problem(str(path), "a folder without saved_model.pb"))
    try:
        # A pipe or a device would be waited for.
        if not stat.S_ISREG(path.stat().st_mode):
            raise FileError(Problem(str(path), "not a regular file"))
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as err:
        raise FileError(Problem(str(path), f"can't be read: {err.strerror}")) from err
    if head[:4] == b"PK\x03\x04":
        _check_zip(path)
        _check_heaps(path)
        return Kind.KERAS
    if head == b"\x89HDF\r\n\x1a\n":
        _check_heaps(path)
        return Kind.HDF5
    if head[4:8] == b"TFL3" or path.suffix == ".tflite":
        return Kind.TFLITE
    if path.name == "saved_model.pb":
        raise FileError(Problem(str(path), "one file of a SavedModel", "name its folder"))
    if path.suffix in (".pb", ".graphdef") and head:
        return Kind.GRAPH_DEF
    if path.suffix == ".onnx" and head:
        return Kind.ONNX
    formats = ", ".join(k.value for k in Kind)
    raise FileError(Problem(str(path), f"no model; known formats: {formats}"))


def _check_zip(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                _check_member(path, member)
            whole = sum(member.file_size for member in archive.infolist())
            _check_ratio(path, "the archive", whole, path.stat().st_size)
            names = archive.namelist()
            for needed in ("config.json", "model.weights.h5"):
                if needed not in names:
                    raise FileError(Problem(str(path), f"a zip archive without {needed}"))
            config = json.loads(archive.read("config.json"))
    except (ValueError, RecursionError) as err:
        raise FileError(Problem(str(path), f"config.json is damaged: {err}")) from err
    except (*_DAMAGED, EOFError, OSError, RuntimeError) as err:
        raise FileError(Problem(str(path), f"a damaged zip archive: {err}")) from err
    if not isinstance(config, dict) or _too_deep(config):
        raise FileError(Problem(str(path), "config.json does not describe a model"))


def _check_heaps(path: Path) -> None:
    """Refuses heaps of HDF5 with an object of no size, which its library reads for ever.

    Keras stores HDF5 in its archives without compression, so that heaps are seen there, too.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        start = content.find(_HEAP)
        while 0 <= start <= len(content) - 16:
            (size,) = struct.unpack_from("<Q", content, start + len(_HEAP))
            at, end = start + 16, min(start + size, len(content))
            while at + 16 <= end:
                index, length = struct.unpack_from("<HxxxxxxQ", content, at)
                step = 16 + (length + 7) // 8 * 8 if index else length
                if not 0 < step < 1 << 63:
                    raise FileError(Problem(str(path), f"a damaged heap at byte {at}"))
                at += step
            start = content.find(_HEAP, at)


def _check_member(path: Path, member: zipfile.ZipInfo) -> None:
    parts = Path(member.filename).parts
    if Path(member.filename).is_absolute() or ".." in parts or "\\" in member.filename:
        raise FileError(Problem(str(path), f"a member points outside: {member.filename!r}"))
    if member.filename == "config.json" and member.file_size > _LARGEST_CONFIG:
        raise FileError(Problem(str(path), f"config.json has {member.file_size} bytes"))
    _check_ratio(path, repr(member.filename), member.file_size, member.compress_size)


def _check_ratio(path: Path, name: str, unpacked: int, packed: int) -> None:
    ratio = unpacked / max(1, packed)
    if unpacked > _LARGE and ratio > _MOST_RATIO:
        what = f"{name} unpacks to {unpacked} bytes, {ratio:.0f} times its size"
        raise FileError(Problem(str(path), what, "that is not a model but an attack"))


def _too_deep(config: object) -> bool:
    level = [config]
    for _ in range(_DEEPEST_CONFIG):
        level = [
            child
            for item in level
            for child in (
                item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
            )
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True
