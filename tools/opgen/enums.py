"""One shared Rust enum per distinct set of allowed strings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tools.codegen import names
from tools.opgen import rules
from tools.opgen.model import AttrDef, OpDef


@dataclass(frozen=True)
class RustEnum:
    """An enum.

    Attributes:
        name: Its name.
        variants: Variant and string, in the order of the op that is first by name.
        uses: Ops and attributes that take it, as `Op.attribute`, sorted.
        wider_than: Names of enums whose every value this one has too; they convert to it.
    """

    name: str
    variants: tuple[tuple[str, str], ...]
    uses: tuple[str, ...]
    wider_than: tuple[str, ...]

    @property
    def attrs(self) -> tuple[str, ...]:
        """The names of the attributes that take it, sorted."""
        return tuple(sorted({use.split(".")[1] for use in self.uses}))


def allowed_strings(attr: AttrDef) -> tuple[str, ...]:
    """Returns the allowed values of a string attribute; empty for any other attribute."""
    if attr.type != "string":
        return ()
    return tuple(v.decode("utf-8") for v in attr.allowed if isinstance(v, bytes))


def variant(value: str) -> str:
    """Returns the name of the variant of a value: `NCHW_VECT_C` gives `NchwVectC`."""
    if value in rules.VARIANTS:
        return rules.VARIANTS[value]
    name = names.camel_case(value)
    return name if names.is_identifier(name) else "V" + name


class Enums:
    """All enums of a crate."""

    def __init__(self, enums: dict[frozenset[str], RustEnum]) -> None:
        """Takes the enums by their set of values."""
        self._enums = enums

    @classmethod
    def of_ops(cls, ops: Iterable[OpDef]) -> Enums:
        """Makes one enum per distinct set of allowed strings of some ops."""
        found: dict[frozenset[str], list[tuple[OpDef, AttrDef]]] = {}
        for op in ops:
            for attr in op.attrs:
                values = allowed_strings(attr)
                if values:
                    found.setdefault(frozenset(values), []).append((op, attr))
        named = {
            values: rules.enum_name(values)
            or names.camel_case(uses[0][0].name) + names.camel_case(uses[0][1].name)
            for values, uses in found.items()
        }
        return cls(
            {
                values: RustEnum(
                    name=named[values],
                    variants=tuple((variant(v), v) for v in allowed_strings(uses[0][1])),
                    uses=tuple(sorted(f"{op.name}.{attr.name}" for op, attr in uses)),
                    wider_than=tuple(
                        sorted(
                            named[other]
                            for other in found
                            if other < values and _same_attr(found[other], uses)
                        )
                    ),
                )
                for values, uses in found.items()
            }
        )

    @property
    def all(self) -> tuple[RustEnum, ...]:
        """All enums by name."""
        return tuple(sorted(self._enums.values(), key=lambda enum: enum.name))

    def of(self, attr: AttrDef) -> RustEnum | None:
        """Returns the enum of an attribute, or None for one without."""
        values = allowed_strings(attr)
        return self._enums[frozenset(values)] if values else None


def _same_attr(one: list[tuple[OpDef, AttrDef]], other: list[tuple[OpDef, AttrDef]]) -> bool:
    return bool({attr.name for _, attr in one} & {attr.name for _, attr in other})
