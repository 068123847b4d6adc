"""C of an archive stays in C: what the crate quotes of it is inside of comments and strings."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from converters.mlf.convert import Request, convert
from converters.mlf.tests.dialects import DIALECTS, tar_of
from tools.codegen.conversion import ConversionError
from tools.codegen.rust_code import code_only, unwritten

MARKER = "inj3ct"
TAILS = (
    f"\nint a 5\nuse {MARKER}::x as y 7;\n",
    f"\nint a 5\r}} fn {MARKER}() {{ 7;\n",
    f"\n*/ mod {MARKER}; struct {{ int {MARKER} 5 }} 3;\n",
    f"\u2028fn {MARKER} 5;\n",
)


def _check(files: dict[str, str], folder: Path) -> bool:
    archive = folder / f"m\n{MARKER}.tar"
    archive.write_bytes(tar_of(files))
    try:
        done = convert(Request(mlf=archive, target="cortex-m4"))
    except ConversionError as err:
        assert all(c.isprintable() or c == "\n" for c in err.text("mlf2rust"))
        return False
    for path, content in done.output.files.items():
        if path.endswith(".rs"):
            text = content.decode()
            assert all(c.isprintable() or c == "\n" for c in text), path
            assert MARKER not in code_only(text), path
    return True


@pytest.mark.parametrize("tail", TAILS)
def test_the_rest_of_a_source(tail: str, tmp_path: Path) -> None:
    files = {k: str(v) for k, v in DIALECTS["plain_v7"]().files.items()}
    files["codegen/host/src/default_lib0.c"] += tail
    assert _check(files, tmp_path)


def test_emitters_write_foreign_text_by_one_function() -> None:
    emitters = Path(__file__).parents[1].glob("emit*.py")
    # A member's name, which `archive.py` keeps free of quotes.
    files = ("emit_c.py", "emit_c_calls.py")
    assert sorted(unwritten(emitters)) == [f"{file}: source.name" for file in files]


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    st.sampled_from(sorted(DIALECTS)),
    st.integers(0, 1 << 20),
    st.lists(
        st.sampled_from(
            ["\n", "\r", ";", "{", "}", "5", " int a ", "*/", "/*", '"', "\u2028", "\\"]
        ),
        max_size=6,
    ).map("".join),
)
def test_text_anywhere_in_the_sources(name: str, at: int, text: str) -> None:
    files = {k: str(v) for k, v in DIALECTS[name]().files.items()}
    sources = sorted(k for k in files if k.endswith((".c", ".h")))
    if not sources:
        return
    source = sources[at % len(sources)]
    place = at % (len(files[source]) + 1)
    insert = f"{text} {MARKER} {text}"
    files[source] = files[source][:place] + insert + files[source][place:]
    with tempfile.TemporaryDirectory() as folder:
        _check(files, Path(folder))
