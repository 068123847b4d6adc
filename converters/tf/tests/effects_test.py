"""Models whose ops would change something outside of them: refused before any of these runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import op_def_pb2
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework import op_def_registry
from tensorflow.python.trackable import resource

from converters.tf.errors import FileError
from converters.tf.load.effects import _READERS, _SAVERS
from converters.tf.load.harmless import HARMLESS
from converters.tf.load.model import LoadOptions, load
from converters.tf.lower.ops.registry import HANDLERS
from converters.tf.lower.trace import OWN_OP, TYPED_NODE, WRITE

V1 = tf.compat.v1
_X = np.array([[1.0, 2.0]], np.float32)


def _refused(model: Path, victim: Path, op: str = "WriteFile") -> str:
    with pytest.raises(FileError, match=rf"the op {op} may do more than compute") as caught:
        loaded = load(model, LoadOptions())
        loaded.predict({i.name: _X for i in loaded.trace.inputs})
    assert not victim.exists()
    assert "--allow_custom_code" in str(caught.value)
    return str(caught.value)


def _write(victim: Path) -> Any:
    return tf.raw_ops.WriteFile(filename=str(victim), contents="owned")


class _Module(tf.Module):  # type: ignore[misc]
    @tf.function(input_signature=[tf.TensorSpec((None, 2), tf.float32, "x")])  # type: ignore[untyped-decorator]
    def relu(self, x: Any) -> dict[str, Any]:
        return {"y": tf.nn.relu(x)}


def _saved(module: Any, folder: Path) -> Path:
    tf.saved_model.save(module, str(folder), signatures=module.relu)
    return folder


def test_initializers_of_resources(tmp_path: Path) -> None:
    victim = tmp_path / "victim"

    class Resource(resource.TrackableResource):  # type: ignore[misc]
        def _create_resource(self) -> Any:
            return tf.raw_ops.HashTableV2(key_dtype=tf.int64, value_dtype=tf.int64)

        def _initialize(self) -> Any:
            _write(victim)
            return 1

    module = _Module()
    module.resource = Resource()
    folder = _saved(module, tmp_path / "model")
    victim.unlink(missing_ok=True)
    assert "_initialize" in _refused(folder, victim) or "initializer" in _refused(folder, victim)


def test_functions_of_a_saved_model(tmp_path: Path) -> None:
    victim = tmp_path / "victim"

    class Module(tf.Module):  # type: ignore[misc]
        @tf.function(input_signature=[tf.TensorSpec((None, 2), tf.float32, "x")])  # type: ignore[untyped-decorator]
        def relu(self, x: Any) -> dict[str, Any]:
            _write(victim)
            return {"y": tf.nn.relu(x)}

    _refused(_saved(Module(), tmp_path / "model"), victim)


def test_main_op_of_tensorflow_1(tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "model"
    with V1.Graph().as_default(), V1.Session() as session:
        x = V1.placeholder(tf.float32, (None, 2), "x")
        y = tf.nn.relu(x)
        write = _write(victim)
        with tf.control_dependencies([write]):
            main = tf.no_op()
        builder = V1.saved_model.Builder(str(folder))
        signature = V1.saved_model.predict_signature_def({"x": x}, {"y": y})
        builder.add_meta_graph_and_variables(
            session, ["serve"], {"serving_default": signature}, main_op=main
        )
        builder.save()
    _refused(folder, victim)


def test_restore_op_of_tensorflow_1(tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", _v1_model(tmp_path / "model")
    load(folder, LoadOptions())
    file = folder / "saved_model.pb"
    model = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    (meta,) = model.meta_graphs
    for name, value in (("path", str(victim)), ("text", "owned")):
        node = meta.graph_def.node.add(op="Const", name=name)
        node.attr["dtype"].type = tf.string.as_datatype_enum
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value))
    meta.graph_def.node.add(op="WriteFile", name="w", input=["path", "text"])
    meta.saver_def.restore_op_name = "w"
    file.write_bytes(model.SerializeToString())
    _refused(folder, victim)


def test_a_saver_that_is_run(tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", _v1_model(tmp_path / "model")
    file = folder / "saved_model.pb"
    model = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    (meta,) = model.meta_graphs
    save = next(n.name for n in meta.graph_def.node if n.op == "SaveV2")
    meta.saver_def.restore_op_name = save
    file.write_bytes(model.SerializeToString())
    _refused(folder, victim, "SaveV2")


def _v1_model(folder: Path) -> Path:
    with V1.Graph().as_default(), V1.Session() as session:
        x = V1.placeholder(tf.float32, (None, 2), "x")
        kernel = V1.get_variable("kernel", (2, 3), use_resource=True)
        session.run(V1.global_variables_initializer())
        signature = V1.saved_model.predict_signature_def({"x": x}, {"y": x @ kernel})
        builder = V1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
        builder.save()
    return folder


def _frozen(path: Path, victim: Path, change: Callable[[Any, str], None]) -> Path:
    with V1.Graph().as_default() as graph:
        x = V1.placeholder(tf.float32, (None, 2), "x")
        write = _write(victim)
        tf.nn.relu(x, name="y")
        definition = graph.as_graph_def()
    change(definition, write.name)
    path.write_bytes(definition.SerializeToString())
    return path


def test_control_edge_of_a_frozen_graph(tmp_path: Path) -> None:
    def after(graph: Any, write: str) -> None:
        graph.node[-1].input.append(f"^{write}")

    _refused(_frozen(tmp_path / "m.pb", tmp_path / "v", after), tmp_path / "v")


def test_control_edge_behind_another_node(tmp_path: Path) -> None:
    def after(graph: Any, write: str) -> None:
        graph.node.add(op="NoOp", name="between", input=[f"^{write}"])
        graph.node[-2].input.append("^between")

    _refused(_frozen(tmp_path / "m.pb", tmp_path / "v", after), tmp_path / "v")


def test_function_of_a_frozen_graph(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "m.pb"

    @tf.function  # type: ignore[untyped-decorator]
    def relu(x: Any) -> Any:
        _write(victim)
        return tf.nn.relu(x)

    with V1.Graph().as_default() as graph:
        x = V1.placeholder(tf.float32, (None, 2), "x")
        tf.identity(relu(x), "y")
        definition = graph.as_graph_def()
    (function,) = definition.library.function
    assert function.control_ret
    path.write_bytes(definition.SerializeToString())
    assert f"function {function.signature.name}" in _refused(path, victim)


@pytest.mark.parametrize("op", ["ReadFile", "PrintV2", "FIFOQueueV2", "PyFuncStateless", "Abort"])
def test_other_effects(tmp_path: Path, op: str) -> None:
    path = tmp_path / "m.pb"

    def add(graph: Any, _: str) -> None:
        del graph.node[1:4]
        graph.node.add(op=op, name="effect")

    _refused(_frozen(path, tmp_path / "v", add), tmp_path / "v", op)


def test_a_function_with_the_name_of_an_op(tmp_path: Path) -> None:
    def add(graph: Any, _: str) -> None:
        graph.library.function.add().signature.name = "WriteFile"

    path = _frozen(tmp_path / "m.pb", tmp_path / "v", add)
    with pytest.raises(FileError, match="or has the name of an op"):
        load(path, LoadOptions())


def test_files_that_are_not_of_the_model(tmp_path: Path) -> None:
    """The words of a table come from an asset of the folder, and from no other file."""
    words, secret = tmp_path / "words.txt", tmp_path / "secret.txt"
    words.write_text("a\nb\n")
    secret.write_text("c\nd\n")

    class Module(tf.Module):  # type: ignore[misc]
        def __init__(self, file: Any) -> None:
            initializer = tf.lookup.TextFileInitializer(
                file, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER,
                tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER,
            )  # fmt: skip
            self.table = tf.lookup.StaticHashTable(initializer, -1)

        @tf.function(input_signature=[tf.TensorSpec((None, 2), tf.int64, "x")])  # type: ignore[untyped-decorator]
        def relu(self, x: Any) -> dict[str, Any]:
            return {"y": self.table.lookup(x)}

    folder = _saved(Module(str(words)), tmp_path / "model")
    loaded = load(folder, LoadOptions())
    assert loaded.predict({"x": np.array([[0, 7]])})["y"].tolist() == [[0, -1]]
    file = folder / "saved_model.pb"
    whole = file.read_bytes()
    outside = saved_model_pb2.SavedModel.FromString(whole)
    outside.meta_graphs[0].asset_file_def[0].filename = "../../secret.txt"
    file.write_bytes(outside.SerializeToString())
    with pytest.raises(FileError, match="is outside of its folder"):
        load(folder, LoadOptions())
    constant = saved_model_pb2.SavedModel.FromString(whole)
    for function in constant.meta_graphs[0].graph_def.library.function:
        for node in function.node_def:
            if node.op in _READERS and "Initialize" in node.op:
                added = function.node_def.add(op="Const", name="secret")
                added.attr["dtype"].type = tf.string.as_datatype_enum
                added.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(str(secret)))
                node.input[1] = "secret:output:0"
                break
    file.write_bytes(constant.SerializeToString())
    with pytest.raises(FileError, match="InitializeTableFromTextFileV2 may do more"):
        load(folder, LoadOptions())


def test_two_descriptions_of_one_model(tmp_path: Path) -> None:
    folder = _v1_model(tmp_path / "model")
    (folder / "saved_model.pbtxt").write_text("")
    with pytest.raises(FileError, match="which may differ"):
        load(folder, LoadOptions())


def test_who_trusts_a_file_may_run_it(tmp_path: Path) -> None:
    victim = tmp_path / "victim"

    def after(graph: Any, write: str) -> None:
        graph.node[-1].input.append(f"^{write}")

    path = _frozen(tmp_path / "m.pb", victim, after)
    loaded = load(path, LoadOptions(allow_custom_code=True))
    loaded.predict({"x": _X})
    assert victim.read_text() == "owned"


def test_the_list_of_ops() -> None:
    """Whatever converts may run, and nothing that TensorFlow lacks is listed.

    Only loaders and the trace make nodes of the three other ops: TensorFlow knows no op of these
    names.
    """
    assert HANDLERS.keys() - HARMLESS == {OWN_OP, TYPED_NODE, WRITE}
    known = _registered()
    missing = {op for op in HARMLESS | _SAVERS | _READERS.keys() if op not in known}
    assert missing == set()
    assert HARMLESS.isdisjoint(_SAVERS | _READERS.keys())
    for op in HARMLESS:
        attributes = {a.name for a in op_def_registry.get(op).attr}
        assert attributes.isdisjoint(
            ["file_pattern", "filename", "vocab_file", "token", "debug_urls", "descriptor_source"]
        ), op
    words = ("File", "Queue", "Print", "PyFunc", "Writer", "Dataset", "Iterator", "Send", "Recv")
    assert not [op for op in HARMLESS for word in words if word in op]
    assert not [op for op in HARMLESS if op.startswith("Write") or "GraphSummary" in op]


def test_summaries_of_tensorflow_1(tmp_path: Path) -> None:
    """They compute a text that a trainer writes: an exported Estimator keeps them."""
    folder = tmp_path / "m"
    with V1.Graph().as_default(), V1.Session() as session:
        x = V1.placeholder("float32", [None, 2], "x")
        y = x + V1.constant([1.0, 2.0])
        kinds = V1.summary
        kinds.scalar("fraction", tf.reduce_mean(y))
        kinds.histogram("activation", y)
        kinds.image("image", tf.reshape(y, [1, -1, 2, 1]))
        kinds.audio("audio", y, 8)
        kinds.tensor_summary("tensor", y)
        kinds.merge_all()
        signature = V1.saved_model.predict_signature_def({"x": x}, {"y": y})
        builder = V1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
        builder.save()
    found = load(folder, LoadOptions()).predict({"x": _X})
    assert np.array_equal(found["y"], _X + np.array([1.0, 2.0], np.float32))


def _registered() -> set[str]:
    content = pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList())
    return {op.name for op in op_def_pb2.OpList.FromString(content).op}
