"""Training steps of the client and of Python's TensorFlow, in turn.

Both train the same models on the same batch with Adam: in a graph (Python's is a `tf.function`) and
eagerly with a tape. Prints a table of times per step, with medians and quartiles, and the ratio.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

from absl import app, flags

_ROUNDS = flags.DEFINE_integer("rounds", 15, "How often each side is timed.", lower_bound=3)
_STEPS = flags.DEFINE_integer("steps", 40, "Steps per round.", lower_bound=1)
_RUST = flags.DEFINE_string("rust", None, "The Rust side's program.", required=True)
_JSON = flags.DEFINE_bool("json", False, "Print one JSON object per line.")

BATCH = 32


def python_steps(model_name: str, mode: str) -> Callable[[int], float]:
    """Returns a function that makes so many steps and returns their nanoseconds together."""
    import keras
    import numpy as np
    import tensorflow as tf

    k = keras.layers
    if model_name == "mlp":
        shape: tuple[int, ...] = (64,)
        layers = [k.Dense(64, activation="relu"), k.Dense(64, activation="relu"), k.Dense(10)]
    else:
        shape = (28, 28, 1)
        layers = [
            k.Conv2D(16, 3, padding="same", activation="relu"),
            k.MaxPooling2D(2),
            k.Conv2D(32, 3, padding="same", activation="relu"),
            k.MaxPooling2D(2),
            k.Flatten(),
            k.Dense(10),
        ]
    model = keras.Sequential([keras.Input(shape), *layers])
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    count = BATCH * int(np.prod(shape))
    numbers = (np.arange(count) * 37 % 101).astype(np.float32) / np.float32(101)
    x = tf.constant(numbers.reshape(BATCH, *shape))
    truth = tf.constant(np.arange(BATCH) % 10)

    def step(x: Any, truth: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(truth, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    call = tf.function(step) if mode == "graph" else step

    def run(steps: int) -> float:
        begun = time.perf_counter_ns()
        for _ in range(steps):
            call(x, truth).numpy()
        return time.perf_counter_ns() - begun

    return run


def main(argv: Sequence[str]) -> None:
    """Measures both sides in turn and prints the table."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    rust = subprocess.Popen(
        [_RUST.value],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        bufsize=1,
    )
    if not _JSON.value:
        print("| training step | Python, us | client, us | client / Python |")
        print("|---|---|---|---|")
    for mode in ("graph", "eager"):
        for model in ("mlp", "cnn"):
            times = _in_turn(rust, model, mode)
            _report(f"{model}, {mode}", *times)
    if rust.stdin:
        rust.stdin.close()
    rust.wait()


def _in_turn(rust: subprocess.Popen[str], model: str, mode: str) -> tuple[list[float], list[float]]:
    """Returns the microseconds per step of both sides, Python's first."""
    python = python_steps(model, mode)

    def client(steps: int) -> float:
        if not rust.stdin or not rust.stdout:
            raise RuntimeError("the Rust side has no pipes")
        rust.stdin.write(f"{model} {mode} {steps}\n")
        answer = rust.stdout.readline().split()
        if len(answer) != 2:
            raise RuntimeError(f"the Rust side ended while it made steps of {model}, {mode}")
        return float(answer[0])

    steps = _STEPS.value
    sides: tuple[list[float], list[float]] = ([], [])
    for side in (python, client):
        side(steps)
    for _ in range(_ROUNDS.value):
        for side, found in zip((python, client), sides, strict=True):
            found.append(side(steps) / steps / 1000)
    return sides


def _report(name: str, python: list[float], client: list[float]) -> None:
    ratio = statistics.median(c / p for p, c in zip(python, client, strict=True))
    if _JSON.value:
        print(json.dumps({"step": name, "python_us": python, "client_us": client}), flush=True)
        return

    def cell(times: list[float]) -> str:
        low, middle, high = statistics.quantiles(times, n=4)
        return f"{middle:.0f} ({low:.0f} to {high:.0f})"

    print(f"| {name} | {cell(python)} | {cell(client)} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    app.run(main)
