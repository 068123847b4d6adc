"""The C compiler of the build: clang of a pinned wheel, or the host's where TFP_CC asks for it."""

import shutil

from tools.provision.folders import provisioned_wheel
from tools.provision.messages import StartError
from tools.provision.work import Work

SPACE = 700_000_000


def choose_compiler(work: Work) -> None:
    """Chooses the C compiler and linker.

    Raises:
        StartError: TFP_CC has another value than it may have, or asks for what is not there.
    """
    told = work.environ.get("TFP_CC") or "clang"
    if told == "clang":
        wheel = work.pins.wheels["zig"].requirement
        folder = provisioned_wheel(work, "zig", "clang, lld and the C library", SPACE)
        work.notes.append(f"C compiler: clang of the wheel {wheel}")
        work.lines += ["common --repo_env=TFP_CC=clang", f"common --repo_env=TFP_ZIG={folder}"]
        work.files.append(str(folder / "ziglang/zig"))
    elif told == "host":
        work.notes.append(f"C compiler: {host_compiler(work)} (TFP_CC says so)")
        work.lines.append("common --repo_env=TFP_CC=host")
    else:
        raise StartError(
            "checking TFP_CC", f"it is {told}, expected clang or host", "set it so or unset it"
        )


def host_compiler(work: Work) -> str:
    """The host's compiler: what CC names, else gcc.

    Raises:
        StartError: it is not there, or lacks C++.
    """
    path = work.environ.get("PATH")
    named = work.environ.get("CC") or "gcc"
    found = shutil.which(named, path=path)
    missing = named if found is None else ""
    if named == "gcc" and shutil.which("g++", path=path) is None:
        missing = missing or "g++"
    if missing or found is None:
        raise StartError(
            "checking the C compiler",
            f"no {missing} on PATH",
            "install it (Debian: apt-get install g++), or unset TFP_CC",
        )
    return found
