"""Errors that only mlf2rust has."""

from __future__ import annotations

from tools.codegen.conversion import ConversionError


class ArchiveError(ConversionError):
    """The archive is damaged or unsafe."""

    exit_code = 3
    title = "archive refused"


class FormatError(ConversionError):
    """A member of the archive does not have the form that TVM writes."""

    exit_code = 4
    title = "input not understood"


class MismatchError(ConversionError):
    """Two members of the archive disagree; the message names both values."""

    exit_code = 5
    title = "the archive contradicts itself"
