"""A MobileNetV3Small that names drawn things in pictures of 64 x 64 pixels that are made here.

Its weights are beside this file, because to learn them takes minutes: `--train` learns them anew
and writes them there. Writes `things.keras` and `thing_features.npz`, which has two pictures of
each kind, in their order.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from absl import app, flags

from examples.tf2rust.things import KINDS, SIZE, picture

_OUT = flags.DEFINE_string("out", None, "folder to write", required=True)
_TRAIN = flags.DEFINE_bool("train", False, "learn the weights anew, and write that file")
_COUNT = flags.DEFINE_integer("count", 10000, "pictures to learn from")
_EPOCHS = flags.DEFINE_integer("epochs", 8, "times to go through them")

_BATCH = 64
# What weights of these drawings know at least, of pictures that the network has not seen.
_LEAST = 0.85
# Pictures to try it with, after it has learned and each time.
_MANY, _FEW = 1200, 240
# Rows from which tf2rust stores a matrix as bytes with a factor for each column.
_ROWS = 32

Pictures: TypeAlias = npt.NDArray[np.uint8]
Kinds: TypeAlias = npt.NDArray[np.int64]


def make(keras: Any) -> Any:
    """Returns the network, with random weights: a picture, 0 to 1, to the share of each kind."""
    layers = keras.layers
    body = keras.applications.MobileNetV3Small(
        (SIZE, SIZE, 3),
        include_top=False,
        include_preprocessing=False,
        pooling="avg",
        weights=None,
        name="body",
    )
    for layer in body.layers:
        if isinstance(layer, layers.BatchNormalization):
            # Keras' own 0.999 takes more steps than there are.
            layer.momentum = 0.95
    image = keras.Input((SIZE, SIZE, 3), name="image")
    x = body(layers.Rescaling(2.0, -1.0, name="scaled")(image))
    x = layers.Dropout(0.2, name="dropout")(x)
    return keras.Model(image, layers.Dense(len(KINDS), "softmax", name="kind")(x), name="things")


def _some(seed: int, count: int) -> tuple[Pictures, Kinds]:
    """Returns pictures `[count, SIZE, SIZE, 3]`, and their kinds, which take turns."""
    random = np.random.default_rng(seed)
    kinds = np.arange(count) % len(KINDS)
    return np.stack([picture(random, kind) for kind in kinds.tolist()]), kinds


def _many(seed: int, count: int) -> tuple[Pictures, Kinds]:
    """Returns at least as many pictures, made by all processors."""
    part = 40 * len(KINDS)
    seeds = range(seed, seed + -(-count // part))
    with multiprocessing.Pool() as pool:
        made = pool.starmap(_some, [(one, part) for one in seeds])
    pictures, kinds = zip(*made, strict=True)
    return np.concatenate(pictures), np.concatenate(kinds)


def _batches(pictures: Pictures, kinds: Kinds) -> Iterator[tuple[Any, Any]]:
    """Gives batches without end: half are mirrored, and most have other colours."""
    random = np.random.default_rng(3)
    while True:
        order = random.permutation(len(kinds))
        for start in range(0, len(kinds) - _BATCH + 1, _BATCH):
            chosen = order[start : start + _BATCH]
            batch = pictures[chosen][..., random.permutation(3)]
            if random.random() < 0.5:
                batch = batch[:, :, ::-1]
            yield batch.astype(np.float32) / 255, kinds[chosen]


def learn(keras: Any, model: Any, pictures: Pictures, kinds: Kinds) -> None:
    """Trains a model."""
    steps = len(kinds) // _BATCH
    rate = keras.optimizers.schedules.CosineDecay(
        3e-4, steps * _EPOCHS.value, 0.01, warmup_target=3e-3, warmup_steps=steps // 2
    )
    model.compile(
        keras.optimizers.AdamW(rate, weight_decay=1e-3),
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
        jit_compile=False,
    )
    batches = _batches(pictures, kinds)
    model.fit(batches, epochs=_EPOCHS.value, steps_per_epoch=steps, verbose=2)


def write_weights(model: Any, path: Path) -> None:
    """Writes weights rounded as `--weight_type=int8` of tf2rust does, which so loses nothing more.

    Matrices with enough rows become bytes and a factor for each column, other ones float16, and
    vectors stay as they are.
    """
    arrays: dict[str, Any] = {}
    for weight in model.weights:
        value = np.asarray(weight)
        depthwise = value.ndim == 4 and value.shape[-1] == 1
        if value.ndim < 2:
            arrays[weight.path] = value
        elif depthwise or value[..., 0].size < _ROWS:
            arrays[weight.path] = value.astype(np.float16)
        else:
            factor = np.abs(value).max(axis=tuple(range(value.ndim - 1))) / 127
            arrays[weight.path] = np.rint(value / np.maximum(factor, 1e-30)).astype(np.int8)
            arrays[f"{weight.path}:factor"] = factor
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)


def read_weights(model: Any, path: Path) -> None:
    """Sets the weights of a model to those of a file."""
    with np.load(path) as arrays:
        for weight in model.weights:
            factor = arrays.get(f"{weight.path}:factor", 1)
            weight.assign(arrays[weight.path].astype(np.float32) * factor)


def _accuracy(model: Any, count: int) -> Any:
    """Says what share of unseen pictures a model knows; returns that of each kind."""
    pictures, kinds = _some(1, count)
    found = model.predict(pictures.astype(np.float32) / 255, verbose=0).argmax(1)
    print(f"accuracy on {count} pictures that it has not seen: {(found == kinds).mean():.1%}")
    return np.array([(found == kind)[kinds == kind].mean() for kind in range(len(KINDS))])


def _main(_: Sequence[str]) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # Processes are not forked once TensorFlow has threads.
    seen = _many(1000, _COUNT.value) if _TRAIN.value else None
    import keras

    keras.utils.set_random_seed(1)
    model = make(keras)
    weights = Path(__file__).with_name("things.npz")
    if seen:
        learn(keras, model, *seen)
        print("with weights that are not rounded yet:")
        _accuracy(model, _MANY)
        write_weights(model, weights)
    read_weights(model, weights)
    shares = _accuracy(model, _MANY if seen else _FEW)
    if seen:
        print(", ".join(f"{kind} {share:.1%}" for kind, share in zip(KINDS, shares, strict=True)))
    if shares.mean() < _LEAST:
        raise SystemExit("the weights are not of these drawings: learn them anew with --train")
    out = Path(_OUT.value)
    out.mkdir(parents=True, exist_ok=True)
    model.save(out / "things.keras")
    some = _some(1, 2 * len(KINDS))[0].astype(np.float32) / 255
    np.savez(out / "thing_features.npz", image=some, predictions=model.predict(some, verbose=0))


if __name__ == "__main__":
    app.run(_main)
