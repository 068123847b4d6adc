"""What libtfp.so is as a file: small and fast, with no name too many, and without TensorFlow."""

import pathlib
import re

import pytest

from tools.package import elf

LIBRARY = pathlib.Path("plugin/libtfp.so")
ENTRY_POINTS = {"SE_InitPlugin", "TF_InitGraph", "TF_InitKernel", "TF_InitProfiler"}
# What module `tfp_plugin.check` calls.
OWN = {"tfp_gpu_report"}


def test_it_is_under_six_and_a_half_megabytes() -> None:
    assert LIBRARY.stat().st_size < 6_500_000


@pytest.mark.parametrize("opcode", [0x5E, 0xD4], ids=["division of floats", "sum of integers"])
def test_the_compiler_made_loops_of_vectors(opcode: int) -> None:
    """Kernels name hardly one of these instructions: loops that became vectors have them.

    One of 512 bits is the byte 62, two more, one with 10 in its bits 6 and 5, and the opcode.
    """
    instruction = b"\x62[\x01-\xff].[\x40-\x5f]" + re.escape(bytes([opcode]))
    assert len(re.findall(instruction, LIBRARY.read_bytes(), re.DOTALL)) > 20


def test_it_exports_entry_points_only() -> None:
    exported = elf.exported_symbols(LIBRARY.read_bytes())
    assert "SE_InitPlugin" in exported
    assert exported <= ENTRY_POINTS | OWN


def test_it_links_nothing_of_tensorflow() -> None:
    needed = elf.needed_libraries(LIBRARY.read_bytes())
    assert "libc.so.6" in needed
    assert not [name for name in needed if "tensorflow" in name]


def test_it_runs_with_the_oldest_glibc_that_rust_serves() -> None:
    assert elf.needed_glibc(LIBRARY.read_bytes()) <= (2, 17)
