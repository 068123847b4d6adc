from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tools.provision import measure


def test_report_of_a_cold_and_some_later_starts() -> None:
    times = iter([31.4, 0.070, 0.060, 0.110])
    caches: list[str] = []

    def clock(argv: Sequence[str], variables: Mapping[str, str]) -> float:
        assert argv[0].endswith("tools/bazel")
        assert variables["TFP_PROVISION_ONLY"] == "1"
        caches.append(variables["TFP_CACHE"])
        Path(caches[0], "data").write_bytes(bytes(3_000_000))
        return next(times)

    report = measure.measure(3, True, clock)
    assert report.line().startswith(
        "cold provisioning 31 s (3 MB cached), a later start adds 70 ms (median of 3, 60 to 110 ms)"
    )
    assert len(set(caches)) == 1
    assert not Path(caches[0]).exists()


def test_without_a_cold_start_the_users_cache_is_used() -> None:
    def clock(argv: Sequence[str], variables: Mapping[str, str]) -> float:
        assert "TFP_CACHE" not in variables
        return 0.05

    report = measure.measure(2, False, clock)
    assert report.cold_s is None
    assert report.line().startswith("a later start adds 50 ms")


def test_a_failing_launcher_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(measure, "LAUNCHER", Path("/bin/false"))
    assert measure.main(["--warm-only", "--starts", "1"]) == 1
    assert "/bin/false ended with status 1" in capsys.readouterr().err
