"""Lets `tf.distribute` take our devices where it looks for GPUs and would fall back to the CPU.

libtfp.so holds this text, see `_start`.
"""

from __future__ import annotations

from typing import Any, Final

_OURS: Final = "_tfp_plugin"


def install(device_type: str) -> None:
    """Makes strategies that are given no devices use ours; a second call changes nothing.

    `MirroredStrategy()` takes all devices of this process, `MultiWorkerMirroredStrategy` those of
    every worker. Both keep GPUs and TPUs where there are some.

    Args:
        device_type: Type of our device.
    """
    if device_type == "GPU":
        return
    from tensorflow.python.distribute import collective_all_reduce_strategy, mirrored_strategy
    from tensorflow.python.framework import config

    extended = collective_all_reduce_strategy.CollectiveAllReduceExtended
    of_worker = extended._initialize_local_devices
    of_process = mirrored_strategy.all_local_devices
    if hasattr(of_worker, _OURS):
        return

    def worker_devices(self: Any, resolver: Any, worker: str) -> tuple[tuple[str, ...], str]:
        devices, kind = of_worker(self, resolver, worker)
        # Logical devices are those of all workers.
        count = len(config.get_visible_devices(device_type)) if kind == "CPU" else 0
        if not count:
            return devices, kind
        names = tuple(f"{worker}/device:{device_type}:{index}" for index in range(count))
        return names, device_type

    def process_devices(num_gpus: int | None = None) -> Any:
        devices = of_process(num_gpus)
        if any(device.device_type != "CPU" for device in devices):
            return devices
        return config.list_logical_devices(device_type)[:num_gpus] or devices

    setattr(worker_devices, _OURS, True)
    extended._initialize_local_devices = worker_devices
    mirrored_strategy.all_local_devices = process_devices
