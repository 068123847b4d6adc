import os
import pathlib
import subprocess

TREE = pathlib.Path(os.environ["CHECKOUT"]).resolve()


def test_rustfmt_changes_nothing() -> None:
    files = sorted(str(path.relative_to(TREE)) for path in TREE.rglob("*.rs"))
    assert files, f"no Rust file below {TREE}"
    rustfmt = pathlib.Path(os.environ["RUSTFMT"]).resolve()
    done = subprocess.run(
        [rustfmt, "--check", "--edition=2024", "--config=skip_children=false", *files],
        cwd=TREE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"\n{done.stdout}\n{done.stderr}"
