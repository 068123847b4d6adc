"""The C compiler of the build, as programs outside of actions call it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tools.package import elf

CC = str(Path(os.environ["CC"]).absolute())

# What comes from the compiler's library, from the part of glibc that is linked in, and from glibc.
PROGRAM = """\
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static _Thread_local int mine = 1;
static void *other(void *unused) { (void)unused; mine += 1; return &mine; }
static void last(void) { puts("last"); }
__attribute__((constructor)) static void first(void) { puts("first"); }

int main(int count, char **names) {
    unsigned __int128 wide = (unsigned __int128)count << 100;
    pthread_t thread;
    void *theirs = NULL;
    struct stat status;
    atexit(last);
    if (pthread_create(&thread, NULL, other, NULL) || pthread_join(thread, &theirs)) return 1;
    if (stat(names[0], &status)) return 2;
    printf("%llu %g %d %d\\n", (unsigned long long)(wide / 1000000007 % 1000003), (double)wide,
           mine, theirs != &mine);
    printf("%g\\n", pow(count, 0.5));
    return 0;
}
"""


def build(folder: Path, *flags: str) -> Path:
    folder.mkdir()
    (folder / "main.c").write_text(PROGRAM)
    command = [CC, "-O1", *flags, "main.c", "-o", "main", "-lm", "-lpthread"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "main"


def test_a_program_runs(tmp_path: Path) -> None:
    program = build(tmp_path / "a")
    done = subprocess.run([program], check=True, capture_output=True, text=True)
    expected = (1 << 100) // 1000000007 % 1000003
    assert done.stdout == f"first\n{expected} {float(1 << 100):g} 1 1\n1\nlast\n"


def test_it_needs_no_newer_glibc_than_it_says(tmp_path: Path) -> None:
    assert elf.needed_glibc(build(tmp_path / "a").read_bytes()) <= (2, 17)


def test_the_folder_leaves_no_trace(tmp_path: Path) -> None:
    flags = ("-g", "-ffile-compilation-dir=.")
    first = build(tmp_path / "a", *flags).read_bytes()
    assert first == build(tmp_path / "longer", *flags).read_bytes()


def test_it_needs_no_other_compiler(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sh").symlink_to(shutil.which("sh") or "/bin/sh")
    (tmp_path / "main.c").write_text(PROGRAM)
    command = [CC, "main.c", "-o", "main", "-lm", "-lpthread"]
    subprocess.run(command, cwd=tmp_path, env={"PATH": str(tmp_path / "bin")}, check=True)
    assert (tmp_path / "main").exists()


CXX = """\
struct Base { virtual ~Base() = default; virtual int value() const = 0; };
struct Derived : Base { int value() const override { return 41; } };
extern "C" int printf(const char *, ...);
int main() {
    Base *base = new Derived;
    int sum = 0;
    try {
        if (dynamic_cast<Derived *>(base)) throw base->value();
    } catch (int thrown) {
        sum = thrown + 1;
    }
    delete base;
    return printf("%d\\n", sum) != 3;
}
"""


def test_the_language_of_cxx_is_whole(tmp_path: Path) -> None:
    (tmp_path / "main.cc").write_text(CXX)
    command = [CC, "main.cc", "-o", "main", "-lstdc++"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True)
    assert done.stdout == "42\n"
