"""A process that loads the plug-in and runs 10,000 steps, under valgrind.

Valgrind sees TensorFlow as well, which has findings of its own. An error counts if libtfp.so or the
program has a part in it: one of the frames of a stack lies in their code. Memory that is still
reachable at the end is no leak.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import xml.etree.ElementTree as ET

PROGRAM = os.environ["STEPS"]
PLUGIN = os.environ["PLUGIN"]
STEPS = int(os.environ.get("STEP_COUNT", "10000"))
# Leaks that are none: what TensorFlow holds in objects that it never deletes, by function.
NO_LEAKS = {
    "TF_NewKernelBuilder": "kernels stay registered until the process ends",
    "TF_RegisterKernelBuilder": "kernels stay registered until the process ends",
    "TF_LoadPluggableDeviceLibrary": "the device stays registered until the process ends",
}


def describe(error: ET.Element) -> str:
    """Kind and stack of an error, one frame per line."""
    lines = [error.findtext("kind", "?") + ": " + error.findtext("what", "")]
    for stack in error.iter("stack"):
        for frame in stack.iter("frame"):
            where = pathlib.Path(frame.findtext("obj", "?")).name
            lines.append(f"    {frame.findtext('fn', '???')} ({where})")
    return "\n".join(lines)


def has_part(error: ET.Element) -> bool:
    """Whether libtfp.so or the program is in a stack of the error."""
    ours = {pathlib.Path(PLUGIN).name, pathlib.Path(PROGRAM).name}
    objects = {pathlib.Path(frame.text or "").name for frame in error.iter("obj")}
    return bool(objects & ours)


def is_leak(error: ET.Element) -> bool:
    return error.findtext("kind", "").startswith("Leak_")


def is_registration(error: ET.Element) -> bool:
    functions = {frame.text for frame in error.iter("fn")}
    return is_leak(error) and bool(functions & NO_LEAKS.keys())


def valgrind(report: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [
        "valgrind",
        "--leak-check=full",
        "--show-leak-kinds=definite,indirect",
        "--num-callers=40",
        "--xml=yes",
        f"--xml-file={report}",
    ]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)


def test_steps_have_no_invalid_access_and_no_leak(tmp_path: pathlib.Path) -> None:
    report = tmp_path / "report.xml"
    done = valgrind(report, PROGRAM, PLUGIN, str(STEPS))
    assert done.returncode == 0, done.stderr
    errors = list(ET.parse(report).getroot().iter("error"))
    ours = [error for error in errors if has_part(error) and not is_registration(error)]
    print(f"{STEPS} steps: {len(errors)} findings, {len(ours)} of them with a part of ours")
    assert not ours, "\n".join(describe(error) for error in ours)


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
    kinds = {error.findtext("kind") for error in ET.parse(report).getroot().iter("error")}
    assert {"InvalidRead", "Leak_DefinitelyLost"} <= kinds


def test_resident_memory_stays() -> None:
    done = subprocess.run([PROGRAM, PLUGIN, str(STEPS)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1 << 20, done.stdout
