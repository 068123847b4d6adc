"""What libtfp.so is as a file: small, with no name too many, and without TensorFlow."""

import pathlib
import subprocess

LIBRARY = pathlib.Path("plugin/libtfp.so")
ENTRY_POINTS = {"SE_InitPlugin", "TF_InitGraph", "TF_InitKernel", "TF_InitProfiler"}


def lines(*command: str) -> list[str]:
    done = subprocess.run([*command, str(LIBRARY)], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_it_is_under_five_megabytes() -> None:
    assert LIBRARY.stat().st_size < 5_000_000


def test_it_exports_entry_points_only() -> None:
    exported = {line.split()[-1] for line in lines("nm", "--dynamic", "--defined-only")}
    assert "SE_InitPlugin" in exported
    assert exported <= ENTRY_POINTS


def test_it_links_nothing_of_tensorflow() -> None:
    needed = [line for line in lines("readelf", "--dynamic", "--wide") if "(NEEDED)" in line]
    assert needed
    assert not [line for line in needed if "tensorflow" in line]
