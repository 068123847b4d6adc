"""What a WebAssembly module says about its memory."""

from __future__ import annotations

from collections.abc import Iterator

_MAGIC = b"\0asm\1\0\0\0"
_IMPORTS = 2
# Kinds of imports.
_FUNCTION, _TABLE, _MEMORY, _GLOBAL = range(4)


class _Reader:
    """Reads numbers from bytes; behind the end it raises `IndexError`."""

    def __init__(self, content: bytes, at: int = 0) -> None:
        self.content = content
        self.at = at

    def number(self) -> int:
        """Returns an unsigned LEB128 number."""
        value = shift = 0
        while True:
            byte = self.content[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def skip(self) -> None:
        """Passes bytes that have their number in front."""
        length = self.number()
        self.at += length


def imported_pages(module: bytes) -> int:
    """Returns how many pages of 64 KiB a module asks of the memory that it imports.

    Source: WebAssembly Core Specification, section 5.5, "Modules".

    Raises:
        ValueError: The bytes are not a module, or it imports no memory.
    """
    try:
        return next(_memories(module))
    except (IndexError, StopIteration) as err:
        raise ValueError("the module imports no memory") from err


def _memories(module: bytes) -> Iterator[int]:
    if not module.startswith(_MAGIC):
        raise ValueError("not a WebAssembly module")
    reader = _Reader(module, len(_MAGIC))
    while reader.number() != _IMPORTS:
        reader.skip()
    reader.number()
    for _ in range(reader.number()):
        reader.skip()
        reader.skip()
        kind = reader.number()
        if kind == _FUNCTION:
            reader.number()
        elif kind == _MEMORY:
            reader.number()
            yield reader.number()
        else:
            raise ValueError("the module imports more than functions and a memory")
