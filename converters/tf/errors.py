"""Errors that only tf2rust has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tools.codegen.conversion import ConversionError, UnsupportedError


class FileError(ConversionError):
    """The model file is missing, damaged or unsafe."""

    exit_code = 3
    title = "the model can't be read"


class FeaturesError(ConversionError):
    """The recorded inputs and predictions don't belong to the model."""

    exit_code = 4
    title = "the recorded features don't match the model"


def sizes_advised(err: UnsupportedError, names: Sequence[str]) -> UnsupportedError:
    """Returns an error with what helps where a model leaves sizes open.

    Args:
        err: Why the model is refused.
        names: Its open dimensions.
    """
    if not names:
        return err
    what = ", ".join(names)
    advice = f"if it needs a number for {what}, give the sizes of the inputs with --input_shape"
    return UnsupportedError.of([p if p.advice else replace(p, advice=advice) for p in err.problems])


# Characters of a message of another program that are shown.
_SHOWN = 300


def shortened(err: BaseException | str, most: int = _SHOWN) -> str:
    """Returns what an error of another program says, on one line of so many characters."""
    text = " ".join(str(err).split()) or type(err).__name__
    return text if len(text) <= most else text[:most] + " ..."
