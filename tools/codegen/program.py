"""How a program of ours starts: flags, help and exit codes are the same in all of them."""

from __future__ import annotations

import errno
import importlib.metadata
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from absl import app, flags

_VERSION = flags.DEFINE_bool("version", False, "print the version and leave")

#: Exit code of a command line that can't be used.
USAGE = 2
#: Exit code of a program whose output nobody could take.
LOST = 1
# What writing to a stream fails with if its reader is gone or its disk is full.
_LOST = (errno.EPIPE, errno.ENOSPC, errno.EFBIG)


def run(
    name: str,
    main: Callable[[Sequence[str]], int],
    arranged: Callable[[list[str]], list[str]] = list,
) -> None:
    """Parses the flags, calls `main` and leaves with the exit code that it returns.

    `--help` and `--version` leave with 0; a flag that can't be parsed with `USAGE`; output that
    can't be written with `LOST`; a signal with 128 and its number. Under `bazel run`, paths are
    relative to the caller's folder.

    Args:
        name: What the program calls itself in messages.
        main: Takes the program's path and the arguments that are not flags.
        arranged: Rewrites the command line before its flags are parsed.
    """
    folder = os.environ.get("BUILD_WORKING_DIRECTORY")
    if folder:
        os.chdir(folder)
    signal.signal(signal.SIGTERM, _stop)
    app.run(
        lambda argv: shown(name, main, argv),
        flags_parser=lambda argv: _parsed(name, arranged(argv)),
    )


def version() -> str:
    """Returns the version of the wheel that this is in, or of the checkout."""
    top = __name__.partition(".")[0]
    if top != __name__ and top != "tools":
        return importlib.metadata.version(top)
    text = (Path(__file__).parents[1] / "build" / "version.bzl").read_text(encoding="utf-8")
    found = re.search(r'^VERSION = "(.+)"$', text, re.MULTILINE)
    return found[1] if found else "unknown"


def _stop(number: int, _: object) -> NoReturn:
    """Leaves as a program that the signal ended, but removes what is temporary before."""
    sys.exit(128 + number)


def shown(name: str, main: Callable[[Sequence[str]], int], argv: Sequence[str]) -> int:
    """Runs a program whose reader may have gone, or may press the keys that interrupt it.

    Args:
        name: What the program calls itself in messages.
        main: Takes the program's path and the arguments that are not flags.
        argv: These.

    Returns:
        What `main` does, or the exit code of an interrupt or of output that nobody took.
    """
    if sys.stdout is None:  # It was closed by who called.
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    try:
        code = main(argv)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    except OSError as err:
        if err.filename is not None or err.errno not in _LOST:
            raise
        # Python writes what is left when it leaves.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        print(f"{name}: standard output: {err.strerror}", file=sys.stderr)
        return LOST
    return code


def _parsed(name: str, argv: list[str]) -> list[str]:
    try:
        rest: list[str] = flags.FLAGS(argv)
    except flags.Error as err:
        print(f"{name}: {err}\nTry --help.", file=sys.stderr)
        sys.exit(USAGE)
    except SystemExit:  # absl has shown the help, and leaves with 1.
        sys.exit(0)
    if _VERSION.value:
        print(f"{name} {version()}")
        sys.exit(0)
    return rest
