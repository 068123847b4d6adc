"""Sizes that a call decides: integers as expressions over the dimensions that are open.

A `Size` stands wherever arithmetic takes an `int`, and to the type checker it is one. Its sums,
products, quotients and comparisons are again sizes, numbers and truth values. What can't be decided
for all calls is an `OpenSizeError`: it is refused, never guessed.

An expression is a sum of products of atoms, each with a whole factor. An atom is an open dimension,
which is at least 1, or the part of one that is a multiple. It may also be a quotient rounded down,
or what a size is above 0. Two sizes are equal if these sums are, so that a size is never equal to
a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, cast


class OpenSizeError(ValueError):
    """A number is needed, or an answer that depends on an open dimension."""


@dataclass(frozen=True)
class Unknown:
    """An open dimension: what a call has it to be, at least 1.

    Attributes:
        name: Its name.
        most: For a number that a call counts: it is at most this, and may be 0.
        by: The atom is the dimension divided by this, which leaves nothing.
    """

    name: str
    most: Any = None
    by: int = 1

    def __str__(self) -> str:
        """Returns its name, or `height/32`."""
        return self.name if self.by == 1 else f"{self.name}/{self.by}"


@dataclass(frozen=True)
class Floor:
    """A quotient, rounded down; the divisor is at least 2."""

    of: Size
    by: int

    def __str__(self) -> str:
        """Returns `(a + 1) // 2`."""
        text = str(self.of)
        return f"({text}) // {self.by}" if " " in text else f"{text} // {self.by}"


@dataclass(frozen=True)
class Above:
    """The larger one of a size and 0; calls differ in which that is."""

    of: Size

    def __str__(self) -> str:
        """Returns `max(steps - 4, 0)`."""
        return f"max({self.of!s}, 0)"


Atom: TypeAlias = Unknown | Floor | Above
# The factors of a product, sorted; a square has one twice.
Product: TypeAlias = tuple[Atom, ...]
# A sum whose factors may be parts of a whole.
Terms: TypeAlias = dict[Product, Fraction]
# Sizes above 0 within one; comparisons try two bounds of each.
_MOST_CHOICES = 8


class Size:
    """A sum of products of atoms, of which at least one has an atom.

    Attributes:
        terms: Each product with its factor, which is not 0, in one order.
    """

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Product, int]) -> None:
        """Takes the terms of a sum that is not a number; `_sum` gives either."""
        kept = [(product, factor) for product, factor in terms.items() if factor]
        self.terms = tuple(sorted(kept, key=lambda term: (-len(term[0]), _text(term[0]))))

    def __eq__(self, other: object) -> bool:
        """Returns whether both are the same sum."""
        return isinstance(other, Size) and self.terms == other.terms

    def __hash__(self) -> int:
        """Returns the hash of the sum."""
        return hash(self.terms)

    def __str__(self) -> str:
        """Returns the sum in words of arithmetic: `2*steps - 1`."""
        text = ""
        if len(self.terms) == 1 and self.terms[0][1] == 1 and len(self.terms[0][0]) == 1:
            return str(self.terms[0][0][0])
        for product, factor in sorted(self.terms, key=lambda term: term[1] < 0):
            sign = "-" if factor < 0 else "+" if text else ""
            sign = f" {sign} " if text else sign
            factors = [str(abs(factor))] if abs(factor) != 1 or not product else []
            text += sign + "*".join([*factors, *map(_atom_text, product)])
        return text

    __repr__ = __str__

    def __add__(self, other: Any) -> Any:
        """Returns the sum."""
        return _joined(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        """Returns the difference."""
        return _joined(self, other, -1)

    def __rsub__(self, other: Any) -> Any:
        """Returns the difference."""
        return -(self - other)

    def __neg__(self) -> Any:
        """Returns the number of the other sign."""
        return self * -1

    def __mul__(self, other: Any) -> Any:
        """Returns the product."""
        terms = _terms(other)
        if terms is None:
            return NotImplemented
        result: dict[Product, int] = {}
        for a, left in self.terms:
            for b, right in terms:
                product = tuple(sorted((*a, *b), key=str))
                result[product] = result.get(product, 0) + left * right
        return _sum(result)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        """Returns the quotient, rounded down; that of two sizes has to leave nothing."""
        if isinstance(other, Size):
            return _exact(self, other)
        if not _is_number(other):
            return NotImplemented
        by = int(other)
        if by < 0:
            return (-self) // -by
        if by == 0:
            raise ZeroDivisionError(f"{self!s} // 0")
        if by == 1:
            return self
        if self.terms[0][1] < 0:
            return -((by - 1 - self) // by)
        whole = _sum({product: factor // by for product, factor in self.terms})
        rest = _sum({product: factor % by for product, factor in self.terms})
        return whole + _quotient_of(rest, by) if isinstance(rest, Size) else whole

    def __rfloordiv__(self, other: Any) -> Any:
        """Returns the quotient of 0, which alone is known."""
        if _is_number(other) and other == 0:
            return 0
        raise OpenSizeError(f"{other} // ({self!s}) depends on an open dimension")

    def __mod__(self, other: Any) -> Any:
        """Returns what the quotient leaves."""
        if isinstance(other, Size):
            _exact(self, other)
            return 0
        if not _is_number(other):
            return NotImplemented
        return self - self // other * other

    def __divmod__(self, other: Any) -> Any:
        """Returns the quotient and what it leaves."""
        return self // other, self % other

    def __pow__(self, exponent: int) -> Any:
        """Returns a power; the exponent is not negative."""
        return math.prod([self] * exponent)

    def __ge__(self, other: Any) -> bool:
        """Returns whether it is at least as large in every call."""
        gap = self - other
        if _is_number(gap):
            return bool(gap >= 0)
        # An integer above -1 is not negative.
        if (least := _least(gap)) is not None and least > -1:
            return True
        if (most := _most(gap)) is not None and most < 0:
            return False
        raise OpenSizeError(f"it depends on an open dimension whether {self!s} >= {other!s}")

    def __gt__(self, other: Any) -> bool:
        """Returns whether it is larger in every call."""
        return bool(self >= other + 1)

    def __lt__(self, other: Any) -> bool:
        """Returns whether it is smaller in every call."""
        return not self >= other

    def __le__(self, other: Any) -> bool:
        """Returns whether it is at most as large in every call."""
        return not self >= other + 1

    def __bool__(self) -> bool:
        """Returns whether it is not 0 in every call."""
        return self >= 1

    def __format__(self, spec: str) -> str:
        """Refuses to be written where a number is expected; `str` gives the expression."""
        raise OpenSizeError(f"{self!s} must be known")

    def __index__(self) -> int:
        """Refuses to be a number."""
        raise OpenSizeError(f"{self!s} must be known")

    __int__ = __float__ = __index__

    @property
    def name(self) -> str:
        """Returns the name of an open dimension; nothing of another expression."""
        name, by = self.whole
        return name if by == 1 else ""

    @property
    def whole(self) -> tuple[str, int]:
        """Returns the open dimension that it is, and of what that is a multiple; else no name."""
        (product, factor), *others = self.terms
        atom = product[0] if len(product) == 1 else None
        if isinstance(atom, Unknown) and factor == atom.by and not others:
            return atom.name, atom.by
        return "", 1

    def at(self, sizes: Mapping[str, int]) -> int:
        """Returns the number for the open dimensions of a call, by name."""
        return sum(
            factor * math.prod(_atom_at(atom, sizes) for atom in product)
            for product, factor in self.terms
        )

    def atoms(self) -> Iterator[Atom]:
        """Yields the atoms, those inside of quotients first."""
        for product, _ in self.terms:
            for atom in product:
                if not isinstance(atom, Unknown):
                    yield from atom.of.atoms()
                yield atom

    def with_atoms(self, change: Mapping[str, int]) -> int:
        """Returns the expression with numbers or sizes in the places of open dimensions.

        Raises:
            ValueError: A number is not the multiple that it has to be.
        """
        total: Any = 0
        for product, factor in self.terms:
            part: Any = factor
            for atom in product:
                if isinstance(atom, Floor):
                    part = part * (cast(Any, atom.of.with_atoms(change)) // atom.by)
                elif isinstance(atom, Above):
                    part = part * maximum(atom.of.with_atoms(change), 0)
                elif atom.name in change:
                    part = part * _divided(change[atom.name], atom)
                else:
                    part = part * Size({(atom,): 1})
            total = total + part
        return cast(int, total)


def unknown(name: str, most: int | None = None) -> int:
    """Returns the size that is an open dimension, or one that a call counts up to a size."""
    return cast(int, Size({(Unknown(name, most),): 1}))


def multiple(name: str, by: int) -> int:
    """Returns the size that is an open dimension, which is a multiple of a number."""
    return cast(int, Size({(Unknown(name, None, by),): by}))


def names_of(size: Size) -> list[str]:
    """Returns the open dimensions in a size, each once, in order."""
    return list(dict.fromkeys(atom.name for atom in size.atoms() if isinstance(atom, Unknown)))


def _divided(size: int, part: Unknown) -> int:
    """Returns the part of a dimension of some size.

    Raises:
        ValueError: The size is not the multiple that it has to be.
    """
    if not isinstance(size, Size) and size % part.by:
        raise ValueError(f"{part.name} is {size}, which is not a multiple of {part.by}")
    return size // part.by


def is_open(size: object) -> bool:
    """Returns whether a size depends on an open dimension."""
    return isinstance(size, Size)


def counted(size: object) -> list[Unknown]:
    """Returns the numbers in a size that a call counts."""
    atoms = size.atoms() if isinstance(size, Size) else ()
    return [atom for atom in atoms if isinstance(atom, Unknown) and atom.most is not None]


def surely(answer: Callable[[], bool]) -> bool:
    """Returns an answer, or false if calls differ in it."""
    try:
        return answer()
    except OpenSizeError:
        return False


def size_at(size: int, sizes: Mapping[str, int]) -> int:
    """Returns the number that a size is for the open dimensions of a call, by name."""
    return size.at(sizes) if isinstance(size, Size) else size


def maximum(a: int, b: int) -> int:
    """Returns the larger number of every call.

    Raises:
        OpenSizeError: It depends on too many numbers which one that is.
    """
    gap: Any = a - b
    if surely(lambda: gap >= 0):
        return a
    if surely(lambda: gap <= 0):
        return b
    # One expression, whichever comes first.
    if gap.terms[0][1] < 0:
        gap, b = -gap, a
    if sum(isinstance(atom, Above) for atom in gap.atoms()) >= _MOST_CHOICES:
        raise OpenSizeError(f"the larger of {a!s} and {b!s} is not known")
    return b + cast(int, Size({(Above(gap),): 1}))


def minimum(a: int, b: int) -> int:
    """Returns the smaller number of every call.

    Raises:
        OpenSizeError: As `maximum`.
    """
    return a + b - maximum(a, b)


def largest(a: int, b: int) -> int:
    """Returns the larger number; where that is open, a number that is at least as large as both."""
    try:
        return max(a, b)
    except OpenSizeError:
        return a + b


def smallest(a: int, b: int) -> int:
    """Returns the smaller number; where that is open, the first one."""
    try:
        return min(a, b)
    except OpenSizeError:
        return a


def _atom_text(atom: Atom) -> str:
    whole = isinstance(atom, Above) or (isinstance(atom, Unknown) and atom.by == 1)
    return str(atom) if whole else f"({atom})"


def _atom_at(atom: Atom, sizes: Mapping[str, int]) -> int:
    if isinstance(atom, Unknown):
        return sizes[atom.name] // atom.by
    if isinstance(atom, Above):
        return max(atom.of.at(sizes), 0)
    return atom.of.at(sizes) // atom.by


def _text(product: Product) -> str:
    return "*".join(map(str, product))


def _is_number(value: object) -> bool:
    return not isinstance(value, Size | float) and hasattr(value, "__index__")


def _terms(value: Any) -> tuple[tuple[Product, int], ...] | None:
    """Returns the terms of a size or of an integer."""
    if isinstance(value, Size):
        return value.terms
    return (((), int(value)),) if _is_number(value) else None


def _sum(terms: Mapping[Product, int]) -> Any:
    """Returns a sum of terms: a number where there are no atoms left."""
    kept = {product: factor for product, factor in terms.items() if factor}
    return Size(kept) if any(kept) else kept.get((), 0)


def _joined(a: Size, b: Any, sign: int) -> Any:
    terms = _terms(b)
    if terms is None:
        return NotImplemented
    result = dict(a.terms)
    for product, factor in terms:
        result[product] = result.get(product, 0) + sign * factor
    return _sum(result)


def _quotient_of(rest: Size, by: int) -> Any:
    """Returns a quotient whose factors are below the divisor; one of a quotient becomes one."""
    product, factor = rest.terms[0]
    constant = rest - Size({product: factor})
    if len(product) == 1 and factor == 1 and not isinstance(constant, Size):
        (inner,) = product
        if isinstance(inner, Floor):
            return (cast(Any, inner.of) + constant * inner.by) // (inner.by * by)
    return Size({(Floor(rest, by),): 1})


def _exact(a: Size, b: Size) -> Any:
    """Returns the quotient of two sizes by long division.

    Raises:
        OpenSizeError: It leaves something.
    """
    quotient: Any = 0
    rest: Any = a
    product, factor = b.terms[0]
    while isinstance(rest, Size):
        left, many = rest.terms[0]
        atoms = list(left)
        fits = many % factor == 0 and all(atom in left for atom in product)
        for atom in product if fits else ():
            if atom not in atoms:
                fits = False
                break
            atoms.remove(atom)
        if not fits:
            break
        part = _sum({tuple(atoms): many // factor})
        quotient, rest = quotient + part, rest - part * b
    if isinstance(rest, Size) or rest:
        raise OpenSizeError(f"({a!s}) / ({b!s}) is not whole for every open dimension")
    return quotient


def _least(size: Size) -> Fraction | None:
    """Returns a bound that the size is never below, if one is found."""
    return _least_of({product: Fraction(factor) for product, factor in size.terms})


def _least_of(terms: Terms) -> Fraction | None:
    found = _bounded(terms)
    if found is None:
        return _least_of_products(terms)
    product, place = found
    factor, atom = terms[product], product[place]
    others = product[:place] + product[place + 1 :]
    for other in others:  # Factors that are not negative.
        least = Fraction(0) if isinstance(other, Unknown | Above) else _least(Size({(other,): 1}))
        if least is None or least < 0:
            return None
    rest = {key: value for key, value in terms.items() if key != product}
    bounds = [_added(rest, bound, factor, others) for bound in _bounds(atom, factor > 0)]
    found_least = [least for least in map(_least_of, bounds) if least is not None]
    return max(found_least, default=None)


def _bounds(atom: Atom, lower: bool) -> list[Terms]:
    """Returns what an atom with a size inside is never below, or never above."""
    assert not isinstance(atom, Unknown)
    inner = {product: Fraction(factor) for product, factor in atom.of.terms}
    if isinstance(atom, Floor):  # (n - by + 1) / by <= n // by <= n / by
        if lower:
            inner[()] = inner.get((), Fraction(0)) - (atom.by - 1)
        return [{product: factor / atom.by for product, factor in inner.items()}]
    if lower:
        return [{}, inner]
    # max(p - n, 0) <= p - min(p, n), each of which has a least number.
    parts = [
        {product: abs(factor) for product, factor in inner.items() if (factor > 0) is positive}
        for positive in (True, False)
    ]
    least = [_least_of(part) for part in parts]
    if any(bound is None or bound < 0 for bound in least):
        return []
    both = min(bound for bound in least if bound is not None)
    return [{**parts[0], (): parts[0].get((), Fraction(0)) - both}]


def _added(terms: Terms, part: Terms, factor: Fraction, atoms: Product) -> Terms:
    """Returns a sum and a product of another sum."""
    result = dict(terms)
    for inner, many in part.items():
        key = tuple(sorted((*inner, *atoms), key=str))
        result[key] = result.get(key, Fraction(0)) + factor * many
    return result


def _least_of_products(terms: Terms) -> Fraction | None:
    # With every open dimension as 1 more than what is not negative, the bound is the constant. What
    # a call counts is only not negative.
    shifted: dict[Product, Fraction] = {}
    for product, factor in terms.items():
        for chosen in range(1 << len(product)):
            if any(counted(Size({(a,): 1})) and not chosen >> i & 1 for i, a in enumerate(product)):
                continue
            key = tuple(atom for i, atom in enumerate(product) if chosen >> i & 1)
            shifted[key] = shifted.get(key, Fraction(0)) + factor
    constant = shifted.pop((), Fraction(0))
    return constant if all(factor >= 0 for factor in shifted.values()) else None


def _most(size: Size) -> Fraction | None:
    negative = -size
    least = _least(negative)
    return None if least is None else -least


def _bounded(terms: Terms) -> tuple[Product, int] | None:
    """Returns a product with an atom that has a size inside, and where it is."""
    for product in terms:
        for place, atom in enumerate(product):
            if not isinstance(atom, Unknown):
                return product, place
    return None
