"""The client's own tests, with changed and cut GraphDefs among them, under valgrind.

An invalid access counts if the test program has a part in it: TensorFlow may work on memory that
the client has freed. Memory counts as lost if the client allocated it, or called the function of
the C API that did, unless that function is in the table of those that lose memory of their own.
"""

from __future__ import annotations

import os
import pathlib
import re

from tests.memory.findings import calls, is_by, is_inside, is_leak, read, report_of, valgrind

PROGRAM = os.environ["PROGRAM"]
# Functions of the C API that lose memory of their own, with the reason.
LOSES: dict[str, str] = {}


def test_the_client_has_no_invalid_access_and_no_leak(tmp_path: pathlib.Path) -> None:
    report, name = tmp_path / "report.xml", pathlib.Path(PROGRAM).name
    # A round of the fuzzer takes a hundred times as long as without valgrind.
    env = {**os.environ, "TFP_FUZZ_ROUNDS": os.environ.get("TFP_FUZZ_ROUNDS", "100")}
    done = valgrind(report, PROGRAM, "--test-threads=1", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"test result: ok. (\d+) passed", done.stdout)
    assert found and int(found[1]) > 20, done.stdout
    errors = read(report)
    wrong = [error for error in errors if not is_leak(error) and is_inside(error, name)]
    lost = [error for error in errors if is_leak(error) and is_inside(error, name)]
    ours = [error for error in lost if is_by(error, name) or calls(error, name) not in LOSES]
    print(f"{found[1]} tests: {len(errors)} findings, {len(wrong)} accesses, {len(lost)} leaks")
    assert not wrong and not ours, report_of([*wrong, *ours])
