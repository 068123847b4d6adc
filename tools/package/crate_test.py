import gzip
import io
import tarfile
import tomllib

import pytest

from tools.package import crate

MANIFEST = """
[package]
name = "some-thing"
version.workspace = true
edition = "2024"
license = "Apache-2.0"
description = "A thing with a \\"quote\\""
build = "build.rs"

[lib]
doctest = false

[features]
default = ["std"]
std = []

[dependencies]
neighbour-crate = { path = "../neighbour" }
other = { version = "1", features = ["x"] }

[dev-dependencies]
proptest = "1"

[workspace]
"""


WORKSPACE = """
[workspace]
members = []

[workspace.package]
version = "1.2.3"
"""


def test_the_manifest_is_one_of_a_package() -> None:
    text = crate.to_toml(crate.manifest(MANIFEST, WORKSPACE, "1.2.3"))
    found = tomllib.loads(text)
    assert found["package"]["name"] == "some-thing"
    assert found["package"]["version"] == "1.2.3"
    assert found["package"]["build"] is False
    assert found["package"]["description"] == 'A thing with a "quote"'
    assert found["lib"] == {"name": "some_thing", "path": "src/lib.rs", "doctest": False}
    assert found["features"] == {"default": ["std"], "std": []}
    assert found["dependencies"] == {
        "neighbour-crate": {"version": "=1.2.3"},
        "other": {"version": "1", "features": ["x"]},
    }
    assert set(found) == {"package", "lib", "features", "dependencies"}


def test_a_macro_stays_one() -> None:
    text = MANIFEST.replace("doctest = false", "proc-macro = true")
    assert crate.manifest(text, WORKSPACE, "1.2.3")["lib"]["proc-macro"] is True


def test_another_version_or_licence_is_an_error() -> None:
    with pytest.raises(crate.CrateError, match=r"version is 1\.2\.3, expected 2\.0\.0"):
        crate.manifest(MANIFEST, WORKSPACE, "2.0.0")
    with pytest.raises(crate.CrateError, match="license is MIT, expected Apache"):
        crate.manifest(MANIFEST.replace("Apache-2.0", "MIT"), WORKSPACE, "1.2.3")
    with pytest.raises(crate.CrateError, match="neither a path nor a version"):
        crate.manifest(MANIFEST.replace('version = "1", f', "f"), WORKSPACE, "1.2.3")
    with pytest.raises(
        crate.CrateError, match="edition is not in the workspace, which has version"
    ):
        crate.manifest(
            MANIFEST.replace('edition = "2024"', "edition.workspace = true"), WORKSPACE, "1.2.3"
        )


def test_the_archive() -> None:
    files = {"src/lib.rs": b"//! A thing.\n", "src/a.rs": b""}
    data = crate.build(MANIFEST, WORKSPACE, "1.2.3", files, b"licence")
    assert data == crate.build(
        MANIFEST, WORKSPACE, "1.2.3", dict(reversed(files.items())), b"licence"
    )
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(data))) as archive:
        assert archive.getnames() == [
            f"some-thing-1.2.3/{name}"
            for name in (
                "Cargo.toml",
                "LICENSE",
                "README.md",
                "sbom.cdx.json",
                "src/a.rs",
                "src/lib.rs",
            )
        ]
    with pytest.raises(crate.CrateError, match=r"no src/lib\.rs among src/a\.rs"):
        crate.build(MANIFEST, WORKSPACE, "1.2.3", {"src/a.rs": b""}, b"licence")
