"""One model by both converters, in the firmware of `examples/firmware`: results and costs.

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
from converters.mlf.tvm_export_tensorflow import fixed_batch
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
    """What `Sample` of the firmware gives for float32; for int8 it is 50 times that."""
    return np.array([number * 37 % 101 for number in range(count)], np.float32) / 50 - 1


@dataclass(frozen=True)
class Reference:
    """A file of a model, what it gives for the samples, and how far from that a crate may be."""

    model: Path
    expected: np.ndarray
    tolerance: float


def float32(model: Any, folder: Path) -> Reference:
    """Saves a model for Keras."""
    path = folder / "net.keras"
    model.save(path)
    shape = model.inputs[0].shape[1:]
    values = samples(int(np.prod(shape))).reshape(1, *shape)
    return Reference(path, model.predict(values, verbose=0)[0], 1e-5)


def int8(model: Any, folder: Path) -> Reference:
    """Quantizes a model for TFLite, inputs and outputs included.

    TVM rounds some results of half a step otherwise: it may be a step away.
    """
    tensorflow = importlib.import_module("tensorflow")
    lite = tensorflow.lite
    shape = model.inputs[0].shape[1:]
    values = samples(int(np.prod(shape))).reshape(1, *shape)
    random = np.random.default_rng(3)
    converter = lite.TFLiteConverter.from_keras_model(fixed_batch(model))
    converter.optimizations = [lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: (
        [random.uniform(-1, 1, values.shape).astype(np.float32)] for _ in range(64)
    )
    converter.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tensorflow.int8
    path = folder / "net.tflite"
    path.write_bytes(converter.convert())
    reference = lite.Interpreter(
        str(path),
        experimental_op_resolver_type=lite.experimental.OpResolverType.BUILTIN_REF,
    )
    reference.allocate_tensors()
    steps = np.round(values * 50).astype(np.int8)
    reference.set_tensor(reference.get_input_details()[0]["index"], steps)
    reference.invoke()
    return Reference(path, reference.get_tensor(reference.get_output_details()[0]["index"])[0], 1)


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


def environment(tools: Tools, target: Path) -> dict[str, str]:
    """Returns what Cargo needs to build with the provisioned compilers below `target`."""
    usr = tools.root / "usr"
    variables = {
        **os.environ,
        **tools.environment,
        "PATH": f"{usr / 'bin'}:{os.environ['PATH']}",
        "RUSTC": str(usr / "bin/rustc"),
        "CARGO_TARGET_DIR": str(target),
    }
    variables.pop("RUSTC_BOOTSTRAP")
    return variables


def run(tools: Tools, folder: Path, target: Path, feature: str) -> Cost:
    """Builds the firmware with one of its features below `target`, and runs it."""
    usr, triple = tools.root / "usr", BOARD.triple.replace("-", "_")
    multilib = tools.run([BOARD.gcc, *BOARD.flags, "-print-multi-directory"], folder).strip()
    libraries = usr / "lib/arm-none-eabi/newlib" / multilib
    flags = f'target.\'cfg(target_os = "none")\'.rustflags=["-Clink-arg=-L{libraries}"]'
    c_flags = f"-Os {' '.join(BOARD.flags)} -isystem {usr / 'include/newlib'}"
    command = ["cargo", "run", "--release", "--quiet", f"--features={feature}", f"--config={flags}"]
    done = subprocess.run(
        command,
        cwd=folder / "examples/firmware",
        env={**environment(tools, target), f"CFLAGS_{triple}": c_flags},
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


def check_without_atomics(tools: Tools, folder: Path, target: Path) -> None:
    """Compiles the crate of tf2rust for a Cortex-M0, which can't exchange a word of memory."""
    board = BOARDS["cortex-m0"]
    in_sysroot(tools, board.triple)
    done = subprocess.run(
        ["cargo", "check", "--quiet", f"--target={board.triple}"],
        cwd=folder / "examples/firmware/models/tf2rust/rust_generated_code",
        env=environment(tools, target),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", [float32, int8], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("layers", [dense, convolutional], ids=lambda layers: layers.__name__)
def test_either_crate_computes_what_its_framework_does(
    layers: Any, kind: Any, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
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
    reference = kind(model, tmp_path)
    write_models(reference.model, tmp_path)
    target = tmp_path_factory.getbasetemp() / "target"
    check_without_atomics(tools, tmp_path, target)
    name = f"{layers.__name__}, {model.count_params():,} parameters, {kind.__name__}"
    for feature in ("tf2rust", "mlf2rust"):
        cost = run(tools, tmp_path, target, feature)
        print(
            f"| {name} | {feature} |"
            f" {cost.flash:,} | {cost.ram:,} | {cost.stack:,} | {cost.ticks * INSTRUCTIONS:,} |"
        )
        tolerance = 0 if (kind, feature) == (int8, "tf2rust") else reference.tolerance
        relative = 1e-5 if kind is float32 else 0
        np.testing.assert_allclose(cost.outputs, reference.expected, relative, tolerance)
        assert 256 <= cost.stack < 16384
        assert cost.ticks > 0
        assert (cost.operators > 0) == (feature == "mlf2rust")
