"""The Rust caller costs what the C caller costs: instructions, flash and RAM, on the Cortex-M4.

Firmwares run the model of `constant_pool.tar` once, with the same static buffers; one is C, one is
Rust. The calling functions are compared like with like: clang on the LLVM of rustc has to emit the
same instructions, with the frame pointer that rustc's target keeps, and without it for a target
that differs in this one point. Prints the numbers that docs/mlf2rust.md records.

Run with: tools/bazel test //converters/mlf/tests/bare_metal:size_test --test_output=all
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from converters.mlf.convert import Request, Result, convert
from converters.mlf.tests.bare_metal.build_firmware import CLANG, GCC, build_crate, compile_c, link
from converters.mlf.tests.bare_metal.provision import Tools, provision, without_frame_pointer
from converters.mlf.tests.requests import TESTDATA

TOLERANCE = 64

#: Both sides get these: the two languages' own ones are of different size.
C_LIBRARY = """\
#include <stddef.h>
float expf(float x) { return 1.0f + x; }
__attribute__((optimize("no-tree-loop-distribute-patterns")))
void* memset(void* to, int value, size_t count) {
  for (size_t i = 0; i < count; ++i) ((char*)to)[i] = (char)value;
  return to;
}
"""
C_CALL = """\
#include <stdint.h>
#include "tvmgen_default.h"
#define ALIGNED __attribute__((aligned(16)))
extern const uint8_t flash[];
_Bool call_model(const float* input, float* output, uint8_t* sram) {
  struct tvmgen_default_inputs inputs = {(void*)input};
  struct tvmgen_default_outputs outputs = {output};
  struct tvmgen_default_workspace_pools pools = {(void*)flash, sram};
  return tvmgen_default_run(&inputs, &outputs, &pools) == 0;
}
"""
C_MAIN = """\
ALIGNED const uint8_t flash[] = {TVMGEN_DEFAULT_FLASH_CONSTANT_POOL_DATA};
static ALIGNED float input[16];
static ALIGNED float output[5];
static ALIGNED uint8_t sram[TVMGEN_DEFAULT_SRAM_WORKSPACE_POOL_SIZE];
volatile _Bool status;
int main(void) {
  status = call_model(input, output, sram);
  for (;;) {}
}
"""
RUST = """\
#![no_std]
#![no_main]
use tvmgen_default::{Input, Inputs, Model, Output, Outputs, Slot, Sram, WorkspacePools};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

static BUFFERS: Slot<(Input, Output, Sram)> =
    Slot::new((Input::new(), Output::new(), Sram::new()));
static STATUS: core::sync::atomic::AtomicBool = core::sync::atomic::AtomicBool::new(false);

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn call_model(input: &Input, output: &mut Output, sram: &mut Sram) -> bool {
    let inputs = Inputs::new(input);
    let mut outputs = Outputs::new(output);
    let mut pools = WorkspacePools::new(sram);
    Model::new().run(&inputs, &mut outputs, &mut pools).is_ok()
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    if let Some((input, output, sram)) = BUFFERS.take() {
        let status = call_model(input, output, sram);
        STATUS.store(status, core::sync::atomic::Ordering::Relaxed);
    }
    loop {}
}
"""


@pytest.fixture(scope="module")
def tools() -> Tools:
    return provision()


def instructions(tools: Tools, elf: Path, function: str) -> list[str]:
    text = tools.run(["arm-none-eabi-objdump", "-d", "--no-show-raw-insn", str(elf)], elf.parent)
    body = re.search(rf"<{function}>:\n(.*?)(?:\n\n|\Z)", text, re.S)
    assert body is not None
    return [
        line.split("\t", 1)[1].strip()
        for line in body[1].splitlines()
        if "\t" in line and not line.split("\t", 1)[1].startswith((".word", "nop", "..."))
    ]


def operations(lines: list[str]) -> list[str]:
    """Returns what instructions do, less the registers and stack slots that a compiler chose."""
    return sorted(line.split()[0] for line in lines)


def sizes(tools: Tools, elf: Path) -> tuple[int, int]:
    text, data, bss = (
        tools.run(["arm-none-eabi-size", str(elf)], elf.parent).splitlines()[1].split()[:3]
    )
    return int(text) + int(data), int(data) + int(bss)


def rust_firmware(tools: Tools, result: Result, folder: Path) -> Path:
    """Builds the crate and the firmware whose main is Rust."""
    folder.mkdir()
    build_crate(tools, result, folder)
    (folder / "library.c").write_text(C_LIBRARY)
    compile_c(tools, folder / "library.c", folder, folder / "library.o")
    (folder / "firmware.rs").write_text(RUST)
    extern = ["--extern", f"tvmgen_default={folder}/libtvmgen_default.rlib"]
    rust = [str(folder / "firmware.rs"), *extern]
    return link(tools, folder, "rust_side", rust, None, [folder / "library.o"])


def c_caller(tools: Tools, folder: Path, compiler: tuple[str, ...], flag: str) -> list[str]:
    """Returns the instructions of the C caller, for a compiler and one more flag."""
    source, output = folder / "call.c", folder / "call.o"
    source.write_text(C_CALL)
    compile_c(tools, source, folder / "c" / "include", output, (flag,), compiler)
    return instructions(tools, output, "call_model")


def test_the_rust_caller_costs_what_the_c_caller_costs(tools: Tools, tmp_path: Path) -> None:
    result = convert(Request(mlf=TESTDATA / "constant_pool.tar", link_prefix=""))
    folder = tmp_path / "stock"
    rust = rust_firmware(tools, result, folder)
    c = link(tools, folder, "c_side", [], C_CALL + C_MAIN, [folder / "library.o"])
    unframed = rust_firmware(without_frame_pointer(tools), result, tmp_path / "unframed")
    framed, bare = "-fno-omit-frame-pointer", "-fomit-frame-pointer"
    callers = {
        "Rust": instructions(tools, rust, "call_model"),
        "Rust, no frame pointer": instructions(tools, unframed, "call_model"),
        "clang, frame pointer": c_caller(tools, folder, CLANG, framed),
        "clang, no frame pointer": c_caller(tools, folder, CLANG, bare),
        "gcc, frame pointer": c_caller(tools, folder, GCC, framed),
        "gcc, no frame pointer": c_caller(tools, folder, GCC, bare),
    }
    for name, lines in callers.items():
        print(f"{name}: {len(lines)} instructions", *lines, sep="\n  ")
    (rust_flash, rust_ram), (c_flash, c_ram) = sizes(tools, rust), sizes(tools, c)
    print(f"flash: Rust {rust_flash}, C {c_flash} bytes")
    print(f"RAM: Rust {rust_ram}, C {c_ram} bytes")
    for kind in (("strd", "str"), ("bl",), ("b.", "cb"), ("clz", "lsrs")):
        counts = {sum(i.startswith(kind) for i in side) for side in callers.values()}
        assert len(counts) == 1, (kind, counts)
    assert operations(callers["Rust"]) == operations(callers["clang, frame pointer"])
    ours = operations(callers["Rust, no frame pointer"])
    assert ours == operations(callers["clang, no frame pointer"])
    assert len(callers["Rust"]) <= len(callers["gcc, frame pointer"])
    assert abs(rust_ram - c_ram) <= TOLERANCE
    assert rust_flash - c_flash <= TOLERANCE
