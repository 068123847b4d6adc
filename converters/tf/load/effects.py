"""Refuses models whose ops would change something outside of the model, before anything runs.

Loading a SavedModel runs functions of the file (initializers of resources, a main op, what restores
variables). TensorFlow computes nodes of constants while it imports a graph, and recording outputs
runs the model. So every node of the graph and of every function of its library must be of an op
of `HARMLESS`. It does not matter where it is and what makes it run: a name, an operand, a control
edge.

Two kinds of ops with effects are part of what every SavedModel is. Ops that save variables are
refused only where something could run them; ops that read a file, such as the words of a table,
must have its name from the loader: a file of the model's own folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2
from tensorflow.python.framework import op_def_registry

from converters.tf import ir
from converters.tf.errors import FileError, shortened
from converters.tf.load.harmless import HARMLESS
from converters.tf.lower.trace import OWN_OP, REFUSED, TYPED, Trace, TraceFunction, TraceNode
from tools.codegen.conversion import Problem

ADVICE = "pass --allow_custom_code if you trust the file"
# Ops that write what a SavedModel's variables are, or find out where.
_SAVERS = frozenset(
    ["MergeV2Checkpoints", "Save", "SaveSlices", "SaveV2", "ShardedFilename", "ShardedFilespec"]
)
# Ops that read a file, and which operand is its name.
_READERS = {
    "InitializeTableFromTextFile": 1,
    "InitializeTableFromTextFileV2": 1,
    "Restore": 0,
    "RestoreSlice": 0,
    "RestoreV2": 0,
}
_CALLS = frozenset(["PartitionedCall", "StatefulPartitionedCall"])
_ASSETS = "saved_model_assets"
# Collections of a SavedModel of TensorFlow 1 whose first node runs when it is loaded.
_MAIN_OPS = ("saved_model_main_op", "legacy_init_op")
# Other descriptions of the same model that TensorFlow may read instead.
_OTHERS = ("saved_model.pbtxt", "saved_model.cpb")


def check_saved_model(path: Path) -> None:
    """Checks a SavedModel before TensorFlow loads it.

    Args:
        path: Its folder.

    Raises:
        FileError: With every op that is refused, or because the description can't be read.
    """
    others = [name for name in _OTHERS if (path / name).exists()]
    if others:
        what = f"it has a saved_model.pb and a {others[0]}, which may differ"
        raise FileError(Problem(str(path), what, "delete one of them"))
    model = saved_model_pb2.SavedModel()
    try:
        model.ParseFromString((path / "saved_model.pb").read_bytes())
    except OSError as err:
        raise FileError(Problem(str(path), f"can't be read: {err.strerror}")) from err
    except Exception as err:  # The parser's own class, which differs between its versions.
        what = f"can't be loaded: saved_model.pb is damaged: {shortened(err)}"
        raise FileError(Problem(str(path), what)) from err
    alone = len(model.meta_graphs) == 1
    problems = [
        problem for meta in model.meta_graphs for problem in _meta_graph_problems(path, meta, alone)
    ]
    if problems:
        raise FileError.of(problems)


def check_graph(path: Path, graph: Any) -> None:
    """Checks a `GraphDef` before TensorFlow imports it.

    Raises:
        FileError: With every op that is refused.
    """
    checked = _Graph(str(path), graph)
    problems = [*checked.problems, *map(checked.refused, [*checked.savers, *checked.readers])]
    if problems:
        raise FileError.of(problems)


def check_trace(path: Path, trace: Trace) -> None:
    """Checks a traced model before it runs.

    Raises:
        FileError: With every op that is refused.
    """
    problems = [
        _problem(str(path), node.op, node.name, "" if function is trace.main else function.name)
        for function in _functions(trace)
        for node in function.nodes.values()
        if not _computes(node) and node.op not in trace.functions
    ]
    if problems:
        raise FileError.of(problems)


def _computes(node: TraceNode) -> bool:
    """Returns whether a node only computes, or never runs."""
    ours = isinstance(node.attrs.get(TYPED), ir.Op)
    return ours or node.op in HARMLESS or node.op == OWN_OP or REFUSED in node.attrs


def harmless(op: str) -> bool:
    """Returns whether a stranger's model may run an op."""
    return op in HARMLESS


def _functions(trace: Trace) -> Iterator[TraceFunction]:
    yield trace.main
    yield from trace.functions.values()


def _problem(path: str, op: str, node: str, function: str) -> Problem:
    if op_def_registry.get(op) is None:
        return Problem(path, f"it needs the op {op!r}, which is not part of TensorFlow")
    where = f"{path}, {f'function {function}, ' if function else ''}node {node}"
    what = f"the op {op} may do more than compute, such as read or write files; it was not run"
    return Problem(where, what, ADVICE)


@dataclass(frozen=True)
class _Place:
    """A node, and the function that it is in; an empty name is the graph itself."""

    function: str
    node: Any


@dataclass
class _Graph:
    """The nodes of a graph and its library.

    Attributes:
        path: The file, for messages.
        graph: The `GraphDef`.
        library: Functions by name.
        problems: Ops that are refused wherever they are.
        savers: Ops that write variables.
        readers: Ops that read a file.
    """

    path: str
    graph: Any
    library: dict[str, Any] = field(init=False)
    problems: list[Problem] = field(default_factory=list)
    savers: list[_Place] = field(default_factory=list)
    readers: list[_Place] = field(default_factory=list)

    def __post_init__(self) -> None:
        functions = self.graph.library.function
        self.library = {f.signature.name: f for f in functions}
        count = Counter(f.signature.name for f in functions)
        for name in sorted(count):
            if count[name] == 1 and op_def_registry.get(name) is None:
                continue
            what = "a function of this name is there twice, or has the name of an op"
            self.problems.append(Problem(f"{self.path}, function {name}", what))
        for function, nodes in self._bodies():
            for node in nodes:
                op = node.op
                if op in HARMLESS or op in self.library:
                    continue
                place = _Place(function, node)
                if op in _SAVERS:
                    self.savers.append(place)
                elif op in _READERS:
                    self.readers.append(place)
                else:
                    self.problems.append(self.refused(place))

    def _bodies(self) -> Iterator[tuple[str, Iterable[Any]]]:
        yield "", self.graph.node
        for name, function in self.library.items():
            yield name, function.node_def

    def refused(self, place: _Place) -> Problem:
        """Returns the problem that a node is."""
        return _problem(self.path, place.node.op, place.node.name, place.function)

    def called(self, node: Any) -> Iterator[str]:
        """Yields the functions of the library that a node names."""
        if node.op in self.library:
            yield node.op
        for value in node.attr.values():
            kind = value.WhichOneof("value")
            if kind == "func" and value.func.name in self.library:
                yield value.func.name
            elif kind == "list":
                yield from (f.name for f in value.list.func if f.name in self.library)

    def reached(self, nodes: Iterable[Any], functions: Iterable[str]) -> set[str]:
        """Returns the functions that run if some nodes of the graph and some functions do."""
        found = {name for name in functions if name in self.library}
        found |= {name for node in nodes for name in self.called(node)}
        stack = list(found)
        while stack:
            for node in self.library[stack.pop()].node_def:
                for name in self.called(node):
                    if name not in found:
                        found.add(name)
                        stack.append(name)
        return found


def _meta_graph_problems(path: Path, meta: Any, alone: bool) -> list[Problem]:
    graph = _Graph(str(path), meta.graph_def)
    problems = [*graph.problems, *_asset_problems(path, meta)]
    run = _Run(graph, meta, alone and meta.HasField("object_graph_def"))
    problems += [
        graph.refused(place)
        for place in graph.savers
        if (place.function in run.functions if place.function else place.node.name in run.nodes)
    ]
    return [*problems, *run.foreign_files()]


def _asset_files(meta: Any) -> list[Any]:
    files = list(meta.asset_file_def)
    if not files and _ASSETS in meta.collection_def:
        for packed in meta.collection_def[_ASSETS].any_list.value:
            file = meta_graph_pb2.AssetFileDef()
            packed.Unpack(file)
            files.append(file)
    return files


def _asset_problems(path: Path, meta: Any) -> list[Problem]:
    return [
        Problem(str(path), f"the asset {file.filename!r} is outside of its folder")
        for file in _asset_files(meta)
        if PurePosixPath(file.filename).is_absolute()
        or ".." in PurePosixPath(file.filename).parts
        or ":" in file.filename
        or "\\" in file.filename
    ]


class _Run:
    """What of a SavedModel runs when it is loaded and called.

    Attributes:
        nodes: Nodes of the graph by name.
        functions: Functions of the library.
    """

    def __init__(self, graph: _Graph, meta: Any, objects: bool) -> None:
        """Finds it.

        Args:
            graph: The graph.
            meta: Its `MetaGraphDef`.
            objects: Whether TensorFlow loads its objects, and not the graph as TensorFlow 1 did.
        """
        self._graph = graph
        self._bound: Mapping[str, Any] = {}
        self._objects: list[Any] = []
        self._tensors: set[str] = set()
        self.nodes: dict[str, Any] = {}
        self._roots: set[str] = set()
        if objects:
            self._bound = meta.object_graph_def.concrete_functions
            self._objects = list(meta.object_graph_def.nodes)
            self._roots = set(self._bound)
            for item in self._objects:
                self._roots.update(item.function.concrete_functions)
                self._roots.add(item.bare_concrete_function.concrete_function_name)
        else:
            self._tensors = {f.tensor_info.name for f in _asset_files(meta)}
            self._tensors.add(meta.saver_def.filename_tensor_name)
            self.nodes = _before(graph.graph, _first_nodes(meta))
        self.functions = graph.reached(self.nodes.values(), self._roots)

    def foreign_files(self) -> list[Problem]:
        """Returns a problem for each reader whose file the loader does not name."""
        problems: list[Problem] = []
        needed: list[tuple[str, int]] = []
        asked: set[tuple[str, int]] = set()

        def trace(place: _Place, operand: int, reader: _Place) -> None:
            found = self._source(place, operand)
            if found is None:
                problems.append(self._graph.refused(reader))
            elif found >= 0 and (place.function, found) not in asked:
                asked.add((place.function, found))
                needed.append((place.function, found))

        for reader in self._graph.readers:
            # TensorFlow calls no function and no node that is not in `functions` or `nodes`.
            if self._runs(reader):
                trace(reader, _READERS[reader.node.op], reader)
        while needed:
            name, argument = needed.pop()
            first = next(iter(self._graph.library[name].node_def))
            reader = _Place(name, first)
            if name in self._roots and not self._is_asset(name, argument):
                problems.append(self._graph.refused(self._reader_in(name) or reader))
            for place in self._callers(name):
                if place.node.op in _CALLS or place.node.op == name:
                    trace(place, argument, self._reader_in(name) or place)
                else:
                    problems.append(self._graph.refused(self._reader_in(name) or place))
        return problems

    def _runs(self, place: _Place) -> bool:
        if place.function:
            return place.function in self.functions
        return place.node.name in self.nodes

    def _reader_in(self, function: str) -> _Place | None:
        inside = self._graph.reached((), [function])
        return next((r for r in self._graph.readers if r.function in inside), None)

    def _callers(self, name: str) -> Iterator[_Place]:
        for node in self.nodes.values():
            if name in self._graph.called(node):
                yield _Place("", node)
        for function in self.functions:
            for node in self._graph.library[function].node_def:
                if name in self._graph.called(node):
                    yield _Place(function, node)

    def _is_asset(self, function: str, argument: int) -> bool:
        """Returns whether the loader gives an argument of a function, as the path of an asset."""
        if function not in self._bound:
            return False
        bound = self._bound[function].bound_inputs
        at = argument - (len(self._graph.library[function].signature.input_arg) - len(bound))
        return (
            0 <= at < len(bound)
            and 0 <= bound[at] < len(self._objects)
            and self._objects[bound[at]].HasField("asset")
        )

    def _source(self, place: _Place, operand: int) -> int | None:
        """Returns where an operand comes from.

        Returns:
            The number of an argument of the function; -1 for a tensor of the graph that the loader
            feeds; `None` for anything else.
        """
        nodes = (
            self.nodes
            if not place.function
            else {n.name: n for n in self._graph.library[place.function].node_def}
        )
        node = place.node
        for _ in range(len(nodes) + 1):
            operands = [name for name in node.input if not name.startswith("^")]
            if operand >= len(operands):
                return None
            tensor = operands[operand]
            name, _, index = tensor.partition(":")
            if not place.function and f"{name}:{index or 0}" in self._tensors:
                return -1
            if place.function and not index:
                arguments = self._graph.library[place.function].signature.input_arg
                return next((i for i, a in enumerate(arguments) if a.name == name), None)
            if name not in nodes or nodes[name].op != "Identity":
                return None
            node, operand = nodes[name], 0
        return None


def _first_nodes(meta: Any) -> set[str]:
    """Returns the tensors and nodes that TensorFlow asks a SavedModel without objects for."""
    names = {meta.saver_def.restore_op_name, meta.saver_def.filename_tensor_name}
    for collection in _MAIN_OPS:
        if collection in meta.collection_def:
            names.update(meta.collection_def[collection].node_list.value)
    for signature in meta.signature_def.values():
        for info in (*signature.inputs.values(), *signature.outputs.values()):
            names.add(info.name)
            names.update(part.name for part in info.composite_tensor.components)
            sparse = info.coo_sparse
            names.update(
                (
                    sparse.values_tensor_name,
                    sparse.indices_tensor_name,
                    sparse.dense_shape_tensor_name,
                )
            )
    return names


def _before(graph: Any, tensors: Iterable[str]) -> dict[str, Any]:
    """Returns nodes and all that run before them, by name."""
    nodes = {node.name: node for node in graph.node}
    found: dict[str, Any] = {}
    stack = [name.lstrip("^").partition(":")[0] for name in tensors]
    while stack:
        name = stack.pop()
        if name in nodes and name not in found:
            found[name] = nodes[name]
            stack += [i.lstrip("^").partition(":")[0] for i in nodes[name].input]
    return found
