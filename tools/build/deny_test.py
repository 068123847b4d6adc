"""Third-party crates are what `deny.toml` allows, as cargo-deny judges them without a network.

Advisories are left out, because RustSec's database changes daily and is fetched: RELEASING.md has
the command for a machine with a network.
"""

import os
import pathlib
import shutil
import subprocess

import pytest

TREE = pathlib.Path(os.environ["CHECKOUT"]).resolve()
DENY, CARGO, RUSTC, VENDORED = (
    pathlib.Path(os.environ[name]).absolute() for name in ("DENY", "CARGO", "RUSTC", "VENDORED")
)


def deny(folder: pathlib.Path, configuration: str) -> subprocess.CompletedProcess[str]:
    """Runs cargo-deny over the third-party crates; a warning fails, too."""
    crates = folder / "crates"
    shutil.copytree(TREE / "tools/workspace/crates", crates)
    (folder / "deny.toml").write_text(configuration)
    # The registry, offline.
    (folder / "config.toml").write_text(
        '[source.crates-io]\nreplace-with = "vendored"\n'
        f'[source.vendored]\ndirectory = "{VENDORED.with_name("vendor")}"\n'
    )
    return subprocess.run(
        [
            str(DENY),
            "--offline",
            f"--manifest-path={crates / 'Cargo.toml'}",
            f"--config={folder / 'deny.toml'}",
            *("check", "--deny=warnings", "licenses", "bans", "sources"),
        ],
        env={
            "CARGO": str(CARGO),
            "CARGO_HOME": str(folder),
            "HOME": str(folder),
            "PATH": f"{CARGO.parent}:/usr/bin:/bin",
            "RUSTC": str(RUSTC),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_crate_may_be_used(tmp_path: pathlib.Path) -> None:
    done = deny(tmp_path, (TREE / "deny.toml").read_text(encoding="utf-8"))
    assert done.returncode == 0, done.stderr
    assert "bans ok, licenses ok, sources ok" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"Apache-2.0", "MIT"', '"BSD-2-Clause"', "licenses FAILED"),
        ('"MIT"', '"MIT", "BSL-1.0"', "unmatched license allowance"),
        ("[bans]", '[bans]\ndeny = ["proptest"]', "bans FAILED"),
    ],
)
def test_what_is_not_allowed_is_refused(
    tmp_path: pathlib.Path, old: str, new: str, message: str
) -> None:
    text = (TREE / "deny.toml").read_text(encoding="utf-8")
    assert old in text
    done = deny(tmp_path, text.replace(old, new, 1))
    assert done.returncode != 0
    assert message in done.stdout + done.stderr
