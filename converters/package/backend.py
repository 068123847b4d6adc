"""Builds the wheel of the converters without Bazel, for pip: a backend as PEP 517 has it.

`pip install git+ADDRESS#subdirectory=converters/package`, `pip install .` at the root of a
checkout, and a source distribution all come here. A test compares the wheel with that of Bazel.
"""

from __future__ import annotations

import gzip
import io
import pathlib
import runpy
import sys
import tarfile
from collections.abc import Iterator
from typing import Any, Final

# pip looks at `requires-python` only after it has come here.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit(f"tfp-converters: this is Python {sys.version.split()[0]}, expected 3.11 or newer")

ROOT: Final = pathlib.Path(__file__).resolve().parents[2]
HERE: Final = "converters/package"
FILES: Final = (
    # Folder, patterns below it, and the folder of the wheel that they go to.
    (HERE, ("console.py",), "tfp_converters"),
    ("converters/mlf", ("*.py", "parse/*.py", "templates/**/*"), "converters/mlf"),
    ("converters/runtime", ("src/**/*.rs",), "tfp_converters/converters/runtime"),
    ("converters/tf", ("**/*.py", "templates/**/*"), "converters/tf"),
    ("converters/tokenizer", ("*.py", "load/*.py", "templates/**/*"), "converters/tokenizer"),
    ("kernels", ("src/**/*.rs",), "tfp_converters/kernels"),
    ("tools/codegen", ("*.py",), "tools/codegen"),
)
"""The attribute `files` of `//converters/package:wheel`."""
LEFT_OUT: Final = (
    "converters/tf/tests/**",
    "tools/codegen/*_test.py",
    "tools/codegen/rust_code.py",
)
RENAMED: Final = {
    "converters": "tfp_converters.converters",
    "tools": "tfp_converters.tools",
}
"""Its attribute `rename`."""
OWN: Final = (
    "LICENSE",
    f"{HERE}/README.md",
    f"{HERE}/backend.py",
    f"{HERE}/pyproject.toml",
    "pyproject.toml",
    "tools/build/version.bzl",
    "tools/package/__init__.py",
    "tools/package/elf.py",
    "tools/package/project.py",
    "tools/package/sbom.py",
    "tools/package/wheel.py",
)
"""What else a source distribution needs to build the wheel."""


def _sources() -> Iterator[tuple[str, str]]:
    """Yields the files of the wheel: where they are in the checkout, where they go."""
    for folder, patterns, target in FILES:
        for pattern in patterns:
            for path in sorted((ROOT / folder).glob(pattern)):
                where = path.relative_to(ROOT)
                if path.is_file() and not any(_matches(where, each) for each in LEFT_OUT):
                    yield where.as_posix(), f"{target}/{path.relative_to(ROOT / folder).as_posix()}"


def _matches(path: pathlib.PurePath, pattern: str) -> bool:
    folder = pattern.removesuffix("/**")
    if folder != pattern:
        return path.is_relative_to(folder)
    return path.match(pattern)


def _described() -> Any:
    """Returns the wheel's description; the modules of the checkout are found from now on."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    from tools.package import project

    return project.described(
        (ROOT / HERE / "pyproject.toml").read_text(encoding="utf-8"),
        version=runpy.run_path(str(ROOT / "tools/build/version.bzl"))["VERSION"],
        tag="py3-none-any",
        readme=(ROOT / HERE / "README.md").read_text(encoding="utf-8"),
        licences={"LICENSE": (ROOT / "LICENSE").read_bytes()},
    )


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Writes the wheel into a folder; returns its name."""
    del config_settings, metadata_directory
    described = _described()
    from tools.package import wheel

    files = {target: (ROOT / source).read_bytes() for source, target in _sources()}
    data = wheel.build(described, wheel.rename_modules(files, RENAMED))
    name = str(described.file_name())
    (pathlib.Path(wheel_directory) / name).write_bytes(data)
    return name


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    """Writes a source distribution into a folder; returns its name.

    It is the part of the checkout that the wheel is built of, under the same paths.
    """
    del config_settings
    described = _described()
    from tools.package import wheel

    stem = str(described.stem())
    names = sorted({*OWN, *(source for source, _ in _sources())})
    contents = {name: (ROOT / name).read_bytes() for name in names}
    contents["PKG-INFO"] = wheel.metadata(described).encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in contents.items():
            entry = tarfile.TarInfo(f"{stem}/{name}")
            entry.size = len(data)
            entry.mode = 0o644
            archive.addfile(entry, io.BytesIO(data))
    packed = gzip.compress(buffer.getvalue(), mtime=0)
    (pathlib.Path(sdist_directory) / f"{stem}.tar.gz").write_bytes(packed)
    return f"{stem}.tar.gz"
