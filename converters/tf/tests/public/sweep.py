"""Models that others publish in packages, converted and compared with who else computes them.

Exit status: 0 if every model agrees, or is refused and ought to be; 1 if not; 2 if the command
line makes no sense.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from absl import flags
from rich.console import Console
from rich.progress import Progress

from converters.tf.tests.crates.crates import program as tool
from converters.tf.tests.pages import known_rows
from converters.tf.tests.public import archives
from converters.tf.tests.public.compare import CrateError, Found, attempt
from converters.tf.tests.public.entry import Entry
from converters.tf.tests.public.models import ENTRIES
from converters.tf.tests.public.page import page, row
from tools.codegen import program

_ONLY = flags.DEFINE_list("only", [], "Models or packages to try; all if not given.")
_FOLDER = flags.DEFINE_string(
    "folder", None, "Where the packages lie or come to lie; in the cache folder if not given."
)
_CRATES = flags.DEFINE_bool("crates", False, "Also run the test of each crate by cargo.")
_WRITE = flags.DEFINE_string("write", None, "The page to write, such as docs/public-models.md.")
_JSON = flags.DEFINE_bool("json", False, "Print JSON on standard output.")
_SECONDS = flags.DEFINE_float("seconds", 1800.0, "Most seconds of a model.")
_TRY = flags.DEFINE_list("try", [], "Try these models; the program calls itself.")

_NAME: Final = "sweep"
_ERROR_CHARACTERS: Final = 300


def met(entry: Entry, found: Found) -> bool:
    """Returns whether a model agrees, or is refused and ought to be."""
    if found.error or bool(found.refused) != entry.refused:
        return False
    return entry.refused or found.difference <= entry.tolerance


def chosen(entries: Sequence[Entry], only: Sequence[str]) -> list[Entry]:
    """Returns the models of some names or packages; all if there are none.

    Raises:
        KeyError: A name is that of neither.
    """
    known = {name for entry in entries for name in (entry.name, entry.archive.package)}
    unknown = [name for name in only if name not in known]
    if unknown:
        raise KeyError(", ".join(unknown))
    return [e for e in entries if not only or e.name in only or e.archive.package in only]


def sweep(
    entries: Sequence[Entry],
    only: Sequence[str],
    tried: Callable[[Sequence[Entry]], Iterable[Found]],
    written: Path | None,
) -> list[tuple[Entry, Found]]:
    """Tries models and writes the page after each, so that a run that is ended leaves one.

    Args:
        entries: All models.
        only: As of `chosen`; then the page keeps the rows of others.
        tried: Tries the models of one package, in order.
        written: The page, if one is wanted.

    Raises:
        KeyError: A name is that of neither a model nor a package.
    """
    rows = known_rows(written) if written is not None and only else {}
    results = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        names = chosen(entries, only)
        task = progress.add_task("", total=len(names))
        for package, some in itertools.groupby(names, lambda entry: entry.archive.package):
            progress.update(task, description=package)
            group = list(some)
            for entry, found in zip(group, tried(group), strict=True):
                results.append((entry, found))
                line = rows[entry.name] = row(entry, found)
                progress.console.print(line, markup=False, highlight=False, soft_wrap=True)
                if written is not None:
                    written.write_text(page(rows, entries), encoding="utf-8")
                progress.advance(task)
    return results


def _apart(entries: Sequence[Entry]) -> Iterator[Found]:
    """Tries models in a process of their own, in another one from where it ended."""
    left = list(entries)
    while left:
        found, error = _finished(left)
        yield from found
        left = left[len(found) :]
        if left:
            yield Found(left.pop(0).name, error=error)


def _finished(entries: Sequence[Entry]) -> tuple[list[Found], str]:
    """Returns what became of the models up to the end of a process, and why it ended."""
    # -P: modules beside the program must not hide those of packages.
    names = ",".join(entry.name for entry in entries)
    command = [sys.executable, "-P", str(Path(__file__).absolute()), f"--try={names}"]
    command += [f"--folder={_folder()}", f"--crates={'true' if _CRATES.value else 'false'}"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        try:
            limit = _SECONDS.value * len(entries)
            status = subprocess.run(
                command, env=env, stdout=out, stderr=err, timeout=limit, check=False
            ).returncode
            error = f"status {status}"
        except subprocess.TimeoutExpired:
            error = f"takes more than {_SECONDS.value:g} s"
        out.seek(0)
        err.seek(0)
        lines = [line for line in out.read().splitlines() if line.startswith("{")]
        error = " ".join(err.read().split())[-_ERROR_CHARACTERS:] or error
    fields = map(json.loads, lines)
    return [Found(**{**each, "dims": tuple(each["dims"])}) for each in fields], error


def _folder() -> Path:
    return Path(_FOLDER.value).absolute() if _FOLDER.value else archives.cache()


def _try(entry: Entry) -> Found:
    cargo = tool("CARGO", "cargo") if _CRATES.value else None
    try:
        return attempt(entry, _folder(), cargo)
    except Exception as err:  # A fault of one model is not to hide the others.
        what = str(err)[-_ERROR_CHARACTERS:]
        own = isinstance(err, archives.ArchiveError | CrateError)
        return Found(entry.name, error=what if own else f"{type(err).__name__}: {what}")


def main(argv: Sequence[str]) -> int:
    """Tries the models that the flags name; returns the exit status."""
    if len(argv) > 1:
        print(f"{_NAME}: unexpected argument {argv[1]}: see --help", file=sys.stderr)
        return program.USAGE
    if _TRY.value:
        for entry in chosen(ENTRIES, _TRY.value):
            print(json.dumps(dataclasses.asdict(_try(entry))), flush=True)
        return 0
    written = Path(_WRITE.value) if _WRITE.value else None
    try:
        results = sweep(ENTRIES, _ONLY.value, _apart, written)
    except KeyError as err:
        known = ", ".join(dict.fromkeys(entry.archive.package for entry in ENTRIES))
        print(f"{_NAME}: no model {err.args[0]}; the packages are {known}", file=sys.stderr)
        return program.USAGE
    if written is not None:
        print(f"{_NAME}: wrote {written}", file=sys.stderr)
    bad = [(entry, found) for entry, found in results if not met(entry, found)]
    if _JSON.value:
        print(json.dumps([dataclasses.asdict(found) for _, found in results], indent=2))
    else:
        print(f"{len(results) - len(bad)} of {len(results)} models do what they ought to")
    for entry, found in bad:
        why = found.refused or found.error or f"differs by {found.difference:.1e}"
        print(f"{_NAME}: {entry.name}: {why}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    program.run(_NAME, main)
