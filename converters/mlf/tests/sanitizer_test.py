"""The recorded runs under AddressSanitizer, C and Rust instrumented: no access outside a buffer."""

from __future__ import annotations

from pathlib import Path

import pytest

from converters.mlf.convert import Request, convert
from converters.mlf.tests.build import build, call, must, run_rust, rustc
from converters.mlf.tests.dialects import DIALECTS
from converters.mlf.tests.requests import EXISTING_MEMORY, REAL, TESTDATA, request_of

CASES = (*REAL, "internal_pools", "io_in_pools", "packed", "all_dtypes")
#: rustc keeps the option for its unstable releases.
UNSTABLE = ("RUSTC_BOOTSTRAP", "1")
C_FLAGS = ("-fsanitize=address", "-fno-omit-frame-pointer")
RUST_FLAGS = ("-Zsanitizer=address",)
_LIBRARIES = Path(rustc()).resolve().parents[1] / "lib/rustlib/x86_64-unknown-linux-gnu/lib"
pytestmark = pytest.mark.skipif(
    not list(_LIBRARIES.glob("librustc*_rt.asan.a")),
    reason="this Rust toolchain, such as Debian's, comes without AddressSanitizer's runtime",
)


@pytest.mark.parametrize("name", CASES)
def test_no_access_outside_a_buffer(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(*UNSTABLE)
    if name in DIALECTS:
        request = request_of(DIALECTS[name](), tmp_path)
    else:
        request = Request(mlf=TESTDATA / f"{name}.tar", golden=TESTDATA / "golden.npz")
    result = convert(request)
    built = build(result, tmp_path / "crate", flags=C_FLAGS, rust_flags=RUST_FLAGS)
    source = built.folder / "tests" / "golden.rs"
    assert "0 failed" in run_rust(built, source, test=True, flags=RUST_FLAGS)


def test_no_access_outside_borrowed_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*UNSTABLE)
    result = convert(Request(mlf=TESTDATA / "constant_pool.tar"))
    built = build(result, tmp_path / "crate", flags=C_FLAGS, rust_flags=RUST_FLAGS)
    assert "3 passed" in run_rust(built, EXISTING_MEMORY, test=True, flags=RUST_FLAGS)


def test_the_sanitizer_sees_the_models_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model whose C writes one element too far is caught, so the runs above mean something."""
    monkeypatch.setenv(*UNSTABLE)
    dialect = DIALECTS["plain_v7"]()
    files = {
        k: str(v).replace("i < 4; ++i) { y", "i < 5; ++i) { y") for k, v in dialect.files.items()
    }
    request = request_of(type(dialect)(files, dialect.golden), tmp_path)
    built = build(convert(request), tmp_path / "crate", flags=C_FLAGS, rust_flags=RUST_FLAGS)
    source = built.folder / "tests" / "golden.rs"
    binary = built.folder / "golden_bin"
    must(
        [rustc(), *built.rustc_args(), "--test", *RUST_FLAGS, str(source), "-o", str(binary)],
        built.folder,
    )
    done = call([str(binary)], built.folder)
    assert done.returncode != 0 and "AddressSanitizer" in done.stderr + done.stdout
