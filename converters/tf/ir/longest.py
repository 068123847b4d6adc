"""Open dimensions that texts decide: how many tokens the longest text of a call has."""

from __future__ import annotations

from dataclasses import dataclass

from converters.tf.ir.expressions import Size
from converters.tf.ir.graph import Graph, Port
from converters.tf.ir.ops.moving import Reshape
from converters.tf.ir.ops.text import Reading, TokenValues, as_bytes
from converters.tf.ir.ops.written import SplitText
from converters.tf.ir.values import Array, Value


@dataclass(frozen=True)
class Longest:
    """How many tokens the longest text of an input has.

    Attributes:
        port: The input.
        reading: How a text becomes tokens.
    """

    port: Port
    reading: Reading

    def of(self, texts: Array) -> int:
        """Returns the number of tokens of the longest text."""
        return max((self._count(text) for text in texts.ravel()), default=0)

    def within(self, texts: Array, most: int) -> Array:
        """Returns texts of which none has more tokens than that: others lose their end."""
        found = texts.copy()
        for place, text in enumerate(found.flat):
            while self._count(text) > most:
                text = text[: len(text) * 3 // 4]
            found.flat[place] = text
        return found

    def _count(self, text: object) -> int:
        return len(self.reading.tokens(as_bytes(text)))


def longest_dims(graph: Graph) -> dict[str, Longest]:
    """Returns the open dimensions that texts decide, by name."""
    given: dict[Value, Port] = {port.value: port for port in graph.inputs}
    found: dict[str, Longest] = {}
    for node in graph.nodes:
        op = node.op
        if isinstance(op, Reshape) and node.input in given:
            given[node.output] = given[node.input]
        if isinstance(op, TokenValues | SplitText) and isinstance(op.row, Size) and op.row.name:
            found[op.row.name] = Longest(given[node.input], op.reading)
    return found
