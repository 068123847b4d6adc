"""Random and damaged inputs: an answer or a typed error, soon, and never anything else."""

from __future__ import annotations

import contextlib
import gzip
import io
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from converters.mlf.convert import Request, convert
from converters.mlf.golden_vectors import read_npz
from converters.mlf.join import model_of_header
from converters.mlf.options import Options
from converters.mlf.parse.archive import parse_archive, read_archive
from converters.mlf.parse.c_header import Define, parse_header
from converters.mlf.parse.c_metadata import parse_c_metadata
from converters.mlf.parse.c_source import parse_sources
from converters.mlf.parse.c_text import split_comments
from converters.mlf.parse.metadata import parse_metadata
from converters.mlf.parse.relay import parse_main_signature
from converters.mlf.tests.dialects import DIALECTS, tar_of
from converters.mlf.tests.requests import TESTDATA
from tools.codegen.conversion import ConversionError
from tools.codegen.names import constant_name, field_name, type_name


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Returns a zip file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return buffer.getvalue()


REAL = (TESTDATA / "multi.tar").read_bytes()
GZIPPED = gzip.compress(REAL)
ZIPPED = zipped(dict(read_archive(TESTDATA / "multi.tar").files))
HEADERS = [
    str(text)
    for make in DIALECTS.values()
    for name, text in make().files.items()
    if name.endswith(".h")
]
SOURCES = [
    str(text)
    for make in DIALECTS.values()
    for name, text in make().files.items()
    if name.endswith(".c")
]
TEXTS = st.text(max_size=400) | st.sampled_from(HEADERS + SOURCES)
QUICK = settings(max_examples=150, deadline=5000, suppress_health_check=list(HealthCheck))


@st.composite
def damaged_text(draw: st.DrawFn, originals: list[str]) -> str:
    text = draw(st.sampled_from(originals))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 40)))
        text = text[:start] + draw(st.text(max_size=12) | st.just(text[start:end] * 2)) + text[end:]
    return text


@st.composite
def damaged_bytes(draw: st.DrawFn, original: bytes) -> bytes:
    data = bytearray(original)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + draw(st.integers(0, 4))] = draw(st.binary(max_size=4))
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


@QUICK
@given(st.binary(max_size=3000) | st.sampled_from((REAL, ZIPPED, GZIPPED)).flatmap(damaged_bytes))
def test_archive(data: bytes) -> None:
    try:
        parse_archive("x", data)
    except ConversionError as err:
        assert err.problems


@QUICK
@given(TEXTS | damaged_text([str(DIALECTS["plain_v7"]().files["metadata.json"])]))
def test_metadata(text: str) -> None:
    try:
        parse_metadata(text, "x")
    except ConversionError as err:
        assert err.problems


@QUICK
@given(TEXTS | damaged_text(HEADERS))
def test_header(text: str) -> None:
    try:
        parse_header(text, "x")
        model_of_header(text, "x", b"!<arch>\n", Options())
    except ConversionError as err:
        assert err.problems


@QUICK
@given(TEXTS | damaged_text(SOURCES))
def test_sources(text: str) -> None:
    code, comments = split_comments(text)
    assert len(code) == len(comments) == len(text)
    for parse in (lambda: parse_sources({"a.c": text}, "x"), lambda: parse_c_metadata(text, "x")):
        try:
            parse()
        except ConversionError as err:
            assert err.problems
    parse_main_signature("def @main(" + text)


@QUICK
@given(st.sampled_from(sorted(DIALECTS)), st.data())
def test_whole_archives(name: str, data: st.DataObject) -> None:
    files = {k: str(v) for k, v in DIALECTS[name]().files.items()}
    if not files:
        return
    member = data.draw(st.sampled_from(sorted(files)))
    files[member] = data.draw(damaged_text([files[member]]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.tar")
        path.write_bytes(tar_of(files))
        try:
            convert(Request(mlf=path))
        except ConversionError as err:
            assert err.problems


@QUICK
@given(st.binary(max_size=300) | damaged_bytes((TESTDATA / "golden.npz").read_bytes()))
def test_npz(data: bytes) -> None:
    try:
        read_npz(data, "x")
    except ConversionError as err:
        assert err.problems


@QUICK
@given(st.text(max_size=60))
def test_names_are_identifiers(name: str) -> None:
    for made in (field_name, type_name, constant_name):
        result = made(name, "x")
        assert result.isidentifier() and result.isascii()


def test_nothing_is_quadratic() -> None:
    """With 200 kB of each piece, work that grows with the square would outlast the test's limit."""
    size = 200_000
    for piece in (
        "/*",
        "//",
        '"',
        "'",
        "(",
        "{",
        "#if\n",
        ".x = ",
        "static uint8_t ",
        "struct a b (",
        "0x00, ",
        "{" + "1, " * 99,
        "{ static int a = 1; }",
        "int f(void) { static int a[2] = {1, 2}; }",
    ):
        text = piece * (size // len(piece))
        for parse in (parse_header, parse_metadata, parse_c_metadata):
            with contextlib.suppress(ConversionError):
                parse(text, "x")
        with contextlib.suppress(ConversionError):
            parse_sources({"a.c": text}, "x")
        Define(text, 1).octets()
        parse_main_signature("def @main(" + text)


_MANY = 30_000
_REPEATED = (
    "struct tvmgen_a_inputs {" + "".join(f"void* a{i};" for i in range(_MANY)) + "};",
    "#ifndef A\n" * _MANY + "#endif\n" * _MANY,
    "int f(int a)\n" * _MANY,
    "int f(int a) {\n" * _MANY,
    "{" + ",".join(f'"a{i // 2}": 1' for i in range(_MANY)) + "}",
)


@pytest.mark.parametrize("text", _REPEATED, ids=lambda text: text[:12])
def test_long_texts_take_time_in_proportion(text: str) -> None:
    """What takes the square of it passes the time limit of this test's target."""
    with contextlib.suppress(ConversionError):
        parse_header(text, "a.h")
    with contextlib.suppress(ConversionError):
        parse_sources({"a.c": text}, "a.tar")
    with contextlib.suppress(ConversionError):
        parse_metadata(text, "metadata.json")
