"""Names of a model's inputs, also where Keras had none for them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

# What Keras calls a tensor without a name: by how many there were before in the process.
_NO_NAME = re.compile(r"keras_tensor(?:_(\d+))?")


def input_names(names: Sequence[str]) -> list[str]:
    """Returns the names of inputs, in order.

    Those that have no name are `input`, `input_2` and so on, as far as no other has that name.
    """
    taken = set(names)
    numbers = itertools.count(1)
    free = (n for n in (f"input_{i}" if i > 1 else "input" for i in numbers) if n not in taken)
    return [next(free) if _NO_NAME.fullmatch(name) else name for name in names]


def in_order(named: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Returns inputs of a signature, which has them by the alphabet, `_10` before `_9`.

    Those that have no name change places, so that they come as Keras made them.
    """
    numbers = {
        place: int(found[1] or 0)
        for place, (name, _) in enumerate(named)
        if (found := _NO_NAME.fullmatch(name)) is not None
    }
    result = list(named)
    for place, source in zip(numbers, sorted(numbers, key=numbers.__getitem__), strict=True):
        result[place] = named[source]
    return result
