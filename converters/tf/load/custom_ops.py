"""Operators of the user's own, from Python modules of theirs.

A module says what an operator is: `shapes` its shape rule, `compute` its meaning in NumPy, `RUST`
the file with the Rust function that a crate calls. TensorFlow runs `compute` in a node of its op
`PyFunc`, whose token leads a trace back to the operator.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.errors import shortened
from converters.tf.ir import Argument, Array, Batch, Shape
from converters.tf.ir.build import ShapeError
from converters.tf.ir.expressions import is_open
from converters.tf.load.user_code import run_file
from tools.codegen.conversion import Problem, UsageError
from tools.codegen.names import KEYWORDS

FLAG = "--custom_op"
# A Rust identifier, as names of functions and files.
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_DTYPES = (
    *("float32", "float64", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "bool"),
)
# The operator that a token of `PyFunc` stands for.
_called: dict[str, Call] = {}


@dataclass(frozen=True, eq=False)
class CustomOp:
    """An operator as its module says it.

    Attributes:
        name: Its name in the model: `domain::Name`, or `Name`.
        function: The Rust function.
        module: The Rust module that has it: the name of its file.
        source: The text of that file.
        names: The attributes that the function is given, in their order.
        shape_rule: `shapes` of the module.
        meaning: `compute` of the module.
        type_rule: `dtypes` of the module, if it has one.
        calls: The nodes of the model so far, by their attributes; also those that are refused.
    """

    name: str
    function: str
    module: str
    source: str
    names: tuple[str, ...]
    shape_rule: Callable[[list[Shape], dict[str, Any]], Any]
    meaning: Callable[[list[Array], dict[str, Any]], Any]
    type_rule: Callable[[list[str], dict[str, Any]], Any] | None
    calls: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Call:
    """A node of an operator: an `ir.OwnOp`.

    Attributes:
        op: The operator.
        attributes: The node's attributes.
        arguments: What the Rust function is given beside tensors.
    """

    op: CustomOp
    attributes: Mapping[str, Any]
    arguments: tuple[Argument, ...]

    @property
    def name(self) -> str:
        """Returns the operator's name."""
        return self.op.name

    @property
    def function(self) -> str:
        """Returns the Rust function."""
        return self.op.function

    @property
    def module(self) -> str:
        """Returns the Rust module."""
        return self.op.module

    @property
    def source(self) -> str:
        """Returns the text of the Rust module."""
        return self.op.source

    @property
    def shapes(self) -> Callable[[Sequence[Shape]], tuple[Shape, ...]]:
        """Returns the shape rule, which raises a `ShapeError` where the module's rule fails."""
        return self._shapes

    @property
    def compute(self) -> Callable[[Sequence[Array]], list[Array]]:
        """Returns the meaning in NumPy, which raises a `ValueError` where the module's fails."""
        return self._compute

    def _shapes(self, operands: Sequence[Shape]) -> tuple[Shape, ...]:
        try:
            found = self.op.shape_rule([tuple(s) for s in operands], dict(self.attributes))
            shapes = tuple(tuple(shape) for shape in found)
        except Exception as err:  # Whatever the code of the user raises.
            what = f"shapes() of {self.name} fails: {type(err).__name__}: {shortened(err)}"
            raise ShapeError(what) from err
        for dim in (dim for shape in shapes for dim in shape):
            size = dim.scale if isinstance(dim, Batch) else dim
            number = isinstance(size, int | np.integer) and not isinstance(size, bool)
            if not is_open(size) and not (number and size >= 0):
                raise ShapeError(f"shapes() of {self.name} gives the size {dim!r}")
        if not shapes:
            raise ShapeError(f"shapes() of {self.name} gives no shape")
        return tuple(
            tuple(int(d) if isinstance(d, np.integer) else d for d in shape) for shape in shapes
        )

    def _compute(self, operands: Sequence[Array]) -> list[Array]:
        wanted = self._shapes([data.shape for data in operands])
        kinds = self.dtypes([data.dtype.name for data in operands], len(wanted))
        try:
            results = [np.asarray(r) for r in self.op.meaning(list(operands), {**self.attributes})]
        except Exception as err:  # As above.
            what = f"compute() of {self.name} fails: {type(err).__name__}: {shortened(err)}"
            raise ValueError(what) from err
        found = [r.shape for r in results]
        if found != list(wanted):
            what = f"compute() of {self.name} gives the shapes {found}, and shapes() {list(wanted)}"
            raise ValueError(what)
        return [np.asarray(r.astype(kind)) for r, kind in zip(results, kinds, strict=True)]

    def dtypes(self, operands: Sequence[str], count: int) -> list[str]:
        """Returns the element type of each result, by NumPy's names.

        Args:
            operands: Element types of the operands.
            count: How many results there are.

        Raises:
            ShapeError: The module's rule fails, or the results have several types.
        """
        if self.op.type_rule is None:
            if not operands:
                raise ShapeError(f"{self.name} has no operand, so that it needs dtypes()")
            return list(operands[:1]) * count
        try:
            found = [str(np.dtype(kind).name) for kind in self._ruled(operands)]
        except Exception as err:  # As above.
            what = f"dtypes() of {self.name} fails: {type(err).__name__}: {shortened(err)}"
            raise ShapeError(what) from err
        if len(found) != count or len(set(found)) != 1 or found[0] not in _DTYPES:
            what = (
                f"dtypes() of {self.name} gives {found}, expected one type for all {count} shapes"
            )
            raise ShapeError(what)
        return found

    def _ruled(self, operands: Sequence[str]) -> Any:
        assert self.op.type_rule is not None
        return self.op.type_rule(list(operands), dict(self.attributes))


def custom_ops(values: Sequence[tuple[str, Path]]) -> dict[str, CustomOp]:
    """Runs Python modules; returns the operators that they say, by name.

    Args:
        values: The name of each operator, with its module.

    Raises:
        UsageError: A module can't be run or lacks something, or two say the same.
    """
    found: dict[str, CustomOp] = {}
    sources: dict[str, tuple[str, Path]] = {}
    for number, (name, path) in enumerate(values):
        where = f"{FLAG} {name}={path}"
        if name in found:
            raise UsageError(Problem(where, "the operator has a module already"))
        own = f"_tf2rust_custom_op_{number}_{path.stem}"
        module = run_file(where, path, own, "domain::Name=FILE.py")
        found[name] = op = _op(where, name, path, module)
        file = (path.parent / module.RUST).resolve()
        other = sources.setdefault(op.module, (where, file))
        if other[1] != file:
            what = f"{file.name} is also the name of another file, that of {other[0]}"
            raise UsageError(Problem(where, what, "give them different names"))
    return found


def _op(where: str, name: str, path: Path, module: ModuleType) -> CustomOp:
    problems = [
        Problem(where, f"it has no function {function}", "see docs/tf2rust/custom-ops.md")
        for function in ("shapes", "compute")
        if not callable(getattr(module, function, None))
    ]
    rust = getattr(module, "RUST", None)
    file = path.parent / rust if isinstance(rust, str) else None
    if file is None or not file.is_file() or file.suffix != ".rs":
        what = f"RUST is {rust!r}, expected the name of a Rust file beside it"
        problems.append(Problem(where, what))
    elif not _identifier(file.stem) or file.stem == "mod":
        what = f"RUST is {rust!r}, whose name can't be that of a Rust module"
        problems.append(Problem(where, what, "use small letters, digits and underscores"))
    arguments = getattr(module, "ARGUMENTS", ())
    if isinstance(arguments, str) or not all(isinstance(a, str) for a in arguments):
        what = f"ARGUMENTS is {arguments!r}, expected names of attributes"
        problems.append(Problem(where, what))
    if problems or file is None:
        raise UsageError.of(problems)
    function = getattr(module, "FUNCTION", file.stem)
    source = file.read_text("utf-8")
    if not isinstance(function, str) or not _identifier(function):
        raise UsageError(Problem(where, f"FUNCTION is {function!r}, no name of a Rust function"))
    if not re.search(rf"\bpub fn {function}\b", source):
        what = f"{file.name} has no `pub fn {function}`"
        raise UsageError(Problem(where, what, "name another function as FUNCTION"))
    rule = getattr(module, "dtypes", None)
    names = tuple(arguments)
    return CustomOp(name, function, file.stem, source, names, module.shapes, module.compute, rule)


def _identifier(text: str) -> bool:
    return _NAME.fullmatch(text) is not None and text not in KEYWORDS


def called(op: CustomOp, attributes: Mapping[str, Any]) -> Call:
    """Returns the call of an operator by a node.

    Raises:
        ShapeError: The node lacks an attribute that the Rust function is given, or it is of a kind
            that Rust has no literal for.
    """
    op.calls.append(attributes)
    missing = [name for name in op.names if name not in attributes]
    if missing:
        given = ", ".join(attributes) or "nothing"
        raise ShapeError(f"{op.name} has no attribute {missing[0]}; it has {given}")
    arguments = tuple(_argument(op, name, attributes[name]) for name in op.names)
    return Call(op, dict(attributes), arguments)


def _argument(op: CustomOp, name: str, value: Any) -> Argument:
    if isinstance(value, list | tuple):
        return tuple(_argument(op, name, part) for part in value)
    if isinstance(value, bool | int | float | str):
        return value
    kind = type(value).__name__
    raise ShapeError(f"the attribute {name} of {op.name} is a {kind}, which is not an argument")


def tensors(call: Call, operands: Sequence[Any], shapes: Sequence[Shape]) -> list[Any]:
    """Adds a node of an operator to TensorFlow's graph.

    Args:
        call: The operator.
        operands: Tensors.
        shapes: Their shapes, of which open dimensions are sizes or of the batch.

    Returns:
        The results.

    Raises:
        ShapeError: A rule of the module fails.
    """
    wanted = call.shapes(shapes)
    kinds = call.dtypes([str(t.dtype.name) for t in operands], len(wanted))

    def run(*arrays: Array) -> list[Array]:
        return call.compute(arrays)

    results = tf.numpy_function(run, list(operands), kinds)
    if tf.executing_eagerly():
        return list(results)
    _called[results[0].op.get_attr("token").decode()] = call
    for result, shape in zip(results, wanted, strict=True):
        result.set_shape([None if isinstance(d, Batch) or is_open(d) else d for d in shape])
    return list(results)


def own_op(token: str) -> Call | None:
    """Returns the operator that a token of `PyFunc` stands for."""
    return _called.get(token)
