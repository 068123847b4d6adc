"""mlf2rust as a library: an archive or a vendor's header in, the files of a crate out."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from converters.mlf.api import CrateApi, crate_api
from converters.mlf.emit import Output, emit_crate
from converters.mlf.emit_firmware import check_firmware
from converters.mlf.emit_golden import GoldenCase
from converters.mlf.errors import ArchiveError
from converters.mlf.golden_vectors import golden_cases, read_npz
from converters.mlf.join import check_used, model_of_header, models_of_archive
from converters.mlf.join_calls import with_callers
from converters.mlf.options import Options
from converters.mlf.parse.archive import MAX_MEMBER_BYTES, read_archive
from tools.codegen.cargo import CratePlace
from tools.codegen.conversion import Problem, UsageError


@dataclass(frozen=True)
class Request:
    """What to convert, and how.

    Attributes:
      mlf: archive (tar, tar.gz or zip file, or folder); None with `header`.
      header: interface header of a vendor's compiler; None with `mlf`.
      library: static library to the header; may be None when the program links it itself.
      options: types, alignment and raw devices that the user gives.
      crate_name: package name; empty derives it from the models.
      golden: `.npz` with recorded inputs and outputs, or None.
      single_file: one Rust file instead of a Cargo package.
      crate_root: with `single_file`, a crate root.
      sections: linker section of a pool, by "pool" or "model.pool".
      link_prefix: goes before the symbols of the models' C. None makes one from the content, so
        that models of one name in two crates cannot meet at link time; empty keeps C's names.
      target: a key of `BOARDS`: firmware for it lies beside the crate, in `firmware/`; or empty.
      embedded: where Cargo finds `tfp-embedded`, whose traits the models then have; or None.
      profile_calls: tell a profiler of `tfp-embedded` how long each operator took.
    """

    mlf: Path | None = None
    header: Path | None = None
    library: Path | None = None
    options: Options = field(default_factory=Options)
    crate_name: str = ""
    golden: Path | None = None
    single_file: bool = False
    crate_root: bool = False
    sections: Mapping[str, str] = field(default_factory=dict)
    link_prefix: str | None = None
    target: str = ""
    embedded: CratePlace | None = None
    profile_calls: bool = False


@dataclass(frozen=True)
class Result:
    """The crate's names and its files."""

    crate: CrateApi
    output: Output


def convert(request: Request) -> Result:
    """Converts; raises ConversionError with every reason when the input is refused."""
    if (request.mlf is None) == (request.header is None):
        raise UsageError(Problem("command line", "give either an archive (--mlf) or --header"))
    for given, needed, what in (
        (request.library is not None, request.header is not None, "--lib belongs to --header"),
        (request.crate_root, request.single_file, "--crate_root belongs to --single_file"),
        (
            request.golden is not None,
            not request.single_file,
            "--path_to_fv makes a test of a package; --single_file makes none",
        ),
        (
            bool(request.target),
            not request.single_file,
            "--target makes a package beside a package; --single_file makes none",
        ),
        (
            request.profile_calls,
            request.embedded is not None,
            "--profile_calls needs --embedded_from, whose crate has the clock and the profiler",
        ),
    ):
        if given and not needed:
            raise UsageError(Problem("command line", what))
    if request.mlf is not None:
        archive = read_archive(request.mlf)
        origin = archive.origin
        models = models_of_archive(archive, request.options)
    else:
        assert request.header is not None
        origin = request.header.name
        text = _read(request.header)
        library = _read(request.library) if request.library is not None else None
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError as err:
            raise ArchiveError(Problem(origin, f"not UTF-8 text at byte {err.start}")) from err
        models = (model_of_header(decoded, origin, library, request.options),)
    check_used(request.options, models)
    if request.profile_calls:
        models = tuple(with_callers(model) for model in models)
    crate = crate_api(request.crate_name, origin, models, request.sections, request.link_prefix)
    golden: tuple[GoldenCase, ...] = ()
    if request.golden is not None:
        arrays = read_npz(_read(request.golden), request.golden.name)
        golden = golden_cases(models, arrays, request.golden.name)
    if request.target:
        check_firmware(crate, request.target)
    output = emit_crate(
        crate,
        request.single_file,
        golden,
        crate_root=request.crate_root,
        target=request.target,
        embedded=request.embedded,
    )
    return Result(crate, output)


def _read(path: Path) -> bytes:
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise ArchiveError(Problem(str(path), "not a regular file"))
        if found.st_size > MAX_MEMBER_BYTES:
            raise ArchiveError(
                Problem(str(path), f"{found.st_size} bytes; at most {MAX_MEMBER_BYTES}")
            )
        return path.read_bytes()
    except (OSError, ValueError) as err:
        raise ArchiveError(Problem(str(path), f"cannot be read: {err}")) from err
