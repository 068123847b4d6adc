"""The typed graph between the front end and the emitters: plain data, no TensorFlow.

`values.py` says what a tensor is; images and sequences are channels last. An op says everything
that a kernel needs, except what the shapes of its operands and results say (`Reshape` has no
attribute).

An operand that is left out is `None`, and operands at the end may be missing: read them with
`Node.operand`. A value is the output of one node, an input of the graph, or has `data`: then it is
a constant, and the same object wherever it is used. `interpret.py` gives the meaning of every op
in NumPy; the tests hold it against TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from converters.tf.ir.boxes import Suppress as Suppress
from converters.tf.ir.systems import Cholesky as Cholesky
from converters.tf.ir.systems import LogDeterminant as LogDeterminant
from converters.tf.ir.systems import Solve as Solve
from converters.tf.ir.systems import TriangularSolve as TriangularSolve
from converters.tf.ir.values import Array as Array
from converters.tf.ir.values import Batch as Batch
from converters.tf.ir.values import Dim as Dim
from converters.tf.ir.values import DType as DType
from converters.tf.ir.values import Shape as Shape
from converters.tf.ir.values import Value as Value
from converters.tf.ir.values import constant as constant
from converters.tf.ir.values import shape_at as shape_at
from converters.tf.ir.values import shape_text as shape_text


class Fn(StrEnum):
    """Functions of one element. `a` and `b` are the parameters in `Function.params`."""

    ABS = "abs"
    NEG = "neg"
    SIGN = "sign"
    FLOOR = "floor"
    CEIL = "ceil"
    ROUND = "round"  # half to even
    SQUARE = "square"
    SQRT = "sqrt"
    RSQRT = "rsqrt"
    RECIPROCAL = "reciprocal"
    EXP = "exp"
    EXPM1 = "expm1"
    LOG = "log"
    LOG1P = "log1p"
    SIN = "sin"
    COS = "cos"
    TAN = "tan"
    ASIN = "asin"
    ACOS = "acos"
    ATAN = "atan"
    SINH = "sinh"
    COSH = "cosh"
    TANH = "tanh"
    ASINH = "asinh"
    ACOSH = "acosh"
    ATANH = "atanh"
    ERF = "erf"
    ERFC = "erfc"
    SIGMOID = "sigmoid"
    LOGICAL_NOT = "logical_not"
    IS_NAN = "is_nan"  # -> bool
    IS_INF = "is_inf"  # -> bool
    IS_FINITE = "is_finite"  # -> bool
    CLAMP = "clamp"  # min(max(x, a), b); NaN stays; relu is (0, inf), relu6 is (0, 6)
    LEAKY_RELU = "leaky_relu"  # x if x > 0 else a * x
    ELU = "elu"  # x if x > 0 else a * (exp(x) - 1)
    CELU = "celu"  # x if x > 0 else a * (exp(x / a) - 1)
    SELU = "selu"
    GELU = "gelu"  # exact, by erf
    GELU_TANH = "gelu_tanh"
    SILU = "silu"
    MISH = "mish"
    SOFTPLUS = "softplus"
    SOFTSIGN = "softsign"
    LOG_SIGMOID = "log_sigmoid"
    HARD_SIGMOID = "hard_sigmoid"  # clamp(x / 6 + 1 / 2, 0, 1)
    HARD_SILU = "hard_silu"  # x * hard_sigmoid(x)
    HARD_SHRINK = "hard_shrink"  # x if |x| > a else 0
    SOFT_SHRINK = "soft_shrink"
    TANH_SHRINK = "tanh_shrink"
    SQUARE_PLUS = "square_plus"  # (x + sqrt(x^2 + a)) / 2
    SPARSE_PLUS = "sparse_plus"
    THRESHOLD = "threshold"  # x if x > a else b
    LGAMMA = "lgamma"  # of the magnitude
    DIGAMMA = "digamma"
    ERFINV = "erfinv"
    NDTRI = "ndtri"  # the quantile of the normal distribution
    BESSEL_I0 = "bessel_i0"
    BESSEL_I0E = "bessel_i0e"  # times exp(-|x|)
    BESSEL_I1 = "bessel_i1"
    BESSEL_I1E = "bessel_i1e"


@dataclass(frozen=True)
class Function:
    """A function of one element with its parameters (`a`, `b`)."""

    kind: Fn
    params: tuple[float, ...] = ()


RELU = Function(Fn.CLAMP, (0.0, float("inf")))
RELU6 = Function(Fn.CLAMP, (0.0, 6.0))


@dataclass(frozen=True)
class Unary:
    """Applies a function to every element: (x). f32 for the functions above `ABS` to `SQUARE`."""

    function: Function


class BinaryKind(StrEnum):
    """Functions of two elements of one type.

    Division of integers by 0, remainders of it and negative powers of integers are errors of the
    call; otherwise integers wrap.
    """

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"  # true division of floats; integers truncate
    DIV_NO_NAN = "div_no_nan"  # 0 where the divisor is 0
    MUL_NO_NAN = "mul_no_nan"  # 0 where the second factor is 0
    MAX = "max"
    MIN = "min"
    POW = "pow"
    FLOOR_DIV = "floor_div"
    FLOOR_MOD = "floor_mod"
    TRUNC_MOD = "trunc_mod"
    SQUARED_DIFFERENCE = "squared_difference"
    ATAN2 = "atan2"
    PRELU = "prelu"  # a if a > 0 else b * a; floats
    LOGICAL_AND = "logical_and"
    LOGICAL_OR = "logical_or"
    LOGICAL_XOR = "logical_xor"
    BIT_AND = "bit_and"  # whole numbers, as the others
    BIT_OR = "bit_or"
    BIT_XOR = "bit_xor"
    BIT_LEFT = "bit_left"  # by an amount that is cut to 0 and the last bit
    BIT_RIGHT = "bit_right"


@dataclass(frozen=True)
class Binary:
    """Combines two tensors of one type elementwise with NumPy's broadcasting: (a, b)."""

    kind: BinaryKind
    activation: Function | None = None


class CompareKind(StrEnum):
    """Comparisons."""

    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"


@dataclass(frozen=True)
class Compare:
    """Compares two tensors of one type with NumPy's broadcasting: (a, b) -> bool."""

    kind: CompareKind


@dataclass(frozen=True)
class Select:
    """Takes `then` where a bool holds: (condition, then, otherwise), NumPy's broadcasting."""


@dataclass(frozen=True)
class Cast:
    """Converts elements to the type of the output: (x). Floats truncate; to bool is `!= 0`."""


@dataclass(frozen=True)
class ScaleShift:
    """`x * scale + shift` along the last axis: (x, scale [C], shift [C]), f32."""

    activation: Function | None = None


@dataclass(frozen=True)
class Dense:
    """A product with a constant matrix: (x [..., K], kernel [K, N], bias [N]?, residual?), f32.

    `activation(x @ kernel + bias + residual)`; the residual has the shape of the output.
    """

    activation: Function | None = None


@dataclass(frozen=True)
class ScaledDense:
    """A `Dense` whose operand is scaled first: (x, kernel, bias?, residual?, scale, shift?).

    `activation(bounds(x * scale + shift) @ kernel + bias + residual)`. The kernel is
    [1, ..., K, N], the scale [K] or [batch, 1, ..., K], the shift [K].

    Attributes:
        bounds: A clamp, applied to the scaled operand.
        activation: Applied last.
    """

    bounds: Function | None = None
    activation: Function | None = None


@dataclass(frozen=True)
class MatMul:
    """Products of matrices: (a [..., M, K], b [..., K, N], bias [N]?), f32.

    The leading axes broadcast as in NumPy. With `transpose_a`, a is [..., K, M]; with
    `transpose_b`, b is [..., N, K].
    """

    transpose_a: bool = False
    transpose_b: bool = False
    activation: Function | None = None


@dataclass(frozen=True)
class WholeProduct:
    """Products of matrices of whole numbers: (a [..., M, K], b [..., K, N]).

    The leading axes are the same, or b has none.
    """


@dataclass(frozen=True)
class Conv:
    """A convolution over one or two axes: (x, filter, bias [Cout]?, residual?), f32.

    x is [batch, *spatial, Cin], the filter [*size, Cin / groups, Cout] and constant or not, the
    residual has the shape of the output, `activation` comes last. With `groups == Cin` it is
    depthwise: output channel `c * multiplier + m` reads input channel `c`.

    Attributes:
        strides: One per spatial axis.
        dilations: One per spatial axis.
        padding: Zeros before and after, per spatial axis.
        groups: Divides Cin and Cout.
        activation: Applied last.
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    groups: int = 1
    activation: Function | None = None


@dataclass(frozen=True)
class ConvTranspose:
    """The gradient of a convolution's input: (x, filter, bias [Cout]?), f32.

    x is [batch, *spatial, Cin], the filter [*size, Cout / groups, Cin]. Strides, dilations and
    padding are those of the convolution that maps the output of this op to its input.
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    groups: int = 1
    activation: Function | None = None


@dataclass(frozen=True)
class Chain:
    """Layers each of which reads what the one before it gives: (x, weights, ...), f32.

    They are convolutions, between which no image is there as a whole, or two products of one row.
    Weights are the constants that the layers read, each once.

    Attributes:
        links: The layers, which have neither residuals nor other readers.
    """

    links: tuple[Node, ...]


class PoolKind(StrEnum):
    """What a pool keeps of its window."""

    MAX = "max"
    AVERAGE = "average"  # of the elements inside the input, not of the padding


@dataclass(frozen=True)
class Pool:
    """Pools over one or two axes: (x [batch, *spatial, C]), f32. Padding as in `Conv`."""

    kind: PoolKind
    size: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]


class ReduceKind(StrEnum):
    """Reductions; ALL and ANY take bools."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"
    MIN = "min"
    PROD = "prod"
    ALL = "all"
    ANY = "any"


@dataclass(frozen=True)
class Reduce:
    """Reduces axes, sorted and not negative: (x)."""

    kind: ReduceKind
    axes: tuple[int, ...]
    keepdims: bool = False


@dataclass(frozen=True)
class ArgExtreme:
    """The first place of the largest (or smallest) element along an axis: (x) -> i32 or i64."""

    axis: int
    smallest: bool = False


@dataclass(frozen=True)
class TopK:
    """The places of the largest elements of each row of the last axis: (x) -> i32.

    The shape of the output says how many. They are in falling order, the first of equal ones first
    and what is not a number last.
    """


@dataclass(frozen=True)
class Cumulative:
    """Running sum or product along an axis: (x)."""

    axis: int
    product: bool = False
    exclusive: bool = False
    reverse: bool = False


@dataclass(frozen=True)
class Softmax:
    """Softmax along the last axis, or its logarithm: (x), f32.

    An element that is NaN or positive infinity is NaN and leaves 0 for all others of its row; then
    the whole row of the logarithm is NaN. A row of nothing but negative infinity is NaN.
    """

    log: bool = False


class NormKind(StrEnum):
    """Normalizations of rows."""

    LAYER = "layer"  # (x - mean) / sqrt(variance + epsilon)
    RMS = "rms"  # x / sqrt(mean(x^2) + epsilon)


@dataclass(frozen=True)
class Norm:
    """Normalizes along the last axis: (x [..., C], scale [C]?, shift [C]?), f32."""

    kind: NormKind
    epsilon: float


@dataclass(frozen=True)
class GroupNorm:
    """Normalizes groups of channels: (x [batch, ..., C], scale [C]?, shift [C]?), f32.

    Mean and variance of each example are taken over all positions and C / groups neighbouring
    channels.
    """

    groups: int
    epsilon: float


@dataclass(frozen=True)
class Attention:
    """`softmax(q @ k^T * scale + mask) @ v`: (q, k, v, mask?), f32.

    q is [batch, heads, queries, depth], k [batch, heads, keys, depth], v [batch, heads, keys,
    width], the output [batch, heads, queries, width]. The mask is f32, added to the scores, and
    broadcasts to [batch, heads, queries, keys]. `causal` hides the keys after the query's own
    place, counted from the end of both. With `beside`, heads lie side by side and there is no mask:
    q is [batch, queries, heads, depth], the others and the output alike.
    """

    scale: float
    causal: bool = False
    beside: bool = False


@dataclass(frozen=True)
class Lstm:
    """An LSTM over a sequence, f32, with tanh and sigmoid.

    (x [batch, T, I], kernel [I, 4U], recurrent [U, 4U], bias [4U]?, h [batch, U]?, c [batch, U]?,
    mask [batch, T] bool?) -> (sequence [batch, T, U], last h [batch, U], last c [batch, U]).
    Gates lie in the order input, forget, candidate, output. States start at 0. Where the mask is
    false, the state stays, and the sequence repeats the output of the step before (0 at first), or
    has 0 with `zero_masked`. `reverse` reads x (and the mask) from its end; the sequence is in the
    order of reading. Results that nobody reads have no user in the graph.
    """

    reverse: bool = False
    zero_masked: bool = False


@dataclass(frozen=True)
class Gru:
    """A GRU over a sequence, f32, with tanh and sigmoid; see `Lstm`.

    (x [batch, T, I], kernel [I, 3U], recurrent [U, 3U], bias [3U]?, recurrent bias [3U]?,
    h [batch, U]?, mask [batch, T] bool?) -> (sequence [batch, T, U], last h [batch, U]).
    Gates lie in the order update, reset, candidate. With `reset_after`, the reset gate acts on the
    projected state with its bias; else on the state, and there is no recurrent bias.
    """

    reset_after: bool = True
    reverse: bool = False
    zero_masked: bool = False


@dataclass(frozen=True)
class SimpleRnn:
    """`h = activation(x @ kernel + h @ recurrent + bias)` over a sequence, f32; see `Lstm`.

    (x [batch, T, I], kernel [I, U], recurrent [U, U], bias [U]?, h [batch, U]?,
    mask [batch, T] bool?) -> (sequence [batch, T, U], last h [batch, U]).
    """

    activation: Function | None = None
    reverse: bool = False
    zero_masked: bool = False


@dataclass(frozen=True)
class Transpose:
    """Reorders axes: (x); output axis `i` is input axis `perm[i]`."""

    perm: tuple[int, ...]


@dataclass(frozen=True)
class Reshape:
    """The same elements with the shape of the output: (x)."""


@dataclass(frozen=True)
class Concat:
    """Joins any number of tensors along an axis: (x, ...)."""

    axis: int


@dataclass(frozen=True)
class Slice:
    """Takes elements `begin + i * stride` of each axis: (x).

    The shape of the output says how many. A stride may be negative. An axis of batch size is taken
    whole: begin 0, stride 1.
    """

    begin: tuple[int, ...]
    strides: tuple[int, ...]


class PadMode(StrEnum):
    """What the border is filled with."""

    CONSTANT = "constant"
    REFLECT = "reflect"  # the edge once
    SYMMETRIC = "symmetric"  # the edge twice


@dataclass(frozen=True)
class Pad:
    """Widens each axis before and after: (x)."""

    padding: tuple[tuple[int, int], ...]
    mode: PadMode = PadMode.CONSTANT
    value: float = 0.0


@dataclass(frozen=True)
class Gather:
    """Takes slices along an axis: (params, indices i32 or i64).

    The output is `params[:axis] + indices[batch_dims:] + params[axis + 1:]`, the first
    `batch_dims` axes of both running together. An index outside the axis is an error of the call;
    with `wrap`, a negative one counts from the end of the axis.
    """

    axis: int
    batch_dims: int = 0
    wrap: bool = False


@dataclass(frozen=True)
class OneHot:
    """`on` at the index, `off` elsewhere, along a new axis: (indices); the depth is in the output.

    An index outside the depth gives `off` everywhere.
    """

    axis: int
    on: float = 1.0
    off: float = 0.0


@dataclass(frozen=True)
class Tile:
    """Repeats the tensor along each axis: (x)."""

    multiples: tuple[int, ...]


@dataclass(frozen=True)
class BroadcastTo:
    """Repeats the tensor to the shape of the output as NumPy's broadcasting does: (x)."""


class ResizeKind(StrEnum):
    """Interpolations."""

    NEAREST = "nearest"
    BILINEAR = "bilinear"


@dataclass(frozen=True)
class Resize:
    """Resizes images [batch, height, width, C] to the shape of the output: (x).

    Bilinear takes f32. With `align_corners` the outermost pixels meet; with `half_pixel` centers
    lie at halves. Never both.
    """

    kind: ResizeKind
    align_corners: bool = False
    half_pixel: bool = False


@dataclass(frozen=True)
class Update:
    """A copy of x with the slice `index` of its first axis replaced: (x, index i32 [], slice)."""


class ScatterKind(StrEnum):
    """How a slice and what is written there are put together."""

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    MIN = "min"
    MAX = "max"
    UPDATE = "update"


@dataclass(frozen=True)
class Scatter:
    """A copy of x with slices changed in order: (x, indices i32 or i64, updates).

    x is `lead + sizes + rest`, the indices `lead + count + [len(sizes)]`, the updates
    `lead + count + rest`; `lead` has `batch_dims` axes, which run together. A number outside of
    its axis is an error of the call; with `skip`, a slice whose index has a negative one is left
    out.
    """

    kind: ScatterKind
    batch_dims: int = 0
    skip: bool = False


@dataclass(frozen=True)
class Loop:
    """Runs a body again and again: (carried, ...) -> (carried, ...).

    The inputs of the body are the index of the turn (i32, scalar) and the carried values, its
    outputs the carried values for the next turn, in the order of this node's operands, with equal
    types and shapes. A value that the body returns as it came does not change in the loop. The body
    may use constants, but no other value from outside.

    It runs `trips` times; as often as there are examples, it maps the body over them, and each turn
    reads and writes what is its own example's. Where `going` is the place of a carried truth value,
    the loop ends before the turn at which that is false, and `trips` is only the most that it can
    run.
    """

    trips: Dim
    body: Graph
    going: int | None = None


Op: TypeAlias = (
    Unary
    | Binary
    | Compare
    | Select
    | Cast
    | ScaleShift
    | Dense
    | ScaledDense
    | MatMul
    | WholeProduct
    | Conv
    | ConvTranspose
    | Chain
    | Pool
    | Reduce
    | ArgExtreme
    | TopK
    | Cumulative
    | Softmax
    | Norm
    | GroupNorm
    | Attention
    | Lstm
    | Gru
    | SimpleRnn
    | Transpose
    | Reshape
    | Concat
    | Slice
    | Pad
    | Gather
    | OneHot
    | Tile
    | BroadcastTo
    | Resize
    | Update
    | Scatter
    | Cholesky
    | TriangularSolve
    | Solve
    | LogDeterminant
    | Suppress
    | Loop
)


@dataclass(frozen=True, eq=False)
class Node:
    """One op.

    Attributes:
        op: What is computed.
        inputs: Operands in the order that the op states; `None` for one that is left out.
        outputs: Results.
        layer: Path of the Keras layer that it comes from (`encoder/block_1/dense`), or empty.
        doc: One line for people, or empty.
    """

    op: Op
    inputs: tuple[Value | None, ...]
    outputs: tuple[Value, ...]
    layer: str = ""
    doc: str = ""

    def operand(self, index: int) -> Value | None:
        """Returns an operand, or `None` if it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    @property
    def present(self) -> tuple[Value, ...]:
        """Returns the operands that are there."""
        return tuple(v for v in self.inputs if v is not None)

    @property
    def input(self) -> Value:
        """Returns the first operand.

        Raises:
            ValueError: It is left out.
        """
        first = self.operand(0)
        if first is None:
            raise ValueError(f"{type(self.op).__name__} of layer {self.layer!r} has no operand")
        return first

    @property
    def output(self) -> Value:
        """Returns the only result.

        Raises:
            ValueError: There are several.
        """
        (output,) = self.outputs
        return output


@dataclass(frozen=True)
class Port:
    """An input or output of a graph with its public name, in the model's words."""

    name: str
    value: Value


@dataclass(frozen=True)
class Layer:
    """A Keras layer.

    Attributes:
        path: Names from the outermost model to the layer, joined by `/`.
        kind: Its class, such as `Conv2D`.
    """

    path: str
    kind: str


@dataclass(frozen=True)
class Graph:
    """A model or the body of a loop.

    Attributes:
        name: Name of the model.
        inputs: In the order in which they are passed.
        outputs: In the order of the model; a value may be an input, a constant, or come twice.
        nodes: In an order in which operands come before their users.
        layers: The layers that nodes name, in the model's order.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    nodes: tuple[Node, ...]
    layers: tuple[Layer, ...] = field(default=())

    def constants(self) -> Iterator[Value]:
        """Yields every constant once, in the order of use, those of loop bodies included."""
        seen: set[Value] = set()
        for value in self._uses():
            if value.is_constant and value not in seen:
                seen.add(value)
                yield value

    def all_nodes(self) -> Iterator[Node]:
        """Yields every node, those of a loop's body or of a chain after it."""
        for node in self.nodes:
            yield node
            if isinstance(node.op, Loop):
                yield from node.op.body.all_nodes()
            if isinstance(node.op, Chain):
                yield from node.op.links

    def _uses(self) -> Iterator[Value]:
        for node in self.nodes:
            yield from node.present
            if isinstance(node.op, Loop):
                yield from node.op.body._uses()
        yield from (port.value for port in self.outputs)
