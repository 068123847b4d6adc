"""Builds a wheel: files, metadata, licences, bill of materials, and a record of them.

Equal inputs give equal bytes. A tag that promises an older C library than a shared library in the
wheel needs is an error.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Final

from tools.package import elf, sbom

LICENCE: Final = "Apache-2.0"
_TIME: Final = (1980, 1, 1, 0, 0, 0)
_GLIBC_TAG: Final = re.compile(r"manylinux_(\d+)_(\d+)_(x86_64|aarch64)$")


class WheelError(Exception):
    """The inputs make no wheel that tells the truth; the message says why."""


@dataclasses.dataclass(frozen=True)
class Wheel:
    """What a wheel says of itself.

    Attributes:
        distribution: Name of the distribution.
        version: Its version.
        tag: Python, ABI and platform, such as `py3-none-any`.
        summary: One line.
        python: Versions of Python that it serves, such as `>=3.10`.
        licence: Its licence as an SPDX expression.
        authors: Who answers for it.
        keywords: What it is found by.
        classifiers: Its classifiers in the package index.
        urls: Addresses by label.
        requires: Distributions that it needs.
        scripts: Console scripts: name -> `module:function`.
        readme: Text in Markdown.
        licences: Licence files by name.
        parts: Components beside the wheel's own files.
    """

    distribution: str
    version: str
    tag: str
    summary: str
    python: str
    licence: str = LICENCE
    authors: Sequence[str] = ()
    keywords: Sequence[str] = ()
    classifiers: Sequence[str] = ()
    urls: Mapping[str, str] = dataclasses.field(default_factory=dict)
    requires: Sequence[str] = ()
    scripts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    readme: str = ""
    licences: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    parts: Sequence[sbom.Component] = ()

    def stem(self) -> str:
        """Returns distribution and version as file names have them."""
        return f"{re.sub(r'[-_.]+', '_', self.distribution).lower()}-{self.version}"

    def file_name(self) -> str:
        """Returns the name that installers expect."""
        return f"{self.stem()}-{self.tag}.whl"


def rename_modules(files: Mapping[str, bytes], names: Mapping[str, str]) -> dict[str, bytes]:
    """Moves Python packages to other names, in paths and in imports.

    Args:
        files: Contents by path.
        names: Dotted package -> its new dotted name.

    Returns:
        The files under their new paths. In Python files the statements that import a renamed
        package name it anew; code that spells a module's name in a string is not looked at.
    """
    renamed = {}
    for path, data in files.items():
        for old, new in names.items():
            prefix = old.replace(".", "/") + "/"
            if path.startswith(prefix):
                path = new.replace(".", "/") + "/" + path.removeprefix(prefix)
                break
        if path.endswith(".py"):
            text = data.decode()
            for old, new in names.items():
                text = re.sub(
                    rf"^(\s*(?:from|import)\s+){re.escape(old)}(?=[.\s])",
                    rf"\g<1>{new}",
                    text,
                    flags=re.MULTILINE,
                )
            data = text.encode()
        renamed[path] = data
    return renamed


def build(wheel: Wheel, files: Mapping[str, bytes]) -> bytes:
    """Builds a wheel.

    Args:
        wheel: Its metadata.
        files: Contents by path in the wheel.

    Returns:
        The contents of the archive.

    Raises:
        WheelError: If a library needs a newer C library than the tag promises, or is for another
            processor.
    """
    parts = [*wheel.parts, *_check_libraries(wheel, files)]
    info = f"{wheel.stem()}.dist-info"
    package = sbom.Component(
        wheel.distribution,
        wheel.version,
        wheel.licence,
        f"pkg:pypi/{wheel.distribution}@{wheel.version}",
    )
    whole = dict(files)
    for name, data in wheel.licences.items():
        whole[f"{info}/licenses/{name}"] = data
    whole[f"{info}/sboms/{wheel.distribution}.cdx.json"] = sbom.document(package, parts, files)
    whole[f"{info}/METADATA"] = metadata(wheel).encode()
    pure = "true" if wheel.tag.endswith("-any") else "false"
    whole[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: tfp\nRoot-Is-Purelib: {pure}\nTag: {wheel.tag}\n"
    ).encode()
    if wheel.scripts:
        lines = [f"{name} = {target}" for name, target in sorted(wheel.scripts.items())]
        whole[f"{info}/entry_points.txt"] = "\n".join(["[console_scripts]", *lines, ""]).encode()
    record = f"{info}/RECORD"
    rows = [f"{name},{_digest(data)},{len(data)}" for name, data in sorted(whole.items())]
    whole[record] = "\n".join([*rows, f"{record},,", ""]).encode()
    return _archive(whole, info)


def _check_libraries(wheel: Wheel, files: Mapping[str, bytes]) -> list[sbom.Component]:
    """Compares the tag with the libraries; returns what they have inside."""
    platform = _GLIBC_TAG.search(wheel.tag)
    promised = (int(platform[1]), int(platform[2])) if platform else (0, 0)
    versions = set()
    for name, data in files.items():
        if not name.endswith(".so"):
            continue
        try:
            needed = elf.needed_glibc(data)
            machine = elf.machine(data)
        except elf.ElfError as error:
            raise WheelError(f"{name}: {error}") from error
        if platform is None or needed > promised or machine != platform[3]:
            raise WheelError(
                f"{name} needs glibc {needed[0]}.{needed[1]} on {machine}, but the wheel's tag is "
                f"{wheel.tag}: expected manylinux_{needed[0]}_{needed[1]}_{machine} or later"
            )
        version = elf.rust_version(data)
        if version is not None:
            versions.add(version)
    return [sbom.rust_standard_library(version) for version in sorted(versions)]


def metadata(wheel: Wheel) -> str:
    """Returns the core metadata: the file METADATA of a wheel, PKG-INFO of its sources."""
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {wheel.distribution}",
        f"Version: {wheel.version}",
        f"Summary: {wheel.summary}",
        *([f"Author: {', '.join(wheel.authors)}"] if wheel.authors else []),
        f"License-Expression: {wheel.licence}",
        *(f"License-File: {name}" for name in sorted(wheel.licences)),
        *([f"Keywords: {','.join(wheel.keywords)}"] if wheel.keywords else []),
        *(f"Classifier: {classifier}" for classifier in sorted(wheel.classifiers)),
        *(f"Project-URL: {label}, {url}" for label, url in sorted(wheel.urls.items())),
        f"Requires-Python: {wheel.python}",
        *(f"Requires-Dist: {requirement}" for requirement in wheel.requires),
        *sorted({f"Provides-Extra: {match}" for match in _extras(wheel.requires)}),
    ]
    if wheel.readme:
        lines += ["Description-Content-Type: text/markdown", "", wheel.readme]
    return "\n".join(lines).rstrip("\n") + "\n"


def _extras(requires: Sequence[str]) -> list[str]:
    return [name for one in requires for name in re.findall(r"extra == ['\"]([\w-]+)['\"]", one)]


def _digest(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return f"sha256={digest.rstrip(b'=').decode()}"


def _archive(files: Mapping[str, bytes], info: str) -> bytes:
    """Packs the files, the folder of metadata last as installers like it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files, key=lambda name: (name.startswith(info), name)):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            entry.create_system = 3
            archive.writestr(entry, files[name])
    return buffer.getvalue()
