import base64
import csv
import ctypes
import hashlib
import io
import json
import os
import pathlib
import subprocess
import zipfile

import pytest

from tools.package import elf, sbom, wheel


def system_library() -> pathlib.Path:
    """The mathematical library of this process."""
    ctypes.CDLL("libm.so.6")
    maps = pathlib.Path("/proc/self/maps").read_text().split()
    return next(pathlib.Path(word) for word in maps if word.endswith("/libm.so.6"))


LIBRARY = system_library()


def described(**changes: object) -> wheel.Wheel:
    values: dict[str, object] = {
        "distribution": "some-thing",
        "version": "1.2.3",
        "tag": "py3-none-any",
        "summary": "A thing.",
        "python": ">=3.10",
        "licences": {"LICENSE": b"text"},
    }
    return wheel.Wheel(**{**values, **changes})  # type: ignore[arg-type]


def contents(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_record_names_every_file_with_its_digest() -> None:
    found = contents(wheel.build(described(), {"a/b.py": b"x = 1\n"}))
    rows = list(csv.reader(found["some_thing-1.2.3.dist-info/RECORD"].decode().splitlines()))
    assert {row[0] for row in rows} == set(found)
    for name, digest, size in rows[:-1]:
        expected = base64.urlsafe_b64encode(hashlib.sha256(found[name]).digest()).rstrip(b"=")
        assert digest == f"sha256={expected.decode()}"
        assert int(size) == len(found[name])


def test_equal_inputs_give_equal_bytes() -> None:
    files = {"b.py": b"b", "a.py": b"a"}
    backwards = dict(reversed(list(files.items())))
    assert wheel.build(described(), files) == wheel.build(described(), backwards)


def test_metadata() -> None:
    made = wheel.build(
        described(requires=["numpy", "x; extra == 'more'"], scripts={"run": "a.b:c"}), {}
    )
    found = contents(made)
    text = found["some_thing-1.2.3.dist-info/METADATA"].decode()
    assert "License-File: LICENSE\n" in text
    assert "Requires-Dist: numpy\n" in text
    assert "Provides-Extra: more\n" in text
    scripts = found["some_thing-1.2.3.dist-info/entry_points.txt"]
    assert scripts == b"[console_scripts]\nrun = a.b:c\n"


def test_imports_follow_a_renamed_package() -> None:
    files = {
        "old/name/a.py": b"from old.name import b\nimport old.name.b\nfrom old.names import c\n",
        "old/names.py": b"    from old.name.b import x\n",
    }
    renamed = wheel.rename_modules(files, {"old.name": "new"})
    assert renamed == {
        "new/a.py": b"from new import b\nimport new.b\nfrom old.names import c\n",
        "old/names.py": b"    from new.b import x\n",
    }


def test_a_tag_that_promises_too_much_is_an_error() -> None:
    data = LIBRARY.read_bytes()
    major, minor = elf.needed_glibc(data)
    assert (major, minor) >= (2, 2)
    with pytest.raises(wheel.WheelError, match=rf"expected manylinux_{major}_{minor}_x86_64"):
        wheel.build(described(tag="py3-none-manylinux_2_1_x86_64"), {"x.so": data})
    with pytest.raises(wheel.WheelError, match="no little-endian 64-bit ELF file"):
        wheel.build(described(tag="py3-none-manylinux_2_99_x86_64"), {"x.so": b"#!/bin/sh"})
    wheel.build(described(tag=f"py3-none-manylinux_{major}_{minor}_x86_64"), {"x.so": data})


def linked(folder: pathlib.Path, *flags: str) -> bytes:
    """A library of two functions that call others; the build's cc links it."""
    source, library = folder / "made.c", folder / "made.so"
    source.write_text(
        "#include <string.h>\n#include <math.h>\n"
        "void shown(void *to, const void *from, unsigned long n) { memcpy(to, from, n); }\n"
        "double computed(double x) { return sin(x); }\n"
        '__attribute__((visibility("hidden"))) int kept;\n'
    )
    command = [os.environ["CC"], "-shared", "-fPIC", "-O1", "-fno-builtin", *flags]
    subprocess.run([*command, str(source), "-o", str(library), "-lm"], check=True)
    return library.read_bytes()


def test_what_a_library_needs_and_defines_is_what_was_linked(tmp_path: pathlib.Path) -> None:
    data = linked(tmp_path)
    assert elf.machine(data) == "x86_64"
    assert elf.needed_glibc(data) == (2, 14)  # memcpy's version; that of sin is 2.2.5
    assert elf.needed_libraries(data) == ["libm.so.6", "libc.so.6"]
    shown = elf.exported_symbols(data)
    assert {"shown", "computed"} <= shown
    assert not {"kept", "memcpy", "sin"} & shown
    assert {"shown", "kept"} <= elf.all_symbols(data)
    assert not elf.all_symbols(linked(tmp_path, "-s"))


def test_a_library_for_another_processor_is_an_error(tmp_path: pathlib.Path) -> None:
    data = linked(tmp_path)
    wheel.build(described(tag="py3-none-manylinux_2_17_x86_64"), {"x.so": data})
    with pytest.raises(wheel.WheelError, match="on x86_64, but the wheel's tag is"):
        wheel.build(described(tag="py3-none-manylinux_2_17_aarch64"), {"x.so": data})
    other = data[:18] + (183).to_bytes(2, "little") + data[20:]
    assert elf.machine(other) == "aarch64"
    wheel.build(described(tag="py3-none-manylinux_2_17_aarch64"), {"x.so": other})
    with pytest.raises(elf.ElfError, match="processor is number 243, expected x86_64 or aarch64"):
        elf.machine(data[:18] + (243).to_bytes(2, "little") + data[20:])


def test_the_bill_of_materials_lists_files_and_parts() -> None:
    package = sbom.Component("p", "1", "Apache-2.0")
    parts = [sbom.rust_standard_library("1.95.0")]
    document = json.loads(sbom.document(package, parts, {"f": b"data"}))
    assert document["metadata"]["component"]["name"] == "p"
    names = {component["name"]: component for component in document["components"]}
    assert names["rust-std"]["licenses"] == [{"expression": "MIT OR Apache-2.0"}]
    assert names["f"]["hashes"][0]["content"] == hashlib.sha256(b"data").hexdigest()
