import base64
import csv
import ctypes
import hashlib
import io
import json
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


def test_needed_glibc_is_what_the_linker_says() -> None:
    done = subprocess.run(
        ["readelf", "-V", str(LIBRARY)], check=True, capture_output=True, text=True
    )
    needs = done.stdout.partition("Version needs section")[2]
    names = [word for word in needs.split() if word.startswith("GLIBC_2")]
    expected = max(tuple(map(int, name.removeprefix("GLIBC_").split(".")[:2])) for name in names)
    assert elf.needed_glibc(LIBRARY.read_bytes()) == expected


def test_the_bill_of_materials_lists_files_and_parts() -> None:
    package = sbom.Component("p", "1", "Apache-2.0")
    parts = [sbom.rust_standard_library("1.95.0")]
    document = json.loads(sbom.document(package, parts, {"f": b"data"}))
    assert document["metadata"]["component"]["name"] == "p"
    names = {component["name"]: component for component in document["components"]}
    assert names["rust-std"]["licenses"] == [{"expression": "MIT OR Apache-2.0"}]
    assert names["f"]["hashes"][0]["content"] == hashlib.sha256(b"data").hexdigest()
