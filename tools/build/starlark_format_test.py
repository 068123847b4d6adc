import os
import pathlib
import shutil
import subprocess

TREE = pathlib.Path(os.environ["CHECKOUT"]).resolve()


def test_buildifier_changes_nothing(tmp_path: pathlib.Path) -> None:
    buildifier = pathlib.Path(os.environ["BUILDIFIER"]).resolve()
    copies = []
    for source in sorted([*TREE.rglob("*.source"), *TREE.rglob("*.bzl")]):
        copy = tmp_path / str(source.relative_to(TREE)).removesuffix(".source")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
        copies.append(str(copy.relative_to(tmp_path)))
    assert copies, f"no BUILD or .bzl file below {TREE}"
    done = subprocess.run(
        [buildifier, "-mode=diff", "-lint=warn", "-warnings=-module-docstring,-native-py", *copies],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"\n{done.stdout}\n{done.stderr}"
