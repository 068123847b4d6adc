"""Requests for the real and the hand-made archives."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from converters.mlf.arguments import parse_overrides
from converters.mlf.convert import Request, convert
from converters.mlf.options import Options
from converters.mlf.tests.build import Built, build, cc, must
from converters.mlf.tests.dialects import DIALECTS, Dialect, tar_of

TESTDATA = Path(__file__).parent.parent / "testdata"
#: A program for the crate of `constant_pool.tar`; the others belong to a dialect.
EXISTING_MEMORY = Path(__file__).parent / "programs" / "existing_memory.rs"
REAL = ("plain", "constant_pool", "multi")


def request_of(dialect: Dialect, folder: Path) -> Request:
    """Writes a hand-made input to `folder` and returns the request to convert it."""
    shapes = [f.removeprefix("--shape=") for f in dialect.flags]
    options = Options(overrides=parse_overrides(shapes))
    golden = None
    if dialect.golden:
        golden = folder / "golden.npz"
        np.savez(golden, allow_pickle=False, **dialect.golden)
    if dialect.vendor is None:
        (folder / "model.tar").write_bytes(tar_of(dialect.files))
        return Request(mlf=folder / "model.tar", golden=golden, options=options)
    header, library = dialect.vendor
    (folder / "tvmgen_default.h").write_text(header)
    (folder / "vendor.c").write_text(library)
    must([cc(), "-c", "-w", "-fPIC", "vendor.c", "-o", "vendor.o"], folder)
    must(["ar", "rcs", "mod.a", "vendor.o"], folder)
    return Request(header=folder / "tvmgen_default.h", library=folder / "mod.a", options=options)


@cache
def built_crate(name: str, base: Path) -> Built:
    """Returns the compiled crate of a real or hand-made archive, made once under `base`."""
    folder = base / name
    folder.mkdir()
    if name in DIALECTS:
        dialect = DIALECTS[name]()
        return build(convert(request_of(dialect, folder)), folder / "crate", dialect.extra_c)
    return build(convert(Request(mlf=TESTDATA / f"{name}.tar")), folder / "crate")
