"""The share of every run of the tests: cases with a fixed seed, and every input of the corpus."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import formats
from tests.fuzz.campaign import Plan, run
from tests.fuzz.case import Status
from tests.fuzz.worker import Limits

# Cases of each, so that all take about three minutes of two processors.
CASES = {
    "onnx": 150,
    "tflite": 150,
    "keras": 60,
    "h5": 60,
    "custom-op": 100,
    "frozen-graph": 100,
    "saved-model": 30,
    "mlf": 1500,
    "tokenizer": 60,
    "checkpoint": 300,
    "client": 60,
    "client-keras": 100,
    "client-h5": 100,
    "weights": 300,
    "records": 300,
    "calls": 120,
    "graphs": 15,
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
