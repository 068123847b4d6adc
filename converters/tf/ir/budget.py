"""How much a conversion may compute: one budget for all constants that a model makes of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

# Elements that computed constants may read and write in all, for each byte that a model stores.
_PER_BYTE = 64
# The same for a model of no bytes.
_FREE = 1 << 30
# Elements that a computed constant costs at least: nodes of few elements cost time, too.
_LEAST = 1000


@dataclass
class _Budget:
    """What is left.

    Attributes:
        left: Elements that may still be read and written.
        refuse: Gives the error to raise, for the layer that passes the budget.
    """

    left: int
    refuse: Callable[[str], Exception]


_CURRENT: ContextVar[_Budget | None] = ContextVar("budget", default=None)


@contextmanager
def limited(stored: int, refuse: Callable[[str], Exception]) -> Iterator[None]:
    """Gives what runs inside a budget; without one, nothing is limited.

    Args:
        stored: Bytes of the model.
        refuse: Gives the error to raise, for the layer that passes the budget.
    """
    token = _CURRENT.set(_Budget(_FREE + _PER_BYTE * stored, refuse))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def grant(stored: int) -> None:
    """Adds to the budget for the bytes that a model stores outside of its file."""
    budget = _CURRENT.get()
    if budget is not None:
        budget.left += _PER_BYTE * stored


def spend(elements: int, where: str) -> None:
    """Takes what a computed constant costs.

    Args:
        elements: How many elements it reads and writes.
        where: Its layer.

    Raises:
        Exception: That of the budget, which is spent.
    """
    budget = _CURRENT.get()
    if budget is None:
        return
    budget.left -= max(elements, _LEAST)
    if budget.left < 0:
        raise budget.refuse(where)
