"""Where Cargo finds a crate of this repository that a generated crate depends on."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tools.codegen.conversion import Problem, UsageError


@dataclass(frozen=True)
class CratePlace:
    """A key and a value of a dependency's table.

    Attributes:
        key: `path`, `git` or `version`.
        value: The folder, the repository's URL, or the version.
    """

    key: str
    value: str

    @classmethod
    def parse(cls, text: str, flag: str, advice: str) -> CratePlace:
        """Reads `KEY=VALUE`.

        Args:
            text: The value of the flag.
            flag: Its name, for the error.
            advice: Why the flag is needed, for the error.

        Raises:
            UsageError: If the key is not one of Cargo's three, or there is no value, or one that
                can't be printed.
        """
        key, _, value = text.partition("=")
        # TOML has no escape for some of what can't be printed, and UTF-8 no bytes.
        if key not in ("path", "git", "version") or not value or not value.isprintable():
            found = f"found {text!r}" if text else "found nothing"
            what = f"expected path=FOLDER, git=URL or version=VERSION, {found}"
            raise UsageError(Problem(flag, what, advice))
        return cls(key, value)

    def toml(self) -> str:
        """Returns the key and the value in TOML, whose basic strings are those of JSON."""
        return f"{self.key} = {json.dumps(self.value, ensure_ascii=False)}"
