"""Training steps and inference of Keras models on a GPU of this machine, beside the CPU.

A library computes on one GPU or on none for all of its process. So each backend is a process of its
own, and the processes of a model take turns. Losses are compared with those of TensorFlow's CPU
device.
"""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from absl import app, flags

_LIBRARY = flags.DEFINE_string("library", "plugin/libtfp.so", "Path of libtfp.so.")
_MODELS = flags.DEFINE_list("models", ["mlp", "cnn", "transformer", "resnet50"], "The models.")
_ROUNDS = flags.DEFINE_integer("rounds", 2, "Processes of each backend.", lower_bound=1)
_STEPS = flags.DEFINE_integer(
    "steps", 12, "Steps of a process; the first is not counted.", lower_bound=2
)
_JSON = flags.DEFINE_bool("json", False, "Print JSON in place of a table.")
_CHILD = flags.DEFINE_string("child", None, "For the program itself: the device of one process.")

LOSS_TOLERANCE: Final = 1e-3
"""Largest relative difference of the first three losses from those of TensorFlow's CPU device."""

BACKENDS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "GPU, the machine's memory": (
        "/device:TFP:0",
        {"TFP_BACKEND": "vulkan", "TFP_GPU_MEMORY": "host"},
    ),
    "GPU, its own memory": (
        "/device:TFP:0",
        {"TFP_BACKEND": "vulkan", "TFP_GPU_MEMORY": "device"},
    ),
    "libtfp.so on the CPU": ("/device:TFP:0", {"TFP_BACKEND": "cpu"}),
    "TensorFlow's CPU": ("/CPU:0", {}),
}


def _mlp(keras: Any, np: Any) -> tuple[Any, Any]:
    layers = [keras.layers.Dense(2048, "relu"), keras.layers.Dense(2048, "relu")]
    model = keras.Sequential([keras.Input((784,)), *layers, keras.layers.Dense(10)])
    return model, np.random.rand(512, 784).astype("float32")


def _cnn(keras: Any, np: Any) -> tuple[Any, Any]:
    def conv(filters: int, strides: int) -> Any:
        padding = "same" if strides == 1 else "valid"
        return keras.layers.Conv2D(filters, 3, strides, padding, activation="relu")

    layers = [conv(64, 1), conv(64, 2), conv(128, 1), conv(128, 2), keras.layers.Flatten()]
    model = keras.Sequential([keras.Input((64, 64, 3)), *layers, keras.layers.Dense(10)])
    return model, np.random.rand(64, 64, 64, 3).astype("float32")


def _transformer(keras: Any, np: Any) -> tuple[Any, Any]:
    inputs = keras.Input((128,), dtype="int32")
    x = keras.layers.Embedding(8000, 512)(inputs)
    for _ in range(4):
        x = keras.layers.LayerNormalization()(x + keras.layers.MultiHeadAttention(8, 64)(x, x))
        y = keras.layers.Dense(2048, "relu")(x)
        x = keras.layers.LayerNormalization()(x + keras.layers.Dense(512)(y))
    outputs = keras.layers.Dense(10)(keras.layers.GlobalAveragePooling1D()(x))
    return keras.Model(inputs, outputs), np.random.randint(0, 8000, (32, 128)).astype("int32")


def _resnet50(keras: Any, np: Any) -> tuple[Any, Any]:
    make = keras.applications.ResNet50
    model = make(weights=None, classes=10, classifier_activation=None)
    return model, np.random.rand(32, 224, 224, 3).astype("float32")


MODELS: Final[dict[str, Callable[[Any, Any], tuple[Any, Any]]]] = {
    "mlp": _mlp,
    "cnn": _cnn,
    "transformer": _transformer,
    "resnet50": _resnet50,
}


def _measure(name: str, device: str, steps: int) -> dict[str, Any]:
    """Trains and applies a model on one device; times are milliseconds."""
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(3)
    with tf.device(device):
        model, x = MODELS[name](keras, np)
        labels = np.random.randint(0, 10, len(x))
        optimizer = keras.optimizers.SGD(0.01)
        loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        x, labels = tf.constant(x), tf.constant(labels)

        @tf.function(jit_compile=False)  # type: ignore[untyped-decorator]
        def step(x: Any, labels: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = loss_of(labels, model(x, training=True))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        @tf.function(jit_compile=False)  # type: ignore[untyped-decorator]
        def infer(x: Any) -> Any:
            return model(x, training=False)

        def timed(run: Callable[[], Any]) -> tuple[float, list[Any]]:
            times, results = [], []
            for _ in range(steps):
                start = time.perf_counter()
                results.append(run())
                times.append((time.perf_counter() - start) * 1e3)
            return statistics.median(times[1:]), results

        step_ms, losses = timed(lambda: float(step(x, labels)))
        infer_ms, _ = timed(lambda: infer(x)[0, 0].numpy())
    return {"step_ms": step_ms, "infer_ms": infer_ms, "losses": losses}


def _process(name: str, backend: str) -> dict[str, Any]:
    """Measures in a process of its own.

    Raises:
        RuntimeError: It failed; with the last lines of what it said.
    """
    device, variables = BACKENDS[backend]
    environment = {**os.environ, **variables, "TF_CPP_MIN_LOG_LEVEL": "3"}
    if device != "/CPU:0":
        library = str(pathlib.Path(_LIBRARY.value).resolve())
        environment["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = library
    arguments = [f"--models={name}", f"--child={device}", f"--steps={_STEPS.value}"]
    command = [sys.executable, __file__, *arguments]
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = "\n".join(done.stderr.splitlines()[-8:])
        raise RuntimeError(f"{name}, {backend}: exit status {done.returncode}\n{last}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _compare(name: str, rows: dict[str, list[dict[str, Any]]]) -> list[str]:
    # After a step of ResNet50, losses of TensorFlow's CPU kernels and ours are 0.7 % apart.
    count = 1 if name == "resnet50" else 3
    expected = rows["TensorFlow's CPU"][0]["losses"][:count]
    return [
        f"{name}, {backend}: losses {found[:count]}, expected {expected}"
        for backend, all_found in rows.items()
        for found in (each["losses"] for each in all_found)
        if any(abs(a - b) > LOSS_TOLERANCE * abs(b) for a, b in zip(found, expected, strict=False))
    ]


def main(argv: Sequence[str]) -> int:
    """Prints a row for each model and backend."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    if unknown := [name for name in _MODELS.value if name not in MODELS]:
        raise app.UsageError(f"--models: {unknown[0]!r} is none of {', '.join(MODELS)}")
    if _CHILD.value is not None:
        print(json.dumps(_measure(_MODELS.value[0], _CHILD.value, _STEPS.value)))
        return 0
    wrong: list[str] = []
    report: dict[str, dict[str, dict[str, float]]] = {}
    for name in _MODELS.value:
        rows: dict[str, list[dict[str, Any]]] = {backend: [] for backend in BACKENDS}
        for number in range(_ROUNDS.value):
            for backend, found in rows.items():
                print(f"{name}, round {number + 1}: {backend}", file=sys.stderr)
                found.append(_process(name, backend))
        wrong += _compare(name, rows)
        report[name] = {
            backend: {
                key: statistics.median(each[key] for each in found)
                for key in ("step_ms", "infer_ms")
            }
            for backend, found in rows.items()
        }
    if _JSON.value:
        print(json.dumps(report, indent=1))
    else:
        print("| model | where | ms of a step | ms of an inference |\n|---|---|---:|---:|")
        for name, backends in report.items():
            for backend, times in backends.items():
                print(f"| {name} | {backend} | {times['step_ms']:.2f} | {times['infer_ms']:.2f} |")
    for line in wrong:
        print(f"WRONG {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    app.run(main)
