"""What a wheel says of itself, from the table `[project]` of a TOML file.

The table is that of `pyproject.toml`, as the packaging guide of Python specifies it; its version is
dynamic, because all packages of this repository have one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tools.package import sbom, wheel

_NEEDED: Final = ("name", "description", "requires-python", "license", "authors", "readme")
_KNOWN: Final = frozenset(
    {
        *_NEEDED,
        "classifiers",
        "dependencies",
        "dynamic",
        "keywords",
        "optional-dependencies",
        "scripts",
        "urls",
    }
)


def described(
    text: str,
    *,
    version: str,
    tag: str,
    readme: str,
    licences: Mapping[str, bytes],
    parts: Sequence[sbom.Component] = (),
) -> wheel.Wheel:
    """Reads a project.

    Args:
        text: A TOML file with a table `[project]`.
        version: The version of all packages.
        tag: Python, ABI and platform, such as `py3-none-any`.
        readme: Text in Markdown.
        licences: Licence files by name.
        parts: Components beside the wheel's own files.

    Raises:
        wheel.WheelError: If the table is not there, lacks a key, or has one that is not known here.
    """
    try:
        table: dict[str, Any] = tomllib.loads(text).get("project", {})
    except tomllib.TOMLDecodeError as error:
        raise wheel.WheelError(f"the project is not in TOML: {error}") from error
    missing = [key for key in _NEEDED if not table.get(key)]
    unknown = sorted(set(table) - _KNOWN)
    if missing or unknown:
        faults = [f"lacks {', '.join(missing)}"] if missing else []
        faults += [f"has {', '.join(unknown)}, not known here"] if unknown else []
        raise wheel.WheelError(f"the table [project] {' and '.join(faults)}")
    if table.get("dynamic") != ["version"]:
        raise wheel.WheelError('the table [project] needs dynamic = ["version"]')
    extras = [
        f"{requirement}; extra == '{extra}'"
        for extra, requirements in table.get("optional-dependencies", {}).items()
        for requirement in requirements
    ]
    return wheel.Wheel(
        distribution=table["name"],
        version=version,
        tag=tag,
        summary=table["description"],
        python=table["requires-python"],
        licence=table["license"],
        authors=[author["name"] for author in table["authors"]],
        keywords=table.get("keywords", []),
        classifiers=table.get("classifiers", []),
        urls=table.get("urls", {}),
        requires=sorted([*table.get("dependencies", []), *extras]),
        scripts=table.get("scripts", {}),
        readme=readme,
        licences=licences,
        parts=parts,
    )
