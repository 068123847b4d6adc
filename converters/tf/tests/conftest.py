"""Writes what the tests compared as a page, if `TF2RUST_PAGE` names one."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import keras
import pytest

from converters.tf.tests.checks import SMALL, TOLERANCE, converted, differences
from converters.tf.tests.every_layer import BASES, PARTS, REASONS, all_kinds

_PAGE = """\
# Keras layers in tf2rust

Models of one or a few layers with random options, shapes and weights, for batches of up to 17: the
graph of tf2rust, computed by its definition in NumPy, against Keras. The difference is the largest
one of an element over the largest element of its tensor, or over {small:g} if that is more;
{tolerance:g} is allowed. The emitters of Rust take every one of these graphs; the tests of
generated crates compile each of their ops and compare it with the same definition. How to convert
a model: [tf2rust](tf2rust.md).

Written by `TF2RUST_PAGE=docs/keras-layers.md tools/bazel run //converters/tf/tests:keras_sweep`,
{date}; {failed}.

## Classes of layers

{good} of the {all} classes of `keras.layers` of Keras {keras} convert and agree with Keras{partly}
Not counted: {bases}.

| class that does not convert | why |
|---|---|
{refused}

## Tests

| test | models | largest difference |
|---|---|---|
{rows}
"""


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes the page."""
    page = os.environ.get("TF2RUST_PAGE")
    if not page:
        return
    rows = [
        f"| {name.removeprefix('test_').replace('_', ' ')} | {len(found)} | {max(found):.1e} |"
        for name, found in differences.items()
    ]
    text = _PAGE.format(
        **_classes(),
        tolerance=TOLERANCE,
        small=SMALL,
        date=datetime.datetime.now(datetime.UTC).date(),
        failed=f"{session.testsfailed} of {session.testscollected} tests failed",
        rows="\n".join(rows),
    )
    base = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    (base / page).write_text(text, encoding="utf-8")


def _classes() -> dict[str, object]:
    """Returns what the page says of the classes of layers."""
    kinds = all_kinds() - set(BASES)
    failed = dict.fromkeys(kinds - converted - set(REASONS), "it differs from Keras")
    reasons = {**REASONS, **failed}
    parts = "; ".join(f"`{kind}` {what}" for kind, (what, _) in PARTS.items())
    return {
        "good": len(kinds & converted),
        "all": len(kinds),
        "keras": keras.__version__,
        "partly": f" ({parts})." if parts else ".",
        "bases": ", ".join(f"`{kind}`, {what}" for kind, what in BASES.items()),
        "refused": "\n".join(f"| {kind} | {why} |" for kind, why in sorted(reasons.items())),
    }
