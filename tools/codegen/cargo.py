"""Where Cargo finds a crate of this repository that a generated crate depends on.

The names of the repository's crates are nobody's on the public index: whoever registers one there
would be in every build that asks the index for it. A place is therefore never the public index.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from tools.codegen.conversion import Problem, UsageError

EXPECTED = "path=FOLDER, git=URL or registry=NAME,version=VERSION"
# How Cargo's configuration calls the index that everybody may publish to.
_PUBLIC = "crates-io"
# Cargo takes no other names of registries in its configuration.
_REGISTRY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class CratePlace:
    """Keys and values of a dependency's table.

    Attributes:
        key: `path`, `git` or `version`.
        value: The folder, the repository's URL, or the version.
        registry: The name that Cargo's configuration gives the registry of a version; it is not
            the public index. Empty for the other keys.
    """

    key: str
    value: str
    registry: str = ""

    def __post_init__(self) -> None:
        """Keeps a version from being looked for on the public index.

        Raises:
            ValueError: A version has no registry or the public one, or another key has one.
        """
        if (self.key == "version") != bool(self.registry) or self.registry == _PUBLIC:
            raise ValueError(f"expected {EXPECTED}, found {self}")

    @classmethod
    def parse(cls, text: str, flag: str, advice: str) -> CratePlace:
        """Reads `path=FOLDER`, `git=URL` or `registry=NAME,version=VERSION`.

        Args:
            text: The value of the flag.
            flag: Its name, for the error.
            advice: Why the flag is needed, for the error.

        Raises:
            UsageError: If it is none of the three, or has no value that can be printed. Also if the
                version would come from the public index.
        """
        key, _, value = text.partition("=")
        registry = ""
        if key == "registry":
            registry, _, rest = value.partition(",")
            key, _, value = rest.partition("=")
            key = key if key == "version" and _REGISTRY.fullmatch(registry) else ""
        # TOML has no escape for some of what can't be printed, and UTF-8 no bytes.
        if key not in ("path", "git", "version") or not value or not value.isprintable():
            found = f"found {text!r}" if text else "found nothing"
            raise UsageError(Problem(flag, f"expected {EXPECTED}, {found}", advice))
        if key == "version" and registry in ("", _PUBLIC):
            what = (
                f"{text} would be a package of the public index, where anybody may register a name"
            )
            how = f"expected registry=NAME,version={value} with a registry of yours, by its name in"
            raise UsageError(Problem(flag, what, f"{how} Cargo's configuration"))
        return cls(key, value, registry)

    def toml(self) -> str:
        """Returns what is in the braces of TOML, whose basic strings are those of JSON."""
        pairs = [(self.key, self.value)]
        if self.registry:
            pairs.append(("registry", self.registry))
        return ", ".join(f"{key} = {json.dumps(text, ensure_ascii=False)}" for key, text in pairs)
