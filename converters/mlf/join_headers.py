"""The headers of an archive that the C of a model includes."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from converters.mlf.parse.archive import Archive
from converters.mlf.parse.c_source import included
from converters.mlf.rules import OWN_HEADERS, STANDARD_HEADERS

SRC = "codegen/host/src/"
INCLUDE = "codegen/host/include/"
INTERFACE = re.compile(re.escape(INCLUDE) + r"tvmgen_[^/]*\.h")


@dataclass(frozen=True)
class Headers:
    """The headers that a model's C includes.

    Attributes:
      extra: path under the archive's include folder -> text.
      beside: path under the folder of the sources -> text.
      missing: names that lead to no member of the archive.
    """

    extra: Mapping[str, str] = field(default_factory=dict)
    beside: Mapping[str, str] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of all of them."""
        return (*self.extra.values(), *self.beside.values())


def headers_of(archive: Archive, sources: Mapping[str, str]) -> Headers:
    """Follows the includes of the sources, and of the headers that they lead to."""
    extra: dict[str, str] = {}
    beside: dict[str, str] = {}
    missing: set[str] = set()
    waiting = [(SRC + name, text) for name, text in sorted(sources.items())]
    seen = {member for member, _ in waiting}
    while waiting:
        includer, text = waiting.pop()
        for name, quoted in included(text):
            if name in OWN_HEADERS | STANDARD_HEADERS:
                continue
            # A name in quotes is looked for beside the file that has it first.
            folders = [f"{posixpath.dirname(includer)}/"] if quoted else []
            places = [posixpath.normpath(folder + name) for folder in (*folders, INCLUDE)]
            member = next((p for p in places if p in archive.files), None)
            if member is None:
                missing.add(name)
            elif member not in seen and not INTERFACE.fullmatch(member):
                seen.add(member)
                into, folder = (extra, INCLUDE) if member.startswith(INCLUDE) else (beside, SRC)
                if not member.startswith(folder):
                    missing.add(name)
                    continue
                into[member.removeprefix(folder)] = archive.text(member)
                waiting.append((member, archive.text(member)))
    return Headers(extra, beside, frozenset(missing))
