"""What Keras computes under each dtype policy: ten steps of small models, and overflows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

Array = np.ndarray[Any, Any]

POLICIES = ("float32", "float64", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16")
STEPS = 10


def mlp() -> keras.Model:
    """Dense layers, and one that normalizes."""
    k = keras.layers
    layers = [k.Dense(16, activation="tanh"), k.LayerNormalization(), k.Dense(4)]
    return keras.Sequential([keras.Input((6,)), *layers])


def cnn() -> keras.Model:
    """A convolution and batch normalization."""
    k = keras.layers
    layers = [
        k.Conv2D(6, 3, padding="same", activation="relu"),
        k.BatchNormalization(),
        k.MaxPooling2D(2),
        k.Flatten(),
        k.Dense(4),
    ]
    return keras.Sequential([keras.Input((8, 8, 2)), *layers])


def lstm() -> keras.Model:
    """A recurrent layer, and a last layer in float32."""
    k = keras.layers
    # TensorFlow decomposes no matrices of bfloat16, as the usual initializer does.
    first = k.LSTM(5, recurrent_initializer="glorot_uniform")
    layers = [first, k.Dense(4, dtype="float32")]
    return keras.Sequential([keras.Input((5, 3)), *layers])


def transformer() -> keras.Model:
    """A block of a transformer, whose first skip connection adds the float32 input."""
    k = keras.layers
    x = keras.Input((6, 8))
    y = k.LayerNormalization()(k.Add()([x, k.MultiHeadAttention(2, 4)(x, x)]))
    hidden = k.Dense(8)(k.Dense(16, activation="gelu")(y))
    y = k.LayerNormalization()(k.Add()([y, hidden]))
    return keras.Model(x, k.Dense(4)(k.GlobalAveragePooling1D()(y)))


MODELS: dict[str, Callable[[], keras.Model]] = {
    "mlp": mlp,
    "cnn": cnn,
    "lstm": lstm,
    "transformer": transformer,
}


def images() -> dict[str, keras.layers.Layer]:
    """Layers of images that draw nothing, or from one number, under the policy of the moment."""
    k = keras.layers
    return {
        "resizing": k.Resizing(5, 4),
        "crop": k.CenterCrop(4, 5),
        "rescaling": k.Rescaling(0.5, 3.0),
        "brightness": k.RandomBrightness((0.2, 0.2)),
        "contrast": k.AutoContrast(),
    }


def policies() -> dict[str, Array]:
    """Returns tensors by name; those of narrow types as float32."""
    before = keras.config.dtype_policy()
    found: dict[str, Array] = {}
    try:
        for name in MODELS:
            for policy in POLICIES:
                for key, value in _ten_steps(name, policy).items():
                    found[f"policy/{name}/{policy}/{key}"] = value
        for policy in POLICIES:
            found |= _images(policy)
        for name, scale in (("high", 2.0**40), ("low", 2.0**22)):
            for key, value in _overflow(scale).items():
                found[f"policy/overflow/{name}/{key}"] = value
    finally:
        keras.config.set_dtype_policy(before)
    return found


def _model(name: str, policy: str) -> tuple[keras.Model, Array, Array, list[Array]]:
    """A model with its inputs and truths, and the values of its weights."""
    keras.config.set_dtype_policy(policy)
    model = MODELS[name]()
    random = np.random.default_rng(len(name))
    x = random.normal(size=(12, *model.input_shape[1:])).astype(np.float32)
    truth = random.integers(0, 4, 12)
    values = [0.4 * random.normal(size=weight.shape) for weight in model.weights]
    values = [
        np.ones(weight.shape) if weight.name in ("gamma", "moving_variance") else value
        for weight, value in zip(model.weights, values, strict=True)
    ]
    model.set_weights(values)
    return model, x, truth, [_float32(value) for value in model.get_weights()]


def _float32(value: Any) -> Array:
    return np.asarray(value, np.float32)


def _compile(model: keras.Model, optimizer: keras.optimizers.Optimizer) -> None:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=optimizer, loss=loss, jit_compile=False)


def _ten_steps(name: str, policy: str) -> dict[str, Array]:
    model, x, truth, before = _model(name, policy)
    _compile(model, keras.optimizers.SGD(0.05, momentum=0.9))
    found = {"x": x, "truth": truth}
    found |= {f"before{index}": value for index, value in enumerate(before)}
    found["first"] = _float32(model.predict_on_batch(x))
    losses = [model.train_on_batch(x, truth)]
    for _ in range(STEPS - 1):
        model.reset_metrics()
        losses.append(model.train_on_batch(x, truth))
    found["losses"] = _float32(losses)
    found["y"] = _float32(model.predict_on_batch(x))
    after = model.get_weights()
    return found | {f"after{index}": _float32(value) for index, value in enumerate(after)}


def _images(policy: str) -> dict[str, Array]:
    """What layers of images make of float32 images while training, in the type that they give."""
    keras.config.set_dtype_policy(policy)
    random = np.random.default_rng(3)
    x = random.integers(0, 256, (2, 7, 8, 3)).astype(np.float32)
    found = {f"policy/image/{policy}/x": x}
    for name, layer in images().items():
        kinds = layer.call.__code__.co_varnames
        y = layer(x, training=True) if "training" in kinds else layer(x)
        if keras.backend.standardize_dtype(y.dtype) != layer.compute_dtype:
            raise ValueError(f"{name} under {policy} gives {y.dtype}")
        found[f"policy/image/{policy}/{name}"] = _float32(keras.ops.cast(y, "float32"))
    return found


def _overflow(scale: float) -> dict[str, Array]:
    """Steps of Adam from a loss scale at which gradients are infinite."""
    model, x, truth, before = _model("mlp", "mixed_float16")
    inner = keras.optimizers.Adam(0.01, epsilon=1e-4)
    optimizer = keras.optimizers.LossScaleOptimizer(
        inner, initial_scale=scale, dynamic_growth_steps=3
    )
    _compile(model, optimizer)
    scales, iterations, losses = [], [], []
    for _ in range(2 * STEPS):
        model.reset_metrics()
        losses.append(model.train_on_batch(x, truth))
        scales.append(optimizer.dynamic_scale.numpy())
        iterations.append(int(inner.iterations.numpy()))
    found = {"x": x, "truth": truth, "losses": _float32(losses), "scales": _float32(scales)}
    found["iterations"] = np.asarray(iterations, np.int64)
    found |= {f"before{index}": value for index, value in enumerate(before)}
    after = model.get_weights()
    return found | {f"after{index}": _float32(value) for index, value in enumerate(after)}
