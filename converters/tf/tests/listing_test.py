import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from absl import flags
from absl.testing import flagsaver

from converters.tf.tests.listing import Found, Listing, agreeing, run
from tools.codegen.program import USAGE

PROGRAM = """
import json, sys, time
name = sys.argv[1].removeprefix("--try=")
found = {"model": name, "size": "32", "difference": 1e-7}
if name == "slow":
    time.sleep(60)
elif name == "large":
    data = bytearray(b"1") * 300_000_000
    time.sleep(60)
elif name == "broken":
    sys.exit("no | such layer")
elif name in ("loop", "ragged"):
    found["refused"] = "its examples meet"
elif name == "apart":
    found["difference"] = 2e-5
elif name == "rough":
    found |= {"difference": 2e-5, "own": 3e-5}
print("TensorFlow says something")
print(json.dumps(found))
"""
NAMES = ("good", "apart", "rough", "loop", "ragged", "broken", "slow", "large")


def no_attempt(name: str) -> Found:
    raise AssertionError(name)


def cells(found: Found) -> tuple[str, str]:
    return found.size, found.apart


def page(rows: Mapping[str, str]) -> str:
    return "\n".join([f"{agreeing(rows)} agree", *rows.values(), ""])


@pytest.fixture
def listing(tmp_path: Path) -> Iterator[Listing]:
    flags.FLAGS.mark_as_parsed()
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    with flagsaver.flagsaver(write=str(tmp_path / "page.md"), seconds=20.0, megabytes=250.0):
        yield Listing(program, NAMES, no_attempt, cells, page, frozenset({"loop"}))


def rows(text: str) -> list[str]:
    return re.sub(r"\d{4}-\d\d-\d\d", "DATE", text).splitlines()


@pytest.mark.parametrize(
    ("only", "status", "line"),
    [
        ("good", 0, "| good | 32 | 1.0e-07 | DATE |"),
        ("loop", 0, "| loop | refused: its examples meet | | DATE |"),
        ("ragged", 1, "| ragged | refused: its examples meet | | DATE |"),
        ("apart", 1, "| apart | 32 | **2.0e-05** | DATE |"),
        ("rough", 1, "| rough | 32 | **2.0e-05**, Keras' own 3.0e-05 | DATE |"),
        ("broken", 1, "| broken | no / such layer | | DATE |"),
        ("large", 1, "| large | takes more than 250 MB | | DATE |"),
    ],
)
def test_a_model_is_a_row_and_a_status(
    listing: Listing, tmp_path: Path, only: str, status: int, line: str
) -> None:
    with flagsaver.flagsaver(only=[only]):
        assert run(listing, ["program"]) == status
    assert rows((tmp_path / "page.md").read_text())[1:] == [line]


def test_a_model_that_takes_too_long_is_a_row(listing: Listing, tmp_path: Path) -> None:
    with flagsaver.flagsaver(only=["slow"], seconds=0.5):
        assert run(listing, ["program"]) == 1
    assert "takes more than 0.5 s" in (tmp_path / "page.md").read_text()


def test_other_rows_of_a_page_stay(
    listing: Listing, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page.md").write_text("| model |\n| apart | 32 | **1.0e+00** | 1 |\n| gone | 1 |\n")
    with flagsaver.flagsaver(only=["loop", "good"], json=True):
        assert run(listing, ["program"]) == 0
    assert rows((tmp_path / "page.md").read_text()) == [
        "1 agree",
        "| good | 32 | 1.0e-07 | DATE |",
        "| apart | 32 | **1.0e+00** | 1 |",
        "| loop | refused: its examples meet | | DATE |",
    ]
    assert [found["model"] for found in json.loads(capsys.readouterr().out)] == ["loop", "good"]


def test_unknown_models_are_named_with_those_that_are_known(
    listing: Listing, capsys: pytest.CaptureFixture[str]
) -> None:
    with flagsaver.flagsaver(only=["good", "better"]):
        assert run(listing, ["program"]) == USAGE
    assert capsys.readouterr().err.startswith("unexpected: better; the models are good, apart,")
