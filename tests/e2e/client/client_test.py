"""Graphs and models made by Python and run by Rust, and the reverse, compared value for value."""

import os
import pathlib
import subprocess
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

Tensors = dict[str, np.ndarray]

# fmt: off
DTYPES = [
    "float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "complex64", "complex128", "bool",
]
# fmt: on


def program(name: str) -> str:
    """Returns the path of a Rust program among the test's data."""
    return os.environ[name]


def start(*command: str) -> subprocess.CompletedProcess[str]:
    """Runs a program with TensorFlow's libraries in its environment."""
    folder = pathlib.Path(tf.__file__).parent
    env = os.environ | {"TF_LIBRARY_PATH": str(folder), "TF_CPP_MIN_LOG_LEVEL": "2"}
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False)


def write_tensors(folder: pathlib.Path, tensors: Tensors) -> None:
    """Writes tensors as the runner reads them."""
    folder.mkdir()
    lines = []
    for number, (name, value) in enumerate(tensors.items()):
        dims = ",".join(map(str, value.shape)) or "-"
        if value.dtype == object:
            data = b"".join(len(s).to_bytes(8, "little") + s for s in value.ravel())
            lines.append(f"{name} string {dims}\n")
        else:
            data = value.tobytes()
            lines.append(f"{name} {tf.as_dtype(value.dtype).name} {dims}\n")
        (folder / str(number)).write_bytes(data)
    (folder / "manifest").write_text("".join(lines))


def read_tensors(folder: pathlib.Path) -> Tensors:
    """Reads tensors as the runner writes them."""
    tensors = {}
    for number, line in enumerate((folder / "manifest").read_text().splitlines()):
        name, dtype, dims = line.split(" ")
        shape = [] if dims == "-" else [int(dim) for dim in dims.split(",")]
        data = (folder / str(number)).read_bytes()
        if dtype == "string":
            strings = []
            while data:
                length = int.from_bytes(data[:8], "little")
                strings.append(data[8 : 8 + length])
                data = data[8 + length :]
            value = np.array(strings, object)
        else:
            value = np.frombuffer(data, tf.as_dtype(dtype).as_numpy_dtype)
        tensors[name] = value.reshape(shape)
    return tensors


def run(tmp_path: pathlib.Path, what: str, file: str, feeds: Tensors, *rest: str) -> Tensors:
    """Starts the runner and returns the tensors that it wrote."""
    write_tensors(tmp_path / "feeds", feeds)
    done = start(
        program("RUNNER"), what, file, str(tmp_path / "feeds"), str(tmp_path / "out"), *rest
    )
    assert done.returncode == 0, done.stderr
    return read_tensors(tmp_path / "out")


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    """Asserts equal types, shapes and bytes: both sides run the same kernels."""
    assert found.shape == expected.shape
    if expected.dtype == object:
        assert found.tolist() == expected.tolist()
        return
    assert found.dtype == expected.dtype
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes()


def dense_network(feeds: Tensors) -> list[tf.Tensor]:
    """Convolution, pooling, matrix product, softmax."""
    image = tf.compat.v1.placeholder(tf.float32, [None, 8, 8, 2], "image")
    feeds["image:0"] = np.random.default_rng(1).normal(size=(3, 8, 8, 2)).astype(np.float32)
    weights = np.random.default_rng(2).normal(size=(3, 3, 2, 4)).astype(np.float32)
    x = tf.nn.relu(tf.nn.conv2d(image, weights, 2, "SAME"))
    x = tf.nn.max_pool2d(x, 2, 2, "VALID")
    x = tf.reshape(x, [-1, 16])
    return [x, tf.nn.softmax(x @ tf.ones([16, 5], tf.float32) * 0.1)]


def many_dtypes(feeds: Tensors) -> list[tf.Tensor]:
    """One fed tensor of each type that numpy has."""
    outputs = []
    for name in DTYPES:
        dtype = tf.as_dtype(name)
        fed = tf.compat.v1.placeholder(dtype, [2, 3], f"fed_{name}")
        feeds[f"fed_{name}:0"] = np.arange(6).reshape(2, 3).astype(dtype.as_numpy_dtype)
        outputs.append(tf.transpose(fed) if name == "bool" else fed + fed)
    return outputs


def strings(feeds: Tensors) -> list[tf.Tensor]:
    """Strings of any bytes, split, joined and measured."""
    fed = tf.compat.v1.placeholder(tf.string, [3], "text")
    feeds["text:0"] = np.array([b"", b"a\0\xff", b"long " * 50], object)
    return [
        tf.strings.join([fed, b"\xfe!"]),
        tf.strings.length(fed),
        tf.strings.as_string(tf.range(3)),
    ]


def control_flow(feeds: Tensors) -> list[tf.Tensor]:
    """Functional While and If, with functions in the graph's library."""
    fed = tf.compat.v1.placeholder(tf.float32, [], "start")
    feeds["start:0"] = np.array(1.5, np.float32)
    doubled = tf.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 2.0), [0, fed])
    chosen = tf.cond(fed > 1.0, lambda: fed + 10.0, lambda: fed - 10.0)
    return [*doubled, chosen]


@pytest.mark.parametrize("build", [dense_network, many_dtypes, strings, control_flow])
def test_graph_of_python_runs_in_rust(
    build: Callable[[Tensors], list[tf.Tensor]], tmp_path: pathlib.Path
) -> None:
    """Rust computes what Python's session computes."""
    feeds: Tensors = {}
    with tf.Graph().as_default() as graph:
        outputs = build(feeds)
        with tf.compat.v1.Session(graph=graph) as session:
            expected = session.run(outputs, feeds)
        file = tmp_path / "graph.pb"
        file.write_bytes(graph.as_graph_def().SerializeToString())
    found = run(tmp_path, "graph", str(file), feeds, *[output.name for output in outputs])
    assert len(found) == len(outputs)
    for output, value in zip(outputs, expected, strict=True):
        assert_same(found[output.name], np.asarray(value))


def test_graph_of_rust_runs_in_python(tmp_path: pathlib.Path) -> None:
    """Python computes what Rust's session and Rust's eager context computed."""
    x = np.random.default_rng(3).normal(size=(5, 3)).astype(np.float32)
    file = tmp_path / "rust.pb"
    found = run(tmp_path, "make", str(file), {"x": x})
    graph_def = tf.compat.v1.GraphDef.FromString(file.read_bytes())
    with tf.Graph().as_default() as graph:
        tf.graph_util.import_graph_def(graph_def, name="")
        names = [name for name in found if not name.startswith("eager")]
        assert all(name.startswith("net/") for name in names)
        with tf.compat.v1.Session(graph=graph) as session:
            expected = session.run(names, {"x:0": x})
    for number, (name, value) in enumerate(zip(names, expected, strict=True)):
        assert_same(found[name], value)
        np.testing.assert_allclose(found[f"eager{number}"], value, rtol=1e-6, atol=1e-7)


class Model(tf.Module):  # type: ignore[misc]  # TensorFlow ships no types.
    """Two signatures on one variable."""

    def __init__(self) -> None:
        """Makes the variable."""
        super().__init__()
        self.scale = tf.Variable([2.0, 3.0], name="scale")

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])  # type: ignore[untyped-decorator]
    def scaled(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns two results by name."""
        return {"scaled": x * self.scale, "total": tf.reduce_sum(x)}


def test_saved_model_of_python_runs_in_rust(tmp_path: pathlib.Path) -> None:
    """A signature is called by name, with the values of the variables."""
    model = Model()
    folder = str(tmp_path / "model")
    tf.saved_model.save(model, folder, signatures={"serving_default": model.scaled})
    x = np.array([[1.5, 2.5], [-1.0, 4.0]], np.float32)
    found = run(tmp_path, "model", folder, {"x": x}, "serving_default")
    expected = model.scaled(tf.constant(x))
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert_same(found[name], value.numpy())


def test_examples_print_what_they_say(tmp_path: pathlib.Path) -> None:
    """The examples run and print the numbers that their texts promise."""

    def printed(name: str, *arguments: str) -> str:
        done = start(program(name), *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert printed("ADDITION") == "3 + 4 = 7\n"
    assert printed("TWO_MODES").split(": ")[1:] == [
        "[5.0, 13.0, 17.0]\ngraph",
        "[5.0, 13.0, 17.0]\n",
    ]
    assert printed("LINEAR_REGRESSION").startswith("y = 2.00 x + 1.00, loss 0.00")

    with tf.Graph().as_default() as graph:
        tf.identity(tf.compat.v1.placeholder(tf.float32, [None], "x") * 2.0, "y")
    file = tmp_path / "graph.pb"
    file.write_bytes(graph.as_graph_def().SerializeToString())
    assert printed("RUN_GRAPH_DEF", str(file), "x:0", "y:0", "1.5", "2.5") == "[3.0, 5.0]\n"

    folder = str(tmp_path / "model")
    model = Model()
    tf.saved_model.save(model, folder, signatures={"serving_default": model.scaled})
    assert printed("RUN_SAVED_MODEL", folder, "serving_default", "1", "2").splitlines()[-3:] == [
        "serving_default: (x) -> (scaled, total)",
        "scaled = [2.0, 6.0]",
        "total = [3.0]",
    ]


def test_examples_refuse_bad_arguments(tmp_path: pathlib.Path) -> None:
    """Errors go to stderr and name what is wrong; the exit code tells."""
    missing = start(program("RUN_SAVED_MODEL"), str(tmp_path / "nothing"), "serving_default")
    assert missing.returncode == 1
    assert "nothing" in missing.stderr
    usage = start(program("RUN_GRAPH_DEF"))
    assert usage.returncode == 1
    assert "usage" in usage.stderr
    assert start(program("RUN_GRAPH_DEF"), "--help").returncode == 0
