"""Emits firmware: a Cargo package that runs the models of a crate on a board, or in QEMU."""

# Lines of generated files stay whole.
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Mapping, Sequence

from converters.mlf.api import CrateApi, ModelApi
from converters.mlf.boards import BOARDS, Board
from converters.mlf.emit_golden import (
    GoldenCase,
    call_lines,
    check_lines,
    output_value,
    setup_lines,
)
from converters.mlf.render import render
from tools.codegen.conversion import Problem, UsageError
from tools.codegen.rust import RustText

#: Where the recorded inputs and outputs lie, seen from `firmware/src/main.rs`.
_GOLDEN = "../../tests/golden"

#: Further arguments of QEMU: no devices that wait for a window; semihosting; one instruction a cycle.
_QEMU = (
    "-nographic", "-semihosting-config", "enable=on,target=native", "-icount", "shift=0", "-kernel",
)  # fmt: skip

#: Runtime -> packages of its start-up code.
_DEPENDENCIES = {
    "cortex_m": ('cortex-m = "0.7"', 'cortex-m-rt = "0.7"'),
    "riscv": ('riscv = "0.15"', 'riscv-rt = { version = "0.16", features = ["memory", "single-hart"] }'),
}  # fmt: skip

#: Runtime -> name of the lowest address of the stack in its linker script.
_STACK_LOW = {"cortex_m": "_stack_end", "riscv": "__estack"}

#: Runtime -> which memory its sections lie in, if its linker script asks for that.
_ALIASES = {
    "cortex_m": (),
    "riscv": tuple(
        f'REGION_ALIAS("REGION_{section}", {memory});'
        for section, memory in (
            ("TEXT", "FLASH"), ("RODATA", "FLASH"), ("DATA", "RAM"), ("BSS", "RAM"),
            ("HEAP", "RAM"), ("STACK", "RAM"),
        )
    ),
}  # fmt: skip


def check_firmware(crate: CrateApi, target: str) -> None:
    """Checks that a program which knows only the crate can run its models.

    Raises:
      UsageError: a model needs drivers of devices.
    """
    for api in crate.models:
        if api.devices:
            names = ", ".join(repr(d.device.name) for d in api.devices)
            raise UsageError(
                Problem(
                    f"--target {target}",
                    f"model {api.model.name!r} needs drivers of {names}, which only you can write",
                    "leave --target out; converters/mlf/examples/device_driver.rs shows a driver",
                )
            )


def emit_firmware(
    crate: CrateApi, target: str, golden: Sequence[GoldenCase], mark: str
) -> dict[str, str]:
    """Returns path in the firmware's folder -> text.

    Args:
      crate: the crate, which lies one folder above.
      target: a key of `BOARDS`.
      golden: recorded values; a model that has none runs on zeros.
      mark: first line of each file.
    """
    board = BOARDS[target]
    recorded = {case.model for case in golden}
    common = {"mark": mark, "name": crate.name, "board": board}
    views = [_model_view(crate, api, api.model.name in recorded) for api in crate.models]
    return {
        "Cargo.toml": render(
            "firmware/Cargo.toml.j2", **common, dependencies=_DEPENDENCIES[board.runtime]
        ),
        ".cargo/config.toml": render("firmware/config.toml.j2", **common, **_config(board)),
        "README.md": render(
            "firmware/README.md.j2", **common, target=target, recorded=bool(recorded)
        ),
        "build.rs": render("firmware/build.rs.j2", **common),
        "memory.x": render("firmware/memory.x.j2", **common, **_memory(board)),
        "src/main.rs": render("firmware/main.rs.j2", **common, models=views),
        "src/board.rs": render(f"firmware/board_{board.runtime}.rs.j2", **common),
        "src/stack.rs": render(
            "firmware/stack.rs.j2", **common, stack_low=_STACK_LOW[board.runtime]
        ),
    }


def _config(board: Board) -> Mapping[str, object]:
    link = (*board.flags, "-nostartfiles", "-Wl,--gc-sections", "-Tlink.x")
    return {
        "triple_variable": board.triple.replace("-", "_").replace(".", "_"),
        "runner": " ".join((*board.qemu, *_QEMU)),
        "link_flags": (*link, "-Wl,--start-group", "-lm", "-lc", "-lgcc", "-Wl,--end-group"),
        "c_flags": " ".join(("-Os", *board.flags)),
    }


def _memory(board: Board) -> Mapping[str, object]:
    return {
        "flash_origin": f"{board.flash.start:#010x}",
        "flash_length": board.flash.length >> 10,
        "ram_origin": f"{board.ram.start:#010x}",
        "ram_length": board.ram.length >> 10,
        "aliases": [RustText(line) for line in _ALIASES[board.runtime]],
    }


def _model_view(crate: CrateApi, api: ModelApi, recorded: bool) -> dict[str, object]:
    lines = [
        *setup_lines(crate.name, api, _GOLDEN if recorded else None),
        "let start = board::cycles();",
        *call_lines(api),
        "let cycles = board::cycles() - start;",
        f'println!("{api.module}: {{cycles}} cycles");',
    ]
    for tensor in api.outputs:
        value = output_value(api, tensor)
        label = f"{api.module}.{tensor.field}"
        lines.append(f'println!("{label} = {{:?}}", &{value}[..{min(tensor.length, 16)}]);')
    if recorded:
        lines += check_lines(api, _GOLDEN)
        lines.append(f'println!("{api.module}: equals the recorded outputs");')
    return {"function": f"run_{api.module}", "lines": [RustText(line) for line in lines]}
