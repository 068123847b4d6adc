"""Instructions of a level are no calls: a function for each vector takes many times as long.

It happens where a body hands vectors to a function of the standard library, such as an array's
`map`, that the compiler keeps apart.
"""

import pathlib
import re

from tools.package import elf

LIBRARY = pathlib.Path("tests/bench/libkernels_abi.so")


def test_no_instruction_is_a_function() -> None:
    names = elf.all_symbols(LIBRARY.read_bytes())
    assert any("tfp_kernels" in name for name in names)
    assert not [name for name in names if re.search(r"core_arch.*_mm\d*_", name)]
