"""What a node may give besides a tensor of the model: parts of patterns that others finish."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from converters.tf import ir


@dataclass(frozen=True, eq=False)
class TensorList:
    """A list of tensors of one shape.

    Attributes:
        stacked: The elements along a new first axis; `None` as long as nothing was written.
        length: Number of elements; that of the examples for a list with one for each.
        dtype: Element type.
        shape: Shape of an element if it is known.
        grows: Whether the length is the one that it has after the loop that writes it.
        own: In a loop over the examples, the number of the one whose element alone is reached.
    """

    stacked: ir.Value | None
    length: ir.Dim
    dtype: ir.DType
    shape: ir.Shape | None
    grows: bool = False
    own: ir.Value | None = None


@dataclass(frozen=True, eq=False)
class Bits:
    """The bits of floats, read as integers; only their sign may be asked for.

    Attributes:
        source: The floats.
    """

    source: ir.Value


@dataclass(frozen=True, eq=False)
class Spread:
    """How `SpaceToBatchND` made an image: the first half of a dilated convolution.

    Attributes:
        source: The image before.
        blocks: Dilations.
        padding: Zeros before and after, per axis.
    """

    source: ir.Value
    blocks: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Bounds:
    """An integer that depends on all batch elements, by what is known of it.

    Attributes:
        least: It is at least this.
        most: It is at most this.
        dtype: Element type.
    """

    least: float
    most: float
    dtype: ir.DType

    def known(self) -> int | None:
        """Returns the number if there is only one."""
        return int(self.least) if self.least == self.most and math.isfinite(self.least) else None


@dataclass(frozen=True, eq=False)
class Rows:
    """Places in a flattened batch: `scale` times the number of the example, plus an offset.

    The places of an example must lie in its own elements: those of others can't be reached.

    Attributes:
        scale: Elements of an example.
        offset: Places in an example; its shape broadcasts to that of the places, or to that from
            which they were flattened.
        shape: Shape of the places; the first axis is the batch, or all of its elements.
    """

    scale: int
    offset: ir.Value
    shape: ir.Shape


@dataclass(frozen=True, eq=False)
class Numbered:
    """Indices whose first number is that of their example.

    Attributes:
        rest: The other numbers, along the last axis; the first axis is the batch.
    """

    rest: ir.Value


@dataclass(frozen=True)
class Several:
    """Whether there is more than one example, which `tf.vectorized_map` asks."""


@dataclass(frozen=True)
class Seed:
    """What TensorFlow derives of a seed: the key and the counter of random numbers.

    Attributes:
        source: The seed, two integers.
    """

    source: ir.Value


@dataclass(frozen=True, eq=False)
class Complex:
    """Complex numbers.

    Attributes:
        real: Their real parts.
        imaginary: Their imaginary parts.
    """

    real: ir.Value
    imaginary: ir.Value


@dataclass(frozen=True, eq=False)
class Tokens:
    """Texts that are standardized, or the tokens of all texts, one after the other.

    Attributes:
        texts: The texts as the model reads them.
        reading: How they become tokens.
        flat: Whether these are tokens; otherwise each text is a token.
    """

    texts: ir.Value
    reading: ir.Reading
    flat: bool = False

    def same(self, other: Tokens) -> bool:
        """Returns whether both are the same tokens."""
        found = (other.texts, other.reading, other.flat)
        return (self.texts, self.reading, self.flat) == found


@dataclass(frozen=True, eq=False)
class Classes:
    """A number for each of some tokens, which the class of the token decides.

    Attributes:
        tokens: The tokens.
        words: The words of a vocabulary, in the order of their bytes: the first classes.
        rest: The classes of other tokens.
        values: The number of each class.
        made: The tensor of the model, by the identity of the builder that made it.
    """

    tokens: Tokens
    words: tuple[bytes, ...]
    rest: ir.Rest
    values: ir.Array
    made: dict[int, ir.Value] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Spelled:
    """Text that is chosen from a list of words, and of texts of inputs.

    Attributes:
        places: The place of each in the list, a number of int32.
        words: The list.
        texts: What follows after the words: the texts of the same example, one input after the
            other.
    """

    places: ir.Value
    words: tuple[bytes, ...]
    texts: tuple[ir.Value, ...] = ()


@dataclass(frozen=True, eq=False)
class Written:
    """Text that a call writes, which only outputs may be.

    Attributes:
        value: The text.
        pieces: What it is joined of; nothing for tokens, and for text that was changed or moved
            afterwards.
        operands: The operands of the pieces.
    """

    value: ir.Value
    pieces: tuple[ir.Piece, ...]
    operands: tuple[ir.Value, ...]


@dataclass(frozen=True, eq=False)
class Partition:
    """How tokens lie in their texts, in one of the forms in which TensorFlow says it.

    Attributes:
        tokens: The tokens.
        form: `index` and `shape` of a sparse tensor; `rows` of each token; `lengths` of each text,
            their sums as `ends`, and with 0 before them as `splits`. Of characters there are also
            the `codes` (as a column: `column`), the `shape of codes`, their `count` (as a list:
            `size`), the numbers up to it (`after` it) as `each`.
    """

    tokens: Tokens
    form: str


@dataclass(frozen=True, eq=False)
class Crossed:
    """Features that are hashed together, as TensorFlow says it: as a sparse tensor.

    Attributes:
        values: The bucket of each example, `[examples, 1]`.
        form: Which part of the sparse tensor it is: `indices`, `values` or `shape`.
    """

    values: ir.Value
    form: str


@dataclass(frozen=True, eq=False)
class Unknown:
    """A number that all texts of a call decide.

    Attributes:
        least: What it is at least, if that is known: another operand.
    """

    least: object = None
