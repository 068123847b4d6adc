"""The graph of tf2rust as an ONNX model, so that onnxruntime computes the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from converters.tf import ir
from converters.tf.ir.ops.conv import is_depthwise

_UNARY = {
    ir.Fn.SIGMOID: "Sigmoid",
    ir.Fn.TANH: "Tanh",
    ir.Fn.EXP: "Exp",
    ir.Fn.NEG: "Neg",
    ir.Fn.SQRT: "Sqrt",
    ir.Fn.RECIPROCAL: "Reciprocal",
    ir.Fn.HARD_SILU: "HardSwish",
    ir.Fn.GELU: "Gelu",
    ir.Fn.SOFTPLUS: "Softplus",
}
_BINARY = {
    ir.BinaryKind.ADD: "Add",
    ir.BinaryKind.SUB: "Sub",
    ir.BinaryKind.MUL: "Mul",
    ir.BinaryKind.DIV: "Div",
}
_COMPARE = {ir.CompareKind.EQ: "Equal", ir.CompareKind.LT: "Less", ir.CompareKind.GT: "Greater"}
_REDUCE = {ir.ReduceKind.MEAN: "ReduceMean", ir.ReduceKind.MAX: "ReduceMax"}


def export(graph: ir.Graph, batch: int = 1) -> Any:
    """Returns the ONNX model of a graph for one batch size.

    Raises:
        NotImplementedError: The graph has an op that this exporter does not know.
    """
    return _Export(graph, batch).model()


class _Export:
    """Images are channels first in the model; a transposition joins both orders where they meet."""

    def __init__(self, graph: ir.Graph, batch: int) -> None:
        self.graph = graph
        self.batch = batch
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.last: dict[ir.Value, str] = {}
        self.first: dict[ir.Value, str] = {}

    def model(self) -> Any:
        for port in self.graph.inputs:
            self.last[port.value] = port.name
        for node in self.graph.nodes:
            method = getattr(self, f"_{type(node.op).__name__.lower()}", None)
            if method is None:
                raise NotImplementedError(f"{type(node.op).__name__} in ONNX")
            method(node, node.op)
        outputs: list[Any] = []
        for port in self.graph.outputs:
            name = f"out_{len(outputs)}"
            self.nodes.append(helper.make_node("Identity", [self.read(port.value)], [name]))
            outputs.append(self._info(name, port.value))
        inputs = [self._info(p.name, p.value) for p in self.graph.inputs]
        graph = helper.make_graph(self.nodes, "graph", inputs, outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)

    def _info(self, name: str, value: ir.Value) -> Any:
        kind = helper.np_dtype_to_tensor_dtype(value.dtype.numpy)
        return helper.make_tensor_value_info(name, kind, ir.shape_at(value.shape, self.batch))

    def constant(self, data: Any) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(data, order="C"), name))
        return name

    def add(self, kind: str, inputs: list[str], count: int = 1, **attributes: Any) -> str:
        names = [f"v{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0]

    def read(self, value: ir.Value) -> str:
        """Returns the tensor with channels last."""
        if value.data is not None:
            return self.last.setdefault(value, self.constant(value.data))
        if value not in self.last:
            rank = value.rank
            perm = [0, *range(2, rank), 1]
            self.last[value] = self.add("Transpose", [self.first[value]], perm=perm)
        return self.last[value]

    def image(self, value: ir.Value) -> str:
        """Returns the tensor with channels first."""
        if value not in self.first:
            rank = value.rank
            perm = [0, rank - 1, *range(1, rank - 1)]
            self.first[value] = self.add("Transpose", [self.read(value)], perm=perm)
        return self.first[value]

    def finish(self, name: str, function: ir.Function | None) -> str:
        if function is None:
            return name
        if function.kind is ir.Fn.CLAMP:
            low, high = (self.constant(np.float32(p)) for p in function.params)
            if function.params == ir.RELU.params:
                return self.add("Relu", [name])
            return self.add("Clip", [name, low, high])
        if function.kind is ir.Fn.SILU:
            return self.add("Mul", [name, self.add("Sigmoid", [name])])
        if function.kind is ir.Fn.HARD_SIGMOID:
            return self.add("HardSigmoid", [name], alpha=1 / 6, beta=0.5)
        if function.kind is ir.Fn.LEAKY_RELU:
            return self.add("LeakyRelu", [name], alpha=function.params[0])
        if function.kind is ir.Fn.GELU_TANH:
            return self.add("Gelu", [name], approximate="tanh")
        if function.kind not in _UNARY:
            raise NotImplementedError(f"{function.kind} in ONNX")
        return self.add(_UNARY[function.kind], [name])

    def is_image(self, value: ir.Value | None) -> bool:
        return value is not None and value in self.first and value not in self.last

    def _conv(self, node: ir.Node, op: ir.Conv) -> None:
        kernel = node.inputs[1]
        assert kernel is not None and kernel.data is not None
        rank = kernel.rank
        weights = np.transpose(kernel.data, (rank - 1, rank - 2, *range(rank - 2)))
        if is_depthwise(node):
            *size, inputs, many = kernel.data.shape
            if inputs == 1:
                weights = np.transpose(kernel.data, (rank - 1, rank - 2, *range(rank - 2)))
            else:
                flat = kernel.data.reshape(*size, 1, inputs * many)
                weights = np.transpose(flat, (rank - 1, rank - 2, *range(rank - 2)))
        operands = [self.image(node.input), self.constant(weights)]
        bias = node.operand(2)
        if bias is not None:
            operands.append(self.read(bias))
        pads = [p[0] for p in op.padding] + [p[1] for p in op.padding]
        result = self.add(
            "Conv",
            operands,
            strides=list(op.strides),
            dilations=list(op.dilations),
            pads=pads,
            group=op.groups,
        )
        residual = node.operand(3)
        if residual is not None:
            result = self.add("Add", [result, self.image(residual)])
        self.first[node.output] = self.finish(result, op.activation)

    def _pool(self, node: ir.Node, op: ir.Pool) -> None:
        kind = "MaxPool" if op.kind is ir.PoolKind.MAX else "AveragePool"
        pads = [p[0] for p in op.padding] + [p[1] for p in op.padding]
        self.first[node.output] = self.add(
            kind,
            [self.image(node.input)],
            kernel_shape=list(op.size),
            strides=list(op.strides),
            pads=pads,
        )

    def _dense(self, node: ir.Node, op: ir.Dense) -> None:
        kernel, bias, residual = (node.operand(i) for i in (1, 2, 3))
        assert kernel is not None
        result = self.add("MatMul", [self.read(node.input), self.read(kernel)])
        for more in (bias, residual):
            if more is not None:
                result = self.add("Add", [result, self.read(more)])
        self.last[node.output] = self.finish(result, op.activation)

    def _matmul(self, node: ir.Node, op: ir.MatMul) -> None:
        operands = []
        for value, swap in zip(node.inputs[:2], (op.transpose_a, op.transpose_b), strict=True):
            assert value is not None
            name = self.read(value)
            if swap:
                perm = [*range(value.rank - 2), value.rank - 1, value.rank - 2]
                name = self.add("Transpose", [name], perm=perm)
            operands.append(name)
        result = self.add("MatMul", operands)
        bias = node.operand(2)
        if bias is not None:
            result = self.add("Add", [result, self.read(bias)])
        self.last[node.output] = self.finish(result, op.activation)

    def _unary(self, node: ir.Node, op: ir.Unary) -> None:
        if self.is_image(node.input):
            self.first[node.output] = self.finish(self.image(node.input), op.function)
        else:
            self.last[node.output] = self.finish(self.read(node.input), op.function)

    def _binary(self, node: ir.Node, op: ir.Binary) -> None:
        a, b = node.inputs[0], node.inputs[1]
        assert a is not None and b is not None
        kind = _BINARY[op.kind]
        if any(self.is_image(v) for v in (a, b)) and a.rank == b.rank == 4:
            result = self.add(kind, [self.image(a), self.image(b)])
            self.first[node.output] = self.finish(result, op.activation)
        else:
            result = self.add(kind, [self.read(a), self.read(b)])
            self.last[node.output] = self.finish(result, op.activation)

    def _scaleshift(self, node: ir.Node, op: ir.ScaleShift) -> None:
        scale, shift = node.inputs[1], node.inputs[2]
        assert scale is not None and shift is not None
        assert scale.data is not None and shift.data is not None
        if self.is_image(node.input):
            shape = (-1,) + (1,) * (node.input.rank - 2)
            factors = [self.constant(x.reshape(shape)) for x in (scale.data, shift.data)]
            x = self.image(node.input)
        else:
            factors = [self.read(scale), self.read(shift)]
            x = self.read(node.input)
        result = self.add("Add", [self.add("Mul", [x, factors[0]]), factors[1]])
        result = self.finish(result, op.activation)
        (self.first if self.is_image(node.input) else self.last)[node.output] = result

    def _reduce(self, node: ir.Node, op: ir.Reduce) -> None:
        kind = _REDUCE[op.kind]
        spatial = tuple(range(1, node.input.rank - 1))
        if self.is_image(node.input) and op.axes == spatial:
            axes = self.constant(np.array([a + 1 for a in spatial], np.int64))
            image = self.image(node.input)
            result = self.add(kind, [image, axes], keepdims=int(op.keepdims))
            (self.first if op.keepdims else self.last)[node.output] = result
            return
        axes = self.constant(np.array(op.axes, np.int64))
        self.last[node.output] = self.add(
            kind, [self.read(node.input), axes], keepdims=int(op.keepdims)
        )

    def _concat(self, node: ir.Node, op: ir.Concat) -> None:
        values = node.present
        if any(self.is_image(v) for v in values) and op.axis == values[0].rank - 1:
            self.first[node.output] = self.add("Concat", [self.image(v) for v in values], axis=1)
        else:
            names = [self.read(v) for v in values]
            self.last[node.output] = self.add("Concat", names, axis=op.axis)

    def _pad(self, node: ir.Node, op: ir.Pad) -> None:
        pads = list(op.padding)
        image = self.is_image(node.input)
        if image:
            pads = [pads[0], pads[-1], *pads[1:-1]]
        flat = np.array([p[0] for p in pads] + [p[1] for p in pads], np.int64)
        x = self.image(node.input) if image else self.read(node.input)
        result = self.add("Pad", [x, self.constant(flat), self.constant(np.float32(op.value))])
        (self.first if image else self.last)[node.output] = result

    def _reshape(self, node: ir.Node, _: ir.Reshape) -> None:
        shape = self.constant(np.array(ir.shape_at(node.output.shape, self.batch), np.int64))
        self.last[node.output] = self.add("Reshape", [self.read(node.input), shape])

    def _compare(self, node: ir.Node, op: ir.Compare) -> None:
        self.last[node.output] = self.add(_COMPARE[op.kind], [self.read(v) for v in node.present])

    def _select(self, node: ir.Node, op: ir.Select) -> None:
        self.last[node.output] = self.add("Where", [self.read(v) for v in node.present])

    def _transpose(self, node: ir.Node, op: ir.Transpose) -> None:
        x = self.read(node.input)
        self.last[node.output] = self.add("Transpose", [x], perm=list(op.perm))

    def _softmax(self, node: ir.Node, op: ir.Softmax) -> None:
        kind = "LogSoftmax" if op.log else "Softmax"
        self.last[node.output] = self.add(kind, [self.read(node.input)], axis=-1)

    def _gather(self, node: ir.Node, op: ir.Gather) -> None:
        indices = node.inputs[1]
        assert indices is not None and op.batch_dims == 0
        names = [self.read(node.input), self.read(indices)]
        self.last[node.output] = self.add("Gather", names, axis=op.axis)

    def _norm(self, node: ir.Node, op: ir.Norm) -> None:
        if op.kind is not ir.NormKind.LAYER:
            raise NotImplementedError(f"{op.kind} norm in ONNX")
        width = node.input.shape[-1]
        scale, shift = node.operand(1), node.operand(2)
        one = self.constant(np.ones(width, np.float32)) if scale is None else self.read(scale)
        names = [self.read(node.input), one]
        if shift is not None:
            names.append(self.read(shift))
        self.last[node.output] = self.add("LayerNormalization", names, epsilon=op.epsilon)

    def _attention(self, node: ir.Node, op: ir.Attention) -> None:
        q, k, v = (self.read(value) for value in node.present[:3])
        if op.beside:
            q, k, v = (self.add("Transpose", [x], perm=[0, 2, 1, 3]) for x in (q, k, v))
        if op.causal or node.operand(3) is not None:
            raise NotImplementedError("masked attention in ONNX")
        keys = self.add("Transpose", [k], perm=[0, 1, 3, 2])
        scores = self.add("MatMul", [q, keys])
        scores = self.add("Mul", [scores, self.constant(np.float32(op.scale))])
        weights = self.add("Softmax", [scores], axis=-1)
        result = self.add("MatMul", [weights, v])
        if op.beside:
            result = self.add("Transpose", [result], perm=[0, 2, 1, 3])
        self.last[node.output] = result

    def _lstm(self, node: ir.Node, op: ir.Lstm) -> None:
        kernel, recurrent, bias = (node.operand(i) for i in (1, 2, 3))
        states = [node.operand(i) for i in (4, 5, 6)]
        assert kernel is not None and recurrent is not None and bias is not None
        if op.reverse or any(s is not None for s in states):
            raise NotImplementedError("an LSTM with states or masks in ONNX")
        units = recurrent.shape[0]

        def gates(data: Any) -> Any:
            i, f, c, o = np.split(np.asarray(data), 4, axis=-1)
            return np.concatenate([i, o, f, c], axis=-1)

        x = self.add("Transpose", [self.read(node.input)], perm=[1, 0, 2])
        w = self.constant(gates(kernel.data).T[None])
        r = self.constant(gates(recurrent.data).T[None])
        b = gates(bias.data)
        names = [x, w, r, self.constant(np.concatenate([b, np.zeros_like(b)])[None])]
        self.add("LSTM", names, 3, hidden_size=units)
        outputs = self.nodes[-1].output
        axis = self.constant(np.array([0], np.int64))
        sequence = self.add("Squeeze", [outputs[0], self.constant(np.array([1], np.int64))])
        self.last[node.outputs[0]] = self.add("Transpose", [sequence], perm=[1, 0, 2])
        for value, name in zip(node.outputs[1:], outputs[1:], strict=True):
            self.last[value] = self.add("Squeeze", [name, axis])
