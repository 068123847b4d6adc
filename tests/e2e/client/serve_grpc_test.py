"""The example of a server over gRPC beside Python: requests, errors, health and its end."""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.example import example_pb2
from tensorflow.core.protobuf import saved_model_pb2

from tests.e2e.client import served
from tests.e2e.client.served import Server, started
from tests.e2e.client.serving import Client, M

TOLERANCE = 1e-6
"""Largest difference: a batch of other rows may sum in another order."""


def _write_examples(folder: pathlib.Path) -> None:
    """A SavedModel with signatures that classify and regress examples."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        records = v1.placeholder(tf.string, [None], "records")
        spec = {"x": tf.io.FixedLenFeature([2], tf.float32)}
        x = tf.io.parse_example(records, spec)["x"]
        scores = tf.nn.softmax(x)
        labels = tf.tile(tf.constant([["first", "second"]]), [tf.shape(x)[0], 1])
        total = tf.reduce_sum(x, 1, keepdims=True)
        build = v1.saved_model.signature_def_utils
        signatures = {
            "serving_default": build.classification_signature_def(records, labels, scores),
            "scores": build.classification_signature_def(records, None, scores),
            "regress": build.regression_signature_def(records, total),
        }
        builder = v1.saved_model.builder.SavedModelBuilder(str(folder / "1"))
        builder.add_meta_graph_and_variables(session, ["serve"], signatures)
        builder.save()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Two models."""
    folder = pathlib.Path(tmp_path_factory.mktemp("models"))
    served.write(folder / "m")
    _write_examples(folder / "examples")
    return folder


def running(folder: pathlib.Path, *flags: str) -> Any:
    """Starts a server of both models, also over gRPC."""
    models = [f"--model={name}={folder / name}" for name in ("m", "examples")]
    return started(os.environ["SERVE"], *models, "--grpc_address=127.0.0.1:0", *flags)


@pytest.fixture(scope="module")
def server(folder: pathlib.Path) -> Iterator[Server]:
    """A server with short limits that most tests share."""
    with running(
        folder, "--max_body=20000", "--deadline_ms=5000", "--max_delay_us=20000"
    ) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Server) -> Client:
    """A connection that most tests share."""
    return Client(server)


def test_many_threads_get_what_python_computes(folder: pathlib.Path, server: Server) -> None:
    """Requests over gRPC and over HTTP go into the same runs, and each gets its own rows."""
    model = tf.saved_model.load(str(folder / "m/12"))

    def thread(seed: int) -> float:
        random = np.random.default_rng(seed)
        largest, own = 0.0, Client(server)
        for turn in range(20):
            x = random.normal(size=(1 + (seed + turn) % 4, 3)).astype(np.float32)
            if seed % 4:
                found = own.predict(x=x)["y"]
            else:
                status, answer = server.predict({"inputs": x.tolist()})
                assert status == 200, answer
                found = np.array(answer["outputs"])
            expected = model.signatures["serving_default"](x=tf.constant(x))["y"].numpy()
            assert np.shape(found) == expected.shape
            largest = max(largest, float(np.abs(found - expected).max()))
        return largest

    before = server.metrics()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert max(pool.map(thread, range(16))) <= TOLERANCE
    after = server.metrics()
    computed = after["serve_computed_total"] - before["serve_computed_total"]
    assert computed == 16 * 20
    assert after["serve_runs_total"] - before["serve_runs_total"] < computed


def test_types_names_and_the_version(client: Client) -> None:
    """Bytes and integers, results by name, and the model that answered."""
    text, number = [b"na\xc3\xafve", b"\0\xff"], np.array([2**53, -5], np.int64)
    found = client.predict("two", text=text, number=number)
    assert found["length"].tolist() == [6, 2]
    assert found["next"].tolist() == [2**53 + 1, -4]
    assert found["raw_bytes"].tolist() == [each + b"!" for each in text]
    spec = M["ModelSpec"](name="m", signature_name="two")
    spec.version.value = 12
    inputs = {"text": tf.make_tensor_proto(text), "number": tf.make_tensor_proto(number)}
    answer = client.call("Predict", model_spec=spec, inputs=inputs, output_filter=["next"])
    assert list(answer.outputs) == ["next"]
    assert answer.model_spec == spec
    # Values in the list of their type; the last stands for those that are missing.
    tensor = tf.make_tensor_proto(np.zeros([2, 3], np.float32))
    tensor.ClearField("tensor_content")
    tensor.float_val[:] = [1.0, 2.0]
    short = client.call("Predict", model_spec=M["ModelSpec"](name="m"), inputs={"x": tensor})
    whole = client.predict(x=np.array([[1, 2, 2], [2, 2, 2]], np.float32))
    np.testing.assert_allclose(tf.make_ndarray(short.outputs["y"]), whole["y"], atol=TOLERANCE)
    assert client.predict("mean", x=np.array([1, 2, 6], np.float32))["mean"] == 3.0


def test_metadata_and_state(folder: pathlib.Path, client: Client) -> None:
    """The signatures are those of the file, and the latest version is there."""
    spec = M["ModelSpec"](name="m")
    found = client.call("GetModelMetadata", model_spec=spec, metadata_field=["signature_def"])
    assert (found.model_spec.name, found.model_spec.version.value) == ("m", 12)
    signatures = M["SignatureDefMap"]()
    assert found.metadata["signature_def"].Unpack(signatures)
    saved = (folder / "m/12/saved_model.pb").read_bytes()
    file = saved_model_pb2.SavedModel.FromString(saved).meta_graphs[0]
    for name in ("serving_default", "two", "pick", "mean"):
        expected, got = file.signature_def[name], signatures.signature_def[name]
        assert got.method_name == expected.method_name == "tensorflow/serving/predict"
        assert dict(got.inputs) == dict(expected.inputs)
        assert dict(got.outputs) == dict(expected.outputs)
    (state,) = client.call("GetModelStatus", model_spec=spec).model_version_status
    assert (state.version, state.state, state.status.error_code) == (12, 30, 0)
    assert client.health() == 1


def _example(**features: list[float]) -> example_pb2.Example:
    values = {name: {"float_list": {"value": value}} for name, value in features.items()}
    return example_pb2.Example(features={"feature": values})


def test_examples_are_classified_and_regressed(client: Client) -> None:
    """Alone, with a context, and without labels."""
    rows = [[0.0, 1.0], [2.0, -1.0]]
    examples = {"example_list": {"examples": [_example(x=row) for row in rows]}}
    spec = M["ModelSpec"](name="examples")
    expected = tf.nn.softmax(rows).numpy()

    def scores(found: Any) -> list[list[float]]:
        rows = found.result.classifications
        return [[each.score for each in row.classes] for row in rows]

    found = client.call("Classify", model_spec=spec, input=examples)
    np.testing.assert_allclose(scores(found), expected, atol=TOLERANCE)
    labels = [[each.label for each in row.classes] for row in found.result.classifications]
    assert labels == [["first", "second"]] * 2
    assert found.model_spec.signature_name == "serving_default"
    spec.signature_name = "scores"
    found = client.call("Classify", model_spec=spec, input=examples)
    np.testing.assert_allclose(scores(found), expected, atol=TOLERANCE)
    assert found.result.classifications[0].classes[0].label == ""
    # The example's own feature wins over that of the context.
    both = {"examples": [_example(), _example(x=rows[1])], "context": _example(x=rows[0])}
    found = client.call("Classify", model_spec=spec, input={"example_list_with_context": both})
    np.testing.assert_allclose(scores(found), expected, atol=TOLERANCE)
    spec.signature_name = "regress"
    found = client.call("Regress", model_spec=spec, input=examples)
    assert [each.value for each in found.result.regressions] == [1.0, 1.0]


def _refused(call: Callable[[], Any]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code(), caught.value.details()


def test_errors_have_a_class_and_a_text(client: Client) -> None:
    """What is wrong with the request, or not there."""
    code = grpc.StatusCode
    x = np.zeros([1, 3], np.float32)

    def predict(**spec: Any) -> Callable[[], Any]:
        spec = {"name": "m"} | spec
        inputs = {"x": tf.make_tensor_proto(x)}
        return lambda: client.call("Predict", model_spec=spec, inputs=inputs)

    wide = np.zeros([1, 4], np.float32)
    many = np.zeros([2000, 3], np.float32)
    example = M["ModelSpec"](name="m")
    refused = {
        predict(name="other"): (code.NOT_FOUND, "Latest(other)"),
        predict(version={"value": 1}): (code.NOT_FOUND, "Specific(m, 1)"),
        predict(version={"value": -1}): (code.NOT_FOUND, "Specific(m"),
        predict(version_label="stable"): (code.NOT_FOUND, "'stable'"),
        predict(signature_name="no"): (code.INVALID_ARGUMENT, '"no" not found'),
        lambda: client.predict(z=x): (code.INVALID_ARGUMENT, "'x' is missing"),
        lambda: client.predict(x=x, z=x): (code.INVALID_ARGUMENT, "'z' is not one of it"),
        lambda: client.predict(x=wide): (code.INVALID_ARGUMENT, "of the shape [1, 4]"),
        lambda: client.predict(x=x.astype(np.float64)): (code.INVALID_ARGUMENT, "DT_DOUBLE"),
        lambda: client.predict(x=x.astype(np.complex64)): (code.UNIMPLEMENTED, "DT_COMPLEX64"),
        lambda: client.predict(x=many): (code.OUT_OF_RANGE, "20000"),
        lambda: client.predict("pick", at=np.array([99], np.int32)): (
            code.INVALID_ARGUMENT,
            "99",
        ),
        lambda: client.call("Predict"): (code.INVALID_ARGUMENT, "Missing ModelSpec"),
        lambda: client.call("Classify", model_spec=example): (
            code.INVALID_ARGUMENT,
            "expected tensorflow/serving/classify",
        ),
        lambda: client.call("Classify", model_spec=M["ModelSpec"](name="examples")): (
            code.INVALID_ARGUMENT,
            "no example",
        ),
        lambda: client.call("GetModelMetadata", model_spec=example): (
            code.INVALID_ARGUMENT,
            "signature_def",
        ),
        lambda: client.call("MultiInference"): (code.UNIMPLEMENTED, "MultiInference"),
    }
    for call, (expected, part) in refused.items():
        found, text = _refused(call)
        assert (found, part in text) == (expected, True), (found, text, part)
    # The server goes on.
    assert client.predict(x=x)["y"].tolist() == [[0.0] * 4]


def test_one_value_can_not_stand_for_too_many(client: Client) -> None:
    """The size of a message does not bound that of its tensor."""
    tensor = tf.make_tensor_proto(np.float32(1))
    for size in (10**12, 10**4, 3):
        tensor.tensor_shape.dim.add(size=size)
    spec = M["ModelSpec"](name="m")
    code, text = _refused(lambda: client.call("Predict", model_spec=spec, inputs={"x": tensor}))
    assert (code, "at most 20000" in text) == (grpc.StatusCode.RESOURCE_EXHAUSTED, True), text


def test_what_takes_too_long_is_told_and_the_queue_is_bounded(folder: pathlib.Path) -> None:
    """A client that does not wait is counted, too, and the server goes on."""
    flags = ("--queue=2", "--max_batch=1", "--deadline_ms=1500")
    with running(folder, *flags) as server:
        client, x = Client(server), np.ones([1], np.float32)

        def endless(timeout: float) -> grpc.StatusCode:
            return _refused(lambda: client.predict("endless", timeout, x=x))[0]

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            codes = list(pool.map(endless, [60] * 8))
        late, full = grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE
        assert set(codes) == {late, full}
        assert codes.count(late) <= 3
        # The queue is free once the run without an end was given up.
        calls = 9
        while (code := endless(0.2)) == full:
            calls += 1
            time.sleep(0.1)
        # The client ends the call, or the server does so first: its library calls that cancelled.
        assert code in (late, grpc.StatusCode.CANCELLED)
        assert client.predict(x=np.zeros([1, 3], np.float32))["y"].tolist() == [[0.0] * 4]
        calls += 1
        line = server.stop()
        assert line.startswith(f"accepted {calls} answered {calls} ("), line


def test_a_stop_under_load_loses_nothing(folder: pathlib.Path) -> None:
    """Clients have an answer to every request that was accepted, and health tells of the end."""
    with running(folder, "--linger_ms=1500", "--max_delay_us=5000") as server:
        answers = [0] * 12
        begun = threading.Barrier(len(answers) + 1)

        def thread(number: int) -> None:
            client, x = Client(server), np.array([[number, 1, -1]], np.float32)
            expected = None
            while True:
                try:
                    found = client.predict(x=x)["y"].tolist()
                except grpc.RpcError as error:
                    # The server has taken no more of this connection, and is gone.
                    assert error.code() == grpc.StatusCode.UNAVAILABLE, error
                    return
                expected = expected or found
                np.testing.assert_allclose(found, expected, atol=TOLERANCE)
                answers[number] += 1
                if answers[number] == 5:
                    begun.wait(timeout=60)

        threads = [threading.Thread(target=thread, args=(n,)) for n in range(len(answers))]
        for each in threads:
            each.start()
        begun.wait(timeout=60)
        client = Client(server)
        assert client.health() == 1
        watch = client.channel.unary_stream(
            "/grpc.health.v1.Health/Watch",
            request_serializer=M["HealthCheckRequest"].SerializeToString,
            response_deserializer=M["HealthCheckResponse"].FromString,
        )(M["HealthCheckRequest"](), timeout=60)
        assert next(watch).status == 1
        server.process.send_signal(signal.SIGTERM)
        # It still answers while it lingers, and says that it should get no more.
        assert next(watch).status == 2
        assert client.health() == 2
        for each in threads:
            each.join(timeout=60)
            assert not each.is_alive()
        assert list(watch) == []
        out, _ = server.process.communicate(timeout=60)
        assert server.process.returncode == 0
        line, total = out.splitlines()[-1], sum(answers)
        assert line.startswith(f"accepted {total} answered {total} (200: {total})"), (line, total)


def test_a_stop_without_load_is_short(folder: pathlib.Path) -> None:
    """A connection that is open and idle does not hold it up."""
    with running(folder, "--linger_ms=0") as server:
        client = Client(server)
        client.predict(x=np.zeros([1, 3], np.float32))
        before = time.monotonic()
        assert server.stop().startswith("accepted 1 answered 1 (200: 1)")
        # The deadline of a request is 10 seconds, which is what it would wait for.
        assert time.monotonic() - before < 8
