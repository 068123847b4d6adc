"""The firmware that `--target` writes: built by cargo as its README says, run in QEMU.

Run with: tools/bazel test //converters/mlf/tests/bare_metal:firmware_test --test_output=all
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from converters.mlf.boards import BOARDS, Board
from converters.mlf.convert import Request, Result, convert
from converters.mlf.tests.bare_metal.provision import Tools, in_sysroot, provision
from converters.mlf.tests.build import write
from converters.mlf.tests.dialects import DIALECTS
from converters.mlf.tests.requests import REAL, TESTDATA, request_of

#: What the microbit's 16 KiB of RAM hold.
SMALL = ("plain", "constant_pool")
CASES = [
    (target, name)
    for target in BOARDS
    for name in (SMALL if target == "cortex-m0" else (*REAL, "io_in_pools", "packed"))
]


@pytest.fixture(scope="module")
def tools() -> Tools:
    return provision()


def convert_named(name: str, target: str, folder: Path) -> Result:
    if name in DIALECTS:
        request = request_of(DIALECTS[name](), folder)
    else:
        request = Request(mlf=TESTDATA / f"{name}.tar", golden=TESTDATA / "golden.npz")
    return convert(replace(request, target=target))


def cargo(
    tools: Tools, board: Board, folder: Path, target: Path
) -> subprocess.CompletedProcess[str]:
    """Runs `cargo run --release` with Debian's unpacked compilers, building below `target`."""
    root, triple = tools.root, board.triple.replace("-", "_").replace(".", "_")
    usr = root / "usr"
    multilib = tools.run([board.gcc, *board.flags, "-print-multi-directory"], folder).strip()
    if board.runtime == "riscv":
        library = usr / "lib/picolibc/riscv64-unknown-elf"
        libraries, headers = library / "lib" / multilib, library / "include"
    else:
        libraries, headers = usr / "lib/arm-none-eabi/newlib" / multilib, usr / "include/newlib"
    flags = (
        f'target.\'cfg(target_os = "none")\'.rustflags=["-Dwarnings", "-Clink-arg=-L{libraries}"]'
    )
    environment = {
        **os.environ,
        **tools.environment,
        "PATH": f"{usr / 'bin'}:{os.environ['PATH']}",
        "RUSTC": str(usr / "bin/rustc"),
        f"CFLAGS_{triple}": f"-Os {' '.join(board.flags)} -isystem {headers}",
        "CARGO_TARGET_DIR": str(target),
    }
    environment.pop("RUSTC_BOOTSTRAP")
    return subprocess.run(
        ["cargo", "run", "--release", "--quiet", f"--config={flags}"],
        cwd=folder / "firmware",
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.parametrize(("target", "name"), CASES, ids=map("-".join, CASES))
def test_the_firmware_runs(
    target: str, name: str, tools: Tools, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    board = BOARDS[target]
    in_sysroot(tools, board.triple)
    result = convert_named(name, target, tmp_path)
    write(result, tmp_path / "crate")
    done = cargo(tools, board, tmp_path / "crate", tmp_path_factory.getbasetemp() / target)
    assert done.returncode == 0, done.stdout + done.stderr
    print(f"{target}, {name}:\n{done.stdout}", end="")
    for api in result.crate.models:
        assert f"{api.module}: equals the recorded outputs" in done.stdout
        (cycles,) = re.findall(rf"^{api.module}: (\d+) cycles", done.stdout, re.MULTILINE)
        assert 0 < int(cycles) < 50_000_000
    (peak,) = re.findall(r"^peak stack: (\d+) bytes", done.stdout, re.MULTILINE)
    assert 200 < int(peak) < 16_384
