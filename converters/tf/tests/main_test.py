"""The program: flags, exit codes, reports, and what it writes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from converters.tf.tests.models import mlp
from converters.tf.tests.warm import Warm

_PROGRAM = os.environ.get("TF2RUST", "")


def _start() -> list[str]:
    return [str(Path(_PROGRAM).absolute())] if _PROGRAM else [sys.executable, "-m", _MODULE]


_WARM: list[Warm] = []


@pytest.fixture(scope="module", autouse=True)
def warm() -> Iterator[None]:
    _WARM.append(Warm())
    yield
    _WARM.pop().close()


def _run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return _WARM[-1].run([str(a) for a in arguments])


_MODULE = "converters.tf.cli.main"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "mlp.keras"
    mlp().save(path)
    return path


def _files(folder: Path) -> dict[str, bytes]:
    found = (p for p in sorted(folder.rglob("*")) if p.is_file())
    return {str(p.relative_to(folder)): p.read_bytes() for p in found}


def test_a_conversion_and_the_same_again(model: Path, tmp_path: Path) -> None:
    features = tmp_path / "features.npz"
    arguments = ["--path_to_tf_model", model, "--model_name", "Mlp", "--json"]
    done = _run(*arguments, "--path_to_save", tmp_path / "a")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["ok"]
    assert report["macs"] == 6 * 16 + 16 * 4
    assert report["weights"] == "embed"
    files = _files(tmp_path / "a")
    assert sorted(files) == report["files"]
    for name in (
        "rust_generated_code/Cargo.toml",
        "rust_generated_code/src/lib.rs",
        "rust_generated_code/src/model.rs",
        "rust_generated_code/testdata/features.npz",
        "saved_model_from_tensorflow/computation_graph.json",
        "saved_model_from_tensorflow/model_architecture.json",
        "saved_model_from_tensorflow/model_overview.png",
        "saved_model_from_tensorflow/model_weights.npz",
    ):
        assert name in files
    # Levels are for binary classifiers.
    assert "rust_generated_code/model/thresholds.json" not in files
    features.write_bytes(files["rust_generated_code/testdata/features.npz"])
    again = _run(*arguments, "--path_to_fv", features, "--path_to_save", tmp_path / "b")
    assert again.returncode == 0, again.stderr
    assert _files(tmp_path / "b") == files
    refused = _run(*arguments, "--path_to_save", tmp_path / "a")
    assert refused.returncode == 2
    assert "--overwrite" in refused.stderr


def test_what_the_converter_decides_is_said(tmp_path: Path) -> None:
    image = keras.Input((None, None, 3), name="image")
    rows = keras.Input((5, 4), batch_size=1, name="rows")
    given = keras.Input((8,), name="given")
    best = keras.ops.argmax(layers.Softmax()(layers.Dense(3)(given) * 1e-7), -1)
    models = {
        "image": (keras.Model(image, layers.GlobalAveragePooling2D()(image)), ""),
        "smooth": (
            keras.Model(image, layers.UpSampling2D(interpolation="bilinear")(image)),
            "[?, 224, 224, 3]",
        ),
        "state": (keras.Model(rows, layers.LSTM(3, stateful=True, name="kept")(rows)), "kept"),
        "close": (keras.Model(given, best), "rounding decides it"),
        "words": (keras.Model(given, layers.Embedding(30, 4)(given)), ""),
    }
    for name, (model, what) in models.items():
        path = tmp_path / f"{name}.keras"
        model.save(path)
        arguments = ["--path_to_tf_model", path, "--path_to_save", tmp_path / name]
        done = _run(*arguments)
        assert done.returncode == 0, done.stderr
        notes = [line for line in done.stderr.splitlines() if line.startswith("tf2rust: note: ")]
        assert len(notes) == bool(what), done.stderr
        report = json.loads(_run(*arguments, "--overwrite", "--json").stdout)
        assert len(report["notes"]) == len(notes)
        for line in [*notes, *report["notes"]]:
            assert what in line
        if name == "image":
            assert report["inputs"][0]["shape"] == ["batch", "height", "width", 3]


def test_states_are_an_input_and_an_output_each(tmp_path: Path) -> None:
    x, h = keras.Input((3,), name="x"), keras.Input((4,), name="h")
    following = layers.Dense(4, activation="tanh", name="following")(layers.concatenate([x, h]))
    path = tmp_path / "m.keras"
    keras.Model([x, h], {"y": layers.Dense(2)(following), "h_next": following}).save(path)
    arguments = ["--path_to_tf_model", path, "--path_to_save", tmp_path / "out"]
    for states, what in (
        (["h"], "expected INPUT=OUTPUT"),
        (["g=h_next"], "no input 'g'; there are x, h"),
        (["h=y"], "input 'h' is f32 [batch, 4], and output 'y' is f32 [batch, 2]"),
        (["h=h_next", "h=h_next"], "'h' is given twice"),
        (["x=y", "h=h_next"], "all inputs are states"),
    ):
        done = _run(*arguments, *(f"--state={state}" for state in states))
        assert done.returncode == 2
        assert what in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()
    done = _run(*arguments, "--state=h=h_next")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "out/rust_generated_code/src/model.rs").read_text("utf-8")
    assert "pub fn step(&self, state: &mut State, inputs: StepInputs<'_>)" in text


def test_states_of_open_sizes(tmp_path: Path) -> None:
    past, x = keras.Input((None, 4), name="past"), keras.Input((None, 4), name="x")
    present = layers.Concatenate(axis=1, name="present")([past, x])
    mean, two = layers.GlobalAveragePooling1D(name="mean")(present), layers.Dense(2)(present)
    path = tmp_path / "m.keras"
    keras.Model([past, x], {"present": present, "mean": mean, "two": two}).save(path)
    arguments = ["--path_to_tf_model", path, "--path_to_save", tmp_path / "out"]
    for output, shape in (("mean", "[batch, 4]"), ("two", "[batch, past_steps + x_steps, 2]")):
        done = _run(*arguments, f"--state=past={output}")
        assert done.returncode == 2
        what = f"input 'past' is f32 [batch, past_steps, 4], and output '{output}' is f32 {shape}"
        assert what in done.stderr, done.stderr
    done = _run(*arguments, "--state=past=present")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "out/rust_generated_code/src/model.rs").read_text("utf-8")
    assert "state.past = outputs.present;" in text


def test_features_of_another_model_leave_nothing(model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", other=np.zeros(3))
    out = tmp_path / "out"
    done = _run(
        *("--path_to_tf_model", model, "--path_to_save", out, "--path_to_fv", tmp_path / "f.npz")
    )
    assert done.returncode == 4
    assert "no array" in done.stderr
    assert not out.exists()


def test_rounded_weights(tmp_path: Path) -> None:
    inputs = keras.Input((40,))
    wide = keras.Model(inputs, layers.Dense(30)(layers.Dense(50, "relu")(inputs)))
    path = tmp_path / "wide.keras"
    wide.save(path)
    arguments = ["--path_to_tf_model", path, "--json"]
    reports = {}
    for kind in ("float32", "float16", "int8"):
        out = tmp_path / kind
        done = _run(*arguments, "--path_to_save", out, f"--weight_type={kind}")
        assert done.returncode == 0, done.stderr
        reports[kind] = json.loads(done.stdout)
        file = out / "rust_generated_code/model/model_weights.bin"
        assert file.stat().st_size == reports[kind]["weight_file_bytes"]
        assert reports[kind]["weight_type"] == kind
    sizes = [report["weight_file_bytes"] for report in reports.values()]
    assert sizes[1] < 0.6 * sizes[0]
    # Products have blocks of 16 columns.
    assert sizes[2] < 0.75 * sizes[1]
    assert reports["float32"]["rounding"] is None
    assert 0 < reports["float16"]["rounding"] < 1e-3 < reports["int8"]["rounding"] < 3e-2
    for report in (reports["float16"], reports["int8"]):
        assert 0 < report["rounding_mean"] < report["rounding"]
    bare = ["--profile=no_std", "--path_to_save", tmp_path / "bare"]
    for flag in (
        "--weight_type=float16",
        "--weights=file",
        "--weights=bytes",
        "--binary_classification",
    ):
        done = _run(*arguments, *bare, flag)
        assert done.returncode == 2
        assert flag.split("=")[0] in done.stderr
        assert not (tmp_path / "bare").exists()
    done = _run(*arguments, *bare, "--weight_type=int8", "--nointeger")
    assert done.returncode == 2
    done = _run(*arguments, *bare, "--weight_type=int8")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rounding"] == reports["int8"]["rounding"]


@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        ([], 2, "no model given"),
        (["--nonsense"], 2, "Unknown command line flag"),
        (["--path_to_tf_model", "x"], 2, "no folder given"),
        (["extra"], 2, "unexpected argument"),
        (["--path_to_tf_model", "x", "--enable_inplace", "False"], 2, "no folder given"),
        (["--path_to_tf_model", "x", "--path_to_save", "y", "--weights", "z"], 2, "weights"),
        (["--path_to_tf_model", "x", "--path_to_save", "y", "--input_shape", "z"], 2, "expected"),
    ],
)
def test_wrong_usage(tmp_path: Path, arguments: list[str], code: int, what: str) -> None:
    done = _run(*arguments)
    assert done.returncode == code
    assert what in done.stderr


def test_threads_are_those_of_an_npm_package(model: Path, tmp_path: Path) -> None:
    done = _run("--path_to_tf_model", model, "--path_to_save", tmp_path / "out", "--web_threads")
    assert done.returncode == 2
    assert "--web_threads: only npm packages have modules for threads" in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_runtime_as_a_crate_comes_along(model: Path, tmp_path: Path) -> None:
    arguments = ["--path_to_tf_model", model, "--runtime", "crate", "--path_to_save"]
    done = _run(*arguments, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    crate = tmp_path / "out/rust_generated_code"
    assert 'tfp-runtime = { path = "vendor/tfp-runtime"' in (crate / "Cargo.toml").read_text()
    assert (crate / "vendor/tfp-runtime/Cargo.toml").exists()
    assert (crate / "vendor/tfp-kernels/src/lib.rs").exists()
    assert not (crate / "src/runtime").exists()
    done = _run(*arguments, tmp_path / "same", "--runtime_from", "vendored")
    assert done.returncode == 0, done.stderr
    assert _files(tmp_path / "same") == _files(tmp_path / "out")
    for place, what in (
        ("version=0.1.0", "would be a package of the public index"),
        ("elsewhere", "leave it out, or write vendored, for a copy in the crate's folder"),
    ):
        done = _run(*arguments, tmp_path / "refused", "--runtime_from", place)
        assert done.returncode == 2
        assert f"--runtime_from: {'expected' if place == 'elsewhere' else place}" in done.stderr
        assert what in done.stderr
    done = _run("--path_to_tf_model", model, "--explain", "--runtime_from", "vendored")
    assert done.returncode == 2
    assert "--runtime_from: only --runtime=crate depends on a crate" in done.stderr


def test_weights_that_stay_where_they_are(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["--path_to_tf_model", model, "--path_to_save", out, "--nopack_weights"]
    done = _run(*arguments, "--runtime=crate", "--runtime_from=vendored")
    assert done.returncode == 2
    assert "--nopack_weights: the crate of the runtime packs weights" in done.stderr
    assert not out.exists()
    done = _run(*arguments)
    assert done.returncode == 0, done.stderr
    text = (out / "rust_generated_code/src/runtime/dense.rs").read_text("utf-8")
    assert "matrix: Tensor<f32>" in text
    assert "Packed" not in text


def test_folders_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    (tmp_path / "file").touch()
    for name, what in (
        ("link", "symbolic link"),
        ("file", "not a folder"),
        ("a" * 300, "too long"),
    ):
        done = _run("--path_to_tf_model", "x", "--path_to_save", tmp_path / name)
        assert done.returncode == 2, done.stderr
        assert what in done.stderr
        assert "Traceback" not in done.stderr


# As the README of the first tf2rust has it.
_FIRST_README = """\
python3 -m tf2rust \\
--path_to_tf_model tests/data/mnist/tf_model/ \\
--path_to_save tests/data/generated_classifiers/mnist \\
--model_name MNist \\
--binary_classification True \\
--enable_inplace True \\
--enable_memdrop True \\
--path_to_fv tests/data/mnist/features.npz # for testing purposes, optional
"""
_FIRST_FILES = (
    "saved_model_from_tensorflow/computation_graph.json",
    "saved_model_from_tensorflow/model_architecture.json",
    "saved_model_from_tensorflow/model_overview.png",
    "saved_model_from_tensorflow/model_weights.npz",
    "rust_generated_code/Cargo.toml",
    "rust_generated_code/model/thresholds.json",
    "rust_generated_code/src/model.rs",
    "rust_generated_code/src/lib.rs",
    "rust_generated_code/testdata/features.npz",
    "rust_generated_code/benches/benchmarks.rs",
)


def test_the_command_of_the_first_readme(tmp_path: Path) -> None:
    image = x = keras.Input((28, 28), name="image")
    x = layers.Conv1D(8, 3, activation="relu")(x)
    x = layers.Flatten()(layers.MaxPooling1D()(x))
    model = keras.Model(image, layers.Dense(10, "softmax")(x))
    data = tmp_path / "tests/data/mnist"
    model.export(data / "tf_model", verbose=False)
    some = np.random.default_rng(1).random((5, 28, 28), np.float32)
    np.savez(data / "features.npz", image=some, predictions=model.predict(some, verbose=0))
    program = " ".join(_start())
    script = f'python3() {{ shift 2; command {program} "$@"; }}\n{_FIRST_README}'
    here = str(Path.cwd())
    # Without the standard library: another Python may start the program.
    paths = [p for p in sys.path if p and not Path(p).is_relative_to(sys.base_prefix)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([here, *paths])}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "no confidence levels" in done.stderr
    files = _files(tmp_path / "tests/data/generated_classifiers/mnist")
    assert set(_FIRST_FILES) <= set(files)
    assert b"pub struct MNist {" in files["rust_generated_code/src/model.rs"]
    with np.load(tmp_path / "tests/data/generated_classifiers/mnist" / _FIRST_FILES[-2]) as npz:
        assert sorted(npz.files) == ["image", "predictions"]
        assert np.array_equal(npz["image"], some)


def test_a_terminal_sees_progress_and_what_the_model_costs(model: Path) -> None:
    here, there = pty.openpty()
    command = [*_start(), "--path_to_tf_model", str(model), "--explain"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=there, text=True, check=False)
    shown = os.read(here, 4096).decode(errors="replace")
    os.close(here)
    os.close(there)
    assert done.returncode == 0, shown
    assert "tf2rust: start TensorFlow ..." in shown
    for fact in ("160", "bytes"):
        assert fact in done.stdout


def test_a_missing_model(tmp_path: Path) -> None:
    done = _run("--path_to_tf_model", tmp_path / "no", "--path_to_save", tmp_path / "o", "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["error"] == "FileError"
    assert "No such file" in done.stderr


def _calls_itself(path: Path) -> None:
    graph = tf.compat.v1.GraphDef()
    graph.node.add(op="Placeholder", name="x").attr["dtype"].type = 1
    graph.node.add(op="f", name="y", input=["x"])
    function = graph.library.function.add()
    function.signature.name = "f"
    function.signature.input_arg.add(name="a", type=1)
    function.signature.output_arg.add(name="r", type=1)
    function.node_def.add(op="f", name="again", input=["a"])
    function.ret["r"] = "again:r:0"
    path.write_bytes(graph.SerializeToString())


def _slices_by_floats(path: Path) -> None:
    graph = tf.compat.v1.GraphDef()
    graph.node.add(op="Placeholder", name="x").attr["dtype"].type = 1
    for name in ("begin", "end", "strides"):
        node = graph.node.add(op="Const", name=name)
        node.attr["dtype"].type = 1
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto([1.0]))
    node = graph.node.add(op="StridedSlice", name="y", input=["x", "begin", "end", "strides"])
    node.attr["T"].type = node.attr["Index"].type = 1
    path.write_bytes(graph.SerializeToString())


def _never_ends(path: Path) -> None:
    with tf.compat.v1.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, (1, 4), "x")
        tf.while_loop(lambda v: tf.reduce_max(v) > -9.0, lambda v: [tf.nn.relu(v)], [x], name="y")
    path.write_bytes(graph.as_graph_def().SerializeToString())


@pytest.mark.parametrize(
    ("write", "seconds"), [(_calls_itself, 25), (_slices_by_floats, 25), (_never_ends, 10)]
)
def test_files_that_end_tensorflow(
    write: Callable[[Path], None], seconds: int, tmp_path: Path
) -> None:
    path, out = tmp_path / "m.pb", tmp_path / "out"
    write(path)
    flags = ["--path_to_tf_model", path, "--path_to_save", out, "--max_seconds", seconds, "--json"]
    done = _run(*flags)
    assert done.returncode in (3, 4, 6), done.stderr
    assert "Traceback" not in done.stderr
    first, *problems = done.stderr.splitlines()
    assert first.startswith("tf2rust: ")
    assert problems
    assert all(line.startswith("  ") for line in problems)
    assert json.loads(done.stdout)["ok"] is False
    assert [p.name for p in tmp_path.iterdir()] == ["m.pb"]
