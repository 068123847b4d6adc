"""The plan: what a finished provisioning leaves for the next start, which only reads it."""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

PROGRAMS = ("bazel", "bazelisk", "rustc", "rustup", "npm", "gcc")
VARIABLES = ("BAZEL_REAL", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "TFP_RUST_SYSROOT", "TFP_UPSTREAM")


@dataclass(frozen=True)
class Plan:
    """How to become Bazel.

    Attributes:
        argv: the program and its startup options, up to the user's arguments.
        marks: path, size and modification time of the files it stands on.
        notes: what was chosen and why, one line each.
        folders: provisioned folders it uses, for full checks.
    """

    argv: list[str]
    marks: list[tuple[str, int, int]]
    notes: list[str]
    folders: list[str]


def fingerprint(environ: Mapping[str, str]) -> str:
    """Digest of all that decides a plan: this code, the pins, the programs found, the settings."""
    digest = hashlib.sha256()
    here = os.path.dirname(os.path.abspath(__file__))
    for name in sorted(os.listdir(here)):
        if name.endswith((".py", ".toml")) and not name.endswith("_test.py"):
            with open(os.path.join(here, name), "rb") as file:
                digest.update(name.encode() + b"\0" + file.read())
    facts = [sys.executable]
    for program in PROGRAMS:
        path = shutil.which(program, path=environ.get("PATH"))
        if path is None:
            facts.append(f"{program}=")
        else:
            info = os.stat(path)
            facts.append(f"{program}={path},{info.st_size},{info.st_mtime_ns}")
    facts += [f"{name}={environ.get(name, '')}" for name in VARIABLES]
    digest.update("\n".join(facts).encode())
    return digest.hexdigest()[:16]


def plan_file(root: Path, key: str) -> Path:
    """Where the plan with this fingerprint is kept."""
    return root / "plans" / f"{key}.json"


def read_plan(root: Path, key: str) -> tuple[Plan | None, str | None]:
    """The plan if it is there and every file it stands on is as it was left.

    Returns:
        The plan or None; and, if a plan is there but cannot be used, why.
    """
    path = plan_file(root, key)
    try:
        data = json.loads(path.read_bytes())
        plan = Plan(
            argv=[str(part) for part in data["argv"]],
            marks=[(str(name), int(size), int(when)) for name, size, when in data["marks"]],
            notes=[str(note) for note in data["notes"]],
            folders=[str(folder) for folder in data["folders"]],
        )
    except FileNotFoundError:
        return None, None
    except (OSError, ValueError, KeyError, TypeError):
        return None, f"{path} cannot be read"
    for name, size, when in plan.marks:
        try:
            info = os.stat(name)
        except OSError:
            return None, f"{name} is gone"
        if (info.st_size, info.st_mtime_ns) != (size, when):
            return None, f"{name} has changed ({info.st_size} bytes, expected {size})"
    return plan, None


def plan_text(plan: Plan) -> str:
    """The plan as it is stored."""
    return json.dumps(asdict(plan), indent=1)
