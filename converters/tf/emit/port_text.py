"""An input or output of a generated model."""

from __future__ import annotations

from dataclasses import dataclass

from converters.tf import ir
from converters.tf.emit.statements import Code
from converters.tf.ir.expressions import is_open
from tools.codegen.rust import string_literal

# The Rust type of a text, of a word that the model has, and of a text that a call writes.
TEXT = "&str"
WORD = "&'static str"
WRITTEN = "String"


@dataclass(frozen=True)
class PortText:
    """An input or output of the generated model.

    Attributes:
        field: Name of its field.
        name: Its name in the model.
        key: Its array in `features.npz`.
        type: Rust type of an element, as users see it.
        elements: Elements of one example.
        fixed: Whether the length does not depend on the batch.
        shape: The shape as text.
        dims: The shape for one example.
        leading: Whether examples follow each other, each in one piece, or there is no batch.
        source: Expression of an output's elements; nothing for an input.
        full: The shape, whatever is open in it.
        words: Literals of the words that an output's numbers stand for, if it is text.
        tables: Lists of words of which a call writes text: their names, and the literals of each.
    """

    field: str
    name: str
    key: str
    type: str
    elements: int
    fixed: bool
    shape: str
    dims: tuple[int, ...]
    leading: bool
    source: Code | None = None
    full: ir.Shape = ()
    words: tuple[str, ...] = ()
    tables: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def extents(self) -> str:
        """Returns the dimensions as Rust's options, nothing for what calls differ in."""
        fixed = (not isinstance(d, ir.Batch) and not is_open(d) for d in self.full)
        pairs = zip(self.full, fixed, strict=True)
        return ", ".join(f"Some({dim})" if known else "None" for dim, known in pairs)

    @property
    def zero(self) -> str:
        """Returns the zero of the type."""
        zeros = {"bool": "false", "f32": "0.0", "f64": "0.0", TEXT: '""', WORD: '""'}
        zeros[WRITTEN] = "String::new()"
        return zeros.get(self.type, "0")

    @property
    def sample(self) -> str:
        """Returns an element of the type that is not zero."""
        samples = {"bool": "true", "f32": "0.5", "f64": "0.5", TEXT: '"a text of a few words"'}
        return samples.get(self.type, "1")

    @property
    def element(self) -> str:
        """Returns the type of an element that is borrowed for the lifetime of the inputs."""
        return "&'a str" if self.type == TEXT else self.type

    @property
    def lifetime(self) -> str:
        """Returns the parameter of a type that holds elements which are borrowed."""
        return "<'a>" if self.type == TEXT else ""

    @property
    def kind(self) -> str:
        """Returns the type of an element as people read it."""
        return TEXT if self.type == WORD else self.type

    @property
    def table(self) -> str:
        """Returns the name of the list of an output's words."""
        return self.field.upper()

    @property
    def lists(self) -> list[tuple[str, tuple[str, ...]]]:
        """Returns all lists of an output's words: their names, and the literals of each."""
        return [*([(self.table, self.words)] if self.type == WORD else []), *self.tables]

    @property
    def read(self) -> str:
        """Returns the expression of the recorded elements."""
        key = string_literal(self.key)
        if self.type in (TEXT, WORD, WRITTEN):
            return f"features.texts({key})"
        return f"features.array::<{self.type}>({key})"
