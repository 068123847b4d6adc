"""Changes of bytes and of trees of plain values."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

NUMBERS = (
    *(0, 1, -1, 2, 3, 4, 7, 8, 16, 17, 127, 128, 255, 256, -2, -128),
    *(2**15, 2**16, 2**20, 2**24, 2**28, 2**31 - 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1),
    *(-(2**31), -(2**63)),
)
"""Integers at which something ends."""

FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-30, 1e30, 0.5, 3.0, float("inf"), float("-inf"), float("nan"))
"""Floats at which something ends."""

TEXTS = (
    *("", "x", "fn", "self", "../../x", "/etc/passwd", "a/b", "a\nb", "\0", "\ud7ff", "1", "-1"),
    *("x" * 300, "\u00e9\U0001f600", "a\u202eb", "\u2028", "*/ fn f() {} /*", '"; fn f() {} //'),
    *("lambda x: x", "{}", "{{ x }}", "float32", "__class__", "a:0", "^a", "a:1:2", "%s%n"),
)
"""Texts that mean something somewhere."""


def number(choose: random.Random, old: int) -> int:
    """Returns an integer in place of another."""
    kind = choose.random()
    if kind < 0.4:
        return choose.choice(NUMBERS)
    if kind < 0.8:
        return old + choose.choice((-2, -1, 1, 2))
    return choose.choice((old * 2, -old, old // 2, choose.randint(-300, 300)))


def text(choose: random.Random, old: str) -> str:
    """Returns a text in place of another."""
    kind = choose.random()
    if kind < 0.6 or not old:
        return choose.choice(TEXTS)
    at = choose.randrange(len(old) + 1)
    if kind < 0.8:
        return old[:at] + choose.choice(TEXTS) + old[at:]
    return old[:at] + old[at + 1 :]


def octets(choose: random.Random, old: bytes) -> bytes:
    """Returns bytes with one change: a few others, a part twice, a part less, an early end."""
    if not old:
        return choose.choice((b"\0", b"\xff" * 8, b"x"))
    data = bytearray(old)
    at = choose.randrange(len(data))
    size = min(len(data) - at, choose.choice((1, 1, 2, 4, 8, 64)))
    kind = choose.random()
    if kind < 0.4:
        data[at] ^= 1 << choose.randrange(8)
    elif kind < 0.7:
        data[at : at + size] = choose.choice((b"\0", b"\xff", b"\x7f", b"\x80")) * size
    elif kind < 0.8:
        data[at:at] = data[at : at + size]
    elif kind < 0.9:
        del data[at : at + size]
    elif kind < 0.95:
        other = choose.randrange(len(data))
        data[at : at + size] = data[other : other + size]
    else:
        del data[at:]
    return bytes(data)


def places(item: Any) -> Iterator[tuple[Any, Any]]:
    """Yields every place in a tree of dicts and lists: what holds it, and its key."""
    stack = [item]
    while stack:
        holder = stack.pop()
        for key, value in holder.items() if isinstance(holder, dict) else enumerate(holder):
            yield holder, key
            if isinstance(value, dict | list):
                stack.append(value)


def tree(choose: random.Random, item: Any) -> None:
    """Changes one place of a tree of dicts and lists."""
    found = list(places(item))
    if not found:
        return
    holder, key = choose.choice(found)
    kind = choose.random()
    if kind < 0.15:
        del holder[key]
    elif kind < 0.3 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    elif kind < 0.5:
        other, name = choose.choice(found)
        holder[key] = copy.deepcopy(other[name])
    else:
        holder[key] = value(choose, holder[key])


def value(choose: random.Random, old: Any) -> Any:
    """Returns a plain value in place of another, mostly of the same type."""
    if choose.random() < 0.15:
        return choose.choice((None, [], {}, True, 0, 7.5, "x", [[1]], ["a", 0, 0]))
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return number(choose, old)
    if isinstance(old, float):
        return choose.choice((*FLOATS, old * 2, -old))
    if isinstance(old, str):
        return text(choose, old)
    return choose.choice((None, [], {}, 0, -1, "", "x"))
