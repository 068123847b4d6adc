"""What the manifests promise together: one version, one oldest Rust, one set of crates."""

import os
import pathlib
import re
import tomllib
from typing import Any

TREE = pathlib.Path(os.environ["CHECKOUT"]).resolve()
ROOT = tomllib.loads((TREE / "Cargo.toml").read_text())["workspace"]


def manifests() -> dict[str, dict[str, Any]]:
    """The manifest of each crate that the root does not exclude, by its folder."""
    found = {}
    for path in sorted(TREE.rglob("Cargo.toml")):
        folder = str(path.parent.relative_to(TREE))
        if folder != "." and not any(
            f"{folder}/".startswith(f"{each}/") for each in ROOT["exclude"]
        ):
            found[folder] = tomllib.loads(path.read_text())
    return found


def value(manifest: dict[str, Any], key: str) -> Any:
    given = manifest["package"].get(key)
    return ROOT["package"][key] if given == {"workspace": True} else given


def locked(path: str) -> dict[str, set[str]]:
    """Versions of the third-party packages of a lock, by name."""
    versions: dict[str, set[str]] = {}
    for package in tomllib.loads((TREE / path).read_text())["package"]:
        if "source" in package:
            versions.setdefault(package["name"], set()).add(package["version"])
    return versions


def test_every_crate_is_a_member() -> None:
    assert sorted(ROOT["members"]) == sorted(manifests())


def test_the_version_is_that_of_all_packages() -> None:
    text = (TREE / "tools/build/version.bzl").read_text()
    found = re.search(r'^VERSION = "(.+)"$', text, re.MULTILINE)
    assert found is not None
    versions = {folder: value(manifest, "version") for folder, manifest in manifests().items()}
    assert set(versions.values()) == {found[1]}, versions
    assert f'    version = "{found[1]}",' in (TREE / "MODULE.bazel").read_text()


def test_no_crate_needs_a_newer_rust_than_what_depends_on_it() -> None:
    crates = manifests()
    for folder, manifest in crates.items():
        own = value(manifest, "rust-version") or ROOT["package"]["rust-version"]
        for dependency in manifest.get("dependencies", {}).values():
            if isinstance(dependency, dict) and "path" in dependency:
                needed = os.path.normpath(f"{folder}/{dependency['path']}")
                oldest = value(crates[needed], "rust-version")
                assert oldest is not None, f"{needed}: no rust-version"
                assert tuple(map(int, oldest.split("."))) <= tuple(map(int, own.split("."))), needed


def test_modules_and_the_workspace_have_the_same_rule_sets() -> None:
    archives = (TREE / "tools/workspace/rule_sets.bzl").read_text()
    modules = (TREE / "MODULE.bazel").read_text()
    for name, version in re.findall(r'bazel_dep\(name = "(\w+)", version = "(.+)"\)', modules):
        assert re.search(rf'name = "{name}",\n(?:.*\n){{1,3}}?.*[/-]v?{version}[/.]', archives), (
            name
        )


def test_the_oldest_rust_is_that_of_the_launcher_and_of_converted_models() -> None:
    oldest = ROOT["package"]["rust-version"]
    pins = (TREE / "tools/provision/pins.toml").read_text()
    assert f'oldest = "{oldest}.0"' in pins
    template = (TREE / "converters/tf/templates/Cargo.toml.j2").read_text()
    assert f'rust-version = "{oldest}"' in template
    embedded = (TREE / "converters/mlf/emit.py").read_text()
    assert f'rust="{oldest}" if embedded' in embedded
    assert f"cargo +{oldest} check" in (TREE / "RELEASING.md").read_text()


def test_the_packages_in_converted_models_are_ours() -> None:
    """tf2rust writes manifests that stand alone: of the workspace, only what others need."""
    crates = manifests()
    for folder in ("kernels", "converters/runtime"):
        ours = crates[folder]
        name = ours["package"]["name"]
        text = (TREE / f"converters/tf/templates/vendor/{name}.toml").read_text()
        written = tomllib.loads(text)
        for key in ("name", "version", "edition", "rust-version", "license", "description"):
            assert written["package"][key] == value(ours, key), f"{name}: {key}"
        assert written["features"] == ours["features"], name
        needed = ours.get("dependencies", {})
        assert written.get("dependencies", {}) == {
            crate: {
                **{key: given for key, given in table.items() if key != "version"},
                "path": f"../{crate}",
            }
            for crate, table in needed.items()
        }
        assert not written.keys() & {"lints", "dev-dependencies", "workspace"}, name


def test_packages_for_others_have_names_of_ours() -> None:
    """`tfp` on the public index is somebody else's; a name with `_` is not one that we publish."""
    for folder, manifest in manifests().items():
        if folder.split("/")[0] in ("bindings", "converters", "kernels", "plugin"):
            assert re.fullmatch(r"tfp-[a-z-]+", manifest["package"]["name"]), folder


def test_only_the_crates_of_a_release_can_be_published() -> None:
    check = (TREE / "tools/package/release_check.py").read_text()
    released = set(re.findall(r'Package\("//(.+):crate"', check))
    assert {
        folder for folder, each in manifests().items() if value(each, "publish") is not False
    } == (released)


def test_the_workspace_has_one_lock() -> None:
    """Cargo reads the root's; locks of members would be stale and nobody would see it."""
    assert [folder for folder in manifests() if (TREE / folder / "Cargo.lock").exists()] == []


def test_no_crate_has_a_build_script() -> None:
    """A dependency by git or path is built with nothing but Rust."""
    for folder, manifest in manifests().items():
        assert "build" not in manifest["package"], folder
        assert not (TREE / folder / "build.rs").exists(), folder


def test_both_locks_agree() -> None:
    """Cargo's builds and Bazel's have the same third-party crates."""
    cargo, bazel = locked("Cargo.lock"), locked("tools/workspace/crates/Cargo.lock")
    different = {name: (cargo[name], bazel[name]) for name in cargo.keys() & bazel.keys()}
    assert {name: both for name, both in different.items() if both[0] != both[1]} == {}
