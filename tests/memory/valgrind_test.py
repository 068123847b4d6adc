"""A process that loads the plug-in and runs 10,000 steps, under valgrind.

Valgrind sees TensorFlow as well, which has findings of its own. An error counts if libtfp.so has a
part in it (one of the frames of a stack lies in its code), or if the program itself or a function
that it called did it (one of the first two frames outside the C library is the program's). Memory
that is still reachable at the end is no leak.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import xml.etree.ElementTree as ET

from tests.memory.findings import functions, is_by, is_inside, is_leak, read, report_of, valgrind

PROGRAM = os.environ["STEPS"]
PLUGIN = os.environ["PLUGIN"]
STEPS = int(os.environ.get("STEP_COUNT", "10000"))
# Leaks that are none: what TensorFlow holds in objects that it never deletes, by function.
NO_LEAKS = {
    "TF_NewKernelBuilder": "kernels stay registered until the process ends",
    "TF_RegisterKernelBuilder": "kernels stay registered until the process ends",
    "TF_LoadPluggableDeviceLibrary": "the device stays registered until the process ends",
}


def counts(error: ET.Element) -> bool:
    """Whether libtfp.so has a part in a finding, or the program did it, or lost what it got."""
    program = pathlib.Path(PROGRAM).name
    if is_by(error, program, depth=2):
        return True
    if is_leak(error) and functions(error) & NO_LEAKS.keys():
        return False
    return is_inside(error, pathlib.Path(PLUGIN).name)


def test_steps_have_no_invalid_access_and_no_leak(tmp_path: pathlib.Path) -> None:
    report = tmp_path / "report.xml"
    done = valgrind(report, PROGRAM, PLUGIN, str(STEPS))
    assert done.returncode == 0, done.stderr
    errors = read(report)
    ours = [error for error in errors if counts(error)]
    print(f"{STEPS} steps: {len(errors)} findings, {len(ours)} of them with a part of ours")
    assert not ours, report_of(ours)


def test_the_tool_sees_what_it_should(tmp_path: pathlib.Path) -> None:
    """A C program that leaks and reads freed memory is reported by the same command."""
    source, program = tmp_path / "bad.c", tmp_path / "bad"
    source.write_text(
        "#include <stdlib.h>\n"
        "int main(void) {\n"
        "  volatile char *p = malloc(8);\n"
        "  free((void *)p);\n"
        "  volatile char kept = p[3];\n"
        "  volatile char *lost = malloc(8);\n"
        "  lost = 0;\n"
        "  return lost == p + kept;\n"
        "}\n"
    )
    subprocess.run(["cc", "-g", "-O0", str(source), "-o", str(program)], check=True)
    report = tmp_path / "report.xml"
    valgrind(report, str(program))
    kinds = {error.findtext("kind") for error in read(report)}
    assert {"InvalidRead", "Leak_DefinitelyLost"} <= kinds


def test_resident_memory_stays() -> None:
    done = subprocess.run([PROGRAM, PLUGIN, str(STEPS)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1 << 20, done.stdout
