"""What the emitters of single ops share: names of tensors, expressions, collected text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from converters.tf import ir
from converters.tf.emit.functions import IN_PLACE, Kernel, float_literal, unary
from converters.tf.emit.names import Scope, field_scope, screaming, wishes
from converters.tf.emit.weights import WeightFile, rust_type
from converters.tf.plan.arena import Place, Plan, Step
from tools.codegen.rust import code_span, string_literal


@dataclass(frozen=True)
class Field:
    """A layer of the generated struct.

    Attributes:
        name: Name of the field.
        type: Its type.
        doc: What it computes, in one line.
        value: The expression that makes it; `w` are the weights, `p` the threads.
        key: What two uses of one layer have in common.
    """

    name: str
    type: str
    doc: str
    value: str
    key: tuple[object, ...]


@dataclass(frozen=True)
class SlotName:
    """A constant of the generated memory plan."""

    name: str
    place: Place
    doc: str


@dataclass
class Context:
    """Collects the text of a model.

    Attributes:
        plan: The memory plan.
        weights: The constants' places.
        inputs: Expression of every input value.
        imports: Paths below the runtime that the text uses.
        fields: Layers, in the order of their first use.
        slots: Names of tensors in memory.
        lines: Statements of the model's run, one or more per node.
        carried: What a loop carries, by the results of the loop that it becomes.
    """

    plan: Plan
    weights: WeightFile
    inputs: Mapping[ir.Value, str]
    imports: set[str] = field(default_factory=set)
    fields: list[Field] = field(default_factory=list)
    slots: dict[ir.Value, SlotName] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    carried: dict[ir.Value, ir.Value] = field(default_factory=dict)
    uses_batch: bool = False
    _fields: Scope = field(default_factory=field_scope)
    _slots: Scope = field(default_factory=Scope)
    _names: dict[tuple[object, ...], str] = field(default_factory=dict)

    def use(self, *paths: str) -> None:
        """Notes imports, as paths below the runtime."""
        self.imports.update(paths)

    def kernel(self, kernel: Kernel, params: tuple[float, ...] = ()) -> str:
        """Returns the expression of an operation."""
        self.use(f"kernels::{kernel.path}")
        return kernel.expression(params)

    def activation(self, function: ir.Function | None) -> str:
        """Returns the expression of an activation."""
        self.use("activation::Activation")
        if function is None:
            return "Activation::None"
        if function.kind is ir.Fn.CLAMP:
            if function.params == ir.RELU.params:
                return "Activation::RELU"
            if function.params == ir.RELU6.params:
                return "Activation::RELU6"
            low, high = (float_literal(p) for p in function.params)
            return f"Activation::Clamp({low}, {high})"
        if function.kind in IN_PLACE:
            return f"Activation::Map({self.kernel(IN_PLACE[function.kind])})"
        self.use("activation::apply")
        op = self.kernel(unary(function, ir.DType.F32), function.params)
        return f"Activation::Map(|x| apply({op}, x))"

    def name_field(self, path: str, default: str) -> str:
        """Returns a free name for a field."""
        return self._fields.unique(*wishes(path, default))

    def name_slot(self, value: ir.Value, *names: str) -> str:
        """Names the place of a value; `names` are wishes in snake case."""
        known = self.slots.get(value)
        if known is not None:
            return known.name
        name = screaming(self._slots.unique(*(n for n in names if n)))
        place = self.plan.places[value]
        doc = f"{rust_type(value.dtype)}, `{ir.shape_text(value.shape)}`"
        self.slots[value] = SlotName(name, place, doc)
        return name

    def slot(self, value: ir.Value) -> str:
        """Returns the name of a value's place."""
        value = self.carried.get(value, value)
        return self.name_slot(value, *wishes(value.name, "reshaped"))

    def source(self, value: ir.Value) -> str:
        """Returns the expression from which a value is read."""
        root = self.plan.root(value)
        if root.data is not None:
            return f"weights::{self.weights.tensors[root].name}"
        if root in self.inputs:
            return self.inputs[root]
        return self.slot(value)

    def sources(self, values: Iterable[ir.Value]) -> str:
        """Returns an array of sources."""
        return "[" + ", ".join(f"{self.source(v)}.into()" for v in values) + "]"

    def optional_source(self, value: ir.Value | None) -> str:
        """Returns an optional source."""
        return "None" if value is None else f"Some({self.source(value)}.into())"

    def tensor(self, value: ir.Value | None) -> str:
        """Returns the place of a constant in the weights.

        Raises:
            ValueError: The value is not a constant.
        """
        if value is None or self.plan.root(value).data is None:
            raise ValueError(f"{value!r} is not a constant")
        return f"weights::{self.weights.tensors[self.plan.root(value)].name}"

    def optional_tensor(self, value: ir.Value | None) -> str:
        """Returns the place of a constant that may be missing."""
        return "None" if value is None else f"Some({self.tensor(value)})"

    def scratch(self, step: Step) -> str:
        """Returns the name of a step's scratch memory."""
        value = ir.Value(ir.DType.F32, (ir.Batch(step.scratch.elements),))
        names = [f"{wish}_scratch" for wish in wishes(step.node.layer, "step")]
        name = screaming(self._slots.unique(*names))
        self.slots[value] = SlotName(name, step.scratch, "f32, between the steps of a layer")
        return name

    def dim(self, dim: ir.Dim) -> str:
        """Returns a dimension as an expression."""
        if isinstance(dim, ir.Batch):
            self.uses_batch = True
            return "b" if dim.scale == 1 else f"b * {dim.scale}"
        return str(dim)

    def dims(self, shape: ir.Shape) -> str:
        """Returns a shape as a slice."""
        return "&[" + ", ".join(self.dim(d) for d in shape) + "]"

    def product(self, shape: ir.Shape) -> str:
        """Returns the product of dimensions as an expression."""
        number = 1
        batches = 0
        for dim in shape:
            if isinstance(dim, ir.Batch):
                batches += 1
                number *= dim.scale
            else:
                number *= dim
        if not batches:
            return str(number)
        self.uses_batch = True
        factors = ["b"] * batches
        return " * ".join(factors if number == 1 else [*factors, str(number)])

    def layer(
        self, node: ir.Node, kind: str, path: str, value: str, doc: str, key: tuple[object, ...]
    ) -> str:
        """Returns the field of a layer, made on its first use.

        Args:
            node: The node.
            kind: Path of the type below the runtime.
            path: The layer's path, for the name.
            value: The expression; `@name` stands for the layer's name as a literal.
            doc: What it computes.
            key: What another use of the same layer would have in common.
        """
        self.use(kind)
        known = self._names.get(key)
        if known is not None:
            return known
        type_name = kind.rpartition("::")[2]
        name = self.name_field(path, type_name.lower())
        label = node.layer or name
        expression = value.replace("@name", rust_string(label))
        self._names[key] = name
        title = f"{code_span(label)}: " if label else ""
        self.fields.append(Field(name, type_name, f"{title}{doc}", expression, key))
        return name


def rust_string(text: str) -> str:
    """Returns a name as a Rust string literal."""
    return string_literal(text)
