"""Where the inputs of the tests are, and how the golden files are made."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from tools.opgen.api import RustCrate
from tools.opgen.main import read_sources
from tools.opgen.model import OpDef
from tools.opgen.pipeline import Generated, generate
from tools.opgen.read import read_op_list

HERE = Path(__file__).resolve().parent
CONSTRUCTS = HERE / "constructs.pbtxt"
GOLDEN = HERE / "golden"
UPDATE = "tools/bazel run //tools/opgen/tests:update_golden"


def golden_files() -> dict[str, str]:
    """Returns what opgen writes for the constructs, formatted by the rustfmt of `RUSTFMT`."""
    rustfmt = str(Path(os.environ.get("RUSTFMT", "rustfmt")))
    return generate(CONSTRUCTS.read_bytes(), CONSTRUCTS.name, {}, rustfmt, "constructs").files


def crate_of(text: str) -> RustCrate:
    """Returns the crate of a text-format OpList."""
    return generated(text).crate


def generated(text: str, group: str = "other") -> Generated:
    """Returns the unformatted result of a text-format OpList."""
    return generate(text.encode(), "test.pbtxt", {}, group=group)


@functools.cache
def tensorflow_ops() -> tuple[OpDef, ...]:
    """Returns the ops of the OpList that `OP_LIST` names."""
    return read_op_list(Path(os.environ["OP_LIST"]).read_bytes(), "op_list.pb")


@functools.cache
def op_wrappers() -> dict[str, str]:
    """Returns the sources of the Python wrappers that `OP_WRAPPERS` names, by path."""
    return read_sources(os.environ["OP_WRAPPERS"].split())


@functools.cache
def tensorflow_crate() -> Generated:
    """Returns the unformatted crate of all of TensorFlow's ops."""
    data = Path(os.environ["OP_LIST"]).read_bytes()
    return generate(data, "op_list.pb", op_wrappers(), with_smoke=True)
