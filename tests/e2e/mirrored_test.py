"""Two devices train one model: MirroredStrategy against one replica on the CPU."""

from __future__ import annotations

import os
from typing import Any

from tests.e2e import child

os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(child.library())
os.environ["TFP_NUM_DEVICES"] = "2"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import pytest
import tensorflow as tf
import tfp_plugin

DEVICES = ["TFP:0", "TFP:1"]
LOSS_TOLERANCE = 1e-5
"""Largest difference of the loss of a step: the replicas' means are added in another order."""
WEIGHT_TOLERANCE = 1e-5


def names(devices: list[str]) -> list[str]:
    return [device.rpartition("device:")[2] for device in devices]


@pytest.fixture(scope="module")
def strategy() -> Any:
    assert tfp_plugin.enable() == DEVICES
    return tf.distribute.MirroredStrategy(DEVICES)


def test_each_replica_computes_on_its_device(strategy: Any) -> None:
    with strategy.scope():
        variable = tf.Variable(2.0)

    def step() -> Any:
        context = tf.distribute.get_replica_context()
        x = variable * (tf.cast(context.replica_id_in_sync_group, tf.float32) + 1.0)
        return x, context.all_reduce(tf.distribute.ReduceOp.SUM, x)

    own, total = strategy.run(step)
    assert names([each.device for each in variable.values]) == DEVICES
    assert names([each.device for each in own.values]) == DEVICES
    assert [each.numpy() for each in own.values] == [2.0, 4.0]
    assert [each.numpy() for each in total.values] == [6.0, 6.0]


class Losses(keras.callbacks.Callback):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.values: list[float] = []

    def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
        self.values.append(float(logs["loss"]))


def train(strategy: Any) -> tuple[list[float], Any]:
    keras.utils.set_random_seed(3)
    x = np.random.default_rng(0).normal(size=(160, 8, 8, 1)).astype(np.float32)
    y = (x.sum((1, 2, 3)) > 0).astype(np.int64)
    losses = Losses()
    with strategy.scope():
        model = keras.Sequential(
            [
                keras.Input((8, 8, 1)),
                keras.layers.Conv2D(8, 3, activation="relu"),
                keras.layers.MaxPooling2D(),
                keras.layers.Flatten(),
                keras.layers.Dense(10),
            ]
        )
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer="adam", loss=loss)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
    model.fit(data, epochs=2, verbose=0, callbacks=[losses])
    return losses.values, model


def test_a_model_trains_on_both_as_on_the_cpu(strategy: Any) -> None:
    found, model = train(strategy)
    expected, on_cpu = train(tf.distribute.OneDeviceStrategy("/device:CPU:0"))
    assert len(found) == 10
    assert found[-1] < found[0] - 0.3
    np.testing.assert_allclose(found, expected, rtol=0, atol=LOSS_TOLERANCE)
    for weight, reference in zip(model.weights, on_cpu.weights, strict=True):
        first, second = weight.value.values
        assert names([first.device, second.device]) == DEVICES
        np.testing.assert_array_equal(first.numpy(), second.numpy())
        np.testing.assert_allclose(first.numpy(), reference.numpy(), rtol=0, atol=WEIGHT_TOLERANCE)


def batches() -> Any:
    rows = {"x": np.arange(12, dtype=np.float32), "i": np.arange(12), "s": ["a"] * 12}
    return tf.data.Dataset.from_tensor_slices(rows).batch(4)


def places(batch: dict[str, Any]) -> list[str]:
    return names([batch[key].device for key in ("x", "i", "s")])


def test_a_strategy_without_devices_takes_ours(strategy: Any) -> None:
    assert names(list(tf.distribute.MirroredStrategy().extended.worker_devices)) == DEVICES
    assert strategy.num_replicas_in_sync == 2


def test_batches_come_to_the_device_that_is_named(strategy: Any) -> None:
    prefetch = tf.data.experimental.prefetch_to_device
    copy = tf.data.experimental.copy_to_device
    for dataset, place in (
        (batches().apply(prefetch("/TFP:1")), "TFP:1"),
        (batches().apply(copy("/TFP:0")).prefetch(1).with_options(tf.data.Options()), "TFP:0"),
        (batches(), "CPU:0"),
        (batches().apply(copy("/CPU:0")), "CPU:0"),
        # The function runs where the input pipeline is.
        (batches().apply(copy("/TFP:0")).map(lambda batch: batch), "CPU:0"),
    ):
        found = list(dataset)
        assert [places(batch) for batch in found] == [[place, place, "CPU:0"]] * 3
        np.testing.assert_array_equal(np.concatenate([b["x"] for b in found]), np.arange(12))


def test_a_strategy_fetches_batches_to_its_devices(strategy: Any) -> None:
    options = tf.distribute.InputOptions(experimental_fetch_to_device=False)
    for given, expected in ((None, DEVICES), (options, ["CPU:0", "CPU:0"])):
        found = list(strategy.experimental_distribute_dataset(batches(), given))
        assert [names([x.device for x in batch["x"].values]) for batch in found] == [expected] * 3
        rows = [x.numpy() for batch in found for x in batch["x"].values]
        np.testing.assert_array_equal(np.concatenate(rows), np.arange(12))


def test_a_step_takes_batches_from_an_iterator(strategy: Any) -> None:
    iterator = iter(strategy.experimental_distribute_dataset(batches()))

    def step() -> Any:
        return strategy.run(lambda batch: batch["x"] * 2.0, (next(iterator),))

    run = tf.function(step)
    found = [run() for _ in range(3)]
    rows = [x.numpy() for each in found for x in each.values]
    np.testing.assert_array_equal(np.concatenate(rows), np.arange(12) * 2)
