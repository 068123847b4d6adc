"""The proposal's code samples, adapted only where they were unsound, compile and run."""

from __future__ import annotations

from pathlib import Path

import pytest

from converters.mlf.tests.build import run_rust
from converters.mlf.tests.requests import built_crate

EXAMPLES = Path(__file__).parent.parent / "examples"
CRATES = {
    "simple_model": "plain",
    "workspace_pools": "constant_pool",
    "io_pools": "io_in_pools",
    "device_driver": "device_hooks",
    "async_accelerator": "vendor_async",
    "several_models": "multi",
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("examples")


def test_the_list_is_the_folder() -> None:
    assert sorted(CRATES) == sorted(p.stem for p in EXAMPLES.glob("*.rs"))


@pytest.mark.parametrize("example", sorted(CRATES))
def test_example(example: str, base: Path) -> None:
    source = EXAMPLES / f"{example}.rs"
    assert "unsafe" not in source.read_text(encoding="utf-8")
    output = run_rust(built_crate(CRATES[example], base), source, test=False)
    assert output.strip()
