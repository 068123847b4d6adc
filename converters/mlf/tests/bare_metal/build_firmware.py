"""Cross-compiles a generated crate with its C, links a firmware, and runs it under QEMU."""

# A command line stays whole.
# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path

from converters.mlf.convert import Result
from converters.mlf.rules import C_FLAGS
from converters.mlf.tests.bare_metal.provision import TARGET, Tools
from converters.mlf.tests.build import write

HERE = Path(__file__).parent
GCC = ("arm-none-eabi-gcc",)
CLANG = ("clang-22", f"--target={TARGET}")
CPU = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]
MACHINE = ["-M", "mps2-an386", "-display", "none", "-monitor", "none", "-serial", "none"]
SEMIHOSTING = ["-chardev", "stdio,id=s", "-semihosting-config", "enable=on,target=native,chardev=s"]


def rust_flags(tools: Tools) -> list[str]:
    """Arguments of rustc for the target, with the `core` that was built for it."""
    return [
        "rustc", "--edition=2024", "-Zunstable-options", f"--target={tools.target}", "-Copt-level=s",
        "-Cpanic=abort", "-Ctarget-cpu=cortex-m4", "-Ccodegen-units=1", "-L", str(tools.core),
    ]  # fmt: skip


def compile_c(
    tools: Tools, source: Path, include: Path, output: Path, extra: tuple[str, ...] = (),
    compiler: tuple[str, ...] = GCC,
) -> None:  # fmt: skip
    """Compiles one C file with the flags of the crate's build script and `extra` ones."""
    newlib = tools.root / "usr/include/newlib"
    flags = [*CPU, "-Os", f"-I{include}", "-isystem", str(newlib), *C_FLAGS, *extra]
    tools.run([*compiler, "-c", *flags, str(source), "-o", str(output)], source.parent)


def link(tools: Tools, folder: Path, name: str, rust: list[str], c_main: str | None,
         extra: list[Path] | None = None, c_flags: tuple[str, ...] = ()) -> Path:  # fmt: skip
    """Links the crate in `folder` with a main program; returns the ELF file.

    Args:
      tools: the compilers.
      folder: folder with `model.a`, and the crate's rlib where Rust calls it.
      name: name of the ELF file.
      rust: source of a Rust main and further rustc arguments; empty for a C main.
      c_main: text of a C main, or None.
      extra: further objects.
      c_flags: further flags for the C main.
    """
    objects: list[Path | str] = [folder / "start.o", *(extra or [])]
    start = ["arm-none-eabi-gcc", "-c", *CPU, str(HERE / "start.s"), "-o", str(objects[0])]
    tools.run(start, folder)
    if c_main is not None:
        source = folder / f"{name}.c"
        source.write_text(c_main)
        objects.append(folder / f"{name}.o")
        compile_c(tools, source, folder / "c" / "include", folder / f"{name}.o", c_flags)
    else:
        library = folder / f"lib{name}.a"
        tools.run(
            [*rust_flags(tools), "--crate-type=staticlib", "-L", str(folder), *rust, "-o", str(library)],
            folder,
        )  # fmt: skip
        # `model.a` first: its functions win over those that come with Rust's `core`.
        objects += ["-u", "main", folder / "model.a", library]
    elf = folder / f"{name}.elf"
    newlib = tools.root / "usr/lib/arm-none-eabi/newlib/thumb/v7e-m+fp/hard"
    tools.run(
        ["arm-none-eabi-gcc", *CPU, "-nostartfiles", "-T", str(HERE / "link.ld"), "-Wl,--gc-sections",
         *map(str, objects), str(folder / "model.a"), "-L", str(newlib), "-lm", "-lc", "-lgcc", "-o", str(elf)],
        folder,
    )  # fmt: skip
    return elf


def build_crate(tools: Tools, result: Result, folder: Path) -> None:
    """Writes the crate and compiles its C to `model.a` and its Rust to an rlib."""
    write(result, folder)
    objects = []
    for number, unit in enumerate(result.output.units):
        objects.append(str(folder / f"unit{number}.o"))
        compile_c(tools, folder / unit, folder / result.output.include, Path(objects[-1]))
    tools.run(["arm-none-eabi-ar", "rcs", "model.a", *objects], folder)
    name = result.crate.name
    tools.run(
        [*rust_flags(tools), "--crate-type=rlib", f"--crate-name={name}", "-Dwarnings", "src/lib.rs",
         "--out-dir", str(folder)],
        folder,
    )  # fmt: skip


def run_firmware(tools: Tools, elf: Path) -> dict[str, bytes]:
    """Runs a firmware under QEMU; returns the printed outputs by name."""
    output = tools.run(
        ["qemu-system-arm", *MACHINE, *SEMIHOSTING, "-kernel", str(elf)],
        elf.parent,
        timeout=60,
    )  # fmt: skip
    lines = output.splitlines()
    if not lines or lines[-1] != "done":
        raise RuntimeError(f"firmware did not end well: {output!r}")
    printed: dict[str, bytes] = {}
    for line in lines[:-1]:
        name, data = line.split()
        printed[name] = printed.get(name, b"") + bytes.fromhex(data)
    return printed
