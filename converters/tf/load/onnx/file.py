"""Reads an ONNX file as plain data: nodes in order, constants as arrays."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from converters.tf.errors import FileError, shortened
from converters.tf.ir import Array, budget
from converters.tf.load.onnx.composed import ComposedError, decomposed
from converters.tf.load.onnx.facts import facts
from converters.tf.load.onnx.old import OLDEST, renewed
from converters.tf.load.onnx.stated import Fixed, stated_shapes
from tools.codegen.conversion import Problem, UnsupportedError

# What types of fewer bits are computed in.
_WIDER = {
    **dict.fromkeys(("float16", "bfloat16", "float4_e2m1fn", "float8_e8m0fnu"), "float32"),
    **dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz"), "float32"),
    **dict.fromkeys(("float8_e5m2", "float8_e5m2fnuz"), "float32"),
    **dict.fromkeys(("int2", "int4"), "int8"),
    **dict.fromkeys(("uint2", "uint4"), "uint8"),
}
# A dimension has a name if there is a letter or a digit in it.
_NAMED = re.compile(r"[^\W_]")
# Operators of which a result has the element type of an operand, which only the file knows.
_LIKE = frozenset(["CastLike", "DequantizeLinear", "QuantizeLinear"])
_READABLE = frozenset(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)) | {
    "bool",
    "float32",
    "float64",
    "string",
}


@dataclass(frozen=True, eq=False)
class Node:
    """An operator with its operands.

    Attributes:
        name: Its name, which may be empty.
        op: The operator; those of other domains with their domain: `ai.onnx.ml.Scaler`.
        inputs: Names of the operands; empty for one that is left out.
        outputs: Names of the results; empty for one that nobody reads.
        attrs: Attributes; tensors are arrays.
        version: Version of the operator's domain.
        scopes: The modules of PyTorch that it is in, if the file says so.
        kinds: ONNX's numbers of the element types of the operands, 0 where it is not known; only
            for operators that ask for them.
        shapes: The shapes of the results as far as the file states them, if an input of the model
            may decide them.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: Mapping[str, Any]
    version: int
    scopes: tuple[str, ...] = ()
    kinds: tuple[int, ...] = ()
    shapes: tuple[Fixed | None, ...] = ()

    @property
    def title(self) -> str:
        """Returns what messages call it."""
        return f"node {self.name or ', '.join(self.outputs)} ({self.op})"


@dataclass(frozen=True)
class Port:
    """An input: its shape has a name or `None` for what is open, and is `None` if there is none.

    Those of bodies have neither type nor shape.
    """

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph or the body of a loop or branch.

    Attributes:
        inputs: What is given, without constants.
        outputs: Names of the results.
        constants: Arrays by name.
        nodes: Operands before users.
        facts: What the file says of itself, names and texts; not of bodies.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Array]
    nodes: tuple[Node, ...]
    facts: tuple[tuple[str, str], ...] = ()


def wider(dtype: str) -> str:
    """Returns the element type that a type is computed in."""
    return _WIDER.get(dtype, dtype)


def read_model(path: Path) -> Graph:
    """Reads a file.

    Raises:
        FileError: It is damaged, or reads files outside of its folder.
        UnsupportedError: The `onnx` package is missing, or the file is too old or too new for it.
    """
    try:
        import onnx
        import onnx.inliner
        import onnx.shape_inference
        import onnx.version_converter
    except ImportError as err:
        problem = Problem(str(path), "the Python package onnx is not installed", "pip install onnx")
        raise UnsupportedError(problem) from err
    reader = _Reader(path, onnx)
    try:
        return reader.model()
    except (FileError, UnsupportedError):
        raise
    except RecursionError as err:
        raise FileError(Problem(str(path), "its graphs are cyclic or too deep")) from err
    except Exception as err:  # onnx raises whatever the damaged part made it raise.
        raise FileError(Problem(str(path), f"a damaged ONNX file: {shortened(err)}")) from err


class _Reader:
    def __init__(self, path: Path, onnx: Any) -> None:
        self.path = path
        self.onnx = onnx
        self.versions: dict[str, int] = {}
        self.kinds: dict[str, int] = {}
        self.shapes: Mapping[str, Fixed] = {}

    def refuse(self, what: str) -> NoReturn:
        raise FileError(Problem(str(self.path), what))

    def model(self) -> Graph:
        model = self.onnx.ModelProto()
        try:
            model.ParseFromString(self.path.read_bytes())
        except OSError as err:
            self.refuse(f"can't be read: {err.strerror}")
        except Exception as err:
            raise FileError(Problem(str(self.path), "it is truncated or no ONNX file")) from err
        if not model.ir_version or not model.opset_import or not model.HasField("graph"):
            self.refuse("it is not an ONNX model: it has no version or no graph")
        own = ("", "ai.onnx")
        is_versioned = any(o.domain in own for o in model.opset_import)
        # Nodes of functions have the versions of these.
        if not is_versioned and any(n.domain in own for n in model.graph.node):
            self.refuse("it states no version of ONNX's own operators, of which it has some")
        said = facts(model)
        model = self._renewed(model)
        if model.functions:
            self._check_calls(model)
            model = self.onnx.inliner.inline_local_functions(model)
        try:
            model = decomposed(model, self.onnx)
        except ComposedError as err:
            what = f"onnx can't say it in other operators: {shortened(err)}"
            raise UnsupportedError(Problem(f"operator {err.op}", what)) from err
        self.versions = {
            "" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import
        }
        self._check_version()
        if any(node.op_type in _LIKE for node in model.graph.node):
            self.kinds = self._kinds(model)
        self.shapes = stated_shapes(model, self.onnx)
        return replace(self._graph(model.graph, frozenset()), facts=said)

    def _kinds(self, model: Any) -> dict[str, int]:
        """Returns the numbers of the element types of tensors by name, as far as onnx knows."""
        kinds = {t.name: int(t.data_type) for t in model.graph.initializer}
        kinds |= {i.name: int(i.type.tensor_type.elem_type) for i in model.graph.input}
        try:
            found = self.onnx.shape_inference.infer_shapes(model).graph
        except Exception:  # It is more than onnx can infer; most models have no types of few bits.
            return kinds
        return kinds | {v.name: int(v.type.tensor_type.elem_type) for v in found.value_info}

    def _renewed(self, model: Any) -> Any:
        """Returns a model of old operators in those of a later version."""
        versions = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
        if not versions or not 0 < versions[0] < OLDEST:
            return model
        try:
            return renewed(model, self.onnx)
        except Exception as err:  # It has no counterpart for some operators.
            what = (
                f"version {versions[0]} of ONNX's operators, which onnx can't convert to version "
                f"{OLDEST}: {shortened(err)}"
            )
            raise UnsupportedError(Problem(str(self.path), what, "export it again")) from err

    def text(self, value: str | bytes) -> str:
        """Returns a text of the file; the parser leaves bytes that are none as they are."""
        if isinstance(value, bytes):
            self.refuse(f"a name of bytes that are not text: {value!r}")
        return value

    def _check_version(self) -> None:
        version, newest = self.versions.get("", OLDEST), self.onnx.defs.onnx_opset_version()
        if not OLDEST <= version <= newest:
            what = f"version {version} of ONNX's operators; {OLDEST} to {newest} are known"
            advice = "export it again" if version < OLDEST else "pip install --upgrade onnx"
            raise UnsupportedError(Problem(str(self.path), what, advice))

    def _check_calls(self, model: Any) -> None:
        """Refuses functions that call themselves, which can't be inlined."""
        calls = {
            (f.domain, f.name): {(n.domain, n.op_type) for n in f.node} for f in model.functions
        }
        left = dict(calls)
        while left:
            done = [name for name, called in left.items() if not called & left.keys()]
            if not done:
                self.refuse(f"its functions call themselves: {', '.join(n for _, n in left)}")
            for name in done:
                del left[name]

    def _graph(self, proto: Any, outer: frozenset[str], body: bool = False) -> Graph:
        if proto.sparse_initializer:
            name = proto.sparse_initializer[0].values.name
            problem = Problem(f"constant {name}", "it is sparse", "store it as a dense tensor")
            raise UnsupportedError(problem)
        constants = {self.text(t.name): self.array(t) for t in proto.initializer}
        if len(constants) != len(proto.initializer):
            self.refuse("two constants have the same name")
        ports = [i for i in proto.input if i.name not in constants]
        inputs = tuple(map(self._body_port if body else self._port, ports))
        known = set(constants) | {p.name for p in inputs}
        if len(known) != len(constants) + len(inputs):
            self.refuse("two inputs have the same name")
        order = self._ordered(list(proto.node), known, outer)
        known |= {name for n in order for name in n.output}
        outputs = tuple(self.text(o.name) for o in proto.output)
        visible = frozenset(known | outer)
        for name in outputs:
            if name not in visible:
                self.refuse(f"nothing gives the output {name!r}")
        if not outputs:
            self.refuse("a graph without outputs")
        nodes = tuple(self._node(n, visible) for n in order)
        return Graph(inputs, outputs, constants, nodes)

    def _ordered(self, nodes: Sequence[Any], given: set[str], outer: frozenset[str]) -> list[Any]:
        """Returns nodes with operands before users; files need not have them in order."""
        known = given | outer | {""}
        makers: dict[str, Any] = {}
        for node in nodes:
            for name in filter(None, node.output):
                if name in makers or name in given:
                    self.refuse(f"{name!r} is computed twice")
                makers[name] = node
        order: list[Any] = []
        entered: set[int] = set()
        for first in nodes:
            stack = [(first, False)]
            while stack:
                node, leaving = stack.pop()
                if leaving:
                    order.append(node)
                    known.update(node.output)
                    continue
                if id(node) in entered:
                    continue
                entered.add(id(node))
                stack.append((node, True))
                for name in self._read(node):
                    if name in known:
                        continue
                    maker = makers.get(name)
                    if maker is None:
                        self.refuse(f"nothing gives {name!r}, which {_title(node)} reads")
                    if id(maker) in entered and not set(maker.output) <= known:
                        self.refuse(f"{_title(maker)} depends on itself")
                    stack.append((maker, False))
        return order

    def _read(self, node: Any) -> list[str]:
        """Returns the names that a node and the graphs in it read."""
        names = list(node.input)
        for attribute in node.attribute:
            for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                own = {t.name for t in graph.initializer} | {i.name for i in graph.input}
                own |= {name for n in graph.node for name in n.output}
                read = [name for n in graph.node for name in self._read(n)]
                read += [o.name for o in graph.output]
                names += [name for name in read if name not in own]
        return names

    def _node(self, proto: Any, outer: frozenset[str]) -> Node:
        domain = "" if proto.domain == "ai.onnx" else self.text(proto.domain)
        op = self.text(proto.op_type)
        attrs = {a.name: self._attribute(proto, a, outer) for a in proto.attribute}
        metadata = {m.key: m.value for m in proto.metadata_props}
        scopes = self.text(metadata.get("pkg.torch.onnx.name_scopes", ""))
        return Node(
            name=self.text(proto.name),
            op=f"{domain}.{op}" if domain else op,
            inputs=tuple(map(self.text, proto.input)),
            outputs=tuple(map(self.text, proto.output)),
            attrs=attrs,
            version=self.versions.get(domain, 1),
            scopes=_words(scopes),
            kinds=tuple(self.kinds.get(i, 0) for i in proto.input) if op in _LIKE else (),
            shapes=tuple(map(self.shapes.get, proto.output)) if self.shapes else (),
        )

    def _attribute(self, node: Any, proto: Any, outer: frozenset[str]) -> Any:
        kinds = self.onnx.AttributeProto
        if proto.ref_attr_name:
            self.refuse(f"{_title(node)} has an attribute of a function, and is in none")
        if proto.type == kinds.GRAPH:
            return self._graph(proto.g, outer, body=True)
        value = self.onnx.helper.get_attribute_value(proto)
        if proto.type == kinds.TENSOR:
            return self.array(value)
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if proto.type == kinds.STRINGS:
            return [v.decode("utf-8", "replace") for v in value]
        if proto.type in (kinds.INT, kinds.FLOAT):
            return value
        return list(value) if proto.type in (kinds.INTS, kinds.FLOATS) else None

    def _port(self, proto: Any) -> Port:
        if not proto.type.HasField("tensor_type"):
            kind = proto.type.WhichOneof("value") or "nothing"
            raise UnsupportedError(Problem(f"input {proto.name}", f"it is a {kind}, no tensor"))
        tensor = proto.type.tensor_type
        if not tensor.HasField("shape"):
            return Port(proto.name, self._dtype(proto.name, tensor.elem_type), None)
        name = self.text(proto.name)
        shape = tuple(map(self._dim, tensor.shape.dim))
        return Port(name, self._dtype(name, tensor.elem_type), shape)

    def _dim(self, proto: Any) -> int | str | None:
        if proto.HasField("dim_value") and proto.dim_value >= 0:
            return int(proto.dim_value)
        text = self.text(proto.dim_param)
        # Exporters write "?" for each dimension that they do not know.
        return None if not _NAMED.search(text) else text

    def _body_port(self, proto: Any) -> Port:
        """Returns the input of a body, whose type is that of what it is given."""
        return Port(self.text(proto.name), "", None)

    def _dtype(self, name: str, number: int) -> str:
        dtype = dtype_of(number)
        if dtype not in _READABLE:
            raise UnsupportedError(Problem(f"tensor {name}", f"element type {dtype}"))
        return dtype

    def array(self, tensor: Any) -> Array:
        """Returns the elements of a tensor, of a type that is computed with."""
        dtype = self._dtype(tensor.name, tensor.data_type)
        if any(d < 0 for d in tensor.dims):
            self.refuse(f"the constant {tensor.name!r} has the shape {list(tensor.dims)}")
        kept = "object" if dtype == "string" else dtype
        beside = tensor.data_location == self.onnx.TensorProto.EXTERNAL
        try:
            array = self._beside(tensor) if beside else self.onnx.numpy_helper.to_array(tensor)
        except (ValueError, TypeError) as err:
            self.refuse(f"the constant {tensor.name!r} does not fit its shape: {shortened(err)}")
        return np.asarray(array).astype(kept, copy=False)

    def _beside(self, tensor: Any) -> Any:
        """Returns the elements of a tensor that is in a file beside the model."""
        file, offset, length = self._external(tensor)
        kind = self.onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        shape = tuple(tensor.dims)
        if kind.isbuiltin and kind.kind in "fiu":
            # Read to where they stay: a model of many GiB has its weights so.
            stored = kind.newbyteorder("<")
            return np.fromfile(file, stored, math.prod(shape), "", offset).reshape(shape)
        with file.open("rb") as stream:
            stream.seek(offset)
            content = stream.read(length)
        full = self.onnx.TensorProto(data_type=tensor.data_type, raw_data=content)
        full.dims.extend(shape)
        return self.onnx.numpy_helper.to_array(full)

    def _external(self, tensor: Any) -> tuple[Path, int, int]:
        """Returns the file beside the model that has a tensor's bytes, the first one, how many."""
        where = {e.key: e.value for e in tensor.external_data}
        location = where.get("location", "")
        folder = self.path.parent.resolve()
        file = (folder / location).resolve()
        if not location or not file.is_relative_to(folder) or not file.is_file():
            self.refuse(
                f"the constant {tensor.name!r} is in {location!r}, no file beside the model"
            )
        size, offset = file.stat().st_size, int(where.get("offset") or 0)
        length = int(where.get("length") or size - offset)
        if offset < 0 or length < 0 or offset + length > size:
            what = f"bytes {offset} to {offset + length} of {location!r}, which has {size}"
            self.refuse(f"the constant {tensor.name!r} is in {what}")
        kind = self.onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        elements = math.prod(tensor.dims)
        narrow = str(kind.name) in ("int4", "uint4")
        if length != ((elements + 1) // 2 if narrow else elements * kind.itemsize):
            shape = list(tensor.dims)
            self.refuse(f"the constant {tensor.name!r} has {length} bytes and the shape {shape}")
        budget.grant(length)
        return file, offset, length


def dtype_of(number: int) -> str:
    """Returns the type that elements of one of ONNX's types are computed in, by NumPy's name."""
    from onnx import TensorProto, helper

    if number not in TensorProto.DataType.values():
        return f"number {number}"
    if number in (TensorProto.STRING, TensorProto.UNDEFINED):
        return str(TensorProto.DataType.Name(number).lower())
    return wider(str(helper.tensor_dtype_to_np_dtype(number).name))


def _title(node: Any) -> str:
    return f"node {node.name or ', '.join(node.output)} ({node.op_type})"


def _words(text: str) -> tuple[str, ...]:
    """Returns the strings of a list as Python writes it."""
    if not text.startswith("[") or not text.endswith("]"):
        return ()
    words = (word.strip().strip("'\"") for word in text[1:-1].split(","))
    return tuple(word for word in words if word)
