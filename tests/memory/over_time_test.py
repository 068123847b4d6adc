"""What is kept in each round is found, and what is made once is not."""

from __future__ import annotations

from tests.memory.over_time import Growth, grown, problem


def test_what_is_kept_in_each_round_is_found() -> None:
    kept: list[bytearray] = []

    def work() -> None:
        kept.append(bytearray(b"x") * (1 << 20))

    found = grown(work, 40, 0)
    assert found.rounds == 40
    # The first rounds are not counted.
    assert 40 << 20 <= found.bytes < 60 << 20
    flat = grown(lambda: None, 40, 0)
    assert abs(flat.bytes) < 4 << 20
    assert problem(found, flat).startswith("the device keeps ")
    assert not problem(found, found)
    assert not problem(flat, found)


def test_what_the_cpu_keeps_is_not_the_device_s() -> None:
    mib = 1 << 20
    assert not problem(Growth(10, 1.0, 0, 100 * mib), Growth(10, 1.0, 0, 95 * mib))
    # A CPU whose memory shrank excuses nothing.
    assert problem(Growth(10, 1.0, 0, 20 * mib), Growth(10, 1.0, 50 * mib, 0))
