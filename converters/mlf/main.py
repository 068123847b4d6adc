"""mlf2rust: a TVM Model Library Format archive becomes a safe no_std Rust crate.

  mlf2rust model.tar --out DIR

Exit codes: 0 done; 2 wrong usage; 3 archive damaged or unsafe; 4 a member is not understood; 5 two
members contradict each other; 6 well formed, but not supported.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from converters.mlf.arguments import parse_overrides, parse_sections
from converters.mlf.boards import BOARDS
from converters.mlf.convert import Request, Result, convert
from converters.mlf.emit import MARK
from converters.mlf.options import Options
from converters.mlf.report import success_report
from tools.codegen import program
from tools.codegen.cargo import CratePlace
from tools.codegen.conversion import ConversionError, Problem, UsageError
from tools.codegen.folder import check_own, replace_folder
from tools.codegen.rust import one_line

_MLF = flags.DEFINE_string(
    "mlf", None, "archive: a .tar, .tar.gz or .zip file, or a folder; --mlf itself may be left out"
)
_OUT = flags.DEFINE_string("out", None, "folder to write the crate to (required)")
_FV = flags.DEFINE_string(
    "path_to_fv",
    None,
    ".npz with recorded inputs and outputs, named <model>_<tensor> or <tensor>; becomes a test",
)
_SINGLE = flags.DEFINE_bool("single_file", False, "write one .rs file instead of a Cargo package")
_ROOT = flags.DEFINE_bool("crate_root", False, "with --single_file: make the file a crate root")
_HEADER = flags.DEFINE_string("header", None, "interface header, instead of --mlf")
_LIB = flags.DEFINE_string("lib", None, "static library that belongs to --header")
_NAME = flags.DEFINE_string("crate_name", "", "package name; default tvmgen_<model> or tvm_models")
_SHAPE = flags.DEFINE_multi_string(
    "shape", [], "type of a tensor the archive does not describe: [MODEL.]TENSOR=float32[1,16]"
)
_ALIGN = flags.DEFINE_integer(
    "align", 0, "alignment of all buffers in bytes; 0 takes the archive's"
)
_RAW = flags.DEFINE_multi_string(
    "raw_device", [], "device that keeps its vendor's C driver although the C calls its hooks"
)
_ONCE = flags.DEFINE_bool(
    "exists_once",
    False,
    "every model exists once, because its C has state that its text does not show",
)
_SECTION = flags.DEFINE_multi_string(
    "section", [], "linker section of a pool's static: [MODEL.]POOL=.section"
)
_LINK_PREFIX = flags.DEFINE_string(
    "link_prefix",
    None,
    "goes before the symbols of the archive's C; default: made from its content; empty: none",
)
_TARGET = flags.DEFINE_enum(
    "target",
    None,
    sorted(BOARDS),
    "processor to write firmware for, into the folder `firmware` of --out; `cargo run` there runs "
    "it in QEMU",
)
_EMBEDDED_FROM = flags.DEFINE_string(
    "embedded_from",
    None,
    "where Cargo finds the crate tfp-embedded: path=FOLDER (converters/embedded of a checkout, "
    "absolute or from the crate's folder), git=URL, or registry=NAME,version=VERSION with a "
    "registry of yours; the models then have a Runner with its traits",
)
_CALLS = flags.DEFINE_bool(
    "profile_calls",
    False,
    "with --embedded_from: a run that is profiled tells how long each operator took",
)
_RUST_OUT = flags.DEFINE_string(
    "rust_out", None, "for build rules: the one .rs file; no --out then"
)
_UNIT_OUT = flags.DEFINE_string("unit_out", None, "for build rules: folder of the C units")
_GUARD_OUT = flags.DEFINE_string(
    "guard_out", None, "for build rules: folder of the C units to link whole"
)
_INCLUDE_OUT = flags.DEFINE_string("include_out", None, "for build rules: folder of the C headers")
_JSON = flags.DEFINE_bool("json", False, "print a JSON report on standard output")
_QUIET = flags.DEFINE_bool("quiet", False, "print no line on success")


def _embedded_place() -> CratePlace | None:
    if _EMBEDDED_FROM.value is None:
        return None
    why = "a crate with the traits of tfp-embedded has to say where Cargo finds it"
    return CratePlace.parse(_EMBEDDED_FROM.value, "--embedded_from", why)


def _request(arguments: Sequence[str]) -> Request:
    given = list(arguments)
    mlf = _MLF.value or (given.pop(0) if given and not _HEADER.value else None)
    if given:
        raise UsageError(Problem("command line", f"unexpected argument {given[0]!r}"))
    if not _OUT.value and not _RUST_OUT.value:
        raise UsageError(Problem("--out", "no folder given"))
    path = {f.name: Path(f.value) if f.value else None for f in (_HEADER, _LIB, _FV)}
    return Request(
        mlf=Path(mlf) if mlf else None,
        header=path["header"],
        library=path["lib"],
        options=Options(
            overrides=parse_overrides(_SHAPE.value),
            alignment=_ALIGN.value,
            raw_devices=frozenset(_RAW.value),
            exists_once=_ONCE.value,
        ),
        crate_name=_NAME.value,
        golden=path["path_to_fv"],
        single_file=_SINGLE.value,
        crate_root=_ROOT.value,
        sections=parse_sections(_SECTION.value),
        link_prefix=_LINK_PREFIX.value,
        target=_TARGET.value or "",
        embedded=_embedded_place(),
        profile_calls=_CALLS.value,
    )


def _warn(result: Result) -> None:
    """Prints which headers the build needs from elsewhere."""
    missing = sorted({h for m in result.crate.models for h in m.model.missing_headers})
    if missing:
        print(
            one_line(
                f"mlf2rust: warning: the archive lacks {', '.join(missing)}, which its C includes; "
                "name the vendor's include folders in TVMGEN_INCLUDE_PATH when you build the crate",
                2000,
            ),
            file=sys.stderr,
        )


def _write_for_rule(result: Result) -> None:
    for name, content in result.output.files.items():
        for prefix, target in (
            (f"{result.crate.name}.rs", _RUST_OUT.value),
            ("c/unit/", _UNIT_OUT.value),
            ("c/guard/", _GUARD_OUT.value),
            (result.output.include + "/", _INCLUDE_OUT.value),
        ):
            if target and name.startswith(prefix):
                rest = name.removeprefix(prefix)
                path = Path(target, rest) if rest else Path(target)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)


def main(argv: Sequence[str]) -> int:
    """Converts as the flags say; returns the exit code."""
    try:
        result = convert(_request(argv[1:]))
        if _RUST_OUT.value:
            _write_for_rule(result)
        elif _OUT.value:
            out = Path(_OUT.value)
            check_own(out, MARK.encode(), "mlf2rust")
            replace_folder(out, result.output.files)
            if not _QUIET.value:
                count = len(result.output.files)
                print(f"mlf2rust: wrote {count} files to {_OUT.value}", file=sys.stderr)
                if _TARGET.value:
                    print(
                        f"mlf2rust: to run it in QEMU: cd {Path(_OUT.value) / 'firmware'} && "
                        "cargo run --release (README.md says what that needs)",
                        file=sys.stderr,
                    )
                _warn(result)
    except ConversionError as err:
        if _JSON.value:
            print(json.dumps(err.report(), indent=2))
        print(err.text("mlf2rust"), file=sys.stderr)
        return err.exit_code
    if _JSON.value:
        print(json.dumps(success_report(result), indent=2))
    return 0


def run() -> None:
    """Entry point of the program; under `bazel run`, paths are relative to the caller's folder."""
    program.run("mlf2rust", main)


if __name__ == "__main__":
    run()
