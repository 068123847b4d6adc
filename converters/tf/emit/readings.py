"""How texts are read, as Rust: what a model says of text is arrays of bytes there, never code."""

from __future__ import annotations

from collections.abc import Sequence

from converters.tf import ir
from converters.tf.emit.statements import Code, Part, code
from converters.tf.ir import Each, Every, Letters

_SPLITS = {"whole": "Whole", "space": "Whitespace", "characters": "Characters"}


def _bytes(content: bytes) -> str:
    return f"&[{', '.join(map(str, content))}]"


def _change(change: ir.Change) -> Code:
    use = ["kernels::text::changes::Change"]
    if isinstance(change, Letters):
        return code(f"Change::{str(change).capitalize()}", use=use)
    if isinstance(change, Every):
        return code("Change::Every({}, {})", _bytes(change.of), _bytes(change.becomes), use=use)
    assert isinstance(change, Each)
    bits = f"{sum(1 << character for character in change.of.ascii):#x}"
    template = "Change::Each(Set { ascii: {}, beyond: {} }, {})"
    parts = (bits, change.of.beyond, _bytes(change.becomes))
    return code(template, *parts, use=[*use, "kernels::text::changes::Set"])


def _rest(rest: ir.Rest) -> Code:
    use = ["kernels::text::finder::Rest"]
    if rest.buckets == 1:
        return code("Rest::One", use=use)
    if rest.key is None:
        return code("Rest::Farm({})", rest.buckets, use=use)
    key: list[Part] = [part % (1 << 64) for part in rest.key]
    return code("Rest::Sip({}, {})", rest.buckets, key, use=use)


def changes_of(changes: Sequence[ir.Change]) -> Code:
    """Returns how texts are standardized."""
    parts: list[Part] = [_change(change) for change in changes]
    return code("&{}", parts)


def split_of(split: ir.Split) -> Code:
    """Returns where texts are taken apart."""
    kind = f"At({split.byte})" if split.at == "byte" else _SPLITS[split.at]
    return code(f"Split::{kind}", use=["kernels::text::tokens::Split"])


def reading_of(reading: ir.Reading, rest: ir.Rest) -> Code:
    """Returns how texts become tokens, and these classes."""
    use = ["kernels::text::tokens::Reading"]
    widths: list[Part] = list(reading.widths)
    return code(
        "Reading { changes: {}, split: {}, widths: &{}, between: {}, rest: {} }",
        changes_of(reading.changes),
        split_of(reading.split),
        widths,
        _bytes(reading.between),
        _rest(rest),
        use=use,
    )
