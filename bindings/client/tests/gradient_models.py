"""Writes models whose functions have gradients of their own.

`keras` is an export of Keras with the activation silu; `clipped` has a `tf.custom_gradient` of a
function's argument.
"""

from __future__ import annotations

import keras
import tensorflow as tf
from absl import app, flags

_OUT = flags.DEFINE_string("out", None, "the folder", required=True)


class _Clipped(tf.Module):  # type: ignore[misc]
    """Three times the argument, with a gradient that is clipped and has the argument's sign."""

    @tf.function(input_signature=[tf.TensorSpec([None])])  # type: ignore[untyped-decorator]
    def f(self, x: tf.Tensor) -> tf.Tensor:
        @tf.custom_gradient  # type: ignore[untyped-decorator]
        def clipped(z: tf.Tensor) -> tuple[tf.Tensor, object]:
            return tf.identity(z), lambda grad: tf.clip_by_value(grad, -0.15, 0.15) * tf.sign(z)

        return clipped(x) * 3.0


def main(argv: list[str]) -> None:
    """Writes both."""
    del argv
    keras.utils.set_random_seed(3)
    layers = [keras.Input((2,)), keras.layers.Dense(3, activation="silu"), keras.layers.Dense(1)]
    keras.Sequential(layers).export(f"{_OUT.value}/keras", verbose=False)
    module = _Clipped()
    module.v = tf.Variable(1.0)
    tf.saved_model.save(module, f"{_OUT.value}/clipped", signatures=module.f)


if __name__ == "__main__":
    app.run(main)
