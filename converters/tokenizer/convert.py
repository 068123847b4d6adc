"""The conversion as a library: a tokenizer in, the files of a crate out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from converters.tokenizer.emit import Example, crate_files
from converters.tokenizer.errors import FileError, RecordedError
from converters.tokenizer.load import preset, sentence_piece
from converters.tokenizer.model import BytePair, Split, Tokenizer
from tools.codegen import program
from tools.codegen.conversion import Problem, UsageError
from tools.codegen.names import field_name

_SUFFIXES = (".spm", ".model")


@dataclass(frozen=True)
class Request:
    """What to convert, and how.

    Attributes:
        tokenizer: A folder of KerasHub, or a model file of SentencePiece.
        crate: The name of the crate; made from the tokenizer's if empty.
        split: How a text is taken apart before bytes are merged; the tokenizer's if `None`.
        recorded: A file of texts and their numbers.
    """

    tokenizer: Path
    crate: str = ""
    split: Split | None = None
    recorded: Path | None = None


@dataclass(frozen=True)
class Result:
    """A converted tokenizer.

    Attributes:
        tokenizer: What was read.
        crate: The crate's name.
        examples: How many texts its test has.
        files: Content by path in the crate's folder.
    """

    tokenizer: Tokenizer
    crate: str
    examples: int
    files: dict[str, bytes]


def convert(request: Request) -> Result:
    """Converts a tokenizer; writes nothing.

    Args:
        request: What to convert.

    Raises:
        ConversionError: See `errors.py`.
    """
    tokenizer = _read(request)
    if request.split and not isinstance(tokenizer.model, BytePair):
        what = f"{tokenizer.name} merges no bytes"
        raise UsageError(Problem("--split", what, "leave it out"))
    examples = _examples(request.recorded) if request.recorded else ()
    crate = request.crate or field_name(tokenizer.name, "tokenizer")
    if field_name(crate, "tokenizer") != crate:
        what = "is not a name of a crate"
        advice = f"such as {field_name(crate, 'tokenizer')}"
        raise UsageError(Problem(f"--crate_name {crate}", what, advice))
    files = crate_files(tokenizer, crate, examples, program.version())
    return Result(tokenizer, crate, len(examples), files)


def _read(request: Request) -> Tokenizer:
    path = request.tokenizer
    if path.is_dir():
        return preset.read(path, request.split)
    if path.name == preset.CONFIG and path.is_file():
        return preset.read(path.parent, request.split)
    if path.suffix not in _SUFFIXES and path.exists():
        what = f"is not a folder of KerasHub, nor a file with the ending {' or '.join(_SUFFIXES)}"
        raise UsageError(
            Problem(str(path), what, "KerasHub writes one by tokenizer.save_to_preset")
        )
    try:
        content = path.read_bytes()
    except OSError as err:
        raise FileError(Problem(str(path), f"can't be read: {err.strerror or err}")) from err
    return Tokenizer("Tokenizer", sentence_piece.read(str(path), content), 0, None)


def _examples(file: Path) -> Sequence[Example]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except OSError as err:
        raise FileError(Problem(str(file), f"can't be read: {err.strerror or err}")) from err
    except (ValueError, RecursionError) as err:
        raise RecordedError(Problem(str(file), f"is not JSON: {err}")) from err
    if not isinstance(found, dict):
        raise RecordedError(Problem(str(file), "is not an object with numbers by text"))
    return [_example(file, text, value) for text, value in found.items()]


def _example(file: Path, text: str, value: object) -> Example:
    given = value if isinstance(value, dict) else {"ids": value}
    ids, decoded = given.get("ids"), given.get("decoded")
    if not isinstance(ids, list) or not all(_is_id(id_) for id_ in ids):
        what = f"the numbers of {text!r} are not a list of int32"
        raise RecordedError(Problem(str(file), what))
    if not isinstance(decoded, str | None):
        raise RecordedError(Problem(str(file), f"what {text!r} is decoded to is not a text"))
    for part in (text, decoded or ""):
        try:
            part.encode()
        except UnicodeEncodeError as err:
            raise RecordedError(Problem(str(file), f"a text is not Unicode: {err}")) from err
    return Example(text, tuple(ids), decoded)


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 31
