"""Brings batches to our device where `tf.data` and `tf.distribute` leave them on the CPU.

TensorFlow has kernels of iterators for GPUs only, so soft placement keeps an iterator on the CPU,
and with it the batches. They are copied where Python takes them. libtfp.so
holds this text, see `_start`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

_OURS: Final = "_tfp_plugin"
_TARGET: Final = "_target_device"
"""The attribute of TensorFlow's dataset that copies its elements."""


def install(device_type: str) -> None:
    """Makes iterators yield tensors on our device if a program asks for that.

    That is `prefetch_to_device` and `copy_to_device`, and the iterators of a strategy whose
    `experimental_fetch_to_device` is true, which is the default. A second call changes nothing.

    Args:
        device_type: Type of our device.
    """
    if device_type == "GPU":
        return
    from tensorflow.python.data.ops import iterator_ops
    from tensorflow.python.distribute import input_lib

    iterator = iterator_ops.OwnedIterator
    shared = input_lib._SingleWorkerDatasetIteratorBase
    create, take, partial = (
        iterator._create_iterator,
        shared.get_next_as_list,
        input_lib._get_value_or_dummy,
    )
    if hasattr(create, _OURS):
        return

    def create_iterator(self: Any, dataset: Any) -> None:
        create(self, dataset)
        target = _target(dataset)
        if target and _kind(target) == device_type:
            following = self._next_internal
            self._next_internal = lambda: _moved(following(), target)

    def get_next_as_list(self: Any, name: str | None = None) -> list[Any]:
        return _each_moved(take(self, name), self._devices, device_type)

    def get_value_or_dummy(workers: Any, optionals: Any, produce_dummy: bool) -> list[Any]:
        counts = range(len(workers.worker_devices))
        devices = [name for i in counts for name in workers.compute_devices_for_worker(i)]
        return _each_moved(partial(workers, optionals, produce_dummy), devices, device_type)

    setattr(create_iterator, _OURS, True)
    iterator._create_iterator = create_iterator
    shared.get_next_as_list = get_next_as_list
    input_lib._get_value_or_dummy = get_value_or_dummy


def _kind(device: str) -> str | None:
    from tensorflow.python.framework import device_spec

    kind: str | None = device_spec.DeviceSpecV2.from_string(device).device_type
    return kind


def _target(dataset: Any) -> str | None:
    """Returns the device to which a dataset copies its elements, if it does.

    What follows the copy may only buffer: a function that maps the elements runs on the CPU.
    """
    from tensorflow.python.data.ops import dataset_ops

    while not hasattr(dataset, _TARGET):
        inputs = dataset._inputs()
        if len(inputs) != 1 or not isinstance(dataset, dataset_ops.UnaryUnchangedStructureDataset):
            return None
        dataset = inputs[0]
    target: str = getattr(dataset, _TARGET)
    return target


def _each_moved(batches: list[Any], devices: Iterable[str], device_type: str) -> list[Any]:
    """Copies the batch of each replica to the replica's device, if it is of our type."""
    return [
        _moved(batch, device) if _kind(device) == device_type else batch
        for batch, device in zip(batches, devices, strict=True)
    ]


def _moved(batch: Any, device: str) -> Any:
    """Copies the tensors of a batch; those of types without plain bytes stay where they are."""
    from tensorflow.python.framework import dtypes, ops
    from tensorflow.python.ops import array_ops
    from tensorflow.python.util import nest

    hosted = (dtypes.string, dtypes.variant, dtypes.resource)

    def moved(tensor: Any) -> Any:
        return tensor if tensor.dtype in hosted else array_ops.identity(tensor)

    with ops.device(device):
        return nest.map_structure(moved, batch, expand_composites=True)
