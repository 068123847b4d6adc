"""Processes that work together: on the device, as one process on the CPU."""

from __future__ import annotations

import concurrent.futures
import json
import pathlib
import socket
import textwrap

from tests.e2e import child

TOLERANCE = 1e-5
"""Largest difference of a loss: the means of the workers are added in another order."""

TRAINING = """
    import json
    import numpy as np

    def train(strategy, replica, replicas):
        x = np.random.default_rng(0).normal(size=(160, 6)).astype(np.float32)
        y = x.sum(axis=1, keepdims=True)
        with strategy.scope():
            first = tf.Variable(np.full((6, 8), 0.1, np.float32))
            second = tf.Variable(np.full((8, 1), 0.2, np.float32))
        variables = [first, second]

        def step(a, b):
            context = tf.distribute.get_replica_context()
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((tf.tanh(a @ first) @ second - b) ** 2)
            gradients = tape.gradient(loss, variables)
            loss, *gradients = context.all_reduce("MEAN", [loss, *gradients])
            for variable, gradient in zip(variables, gradients):
                variable.assign_sub(0.1 * gradient)
            return loss

        losses = []
        run = tf.function(lambda a, b: strategy.run(step, (a, b)))
        for start in range(0, 160, 32):
            rows = slice(start + replica * 32 // replicas, start + (replica + 1) * 32 // replicas)
            loss = run(tf.constant(x[rows]), tf.constant(y[rows]))
            losses.append(float(strategy.experimental_local_results(loss)[0]))
        return losses, [strategy.experimental_local_results(v)[0].device for v in variables]
"""

WORKER = """
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    losses, devices = train(strategy, strategy.cluster_resolver.task_id, 2)
    found = {"losses": losses, "variables": devices, "all": strategy.extended.worker_devices}
    print(json.dumps(found))
"""

ALONE = """
    losses, devices = train(tf.distribute.OneDeviceStrategy("/device:CPU:0"), 0, 1)
    print(json.dumps({"losses": losses, "variables": devices}))
"""

# Ends when the coordinator is done: there is no way to shut a server down.
SERVER = """
    import json, os, pathlib, time
    config = json.loads(os.environ["TF_CONFIG"])
    task = config["task"]
    cluster = tf.train.ClusterSpec(config["cluster"])
    server = tf.distribute.Server(cluster, job_name=task["type"], task_index=task["index"])
    while not pathlib.Path(os.environ["DONE"]).exists():
        time.sleep(0.1)
    os._exit(0)
"""

COORDINATOR = """
    import os
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weight = tf.Variable(tf.zeros([2]))
    x, y = tf.constant([[1.0, 2.0], [3.0, -1.0]]), tf.constant([5.0, 1.0])

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.linalg.matvec(x, weight) - y) ** 2)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        return loss

    losses = []
    for _ in range(60):
        losses.append(float(coordinator.schedule(step).fetch()))
    print(losses[0], losses[-1], weight.numpy().tolist(), weight.device, flush=True)
    os._exit(0)
"""


def free_ports(count: int) -> list[int]:
    """Returns ports that nothing listens on; all are held until all are known."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("localhost", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def program(*parts: str) -> str:
    return "\n".join(textwrap.dedent(part) for part in parts)


def test_two_workers_train_on_their_devices() -> None:
    workers = [f"localhost:{port}" for port in free_ports(2)]

    def worker(index: int) -> dict[str, list[object]]:
        task = {"type": "worker", "index": index}
        config = json.dumps({"cluster": {"worker": workers}, "task": task})
        output = child.check(
            child.run(program(TRAINING, WORKER), TF_CONFIG=config, TFP_NUM_DEVICES="1")
        )
        found: dict[str, list[object]] = json.loads(output.splitlines()[-1])
        return found

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        alone = pool.submit(child.run, program(TRAINING, ALONE))
        found = list(pool.map(worker, range(2)))
    expected = json.loads(child.check(alone.result()))
    assert expected["losses"][-1] < expected["losses"][0] / 2
    for index, each in enumerate(found):
        device = f"/job:worker/replica:0/task:{index}/device:TFP:0"
        assert each["all"] == [device]
        assert each["variables"] == [device, device]
        for loss, reference in zip(each["losses"], expected["losses"], strict=True):
            assert isinstance(loss, float)
            assert abs(loss - reference) < TOLERANCE


def test_a_parameter_server_keeps_what_a_worker_computes(tmp_path: pathlib.Path) -> None:
    names = [f"localhost:{port}" for port in free_ports(3)]
    cluster = {"worker": names[:1], "ps": names[1:2], "chief": names[2:]}

    def process(kind: str, code: str) -> str:
        config = json.dumps({"cluster": cluster, "task": {"type": kind, "index": 0}})
        done = child.run(code, TF_CONFIG=config, DONE=str(tmp_path / "done"))
        return child.check(done)

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        servers = [pool.submit(process, kind, SERVER) for kind in ("worker", "ps")]
        try:
            output = process("chief", COORDINATOR)
        finally:
            (tmp_path / "done").touch()
        for server in servers:
            server.result()
    first, last, *rest = output.splitlines()[-1].split(" ", 2)
    assert float(first) == 13.0
    assert float(last) < 1e-6
    weight, _, device = rest[0].rpartition(" ")
    assert [round(each, 2) for each in json.loads(weight)] == [1.0, 2.0]
    assert device.startswith("/job:ps/")
