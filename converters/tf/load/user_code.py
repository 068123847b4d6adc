"""Python files of the user, which the program runs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from tools.codegen.conversion import Problem, UsageError


def run_file(where: str, path: Path, name: str, expected: str) -> ModuleType:
    """Runs a file; returns it as a module.

    The file's folder stays on the path: a function may import a neighbour when it is called.

    Args:
        where: The flag and its value, for errors.
        path: The file.
        name: The module's name, which is not one of others.
        expected: What the flag takes, for errors.

    Raises:
        UsageError: It is not a Python file, or it fails.
    """
    if path.suffix != ".py" or not path.is_file():
        raise UsageError(Problem(where, "no Python file", f"expected {expected}"))
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(Problem(where, "Python can't load it"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.append(str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as err:  # Whatever the code of the user raises.
        del sys.modules[name]
        raise UsageError(Problem(where, f"it fails: {type(err).__name__}: {err}")) from err
    return module
