"""Builds nodes: infers shapes, computes what is constant, and leaves out what changes nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from converters.tf import ir
from converters.tf.ir import budget, sizes
from converters.tf.ir.expressions import Above, Floor, Size, is_open
from converters.tf.ir.interpret import evaluate
from converters.tf.ir.sizes import ShapeError as ShapeError
from converters.tf.ir.sizes import broadcast as broadcast

# A computed constant of more elements is kept as nodes if it is larger than its operands.
_FOLD_LIMIT = 1 << 16


class Builder:
    """A growing list of nodes.

    Attributes:
        nodes: Nodes in order.
        layer: Layer of the nodes to come.
        doc: Doc line of the nodes to come.
    """

    def __init__(self) -> None:
        """Starts with no node."""
        self.nodes: list[ir.Node] = []
        self.layer = ""
        self.doc = ""
        self._reshaped: dict[ir.Value, ir.Value] = {}

    def emit_many(
        self,
        op: ir.Op,
        inputs: Sequence[ir.Value | None],
        outputs: Sequence[tuple[ir.DType, ir.Shape]],
    ) -> tuple[ir.Value, ...]:
        """Adds a node and returns its results."""
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        if op.computes_single() and any(v is not None and v.dtype is ir.DType.F64 for v in inputs):
            return self._narrowed(op, inputs, outputs)
        results = tuple(ir.Value(dtype, shape, None, self.layer) for dtype, shape in outputs)
        node = ir.Node(op, tuple(inputs), results, self.layer, self.doc)
        folded = self._fold(node)
        if folded is not None:
            return folded
        self.nodes.append(node)
        return results

    def _narrowed(
        self,
        op: ir.Op,
        inputs: Sequence[ir.Value | None],
        outputs: Sequence[tuple[ir.DType, ir.Shape]],
    ) -> tuple[ir.Value, ...]:
        """Adds a node that computes in float32 what is float64."""
        wide, single = ir.DType.F64, ir.DType.F32
        if all(v is None or v.is_constant for v in inputs):
            values = tuple(ir.Value(dtype, shape) for dtype, shape in outputs)
            folded = self._fold(ir.Node(op, tuple(inputs), values, self.layer))
            if folded is not None:
                return folded
        narrow = [self.cast(v, single) if v and v.dtype is wide else v for v in inputs]
        kinds = [(single if dtype is wide else dtype, shape) for dtype, shape in outputs]
        results = self.emit_many(op, narrow, kinds)
        pairs = zip(results, outputs, strict=True)
        return tuple(self.cast(result, dtype) for result, (dtype, _) in pairs)

    def emit(
        self,
        op: ir.Op,
        inputs: Sequence[ir.Value | None],
        shape: ir.Shape | None = None,
        dtype: ir.DType | None = None,
    ) -> ir.Value:
        """Adds a node with one result; its type is that of the first operand unless given.

        Args:
            op: What it computes.
            inputs: Its operands.
            shape: The shape of the result; without it, the op says the shape.
            dtype: The type of the result.

        Raises:
            ShapeError: The operands do not fit together.
        """
        first = inputs[0]
        if shape is None:
            shapes = op.shapes([() if v is None else v.shape for v in inputs])
            if shapes is None:
                raise ShapeError(f"the shape of {type(op).__name__} is not in its operands")
            (shape,) = shapes
        if dtype is None:
            if first is None:
                raise ShapeError("a node without operands needs an element type")
            dtype = first.dtype
        return self.emit_many(op, inputs, [(dtype, shape)])[0]

    def _fold(self, node: ir.Node) -> tuple[ir.Value, ...] | None:
        if isinstance(node.op, ir.Loop) or any(v.data is None for v in node.present):
            return None
        if any(not sizes.is_fixed(v.shape) or sizes.has_open(v.shape) for v in node.outputs):
            return None
        size = sum(sizes.elements(v.shape) for v in node.outputs)
        read = sum(sizes.elements(v.shape) for v in node.present)
        if size > max(_FOLD_LIMIT, read):
            return None
        budget.spend(size + read, node.layer)
        try:
            results = evaluate(node, [None if v is None else v.data for v in node.inputs])
        except ArithmeticError:  # An error of the call, not of the conversion.
            return None
        name = next((v.name for v in node.present if v.name), "")
        return tuple(ir.constant(data, name) for data in results)

    def scalar(self, number: float, dtype: ir.DType) -> ir.Value:
        """Returns a constant without dimensions."""
        return ir.constant(np.asarray(number, dtype.numpy))

    def length(self, size: int, dtype: ir.DType) -> ir.Value:
        """Returns a size as a number of the model; an open one is counted at each call."""
        if not isinstance(size, Size):
            return self.scalar(size, dtype)
        total: ir.Value | None = None
        for atoms, factor in size.terms:
            part = self.scalar(factor, dtype) if factor != 1 or not atoms else None
            for atom in atoms:
                if isinstance(atom, Floor):
                    by = self.scalar(atom.by, dtype)
                    count = self.binary(
                        ir.BinaryKind.FLOOR_DIV, self.length(cast(int, atom.of), dtype), by
                    )
                elif isinstance(atom, Above):
                    inner = self.length(cast(int, atom.of), dtype)
                    count = self.binary(ir.BinaryKind.MAX, inner, self.scalar(0, dtype))
                else:
                    ones = self.broadcast_to(
                        self.scalar(1, dtype), (cast(int, Size({(atom,): 1})),)
                    )
                    count = self.reduce(ir.ReduceKind.SUM, ones, [0])
                part = count if part is None else self.binary(ir.BinaryKind.MUL, part, count)
            assert part is not None
            total = part if total is None else self.binary(ir.BinaryKind.ADD, total, part)
        assert total is not None
        return total

    def numbers(self, size: int, dtype: ir.DType) -> ir.Value:
        """Returns the integers from 0 on below a size, which may be open."""
        if not is_open(size):
            return ir.constant(np.arange(size, dtype=dtype.numpy))
        ones = self.broadcast_to(self.scalar(1, dtype), (size,))
        return self.emit(ir.Cumulative(0, exclusive=True), [ones])

    def unary(self, kind: ir.Fn, x: ir.Value, *params: float) -> ir.Value:
        """Applies a function."""
        to_bool = kind in (ir.Fn.IS_NAN, ir.Fn.IS_INF, ir.Fn.IS_FINITE)
        function = ir.Function(kind, tuple(float(p) for p in params))
        dtype = ir.DType.BOOL if to_bool else x.dtype
        return self.emit(ir.Unary(function), [x], dtype=dtype)

    def binary(self, kind: ir.BinaryKind, a: ir.Value, b: ir.Value) -> ir.Value:
        """Combines two tensors."""
        return self.emit(ir.Binary(kind), [a, b])

    def compare(self, kind: ir.CompareKind, a: ir.Value, b: ir.Value) -> ir.Value:
        """Compares two tensors."""
        return self.emit(ir.Compare(kind), [a, b], dtype=ir.DType.BOOL)

    def select(self, condition: ir.Value, then: ir.Value, other: ir.Value) -> ir.Value:
        """Chooses elementwise."""
        return self.emit(ir.Select(), [condition, then, other], dtype=then.dtype)

    def cast(self, x: ir.Value, dtype: ir.DType) -> ir.Value:
        """Converts elements."""
        return x if x.dtype is dtype else self.emit(ir.Cast(), [x], dtype=dtype)

    def reshape(self, x: ir.Value, shape: ir.Shape) -> ir.Value:
        """Gives the elements another shape."""
        x = self._reshaped.get(x, x)
        if x.shape == shape:
            return x
        result = self.emit(ir.Reshape(), [x], shape)
        self._reshaped[result] = x
        return result

    def unshaped(self, x: ir.Value) -> ir.Value:
        """Returns what a reshape that was emitted here reads; other values as they are."""
        return self._reshaped.get(x, x)

    def transpose(self, x: ir.Value, perm: Sequence[int]) -> ir.Value:
        """Reorders axes."""
        perm = tuple(int(p) for p in perm)
        if perm == tuple(range(x.rank)):
            return x
        moved = [p for p in perm if x.shape[p] != 1]
        if moved == sorted(moved):
            return self.reshape(x, tuple(x.shape[p] for p in perm))
        return self.emit(ir.Transpose(perm), [x])

    def broadcast_to(self, x: ir.Value, shape: ir.Shape) -> ir.Value:
        """Repeats a tensor."""
        return x if x.shape == shape else self.emit(ir.BroadcastTo(), [x], shape)

    def slice(
        self,
        x: ir.Value,
        begin: Sequence[int],
        counts: Sequence[ir.Dim],
        strides: Sequence[int] | None = None,
    ) -> ir.Value:
        """Takes a part."""
        steps = tuple(strides or (1,) * x.rank)
        moved = any(is_open(b) or b for b in begin)
        if tuple(counts) == x.shape and not moved and all(s == 1 for s in steps):
            return x
        op = ir.Slice(tuple(whole(b) for b in begin), tuple(int(s) for s in steps))
        return self.emit(op, [x], tuple(counts))

    def part(self, x: ir.Value, axis: int, begin: int, count: int) -> ir.Value:
        """Takes neighbouring elements along one axis."""
        begins = [begin if i == axis else 0 for i in range(x.rank)]
        counts = [count if i == axis else d for i, d in enumerate(x.shape)]
        return self.slice(x, begins, counts)

    def concat(self, parts: Sequence[ir.Value], axis: int) -> ir.Value:
        """Joins tensors.

        Raises:
            ShapeError: They differ in another axis, or depend on the batch along this one.
        """
        if len(parts) == 1:
            return parts[0]
        return self.emit(ir.Concat(axis), parts)

    def pad(
        self,
        x: ir.Value,
        padding: Sequence[tuple[int, int]],
        mode: ir.PadMode = ir.PadMode.CONSTANT,
        value: float = 0.0,
    ) -> ir.Value:
        """Widens axes; never that of the batch.

        Raises:
            ShapeError: The axis of the batch is widened.
        """
        if not any(is_open(sum(p)) or sum(p) for p in padding):
            return x
        op = ir.Pad(tuple((whole(b), whole(a)) for b, a in padding), mode, float(value))
        return self.emit(op, [x])

    def reduce(
        self, kind: ir.ReduceKind, x: ir.Value, axes: Sequence[int], keepdims: bool = False
    ) -> ir.Value:
        """Reduces axes.

        Raises:
            ShapeError: The batch is reduced.
        """
        places = tuple(sorted({int(a) % x.rank if x.rank else 0 for a in axes}))
        if not places:
            return x
        op = ir.Reduce(kind, places, keepdims)
        if all(x.shape[a] == 1 for a in places):
            return self.reshape(x, *op.shapes([x.shape]))
        return self.emit(op, [x])

    def mat_mul(
        self, a: ir.Value, b: ir.Value, transpose_a: bool = False, transpose_b: bool = False
    ) -> ir.Value:
        """Multiplies matrices; a constant right-hand side of rank 2 gives `Dense`.

        Raises:
            ShapeError: The inner dimensions differ.
        """
        if a.dtype not in (ir.DType.F32, ir.DType.F64):
            return self._whole_product(a, b, transpose_a, transpose_b)
        if b.rank == 2 and b.is_constant and not (transpose_a and a.rank < 2):
            if transpose_a:
                a = self.transpose(a, [*range(a.rank - 2), a.rank - 1, a.rank - 2])
            kernel = self.transpose(b, [1, 0]) if transpose_b else b
            return self.emit(ir.Dense(), [a, kernel])
        return self.emit(ir.MatMul(bool(transpose_a), bool(transpose_b)), [a, b])

    def _whole_product(
        self, a: ir.Value, b: ir.Value, transpose_a: bool, transpose_b: bool
    ) -> ir.Value:
        left, right = (
            self.transpose(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2]) if turned else x
            for x, turned in ((a, transpose_a), (b, transpose_b))
        )
        lead = broadcast(left.shape[:-2], right.shape[:-2])
        left = self.broadcast_to(left, (*lead, *left.shape[-2:]))
        if right.rank > 2:
            right = self.broadcast_to(right, (*lead, *right.shape[-2:]))
        return self.emit(ir.WholeProduct(), [left, right])

    def gather(
        self, params: ir.Value, indices: ir.Value, axis: int, batch_dims: int = 0
    ) -> ir.Value:
        """Takes slices.

        Raises:
            ShapeError: It takes from the axis of the batch.
        """
        if isinstance(params.shape[axis], ir.Batch):
            raise ShapeError("batch elements are taken by index")
        return self.emit(ir.Gather(axis, batch_dims), [params, indices])


def whole(size: int) -> int:
    """Returns a size as Python's, not as NumPy's; one that is open stays so."""
    return size if is_open(size) else int(size)


def static(dim: ir.Dim, what: str) -> int:
    """Returns a dimension that must not depend on the batch.

    Raises:
        ShapeError: It does.
    """
    if isinstance(dim, ir.Batch):
        raise ShapeError(f"{what} depends on the batch size")
    return dim


def elements(shape: ir.Shape) -> int:
    """Returns the number of elements of a shape without batch.

    Raises:
        ShapeError: It depends on the batch.
    """
    return math.prod(static(d, "a size") for d in shape)
