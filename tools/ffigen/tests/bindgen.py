"""What bindgen and g++ say about TensorFlow's headers.

bindgen reads the headers with libclang and the system's own standard headers, not with ffigen's;
g++ evaluates the size macros, which bindgen does not.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

from clang import cindex

from tools.ffigen import rules
from tools.ffigen.parse import TARGET
from tools.ffigen.tests.conformance import from_bindgen
from tools.ffigen.tests.listing import Listing, read_bindings

LISTING = Path(__file__).resolve().parent / "bindgen_listing.txt"
BINDGEN_VERSION = "bindgen 0.72.1"
# Object-like: white space, not a parenthesis, follows the name.
_SIZE_MACRO = re.compile(r"^\s*#define\s+(\w+_(?:STRUCT|OPS)_SIZE)\s", re.MULTILINE)


def system_include_folders(compiler: str = "g++") -> list[str]:
    """Returns the folders in which a compiler looks for standard C++ headers."""
    command = [compiler, "-E", "-x", "c++", "-v", "-"]
    done = subprocess.run(command, input="", capture_output=True, text=True, check=True)
    block = done.stderr.split("#include <...> search starts here:")[1].split("End of search")[0]
    return [line.strip() for line in block.splitlines() if line.strip()]


def bindgen_text(program: str, include_dir: Path) -> str:
    """Runs bindgen over the headers of the table; returns its Rust text.

    Raises:
        RuntimeError: bindgen is of another version, or fails.
    """
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    if version.stdout.strip() != BINDGEN_VERSION:
        raise RuntimeError(f"expected {BINDGEN_VERSION}, found {version.stdout.strip()}")
    with tempfile.TemporaryDirectory() as folder:
        wrapper = Path(folder) / "wrapper.h"
        wrapper.write_text("".join(f"#include <{rule.path}>\n" for rule in rules.HEADERS))
        command = [
            program, str(wrapper), "--use-core", "--ctypes-prefix=core::ffi",
            "--default-enum-style=newtype_global", "--no-doc-comments", "--no-prepend-enum-name",
            "--rust-edition=2021", "--rust-target=1.82", "--formatter=prettyplease",
            *(f"--allowlist-file=.*/{re.escape(rule.path)}" for rule in rules.HEADERS),
            "--", "-x", "c++", "-std=c++17", f"--target={TARGET}", "-nostdinc", "-nostdinc++",
            *(f"-isystem{name}" for name in system_include_folders()), f"-I{include_dir}",
        ]  # fmt: skip
        libclang = str(Path(cindex.__file__).parent / "native")
        env = {**os.environ, "LIBCLANG_PATH": libclang}
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"bindgen failed: {done.stderr}")
    return done.stdout


def size_macros(include_dir: Path) -> dict[str, int]:
    """Returns the value of every size macro of the headers, evaluated by g++."""
    names = [
        name
        for rule in rules.HEADERS
        for name in _SIZE_MACRO.findall((include_dir / rule.path).read_text(encoding="utf-8"))
    ]
    lines = [f"#include <{rule.path}>" for rule in rules.HEADERS]
    lines += ["#include <stdio.h>", "int main() {"]
    lines += [f'  printf("{name} %zu\\n", size_t({name}));' for name in names]
    lines.append("}")
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "sizes.cc", Path(folder) / "sizes"
        source.write_text("\n".join(lines) + "\n")
        command = ["g++", "-std=c++17", f"-I{include_dir}", str(source), "-o", str(program)]
        subprocess.run(command, check=True)
        done = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    return {name: int(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def listing(program: str, include_dir: Path) -> str:
    """Returns the text of the listing."""
    raw = Listing()
    read_bindings(bindgen_text(program, include_dir), raw)
    result = from_bindgen(raw)
    for name, value in size_macros(include_dir).items():
        result.add("const", name, f": usize = {value}")
    return result.text()
