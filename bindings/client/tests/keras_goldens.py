"""Writes what Keras computes, as a checkpoint that the client's tests read.

Each case is a group of tensors under one prefix: inputs, expected values and expected gradients.
The gradient of a case is that of `sum(output * weights)` with weights that the case holds too, so
that no direction is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

from bindings.client.tests import keras_policies

_OUT = flags.DEFINE_string("out", None, "Prefix of the checkpoint.", required=True)

Array = np.ndarray[Any, Any]

SEED = 1337


class Goldens:
    """The tensors, by name."""

    def __init__(self) -> None:
        self.tensors: dict[str, Array] = {}
        self.random = np.random.default_rng(20)

    def add(self, name: str, value: Any) -> Array:
        """Keeps a tensor and returns it."""
        array = np.asarray(value)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        if name in self.tensors:
            raise ValueError(f"{name} is there twice")
        self.tensors[name] = array
        return array

    def normal(self, name: str, *shape: int) -> Array:
        """Keeps normal random numbers."""
        return self.add(name, self.random.normal(size=shape))

    def call(self, case: str, function: Callable[..., Any], inputs: dict[str, Array]) -> None:
        """Keeps a function's value `y`, and the gradients `d_<input>` of its weighted sum."""
        tensors = {
            key: tf.convert_to_tensor(self.add(f"{case}/{key}", value))
            for key, value in inputs.items()
        }
        sources = {key: value for key, value in tensors.items() if value.dtype.is_floating}
        with tf.GradientTape() as tape:
            tape.watch(list(sources.values()))
            y = function(**tensors)
            weights = self.normal(f"{case}/weights", *y.shape)
            total = tf.reduce_sum(y * weights)
        self.add(f"{case}/y", y.numpy())
        gradients = tape.gradient(
            total, list(sources.values()), unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        for key, gradient in zip(sources, gradients, strict=True):
            self.add(f"{case}/d_{key}", tf.convert_to_tensor(gradient).numpy())


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "celu": lambda x: keras.activations.celu(x, alpha=0.7),
    "elu": keras.activations.elu,
    "elu_half": lambda x: keras.activations.elu(x, alpha=0.5),
    "exponential": keras.activations.exponential,
    "gelu": keras.activations.gelu,
    "gelu_tanh": lambda x: keras.activations.gelu(x, approximate=True),
    "hard_shrink": keras.activations.hard_shrink,
    "hard_sigmoid": keras.activations.hard_sigmoid,
    # That of Keras 2.
    "hard_sigmoid_slope": lambda x: tf.clip_by_value(0.2 * x + 0.5, 0.0, 1.0),
    "hard_silu": keras.activations.hard_silu,
    "hard_tanh": keras.activations.hard_tanh,
    "leaky_relu": keras.activations.leaky_relu,
    "linear": keras.activations.linear,
    "log_sigmoid": keras.activations.log_sigmoid,
    "log_softmax": keras.activations.log_softmax,
    "mish": keras.activations.mish,
    "relu": keras.activations.relu,
    "relu6": keras.activations.relu6,
    "selu": keras.activations.selu,
    "sigmoid": keras.activations.sigmoid,
    "silu": keras.activations.silu,
    "soft_shrink": keras.activations.soft_shrink,
    "softmax": keras.activations.softmax,
    "softplus": keras.activations.softplus,
    "softsign": keras.activations.softsign,
    "sparse_plus": keras.activations.sparse_plus,
    "sparse_sigmoid": keras.activations.sparse_sigmoid,
    "squareplus": keras.activations.squareplus,
    "tanh": keras.activations.tanh,
    "tanh_shrink": keras.activations.tanh_shrink,
    "threshold": lambda x: keras.activations.threshold(x, 0.3, -0.25),
}


def activations(goldens: Goldens) -> None:
    """Every activation."""
    x = np.linspace(-4.03, 7.21, 35, dtype=np.float32).reshape(5, 7)
    x[1] = [-3, -1, -0.5, 0, 0.5, 1, 3]
    for name, function in ACTIVATIONS.items():
        goldens.call(f"activation/{name}", lambda x, function=function: function(x), {"x": x})


def losses(goldens: Goldens) -> None:
    """Every loss: the mean over samples, and its gradient."""
    real = goldens.random.normal(size=(4, 3, 5)).astype(np.float32)
    truth = goldens.random.normal(size=(4, 3, 5)).astype(np.float32)
    positive, positive_truth = np.abs(real) + 0.1, np.abs(truth) + 0.1
    share = 1 / (1 + np.exp(-real))
    ones = (truth > 0).astype(np.float32)
    classes = np.argmax(truth, axis=-1).astype(np.int32)
    one_hot = np.eye(5, dtype=np.float32)[classes]
    distribution = np.exp(real) / np.exp(real).sum(axis=-1, keepdims=True)
    signs = 2 * ones - 1
    k = keras.losses
    cases: dict[str, tuple[Any, Array, Array]] = {
        "mean_squared_error": (k.MeanSquaredError(), truth, real),
        "mean_absolute_error": (k.MeanAbsoluteError(), truth, real),
        "mean_absolute_percentage_error": (k.MeanAbsolutePercentageError(), truth, real),
        "mean_squared_logarithmic_error": (
            k.MeanSquaredLogarithmicError(),
            positive_truth,
            positive,
        ),
        "cosine_similarity": (k.CosineSimilarity(), truth, real),
        "huber": (k.Huber(delta=0.8), truth, real),
        "log_cosh": (k.LogCosh(), truth, real),
        "log_cosh_zeros": (k.LogCosh(), truth, truth),
        "mean_absolute_error_zeros": (k.MeanAbsoluteError(), truth, truth),
        "hinge": (k.Hinge(), signs, real),
        "hinge_zeros": (k.Hinge(), signs, signs),
        "squared_hinge": (k.SquaredHinge(), signs, real),
        "categorical_hinge": (k.CategoricalHinge(), one_hot, real),
        "kl_divergence": (k.KLDivergence(), one_hot, distribution),
        "poisson": (k.Poisson(), positive_truth, positive),
        "binary_crossentropy": (k.BinaryCrossentropy(label_smoothing=0.1), ones, share),
        "binary_crossentropy_logits": (k.BinaryCrossentropy(from_logits=True), ones, real),
        # As they are where weights begin with zero.
        "binary_crossentropy_zeros": (k.BinaryCrossentropy(from_logits=True), ones, 0 * real),
        "binary_focal": (k.BinaryFocalCrossentropy(apply_class_balancing=True), ones, share),
        "binary_focal_logits": (k.BinaryFocalCrossentropy(from_logits=True), ones, real),
        "binary_focal_zeros": (k.BinaryFocalCrossentropy(from_logits=True), ones, 0 * real),
        "categorical_crossentropy": (k.CategoricalCrossentropy(), one_hot, distribution),
        "categorical_crossentropy_logits": (
            k.CategoricalCrossentropy(from_logits=True, label_smoothing=0.2),
            one_hot,
            real,
        ),
        "categorical_focal": (k.CategoricalFocalCrossentropy(), one_hot, distribution),
        "sparse": (k.SparseCategoricalCrossentropy(), classes, distribution),
        "sparse_logits": (k.SparseCategoricalCrossentropy(from_logits=True), classes, real),
        "sparse_matrix": (
            k.SparseCategoricalCrossentropy(from_logits=True),
            classes[:, 0],
            real[:, 0],
        ),
        "dice": (k.Dice(), ones, share),
        "tversky": (k.Tversky(alpha=0.3, beta=0.6), ones, share),
    }
    for name, (loss, truth, predicted) in cases.items():
        goldens.add(f"loss/{name}/truth", truth)
        fixed = tf.convert_to_tensor(truth)
        goldens.call(
            f"loss/{name}", lambda x, loss=loss, fixed=fixed: loss(fixed, x), {"x": predicted}
        )


def metrics(goldens: Goldens) -> None:
    """Every metric over three batches of different sizes."""
    m = keras.metrics
    cases: dict[str, tuple[Any, str]] = {
        "mean_squared_error": (m.MeanSquaredError(), "real"),
        "root_mean_squared_error": (m.RootMeanSquaredError(), "real"),
        "accuracy": (m.Accuracy(), "number"),
        "binary_accuracy": (m.BinaryAccuracy(threshold=0.4), "binary"),
        "categorical_accuracy": (m.CategoricalAccuracy(), "one_hot"),
        "sparse_categorical_accuracy": (m.SparseCategoricalAccuracy(), "class"),
        "top_k": (m.TopKCategoricalAccuracy(k=2), "one_hot"),
        "sparse_top_k": (m.SparseTopKCategoricalAccuracy(k=2), "class"),
        "cosine_similarity": (m.CosineSimilarity(), "real"),
        "true_positives": (m.TruePositives(thresholds=0.4), "binary"),
        "false_positives": (m.FalsePositives(thresholds=0.4), "binary"),
        "false_negatives": (m.FalseNegatives(thresholds=0.4), "binary"),
        "true_negatives": (m.TrueNegatives(thresholds=0.4), "binary"),
        "precision": (m.Precision(), "binary"),
        "recall": (m.Recall(), "binary"),
        "f1": (m.F1Score(threshold=0.5, average="micro"), "binary"),
        "auc": (m.AUC(), "binary"),
        "mean_iou": (m.MeanIoU(num_classes=4), "number"),
        "r2": (m.R2Score(), "column"),
    }
    for name, (metric, kind) in cases.items():
        for batch, size in enumerate((5, 8, 3)):
            truth, predicted = _metric_batch(goldens.random, kind, size)
            metric.update_state(
                goldens.add(f"metric/{name}/truth{batch}", truth),
                goldens.add(f"metric/{name}/predicted{batch}", predicted),
            )
        goldens.add(f"metric/{name}/y", np.float32(metric.result()))


def _metric_batch(random: np.random.Generator, kind: str, size: int) -> tuple[Array, Array]:
    f32 = np.float32
    if kind == "real":
        return random.normal(size=(size, 3)).astype(f32), random.normal(size=(size, 3)).astype(f32)
    if kind == "column":
        truth = random.normal(size=(size, 1)).astype(f32)
        return truth, (truth + random.normal(size=(size, 1)) * 0.3).astype(f32)
    if kind == "number":
        return random.integers(0, 4, (size, 1)), random.integers(0, 4, (size, 1))
    if kind == "binary":
        return (
            random.integers(0, 2, (size, 1)).astype(f32),
            random.uniform(size=(size, 1)).astype(f32),
        )
    classes = random.integers(0, 5, size)
    predicted = random.normal(size=(size, 5)).astype(f32)
    return (classes if kind == "class" else np.eye(5, dtype=f32)[classes]), predicted


def _traced(optimizer: Any, variable: Any) -> Any:
    """Returns a step of an optimizer as a graph: a hundred of them take a quarter of the time."""
    return tf.function(
        lambda gradient: optimizer.apply([gradient], [variable]),
        autograph=False,
        jit_compile=False,
    )


def optimizers(goldens: Goldens) -> None:
    """A hundred steps of every optimizer on one variable, each as it is and with all options."""
    o = keras.optimizers
    cases: dict[str, Any] = {
        "sgd": o.SGD(),
        "sgd_momentum": o.SGD(momentum=0.9),
        "sgd_nesterov": o.SGD(momentum=0.9, nesterov=True),
        "adam": o.Adam(),
        "adam_amsgrad": o.Adam(learning_rate=0.01, amsgrad=True),
        "adamw": o.AdamW(learning_rate=0.01),
        "adagrad": o.Adagrad(learning_rate=0.1),
        "adadelta": o.Adadelta(learning_rate=1.0),
        "rmsprop": o.RMSprop(),
        "rmsprop_centered": o.RMSprop(momentum=0.5, centered=True),
        "adamax": o.Adamax(learning_rate=0.01),
        "nadam": o.Nadam(learning_rate=0.01),
        "ftrl": o.Ftrl(
            learning_rate=0.1,
            l1_regularization_strength=0.01,
            l2_regularization_strength=0.02,
            l2_shrinkage_regularization_strength=0.03,
            beta=0.1,
        ),
        "lion": o.Lion(weight_decay=0.01),
    }
    for name, optimizer in list(cases.items()):
        options = optimizer.get_config() | {"weight_decay": 0.02, "clipnorm": 0.9}
        cases[f"{name}_options"] = type(optimizer).from_config(options)
    cases |= {
        "clip_value": o.SGD(clipvalue=0.4),
        "clip_norm": o.SGD(clipnorm=0.9),
        "clip_global": o.SGD(global_clipnorm=1.1),
        "average": o.Adam(0.05, use_ema=True, ema_momentum=0.9),
        "average_every": o.SGD(
            0.05, weight_decay=0.02, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=7
        ),
        "cosine": o.SGD(
            keras.optimizers.schedules.CosineDecay(0.05, 6, warmup_target=0.2, warmup_steps=3)
        ),
    }
    start = goldens.normal("optimizer/start", 3, 4)
    gradients = goldens.normal("optimizer/gradients", 100, 3, 4)
    for name, optimizer in cases.items():
        variable = keras.Variable(start)
        optimizer.build([variable])
        values = []
        step = _traced(optimizer, variable)
        for gradient in gradients:
            step(tf.convert_to_tensor(gradient))
            values.append(variable.numpy())
        goldens.add(f"optimizer/{name}/y", np.stack(values))
        if optimizer.use_ema:
            optimizer.finalize_variable_values([variable])
            goldens.add(f"optimizer/{name}/last", variable.numpy())


def schedules(goldens: Goldens) -> None:
    """Every schedule at 40 steps."""
    s = keras.optimizers.schedules
    cases: dict[str, Any] = {
        "exponential": s.ExponentialDecay(0.1, 7, 0.8),
        "exponential_stairs": s.ExponentialDecay(0.1, 7, 0.8, staircase=True),
        "inverse_time": s.InverseTimeDecay(0.1, 5, 0.4),
        "polynomial": s.PolynomialDecay(0.1, 20, 0.01, power=2.0),
        "polynomial_cycle": s.PolynomialDecay(0.1, 9, 0.01, cycle=True),
        "piecewise": s.PiecewiseConstantDecay([5, 17], [0.1, 0.05, 0.01]),
        "cosine": s.CosineDecay(0.1, 25, alpha=0.1),
        "cosine_warmup": s.CosineDecay(0.02, 25, alpha=0.1, warmup_target=0.3, warmup_steps=6),
        "cosine_restarts": s.CosineDecayRestarts(0.1, 5, t_mul=2.0, m_mul=0.7, alpha=0.05),
        "cosine_restarts_even": s.CosineDecayRestarts(0.1, 7, t_mul=1.0),
    }
    for name, schedule in cases.items():
        values = [np.float32(schedule(step)) for step in range(40)]
        goldens.add(f"schedule/{name}/y", np.stack(values))


def initializers(goldens: Goldens) -> None:
    """Every initializer with one seed."""
    i = keras.initializers
    cases: dict[str, Any] = {
        "zeros": i.Zeros(),
        "ones": i.Ones(),
        "constant": i.Constant(0.3),
        "identity": i.Identity(gain=1.5),
        "random_normal": i.RandomNormal(0.1, 0.2, seed=SEED),
        "truncated_normal": i.TruncatedNormal(0.1, 0.2, seed=SEED),
        "random_uniform": i.RandomUniform(-0.3, 0.4, seed=SEED),
        "glorot_uniform": i.GlorotUniform(seed=SEED),
        "glorot_normal": i.GlorotNormal(seed=SEED),
        "he_uniform": i.HeUniform(seed=SEED),
        "he_normal": i.HeNormal(seed=SEED),
        "lecun_uniform": i.LecunUniform(seed=SEED),
        "lecun_normal": i.LecunNormal(seed=SEED),
        "orthogonal": i.Orthogonal(gain=1.1, seed=SEED),
    }
    for name, initializer in cases.items():
        shape = (4, 6) if name == "identity" else (3, 2, 4, 6)
        goldens.add(f"initializer/{name}/y", np.asarray(initializer(shape)))


def layers(goldens: Goldens) -> None:
    """Every layer: value and gradients, with its weights as inputs."""
    k = keras.layers
    r = goldens.random
    x2 = r.normal(size=(4, 6))
    steps = r.normal(size=(3, 9, 4))
    image = r.normal(size=(2, 8, 7, 4))
    numbers = r.integers(0, 12, (3, 5))
    volume = r.normal(size=(2, 4, 5, 3, 2))
    cases: dict[str, tuple[Any, Array]] = {
        "conv3d": (k.Conv3D(3, (2, 3, 2), strides=(1, 2, 1)), volume),
        "conv3d_same": (k.Conv3D(3, 2, padding="same", use_bias=False), volume),
        "embedding": (k.Embedding(12, 4), numbers),
        "flatten": (k.Flatten(), image),
        "reshape": (k.Reshape((7, 32)), image),
        "activation": (k.Activation("tanh"), x2),
        "bidirectional": (k.Bidirectional(k.GRU(3, return_sequences=True)), steps),
        "bidirectional_sum": (k.Bidirectional(k.LSTM(3), merge_mode="sum"), steps),
        "bidirectional_mul": (k.Bidirectional(k.SimpleRNN(3), merge_mode="mul"), steps),
        "bidirectional_average": (k.Bidirectional(k.LSTM(3), merge_mode="ave"), steps),
        "dense": (k.Dense(5), x2),
        "dense_3d": (k.Dense(5, use_bias=False), steps),
        "conv1d_same": (k.Conv1D(6, 3, strides=2, padding="same"), steps),
        "conv1d_causal": (k.Conv1D(6, 3, dilation_rate=2, padding="causal"), steps),
        "conv2d_valid": (k.Conv2D(6, (3, 2), strides=(2, 1)), image),
        "conv2d_same": (k.Conv2D(6, 3, padding="same"), image),
        "conv2d_groups": (k.Conv2D(6, 3, groups=2, padding="same"), image),
        "depthwise": (k.DepthwiseConv2D(3, depth_multiplier=2, padding="same"), image),
        "conv2d_transpose": (k.Conv2DTranspose(5, 3, strides=2, padding="same"), image),
        "conv2d_transpose_valid": (k.Conv2DTranspose(5, 3, strides=2), image),
        "conv1d_transpose": (k.Conv1DTranspose(5, 3, strides=2, padding="same"), steps),
        "max_pool2d": (k.MaxPooling2D((2, 3), strides=2, padding="same"), image),
        "average_pool2d": (k.AveragePooling2D(3, strides=2, padding="same"), image),
        "max_pool1d": (k.MaxPooling1D(2), steps),
        "global_average2d": (k.GlobalAveragePooling2D(), image),
        "global_max1d": (k.GlobalMaxPooling1D(keepdims=True), steps),
        "layer_norm": (k.LayerNormalization(), steps),
        "group_norm": (k.GroupNormalization(groups=2), image),
        "rms_norm": (k.RMSNormalization(), steps),
        "simple_rnn": (k.SimpleRNN(5), steps),
        "lstm": (k.LSTM(5, return_sequences=True), steps),
        "lstm_backwards": (k.LSTM(5, go_backwards=True), steps),
        "gru": (k.GRU(5), steps),
        "gru_before": (k.GRU(5, reset_after=False, return_sequences=True), steps),
    }
    for name, (layer, x) in cases.items():
        x = x.astype(np.float32) if x.dtype.kind == "f" else x
        layer.build(x.shape)
        weights = [r.normal(size=w.shape).astype(np.float32) * 0.5 for w in layer.trainable_weights]
        goldens.call(
            f"layer/{name}",
            lambda x, layer=layer, **w: layer.stateless_call(
                list(w.values()), layer.non_trainable_variables, x
            )[0],
            {"x": x} | {f"w{index}": weight for index, weight in enumerate(weights)},
        )
        inputs = keras.Input(x.shape[1:], dtype=x.dtype.name)
        _ten_steps(goldens, f"layer/{name}", layer, keras.Model(inputs, layer(inputs)))
    _dropout(goldens, x2.astype(np.float32))
    _batch_norm(goldens, image.astype(np.float32))
    _shared_norm(goldens)
    _masked(goldens, steps.astype(np.float32))
    _attention(goldens, steps.astype(np.float32))


def _ten_steps(goldens: Goldens, case: str, layer: Any, model: keras.Model) -> None:
    """Keeps a layer's variables after ten steps from given weights to random numbers."""
    if not layer.trainable_weights:
        return
    for index, variable in enumerate(layer.trainable_weights):
        variable.assign(goldens.tensors[f"{case}/w{index}"])
    optimizer = keras.optimizers.SGD(0.05, momentum=0.9)
    model.compile(optimizer=optimizer, loss="mse", run_eagerly=True)
    for _ in range(10):
        model.train_on_batch(goldens.tensors[f"{case}/x"], goldens.tensors[f"{case}/weights"])
    for index, variable in enumerate(layer.weights):
        goldens.add(f"{case}/after{index}", variable.numpy())


def _dropout(goldens: Goldens, x: Array) -> None:
    goldens.call(
        "layer/dropout",
        lambda x: tf.nn.experimental.stateless_dropout(x, rate=0.4, seed=[SEED, 5]),
        {"x": x},
    )


def _batch_norm(goldens: Goldens, x: Array) -> None:
    layer = keras.layers.BatchNormalization()
    layer.build(x.shape)
    weights = [goldens.random.normal(size=(4,)).astype(np.float32) for _ in range(2)]
    state = [np.zeros(4, np.float32), np.ones(4, np.float32)]
    goldens.call(
        "layer/batch_norm",
        lambda x, w0, w1: layer.stateless_call([w0, w1], state, x, training=True)[0],
        {"x": x, "w0": weights[0], "w1": weights[1]},
    )
    _, after = layer.stateless_call(weights, state, x, training=True)
    goldens.add("layer/batch_norm/mean", after[0])
    goldens.add("layer/batch_norm/variance", after[1])
    inputs = keras.Input(x.shape[1:])
    _ten_steps(goldens, "layer/batch_norm", layer, keras.Model(inputs, layer(inputs)))


def _shared_norm(goldens: Goldens) -> None:
    """A layer whose state two calls change, the later one in the graph first."""
    norm = keras.layers.BatchNormalization(momentum=0.5)
    x = keras.Input((3,))
    first = keras.layers.Activation("tanh")(norm(x))
    other = norm(keras.layers.Activation("relu")(x))
    other = keras.layers.Activation("tanh")(keras.layers.Activation("linear")(other))
    model = keras.Model(x, keras.layers.Add()([first, other]))
    goldens.add("shared_norm/y", model(goldens.normal("shared_norm/x", 5, 3), training=True))
    for index, variable in enumerate(norm.weights):
        goldens.add(f"shared_norm/after{index}", variable.numpy())


def _masked(goldens: Goldens, x: Array) -> None:
    lengths = np.array([4, 9, 1])
    mask = goldens.add("layer/lstm_masked/mask", np.arange(9)[None, :] < lengths[:, None])
    layer = keras.layers.LSTM(5, return_sequences=True)
    layer.build(x.shape)
    weights = [
        goldens.random.normal(size=w.shape).astype(np.float32) for w in layer.trainable_weights
    ]
    goldens.call(
        "layer/lstm_masked",
        lambda x, **w: layer.stateless_call(
            list(w.values()), layer.non_trainable_variables, x, mask=mask
        )[0],
        {"x": x} | {f"w{index}": weight for index, weight in enumerate(weights)},
    )


def _attention(goldens: Goldens, x: Array) -> None:
    layer = keras.layers.MultiHeadAttention(num_heads=2, key_dim=3)
    layer.build(x.shape, x.shape)
    weights = [
        goldens.random.normal(size=w.shape).astype(np.float32) for w in layer.trainable_weights
    ]
    goldens.call(
        "layer/attention",
        lambda x, **w: layer.stateless_call(
            list(w.values()), layer.non_trainable_variables, x, x, use_causal_mask=True
        )[0],
        {"x": x} | {f"w{index}": weight for index, weight in enumerate(weights)},
    )
    inputs = keras.Input(x.shape[1:])
    attended = layer(inputs, inputs, use_causal_mask=True)
    _ten_steps(goldens, "layer/attention", layer, keras.Model(inputs, attended))


def training(goldens: Goldens) -> None:
    """Ten steps of small models: the weights before, the losses, the weights after."""
    k = keras.layers
    mlp = keras.Sequential(
        [
            keras.Input((6,)),
            k.Dense(16, activation="tanh"),
            k.LayerNormalization(),
            k.Dense(4),
        ]
    )
    cnn = keras.Sequential(
        [
            keras.Input((8, 8, 2)),
            k.Conv2D(6, 3, padding="same", activation="relu"),
            k.BatchNormalization(),
            k.MaxPooling2D(2),
            k.Flatten(),
            k.Dense(4),
        ]
    )
    penalized = keras.Sequential(
        [
            keras.Input((6,)),
            k.Dense(16, activation="tanh", kernel_regularizer=keras.regularizers.L1(0.003)),
            k.Dense(
                4,
                kernel_regularizer=keras.regularizers.L1L2(0.001, 0.02),
                bias_regularizer=keras.regularizers.L2(0.05),
            ),
        ]
    )
    c = keras.constraints
    constrained = keras.Sequential(
        [
            keras.Input((6,)),
            k.Dense(
                16,
                activation="tanh",
                kernel_constraint=c.MaxNorm(0.7),
                bias_constraint=c.NonNeg(),
            ),
            k.Dense(8, kernel_constraint=c.UnitNorm(axis=[0, 1])),
            k.Dense(4, kernel_constraint=c.MinMaxNorm(0.3, 0.9, rate=0.5, axis=1)),
        ]
    )
    rnn = keras.Sequential(
        [keras.Input((5,)), k.Embedding(64, 6), k.Bidirectional(k.LSTM(4)), k.Dense(4)]
    )
    masked = keras.Sequential(
        [
            keras.Input((5,)),
            k.Embedding(64, 6, mask_zero=True),
            k.LSTM(5, return_sequences=True),
            k.GRU(4),
            k.Dense(4),
        ]
    )
    sequence = keras.Input((5,))
    hidden = k.Embedding(64, 6, mask_zero=True)(sequence)
    hidden = k.Bidirectional(k.LSTM(3, return_sequences=True))(hidden)
    hidden = k.LayerNormalization()(hidden)
    hidden = k.MultiHeadAttention(2, 3)(hidden, hidden)
    sequences = keras.Model(sequence, k.Dense(4)(hidden))
    pooled = keras.Sequential(
        [
            keras.Input((5,)),
            k.Embedding(64, 6, mask_zero=True),
            k.GlobalAveragePooling1D(),
            k.Dense(4),
        ]
    )
    r = goldens.random
    lengths = r.integers(1, 6, 12)
    # Each number once, and zeros where a sequence has ended.
    ended = 1 + r.permutation(63)[:60].reshape(12, 5)
    ended = np.where(np.arange(5) < lengths[:, None], ended, 0)
    inputs: dict[str, tuple[Any, Array]] = {
        "masked": (masked, ended),
        "sequences": (sequences, ended),
        "pooled": (pooled, ended),
        "mlp": (mlp, r.normal(size=(12, 6)).astype(np.float32)),
        "cnn": (cnn, r.normal(size=(12, 8, 8, 2)).astype(np.float32)),
        # Each row once: Keras squares the parts of an embedding's gradient before it adds those of
        # equal rows.
        "rnn": (rnn, r.permutation(64)[:60].reshape(12, 5)),
        "penalized": (penalized, r.normal(size=(12, 6)).astype(np.float32)),
        "constrained": (constrained, r.normal(size=(12, 6)).astype(np.float32)),
    }
    for name, (model, x) in inputs.items():
        truth = r.integers(0, 4, (12, 5) if name == "sequences" else 12)
        # A bias of the keys has no gradient but rounding, which a small epsilon makes large.
        epsilon = 1e-5 if name == "sequences" else 1e-7
        model.compile(
            optimizer=keras.optimizers.Adam(0.01, epsilon=epsilon, clipnorm=1.0),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["sparse_categorical_accuracy"],
            jit_compile=False,
        )
        case = f"training/{name}"
        goldens.add(f"{case}/x", x)
        goldens.add(f"{case}/truth", truth)
        for index, value in enumerate(model.get_weights()):
            goldens.add(f"{case}/before{index}", value)
        losses = []
        for _ in range(10):
            model.reset_metrics()
            losses.append(model.train_on_batch(x, truth)[0])
        goldens.add(f"{case}/losses", np.array(losses, np.float32))
        for index, value in enumerate(model.get_weights()):
            goldens.add(f"{case}/after{index}", value)
        goldens.add(f"{case}/y", model.predict_on_batch(x))
        goldens.add(f"{case}/test", np.array(model.test_on_batch(x, truth), np.float32))


def derivatives(goldens: Goldens) -> None:
    """Jacobians, Hessians and products with tangents."""
    shapes = {"x": (3, 4), "w": (4, 2)}
    x, w = (tf.constant(goldens.normal(f"derivatives/{name}", *shapes[name])) for name in shapes)
    tangents = [
        tf.constant(goldens.normal(f"derivatives/t{name}", *shapes[name])) for name in shapes
    ]

    def function(x: Any, w: Any) -> Any:
        squares = tf.reduce_sum(tf.square(x), 1, keepdims=True)
        return tf.nn.softmax(tf.tanh(x @ w)) * tf.gather(squares, [0, 1, 2])

    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, w])
        with tf.GradientTape(persistent=True) as inner:
            inner.watch([x, w])
            y = function(x, w)
            total = tf.reduce_sum(tf.square(y))
        gradients = inner.gradient(total, [x, w])
    for name, value, gradient in zip(shapes, (x, w), gradients, strict=True):
        goldens.add(f"derivatives/jacobian_{name}", inner.jacobian(y, value))
        goldens.add(f"derivatives/hessian_{name}", tape.jacobian(gradient, value))
    goldens.add("derivatives/batch", inner.batch_jacobian(y, x))
    with tf.autodiff.ForwardAccumulator([x, w], tangents) as forward:
        y = function(x, w)
    goldens.add("derivatives/y", y)
    goldens.add("derivatives/forward", forward.jvp(y))


def policies(goldens: Goldens) -> None:
    """Steps of small models under each dtype policy."""
    for name, value in keras_policies.policies().items():
        goldens.add(name, value)


def main(argv: Sequence[str]) -> None:
    """Writes all goldens."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    keras.utils.set_random_seed(7)
    goldens = Goldens()
    for group in (
        activations,
        losses,
        metrics,
        optimizers,
        schedules,
        initializers,
        layers,
        training,
        derivatives,
        policies,
    ):
        group(goldens)
    names = sorted(goldens.tensors)
    tf.raw_ops.SaveV2(
        prefix=_OUT.value,
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[goldens.tensors[name] for name in names],
    )


if __name__ == "__main__":
    app.run(main)
