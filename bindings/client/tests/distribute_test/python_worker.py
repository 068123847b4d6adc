"""A worker of MultiWorkerMirroredStrategy that makes the same collective ops as `task mixed`."""

from __future__ import annotations

import sys

import tensorflow as tf


def main(steps: int) -> None:
    """Trains a line by gradient descent, with the part of the data that this worker has."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    resolver = strategy.cluster_resolver
    part = float(resolver.task_id)
    with strategy.scope():
        w = tf.Variable([0.0, 0.0])
    x = tf.constant([[1.0, part + 1.0], [-part, 2.0]])
    y = tf.constant([1.0, part])
    for _ in range(steps):
        with tf.GradientTape() as tape:
            found = tf.reshape(x @ w.values[0][:, None], [-1])
            loss = tf.reduce_mean((found - y) ** 2)
        gradient = tape.gradient(loss, w.values[0])
        loss = strategy.reduce("MEAN", loss, axis=None)
        gradient = strategy.reduce("MEAN", gradient, axis=None)
        w.values[0].assign_sub(0.1 * gradient)
        print(f"loss {loss.numpy():.7f}", flush=True)


main(int(sys.argv[1]))
