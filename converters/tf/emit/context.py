"""What the emitters of single ops share: names of tensors, expressions, layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from converters.tf import ir
from converters.tf.emit.functions import IN_PLACE, Kernel, float_literal, unary
from converters.tf.emit.names import field_scope, wishes
from converters.tf.emit.statements import BATCH, Code, Kind, Name, Part, code, lines
from converters.tf.emit.weights import WeightFile, rust_type
from converters.tf.ir.expressions import OpenSizeError
from converters.tf.ir.sizes import numbers
from converters.tf.plan.arena import Place, Plan, Step
from tools.codegen.conversion import Problem, UnsupportedError
from tools.codegen.names import Scope
from tools.codegen.rust import code_span, string_literal

# What to do about a size that must be known.
FIX = "give the size of the input with --input_shape"


@dataclass(frozen=True)
class Field:
    """A layer of the generated struct.

    Attributes:
        name: Name of the field.
        type: Its type.
        path: Path of the type below the runtime; empty for a type of the crate.
        doc: What it computes, in one line.
        value: The expression that makes it.
        made: How many constructors of layers the expression calls.
    """

    name: str
    type: str
    path: str
    doc: str
    value: Code
    made: int


@dataclass(frozen=True)
class SlotName:
    """A constant of the generated memory plan."""

    name: str
    place: Place
    doc: str


@dataclass
class Context:
    """Collects what a model is made of.

    Attributes:
        plan: The memory plan.
        weights: The constants' places.
        inputs: Expression of every input value.
        emitters: Writes the statements of a step, by the class of its op.
        fields: Layers, in the order of their first use.
        slots: Names of tensors in memory.
        carried: What a loop carries, by the results of the loop that it becomes.
    """

    plan: Plan
    weights: WeightFile
    inputs: Mapping[ir.Value, Code]
    emitters: Mapping[type[ir.Op], Emit]
    fields: list[Field] = field(default_factory=list)
    slots: dict[ir.Value, SlotName] = field(default_factory=dict)
    carried: dict[ir.Value, ir.Value] = field(default_factory=dict)
    _fields: Scope = field(default_factory=field_scope)
    _slots: Scope = field(default_factory=Scope)
    _names: dict[tuple[object, ...], Name] = field(default_factory=dict)
    _made: list[Code] = field(default_factory=list)

    def statements(self, step: Step) -> list[Code]:
        """Returns the statements of a step, one or more.

        Raises:
            UnsupportedError: It needs a number for a size that is open.
        """
        try:
            found = self.emitters[type(step.node.op)](self, step)
        except OpenSizeError as err:
            name = type(step.node.op).__name__
            what = f"{name} can't be computed for an open size yet: {err}"
            raise UnsupportedError(Problem(f"layer {step.node.layer}", what, FIX)) from err
        if self._made:
            found = [lines([*self._made, *found])]
            self._made = []
        return found

    def kernel(self, kernel: Kernel, params: tuple[float, ...] = ()) -> Code:
        """Returns the expression of an operation."""
        return code("{}", kernel.expression(params), use=[f"kernels::{kernel.path}"])

    def activation(self, function: ir.Function | None) -> Code:
        """Returns the expression of an activation."""
        use = ["activation::Activation"]
        if function is None:
            return code("Activation::None", use=use)
        if function == ir.RELU:
            return code("Activation::RELU", use=use)
        if function == ir.RELU6:
            return code("Activation::RELU6", use=use)
        if function.kind is ir.Fn.CLAMP:
            low, high = (float_literal(p) for p in function.params)
            return code("Activation::Clamp({}, {})", low, high, use=use)
        if function.kind in IN_PLACE:
            return code("Activation::Map({})", self.kernel(IN_PLACE[function.kind]), use=use)
        op = self.kernel(unary(function, ir.DType.F32), function.params)
        return code("Activation::Map(|x| apply({}, x))", op, use=[*use, "activation::apply"])

    def name_slot(self, value: ir.Value, *names: str) -> Name:
        """Names the place of a value; `names` are wishes in snake case."""
        known = self.slots.get(value)
        if known is None:
            name = self._slots.unique(*(n for n in names if n)).upper()
            doc = f"{rust_type(value.dtype)}, `{ir.shape_text(value.shape)}`"
            known = SlotName(name, self.plan.places[value], doc)
            self.slots[value] = known
        return _slot(known)

    def slot(self, value: ir.Value) -> Name:
        """Returns the name of a value's place."""
        value = self.carried.get(value, value)
        return self.name_slot(value, *wishes(value.name, "reshaped"))

    def named(self, value: ir.Value, node: ir.Node, default: str) -> Name:
        """Names the place of a result of a node, after its layer."""
        return self.name_slot(value, *wishes(value.name or node.layer, default))

    def result(self, node: ir.Node, default: str) -> Name:
        """Names the place of the only result of a node."""
        return self.named(node.output, node, default)

    def layer_result(self, node: ir.Node, layer: Name) -> Name:
        """Names the place of the first result of a layer after its field."""
        value = node.outputs[0]
        return self.name_slot(value, layer.name, *wishes(value.name, layer.name))

    def source(self, value: ir.Value) -> Code | Name:
        """Returns the expression from which a value is read."""
        root = self.plan.root(value)
        if root.data is not None:
            return self.tensor(root)
        if root in self.inputs:
            return self.inputs[root]
        return self.slot(value)

    def sources(self, values: Iterable[ir.Value]) -> list[Part]:
        """Returns an array of sources."""
        return [code("{}.into()", self.source(v)) for v in values]

    def optional_source(self, value: ir.Value | None) -> Part:
        """Returns an optional source."""
        return "None" if value is None else code("Some({}.into())", self.source(value))

    def shaped(self, value: ir.Value) -> Part:
        """Returns a source with its shape."""
        return (self.source(value), self.dims(value.shape))

    def tensor(self, value: ir.Value | None) -> Name:
        """Returns the place of a constant in the weights.

        Raises:
            ValueError: The value is not a constant.
        """
        if value is None or self.plan.root(value).data is None:
            raise ValueError(f"{value!r} is not a constant")
        tensor = self.weights.tensors[self.plan.root(value)]
        return Name(Kind.TENSOR, tensor.name, rust_type(tensor.value.dtype))

    def optional_tensor(self, value: ir.Value | None) -> Part:
        """Returns the place of a constant that may be missing."""
        return "None" if value is None else code("Some({})", self.tensor(value))

    def scratch(self, step: Step) -> Name:
        """Returns the name of a step's scratch memory."""
        value = ir.Value(ir.DType.F32, (ir.Batch(step.scratch.elements),))
        names = [f"{wish}_scratch" for wish in wishes(step.node.layer, "step")]
        name = self._slots.unique(*names).upper()
        self.slots[value] = SlotName(name, step.scratch, "f32, between the steps of a layer")
        return _slot(self.slots[value])

    def dim(self, dim: ir.Dim) -> Part:
        """Returns a dimension as an expression."""
        if isinstance(dim, ir.Batch):
            return BATCH if dim.scale == 1 else code("{} * {}", BATCH, dim.scale)
        return dim

    def dims(self, shape: ir.Shape) -> Part:
        """Returns a shape as a slice."""
        return code("&{}", [self.dim(d) for d in shape])

    def product(self, shape: ir.Shape) -> Part:
        """Returns the product of dimensions as an expression."""
        number = 1
        for size in numbers(shape):
            number *= size
        batches = [BATCH for d in shape if isinstance(d, ir.Batch)]
        if not batches:
            return number
        factors: list[Part] = [*batches] if number == 1 else [*batches, number]
        return code(" * ".join(["{}"] * len(factors)), *factors)

    def made(
        self,
        node: ir.Node,
        kind: str,
        path: str,
        parts: Sequence[Part],
        doc: str,
        key: tuple[object, ...],
    ) -> Name:
        """Returns the field of a layer that its constructor makes, on the first use.

        Args:
            node: The node.
            kind: Path of the type below the runtime.
            path: The layer's path, for the name.
            parts: The arguments, of which `LABEL` stands for the layer's name as a literal.
            doc: What it computes.
            key: What another use of the same layer would have in common.
        """
        value = code(f"{_last(kind)}::new{{}}?", tuple(parts), use=[kind])
        for name in value.names(Kind.SIZE):
            raise OpenSizeError(f"{name.name} must be known")
        return self._layer(node, kind, path, value, doc, key, 1)

    def filled(
        self,
        node: ir.Node,
        kind: str,
        path: str,
        parts: Mapping[str, Part],
        doc: str,
        key: tuple[object, ...],
    ) -> Name:
        """Returns the field of a layer whose fields are filled in, on the first use; see `made`.

        One with an open size is made anew where it is used.
        """
        places = ", ".join(f"{name}: {{}}" for name in parts)
        value = code(f"{_last(kind)} {{ {places} }}", *parts.values(), use=[kind])
        return self._layer(node, kind, path, value, doc, key, 0)

    def _layer(
        self,
        node: ir.Node,
        kind: str,
        path: str,
        value: Code,
        doc: str,
        key: tuple[object, ...],
        made: int,
    ) -> Name:
        known = self._names.get(key)
        if known is not None:
            return known
        if value.has(Kind.SIZE):
            name = Name(Kind.LOCAL, self._fields.unique(*wishes(path, _last(kind).lower())))
            literal = string_literal(node.layer or name.name)
            value = value.renamed(lambda n: literal if n.kind is Kind.LABEL else n)
            self._made.append(code("let {} = {};", name, value))
            return name
        name = Name(
            Kind.FIELD, self._fields.unique(*wishes(path, _last(kind).lower())), _last(kind)
        )
        self._names[key] = name
        label = node.layer or name.name
        value = value.renamed(lambda n: string_literal(label) if n.kind is Kind.LABEL else n)
        doc = f"{code_span(label)}: {doc}" if label else doc
        self.fields.append(Field(name.name, name.type, kind, doc, value, made))
        return name


Emit = Callable[[Context, Step], list[Code]]


def _slot(slot: SlotName) -> Name:
    return Name(Kind.SLOT, slot.name, rust_type(slot.place.dtype))


def _last(path: str) -> str:
    return path.rpartition("::")[2]
