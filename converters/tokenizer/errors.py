"""Errors that only tokenizer2rust has."""

from __future__ import annotations

from tools.codegen.conversion import ConversionError


class FileError(ConversionError):
    """A file of the tokenizer is missing or damaged."""

    exit_code = 3
    title = "the tokenizer can't be read"


class RecordedError(ConversionError):
    """The recorded texts and numbers don't belong to the tokenizer."""

    exit_code = 4
    title = "the recorded texts can't be read"
