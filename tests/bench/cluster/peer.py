"""A worker of MultiWorkerMirroredStrategy that trains the network of `task bench`."""

from __future__ import annotations

import itertools
import sys
import time

import tensorflow as tf

# Inputs, two hidden layers and classes; samples of a worker's batch.
SIZES = (784, 512, 512, 10)
BATCH = 64
RATE = 0.01


def main(steps: int) -> None:
    """Prints the seconds of each step."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weights = []
        for rows, columns in itertools.pairwise(SIZES):
            kernel = tf.random.stateless_uniform([rows, columns], [1, 2], -0.05, 0.05)
            weights += [tf.Variable(kernel), tf.Variable(tf.zeros([columns]))]
    x = tf.random.stateless_uniform([BATCH, SIZES[0]], [3, 4])
    y = tf.range(BATCH) % SIZES[-1]

    def replica() -> tf.Tensor:
        with tf.GradientTape() as tape:
            value = x
            for index in range(0, len(weights), 2):
                value = value @ weights[index] + weights[index + 1]
                if index + 2 < len(weights):
                    value = tf.nn.relu(value)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, value)
            loss = tf.reduce_mean(losses)
        context = tf.distribute.get_replica_context()
        found = context.all_reduce(tf.distribute.ReduceOp.MEAN, tape.gradient(loss, weights))
        for weight, gradient in zip(weights, found, strict=True):
            weight.assign_sub(RATE * gradient)
        return loss

    @tf.function  # type: ignore[untyped-decorator]
    def step() -> tf.Tensor:
        return strategy.reduce("MEAN", strategy.run(replica), axis=None)

    for _ in range(5):
        step().numpy()
    for _ in range(steps):
        start = time.perf_counter()
        step().numpy()
        print(f"second {time.perf_counter() - start:.6f}", flush=True)


main(int(sys.argv[1]))
