"""The program, from a process that has imported TensorFlow: no test of its flags waits for that.

The process does nothing but import and fork: a copy of a TensorFlow at work is of no use.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

_MODULE = "converters.tf.tests.warm"


class Warm:
    """Runs the program as often as one likes.

    Each run is a process of its own, with the arguments, the outputs and the exit code of a program
    that was started by itself.
    """

    def __init__(self) -> None:
        """Starts the process, which imports meanwhile."""
        paths = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(
            [sys.executable, "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": paths},
        )

    def run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Runs the program."""
        pipes = self._process
        if not pipes.stdin or not pipes.stdout:
            raise RuntimeError("the process has no pipes")
        with tempfile.TemporaryDirectory() as folder:
            outputs = [Path(folder, name) for name in ("out", "err")]
            line = json.dumps({"arguments": list(arguments), "outputs": [str(o) for o in outputs]})
            pipes.stdin.write(line + "\n")
            pipes.stdin.flush()
            code = int(pipes.stdout.readline())
            out, err = (o.read_text(encoding="utf-8") for o in outputs)
        return subprocess.CompletedProcess(arguments, code, out, err)

    def close(self) -> None:
        """Ends the process."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait()


def _program(arguments: Sequence[str], outputs: Sequence[str]) -> int:
    """Runs the program in this process, which ends after it; returns its exit code."""
    from converters.tf.cli import main  # Only the process behind `Warm` has its flags.

    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    for number, path in enumerate(outputs, 1):
        with Path(path).open("wb") as file:
            os.dup2(file.fileno(), number)
    sys.argv = ["tf2rust", *arguments]
    try:
        main.run()
    except SystemExit as err:
        return err.code if isinstance(err.code, int) else int(err.code is not None)
    return 0


def _serve() -> None:
    import keras  # noqa: F401
    import tensorflow  # noqa: F401

    from converters.tf import tf2rust  # noqa: F401
    from converters.tf.cli import main  # noqa: F401

    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = _program(asked["arguments"], asked["outputs"])
            except BaseException:  # As a program that was started by itself says it.
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    _serve()
