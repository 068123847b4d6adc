"""Gives Python the bytecode of packages whose import takes long; Python imports this at its start.

A sandbox has no `__pycache__`, and TensorFlow imports 3,300 modules. A source that differs from
the one that was compiled has no bytecode here, nor has another Python.
"""

import _imp
import marshal
import os
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER, source_hash
from types import CodeType

_FILE = __file__.removesuffix("site/sitecustomize.py") + "wheels.bytecode"
_RUNFILES = ".runfiles/"


def _install(file: str) -> None:
    try:
        codes = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    start = len(MAGIC_NUMBER) + 8
    head = os.read(codes, start)
    if head[:-8] != MAGIC_NUMBER:
        os.close(codes)
        return
    length = int.from_bytes(head[-8:], "little")
    index = marshal.loads(os.pread(codes, length, start))
    start += length
    original = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        found = index.get(path.rpartition(_RUNFILES)[2])
        if found is not None:
            digest, begin, end = found
            if source_hash(self.get_data(path)) == digest:
                code: CodeType = marshal.loads(os.pread(codes, end - begin, start + begin))
                _imp._fix_co_filename(code, path)  # type: ignore[attr-defined]
                return code
        return original(self, fullname)

    SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]


_install(_FILE)
