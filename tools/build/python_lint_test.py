import os
import pathlib
import subprocess
import sys

TREE = pathlib.Path(os.environ["CHECKOUT"]).resolve()
RUFF = pathlib.Path(os.environ["RUFF"]).resolve()


def run(*command: str) -> None:
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    done = subprocess.run(
        command, cwd=TREE, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"\n{done.stdout}\n{done.stderr}"


def python_files() -> list[str]:
    files = sorted(str(path.relative_to(TREE)) for path in TREE.rglob("*.py"))
    assert files, f"no Python file below {TREE}"
    return files


def test_ruff_finds_nothing() -> None:
    run(str(RUFF), "check", "--no-cache", "--config", "pyproject.toml", *python_files())


def test_files_are_formatted() -> None:
    run(str(RUFF), "format", "--no-cache", "--check", "--diff", *python_files())


def test_types_hold() -> None:
    run(sys.executable, "-m", "mypy", *python_files())
