"""Errors that only tf2rust has."""

from __future__ import annotations

from tools.codegen.conversion import ConversionError


class FileError(ConversionError):
    """The model file is missing, damaged or unsafe."""

    exit_code = 3
    title = "the model can't be read"


class FeaturesError(ConversionError):
    """The recorded inputs and predictions don't belong to the model."""

    exit_code = 4
    title = "the recorded features don't match the model"
