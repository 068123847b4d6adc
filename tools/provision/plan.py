"""The plan: what a finished provisioning leaves for the next start, which only reads it."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

PROGRAMS = ("bazel", "bazelisk", "rustc", "rustup", "npm", "buildifier")
VARIABLES = (
    "BAZEL_REAL",
    "CC",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SSL_CERT_FILE",
    "TFP_CC",
    "TFP_DEBIAN_MIRROR",
    "TFP_PYTHON",
    "TFP_RUST_SYSROOT",
    "TFP_UPSTREAM",
)


@dataclass(frozen=True)
class Plan:
    """How to become Bazel.

    Attributes:
        argv: the program and its startup options, up to the user's arguments.
        marks: path, size and modification time of the files it stands on.
        notes: what was chosen and why, one line each.
        folders: provisioned folders it uses.
        variables: environment variables to set for it.
    """

    argv: list[str]
    marks: list[tuple[str, int, int]]
    notes: list[str]
    folders: list[str]
    variables: dict[str, str]


def interpreter() -> str:
    """The Python that runs this, links of virtual environments followed: it outlives them."""
    return str(Path(sys.executable).resolve())


def fingerprint(environ: Mapping[str, str]) -> str:
    """Digest of all that decides a plan: this code, the pins, the programs found, the settings."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).resolve().parent.iterdir()):
        if path.suffix in (".py", ".toml", ".json") and not path.name.endswith("_test.py"):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    facts = [interpreter()]
    for program in (*PROGRAMS, environ.get("BAZEL_REAL") or "bazel"):
        found = shutil.which(program, path=environ.get("PATH"))
        if found is None:
            facts.append(f"{program}=")
        else:
            info = Path(found).stat()
            facts.append(f"{program}={found},{info.st_size},{info.st_mtime_ns}")
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
            variables={str(name): str(value) for name, value in data["variables"].items()},
        )
    except FileNotFoundError:
        return None, None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None, f"{path} cannot be read"
    for name, size, when in plan.marks:
        try:
            info = Path(name).stat()
        except OSError:
            return None, f"{name} is gone"
        if (info.st_size, info.st_mtime_ns) != (size, when):
            return None, f"{name} has changed ({info.st_size} bytes, expected {size})"
    return plan, None


def plan_text(plan: Plan) -> str:
    """The plan as it is stored."""
    return json.dumps(asdict(plan), indent=1)
