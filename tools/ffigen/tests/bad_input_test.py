"""Headers that are refused, and what the program does then."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from clang import cindex

from tools.codegen.errors import CodegenError, Location
from tools.ffigen import api, main, model, parse, pipeline, rules
from tools.ffigen.rules import HeaderRule
from tools.ffigen.tests import suite


@pytest.mark.parametrize("path", sorted(suite.BAD.glob("*.h")), ids=lambda path: path.stem)
def test_every_problem_is_named_with_its_place(path: Path) -> None:
    expected = re.findall(r"^// expect: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    with pytest.raises(CodegenError) as caught:
        pipeline.generate(suite.BAD, header_rules=[HeaderRule(path.name, path.stem)], tables=[])
    found = [str(problem) for problem in caught.value.problems]
    assert len(found) == len(expected)
    for text, wanted in zip(found, expected, strict=True):
        line, _, message = wanted.partition(": ")
        assert re.match(rf"{re.escape(path.name)}:{line}:\d+: {re.escape(message)}", text)


def test_a_missing_header_is_named(tmp_path: Path) -> None:
    with pytest.raises(CodegenError, match=r"gone\.h: error: no such header in"):
        pipeline.generate(tmp_path, header_rules=[HeaderRule("gone.h", "gone")], tables=[])


def test_an_unknown_libclang_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "SUPPORTED_CLANG", (99,))
    with pytest.raises(CodegenError, match=r"libclang.*clang version 18.*expected.* 99"):
        parse.check_clang()


def test_a_missing_libclang_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing:
        @property
        def lib(self) -> object:
            raise cindex.LibclangError("no such file")

        def get_filename(self) -> str:
            return "/gone/libclang.so"

    monkeypatch.setattr(cindex, "conf", Missing())
    with pytest.raises(
        CodegenError, match=r"/gone/libclang\.so: error: .*can't be loaded.*no such"
    ):
        parse.check_clang()


def test_a_name_of_two_headers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("#define SIZE 1\n")
    (tmp_path / "b.h").write_text("#undef SIZE\n#define SIZE 2\n")
    with pytest.raises(CodegenError, match=r"a\.h: error: 'SIZE' is declared twice: a\.h, b\.h"):
        pipeline.generate(
            tmp_path, header_rules=[HeaderRule("a.h", "a"), HeaderRule("b.h", "b")], tables=[]
        )


def test_a_type_defined_outside_of_the_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text('typedef struct Far Far;\n#include "far.inc"\nvoid f(Far*);\n')
    (tmp_path / "far.inc").write_text("struct Far { int x; };\n")
    with pytest.raises(CodegenError, match=r"a\.h:1.*'Far' is defined in far\.inc:1"):
        pipeline.generate(tmp_path, header_rules=[HeaderRule("a.h", "a")], tables=[])


def test_an_unknown_scalar_is_refused() -> None:
    where = Location("a.h", 4, 2)
    item = model.Typedef("Wide", where, "", model.Scalar("__int128"))
    with pytest.raises(CodegenError, match=r"a\.h:4:2: error: C type '__int128' has no Rust type"):
        api.rust_crate([model.Header("a.h", (item,))], [HeaderRule("a.h", "a")], [])


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, main.__file__, *arguments], capture_output=True, text=True, check=False,
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
    )  # fmt: skip


def test_on_an_error_nothing_is_written(tmp_path: Path) -> None:
    include, out = tmp_path / "include", tmp_path / "out"
    for rule in rules.HEADERS:
        header = include / rule.path
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text("\nint broken(\n" if rule.module == "ops" else "")
    done = run(f"--include_dir={include}", f"--out={out}")
    assert done.returncode == 1
    assert re.search(r"^tensorflow/c/ops\.h:\d+:\d+: error: ", done.stderr, re.MULTILINE)
    assert done.stdout == ""
    assert not out.exists()


def test_wrong_arguments() -> None:
    done = run("--out=/nowhere")
    assert done.returncode == 2
    assert "expected --include_dir=FOLDER and --out=FOLDER" in done.stderr


def test_a_formatter_that_is_not_there(tmp_path: Path) -> None:
    for rule in rules.HEADERS:
        header = tmp_path / rule.path
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text("")
    done = run(f"--include_dir={tmp_path}", f"--out={tmp_path}/out", "--rustfmt=/no/rustfmt")
    assert done.returncode == 2
    assert "/no/rustfmt" in done.stderr
    assert not (tmp_path / "out").exists()
