"""The targets of firmware: what their compilers, linkers and emulators are told, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Region:
    """A region of memory of the linker script: its address and its size in bytes."""

    start: int
    length: int


@dataclass(frozen=True)
class Board:
    """A processor, and the machine of QEMU that has one.

    Attributes:
      triple: target of rustc.
      gcc: C compiler, which links too.
      flags: flags of the C compiler that choose instructions and calling convention.
      cpu: `target-cpu` of rustc.
      qemu: program and arguments that give the machine; the firmware follows.
      flash: memory of the program in QEMU's machine.
      ram: memory of data and stack.
    """

    triple: str
    gcc: str
    flags: tuple[str, ...]
    cpu: str
    qemu: tuple[str, ...]
    flash: Region
    ram: Region

    @property
    def runtime(self) -> str:
        """The family of start-up code: `cortex_m` or `riscv`."""
        return "riscv" if self.triple.startswith("riscv") else "cortex_m"


_ARM = ("qemu-system-arm", "-M")
_MPS2 = (Region(0x0000_0000, 4 << 20), Region(0x2000_0000, 4 << 20))
_VIRT = (Region(0x8000_0000, 4 << 20), Region(0x8040_0000, 4 << 20))

#: Value of `--target` -> the board.
BOARDS = {
    "cortex-m0": Board(
        "thumbv6m-none-eabi", "arm-none-eabi-gcc", ("-mcpu=cortex-m0", "-mthumb"), "cortex-m0",
        (*_ARM, "microbit"), Region(0, 256 << 10), Region(0x2000_0000, 16 << 10),
    ),
    "cortex-m3": Board(
        "thumbv7m-none-eabi", "arm-none-eabi-gcc", ("-mcpu=cortex-m3", "-mthumb"), "cortex-m3",
        (*_ARM, "mps2-an385"), *_MPS2,
    ),
    "cortex-m4": Board(
        "thumbv7em-none-eabihf", "arm-none-eabi-gcc",
        ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"), "cortex-m4",
        (*_ARM, "mps2-an386"), *_MPS2,
    ),
    "cortex-m7": Board(
        "thumbv7em-none-eabihf", "arm-none-eabi-gcc",
        ("-mcpu=cortex-m7", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-d16"), "cortex-m7",
        (*_ARM, "mps2-an500"), *_MPS2,
    ),
    "cortex-m33": Board(
        "thumbv8m.main-none-eabihf", "arm-none-eabi-gcc",
        ("-mcpu=cortex-m33", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-sp-d16"), "cortex-m33",
        (*_ARM, "mps2-an505"), Region(0x1000_0000, 4 << 20), Region(0x3800_0000, 4 << 20),
    ),
    "riscv32imac": Board(
        "riscv32imac-unknown-none-elf", "riscv64-unknown-elf-gcc",
        ("-march=rv32imac_zicsr", "-mabi=ilp32"), "generic-rv32",
        ("qemu-system-riscv32", "-bios", "none", "-M", "virt"), *_VIRT,
    ),
    "riscv32imafc": Board(
        "riscv32imafc-unknown-none-elf", "riscv64-unknown-elf-gcc",
        ("-march=rv32imafc_zicsr", "-mabi=ilp32f"), "generic-rv32",
        ("qemu-system-riscv32", "-bios", "none", "-M", "virt"), *_VIRT,
    ),
}  # fmt: skip
