"""With `TFP_DEVICE_TYPE=GPU` recurrent layers of programs made for GPUs train as on the CPU."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import numpy as np
import pytest

from tests.e2e import child

TOLERANCE = 2e-5
"""Largest difference of a loss, an output or a weight."""

RECURRENT = """
    import json
    import keras
    import numpy as np

    rng = np.random.default_rng(0)
    x = rng.normal(size=(24, 7, 5)).astype(np.float32)
    # Of different lengths, and none empty.
    lengths = rng.integers(1, 8, 24)
    masked = np.where(np.arange(7)[None, :, None] < lengths[:, None, None], x, -9.0)
    masked = masked.astype(np.float32)
    y = rng.normal(size=(24, 3)).astype(np.float32)

    def train(name, layers, data, policy="float32"):
        keras.utils.set_random_seed(1)
        keras.config.set_dtype_policy(policy)
        model = keras.Sequential([keras.Input((7, 5)), *layers(), keras.layers.Dense(3)])
        model.compile(keras.optimizers.SGD(0.05), "mse")
        history = model.fit(data, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
        weights = [weight.numpy().astype(np.float32) for weight in model.weights]
        results = [*weights, model.predict(data, verbose=0).astype(np.float32)]
        found[name] = history.history["loss"] + [each.ravel().tolist() for each in results]

    found = {}
    L = keras.layers
    for kind in (L.LSTM, L.GRU):
        name = kind.__name__
        train(name, lambda: [kind(6)], x)
        train(name + " sequences", lambda: [kind(6, return_sequences=True), kind(4)], x)
        train(name + " backwards", lambda: [kind(6, go_backwards=True)], x)
        train(name + " both", lambda: [L.Bidirectional(kind(6, return_sequences=True)), kind(3)], x)
        train(name + " masked", lambda: [L.Masking(-9.0), L.Bidirectional(kind(6))], masked)
        train(name + " half", lambda: [kind(6)], x, "mixed_bfloat16")
    print(json.dumps(found))
"""

NAMES = """
    from tensorflow.python.eager import context

    calls = []
    cudnn = tf.raw_ops.CudnnRNNV3
    def count(**arguments):
        results = cudnn(**arguments)
        calls.append(arguments["rnn_mode"])
        return results
    tf.raw_ops.CudnnRNNV3 = count
"""


@pytest.fixture(scope="module")
def results() -> tuple[dict[str, Any], dict[str, Any]]:
    tell = "\nimport sys; print(json.dumps(calls), file=sys.stderr)\n"
    device = child.run(child_program(NAMES, RECURRENT) + tell, TFP_DEVICE_TYPE="GPU")
    found = json.loads(child.check(device).splitlines()[-1])
    # Otherwise Keras has taken its generic path.
    assert {"lstm", "gru"} == set(json.loads(device.stderr.splitlines()[-1]))
    cpu = child.run(child_program(RECURRENT), TFP_DISABLE="1")
    return found, json.loads(child.check(cpu).splitlines()[-1])


def child_program(*parts: str) -> str:
    return "\n".join(textwrap.dedent(part) for part in parts)


def test_recurrent_layers_train_as_on_the_cpu(results: tuple[Any, Any]) -> None:
    found, expected = results
    assert len(found) == 12
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        # A step in 16 bits rounds to 8 binary digits.
        tolerance = 3e-2 if name.endswith("half") else TOLERANCE
        for own, other in zip(found[name], values, strict=True):
            np.testing.assert_allclose(own, other, rtol=0, atol=tolerance, err_msg=name)


def test_what_has_no_kernel_is_refused_by_name() -> None:
    code = """
        h, params = tf.zeros([2, 2, 4]), tf.zeros([320])
        right = {"input": tf.zeros([3, 2, 4]), "input_h": h, "input_c": h, "params": params}
        def attempt(**arguments):
            try:
                tf.raw_ops.CudnnRNN(**{**right, **arguments})
            except tf.errors.OpError as error:
                print(str(error).splitlines()[0])
        attempt()
        attempt(rnn_mode="rnn_tanh")
        attempt(dropout=0.5)
        attempt(input_mode="skip_input")
        attempt(params=tf.zeros([7]))
        attempt(input_h=tf.zeros([2, 3, 4]))
    """
    lines = child.check(child.run(code, TFP_DEVICE_TYPE="GPU")).splitlines()
    assert len(lines) == 5
    for line, words in zip(
        lines,
        (
            "rnn_mode: expected 'lstm' or 'gru'",
            "dropout: expected 0",
            "input_mode: expected 'linear_input'",
            "params has 7 elements, expected 320",
            "input_h has shape [2,3,4], expected [2,2,4]",
        ),
        strict=True,
    ):
        assert words in line, line
