"""The share of every run of the tests: cases with a fixed seed, and every input of the corpus."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import formats
from tests.fuzz.campaign import Plan, run
from tests.fuzz.case import Status
from tests.fuzz.worker import Limits

# Cases of each, so that all take about three minutes of a processor. `//tests/fuzz` runs more.
CASES = {
    "onnx": 60,
    "tflite": 60,
    "keras": 25,
    "h5": 25,
    "custom-op": 40,
    "frozen-graph": 40,
    "saved-model": 15,
    "mlf": 600,
    "tokenizer": 60,
    "checkpoint": 100,
    "client": 25,
    "client-keras": 40,
    "client-h5": 40,
    "weights": 100,
    "records": 100,
    "calls": 50,
    "graphs": 8,
}
CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.parametrize("name", formats.NAMES)
def test_a_share(name: str, tmp_path: Path) -> None:
    worker = formats.worker(name, Limits(seconds=120))
    said: list[str] = []
    try:
        found = run(Plan(name, CASES[name], folder=tmp_path), worker, said.append)
        print(found.summary(name, 0))
        assert not found.faults, "\n".join(said)
        assert found.count[Status.TAKEN]
        kept = CORPUS / name
        for case in sorted(kept.iterdir()) if kept.is_dir() else []:
            outcome = worker.run(case / worker.input_name)
            assert outcome.status is not Status.FAULT, f"{case.name}: {outcome.text}"
    finally:
        worker.close()


def test_every_format_has_a_share() -> None:
    assert tuple(CASES) == formats.NAMES
    assert {folder.name for folder in CORPUS.iterdir()} <= set(formats.NAMES)
