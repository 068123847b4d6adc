"""One Keras model by both converters, in the firmware of `examples/firmware`: results and costs.

Prints the rows of docs/firmware.md: flash, RAM, stack and instructions on QEMU's Cortex-M4.

Run with: tools/bazel test //tests/firmware:compare_test --test_output=all
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from converters.mlf.boards import BOARDS
from converters.mlf.convert import Request, convert
from converters.mlf.tests.bare_metal.provision import Tools, in_sysroot, provision
from converters.mlf.tests.build import write
from converters.mlf.tvm_export_lower import load_model, plan_module
from converters.mlf.tvm_export_plan import archive_files, archive_tar
from converters.tf import tf2rust
from converters.tf.emit.options import Options, Profile
from tools.codegen.cargo import CratePlace

keras: Any = importlib.import_module("keras")
BOARD = BOARDS["cortex-m4"]
#: Instructions of a tick: QEMU counts one as a nanosecond, and the machine's clock has 25 MHz.
INSTRUCTIONS = 40
FILES = ("examples/firmware", "converters/embedded")


@dataclass(frozen=True)
class Cost:
    """What a firmware printed, and the size of its program."""

    outputs: np.ndarray
    stack: int
    ticks: int
    operators: int
    flash: int
    ram: int


def convolutional() -> Any:
    return [
        keras.Input((16, 16, 1), name="image"),
        keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.MaxPooling2D(2),
        keras.layers.Conv2D(16, 3, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]


def dense() -> Any:
    return [
        keras.Input((64,), name="samples"),
        keras.layers.Dense(48, activation="relu"),
        keras.layers.Dense(24, activation="relu"),
        keras.layers.Dense(6),
    ]


def samples(count: int) -> np.ndarray:
    """What `sample` of the firmware gives."""
    return np.array([number * 37 % 101 for number in range(count)], np.float32) / 50 - 1


def write_models(model: Path, folder: Path) -> None:
    """Writes the crates of both converters where the firmware looks for them."""
    archive = folder / "net.tar"
    plan = plan_module(load_model(model, "serving_default"), "net")
    archive.write_bytes(archive_tar(archive_files(plan)))
    place = CratePlace("path", str(folder / "converters/embedded"))
    request = Request(mlf=archive, crate_name="net_mlf", embedded=place, profile_calls=True)
    models = folder / "examples/firmware/models"
    write(convert(request), models / "mlf2rust")
    options = Options("NetTf", model.name, profile=Profile.NO_STD, embedded=place)
    rustfmt = str(Path(os.environ["RUSTFMT"]).absolute()) if "RUSTFMT" in os.environ else None
    files = tf2rust.run(tf2rust.Request(model, options, rustfmt=rustfmt, crate_only=True)).files
    for name, content in files.items():
        path = models / "tf2rust" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def run(tools: Tools, folder: Path, target: Path, feature: str) -> Cost:
    """Builds the firmware with one of its features below `target`, and runs it."""
    usr, triple = tools.root / "usr", BOARD.triple.replace("-", "_")
    multilib = tools.run([BOARD.gcc, *BOARD.flags, "-print-multi-directory"], folder).strip()
    libraries = usr / "lib/arm-none-eabi/newlib" / multilib
    flags = f'target.\'cfg(target_os = "none")\'.rustflags=["-Clink-arg=-L{libraries}"]'
    environment = {
        **os.environ,
        **tools.environment,
        "PATH": f"{usr / 'bin'}:{os.environ['PATH']}",
        "RUSTC": str(usr / "bin/rustc"),
        f"CFLAGS_{triple}": f"-Os {' '.join(BOARD.flags)} -isystem {usr / 'include/newlib'}",
        "CARGO_TARGET_DIR": str(target),
    }
    environment.pop("RUSTC_BOOTSTRAP")
    command = ["cargo", "run", "--release", "--quiet", f"--features={feature}", f"--config={flags}"]
    done = subprocess.run(
        command,
        cwd=folder / "examples/firmware",
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    elf = target / BOARD.triple / "release/tfp-examples-firmware"
    text, data, bss = map(
        int, tools.run(["arm-none-eabi-size", str(elf)], folder).splitlines()[1].split()[:3]
    )

    def printed(pattern: str) -> str:
        found = re.search(pattern, done.stdout, re.MULTILINE)
        assert found is not None, done.stdout
        return found[1]

    return Cost(
        outputs=np.array([float(x) for x in printed(r"^outputs: \[(.*)\]").split(",")]),
        stack=int(printed(r"^stack of a run: (\d+)")),
        ticks=int(printed(r"^run: (\d+) ticks")),
        operators=len(re.findall(r"^call \d+: \d+ ticks", done.stdout, re.MULTILINE)),
        flash=text + data,
        ram=data + bss,
    )


@pytest.mark.parametrize("layers", [dense, convolutional], ids=lambda layers: layers.__name__)
def test_either_crate_computes_what_keras_does(
    layers: Any, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tools = provision()
    in_sysroot(tools, BOARD.triple)
    for place in FILES:
        shutil.copytree(place, tmp_path / place, ignore=shutil.ignore_patterns("models", "target"))
    # The manifest of the traits' crate takes its version from that of the workspace.
    root = Path("Cargo.toml").read_text(encoding="utf-8")
    members = 'members = ["converters/embedded"]\nexclude = ["examples"]\n'
    root = re.sub(r"members = \[.*?^\]\nexclude = \[.*?^\]\n", members, root, flags=re.S | re.M)
    (tmp_path / "Cargo.toml").write_text(root, encoding="utf-8")
    keras.utils.set_random_seed(3)
    model = keras.Sequential(layers())
    model.save(tmp_path / "net.keras")
    shape = model.inputs[0].shape[1:]
    expected = model.predict(samples(int(np.prod(shape))).reshape(1, *shape), verbose=0)[0]
    write_models(tmp_path / "net.keras", tmp_path)
    for feature in ("tf2rust", "mlf2rust"):
        cost = run(tools, tmp_path, tmp_path_factory.getbasetemp() / "target", feature)
        print(
            f"| {layers.__name__}, {model.count_params():,} parameters | {feature} |"
            f" {cost.flash:,} | {cost.ram:,} | {cost.stack:,} | {cost.ticks * INSTRUCTIONS:,} |"
        )
        np.testing.assert_allclose(cost.outputs, expected, 1e-5, 1e-5)
        assert 256 <= cost.stack < 16384
        assert cost.ticks > 0
        assert (cost.operators > 0) == (feature == "mlf2rust")
