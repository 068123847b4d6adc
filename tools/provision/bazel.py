"""Bazel and the rule sets from Debian packages: which suite, what of it, and how it is patched."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.provision.apt import PackageSource, Source, numbers, upstream_part
from tools.provision.command import Runner, must
from tools.provision.messages import StartError
from tools.provision.pins import Pins

LAYOUT = 1
"""Raised when the code here lays the folder out otherwise: makes a new folder."""

INSTALL_BASE = "usr/share/bazel"
PROGRAM = "usr/bin/bazel"
HELPERS = "usr/libexec/x86_64-linux-gnu/bazel"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
LOADER = "usr/lib64/ld-linux-x86-64.so.2"
CLASS_PATH = f"{INSTALL_BASE}/bazel_classpath_debian_depends.txt"
LABEL = f"{INSTALL_BASE}/build-label.txt"
LABEL_JAR = f"{INSTALL_BASE}/build-label.jar"
CONTENTS = "tfp-contents.json"
SPARE = ("usr/share/doc", "usr/share/man", "usr/share/lintian", "usr/share/bash-completion",
         "usr/share/zsh", "usr/share/doc-base", "usr/share/gdb", "usr/share/locale")  # fmt: skip

BAZELISK = (
    "set TFP_DEBIAN_MIRROR to another mirror of Debian, or install Bazelisk (`npm install -g "
    "@bazel/bazelisk`) and run `bazelisk` in place of tools/bazel"
)


@dataclass(frozen=True)
class Choice:
    """A suite and the versions in it.

    Attributes:
        suite: its name.
        versions: Debian package -> version, for Bazel and every rule set.
        exact: whether Bazel and the rule sets of Rust and Python are the pinned ones.
    """

    suite: str
    versions: Mapping[str, str]
    exact: bool


def version_of(runner: Runner, program: str) -> str | None:
    """What a Bazel says of its version: ``7.7.1``; None if it does not start or does not say."""
    outcome = runner.run(
        [program, "--version"],
        env={"TFP_INSIDE_LAUNCHER": "1", "BAZELISK_SKIP_WRAPPER": "1"},
        timeout_s=60,
    )
    match = re.search(r"^bazel (\d+\.\d+\.\d+\S*)", outcome.out, re.MULTILINE)
    return match.group(1) if outcome.status == 0 and match else None


def judge_suite(
    pins: Pins, suite: str, versions: Mapping[str, str], next_major: bool = False
) -> Choice | str:
    """Says whether a suite will do.

    Args:
        pins: the pins.
        suite: its name.
        versions: the versions of the packages in it.
        next_major: whether the major version after the pinned one will do, which still reads
            WORKSPACE.

    Returns:
        The choice, or in a few words why not.
    """
    bazel = versions.get(pins.bazel_packages[0])
    if bazel is None:
        return f"{suite} has no {pins.bazel_packages[0]}"
    oldest = numbers(pins.bazel_oldest)
    if numbers(bazel) < oldest or numbers(bazel)[0] > oldest[0] + next_major:
        return f"{suite} has Bazel {upstream_part(bazel)}"
    missing = [rule.package for rule in pins.rules if rule.package not in versions]
    if missing:
        return f"{suite} has Bazel {upstream_part(bazel)} without {', '.join(missing)}"
    strict = [rule for rule in pins.rules if rule.repository in ("rules_rust", "rules_python")]
    exact = upstream_part(bazel) == pins.bazel_version and all(
        upstream_part(versions[rule.package]) == rule.version for rule in strict
    )
    return Choice(suite, versions, exact)


def choose_suite(pins: Pins, apt: PackageSource, archive: Source) -> Choice:
    """Finds the suite to take Bazel and the rule sets from.

    The first suite with the pinned versions wins. If there is none, the first wins that has a Bazel
    of the same major version that is not too old. Then the first with one of the next major version
    does.

    Args:
        pins: the pins.
        apt: reads the suites of ``archive``.
        archive: Debian's archive for this machine.

    Returns:
        The choice; ``apt`` is pointed at its suite.

    Raises:
        StartError: no suite will do; says what each one has.
    """
    names = [*pins.bazel_packages, *(rule.package for rule in pins.rules)]
    second: Choice | None = None
    third: Choice | None = None
    reasons: list[str] = []
    last: StartError | None = None

    def look(suite: str) -> None:
        apt.update(f"Debian {suite}", [archive.line(suite)], pins.not_needed)

    for suite in pins.suites:
        try:
            look(suite)
        except StartError as error:
            if not re.search(r"release file|404", error.found, re.IGNORECASE):
                raise  # the network or the disk, not this suite
            last = error
            reasons.append(f"{suite} cannot be read ({error.found})")
            continue
        versions = apt.versions(names)
        verdict = judge_suite(pins, suite, versions)
        if isinstance(verdict, str):
            reasons.append(verdict)
            newer = judge_suite(pins, suite, versions, next_major=True)
            third = third or (newer if isinstance(newer, Choice) else None)
        elif verdict.exact:
            return verdict
        else:
            second = second or verdict
    second = second or third
    if second is not None:
        look(second.suite)
        return second
    if last is not None and len(reasons) == sum("cannot be read" in reason for reason in reasons):
        raise last
    raise StartError(
        "choosing Bazel",
        f"expected {pins.bazel_version} or a {numbers(pins.bazel_oldest)[0]}.x from "
        f"{pins.bazel_oldest} on with its rule sets; {'; '.join(reasons)}",
        BAZELISK,
    )


def describe(pins: Pins, choice: Choice, with_bazel: bool) -> str:
    """What was chosen from a suite, with every version that differs from its pin."""
    bazel = upstream_part(choice.versions[pins.bazel_packages[0]])
    if choice.exact:
        text = f"Bazel {bazel} and rule sets" if with_bazel else "rule sets"
        return f"{text} from Debian {choice.suite}"
    other = [
        f"{rule.repository} {upstream_part(choice.versions[rule.package])} (pinned {rule.version})"
        for rule in pins.rules
        if upstream_part(choice.versions[rule.package]) != rule.version
    ]
    text = f"Bazel {bazel} (pinned {pins.bazel_version})" if with_bazel else "rule sets"
    return f"{text} from Debian {choice.suite}, which has moved on: {', '.join(other)}"


def fill_bazel(
    pins: Pins,
    choice: Choice,
    apt: PackageSource,
    runner: Runner,
    patchelf: Path | None,
    stage: Path,
    final: Path,
) -> None:
    """Fills a fresh folder with the rule sets and, given patchelf, with a Bazel that runs there.

    Args:
        pins: the pins.
        choice: the suite; ``apt`` is pointed at it.
        apt: fetches and unpacks.
        runner: runs patchelf.
        patchelf: the program; None for the rule sets alone.
        stage: the folder to fill.
        final: where it will be; written into programs and the class path.
    """
    names = [rule.package for rule in pins.rules]
    if patchelf is not None:
        names = [*pins.bazel_packages, *names]
        packages = apt.closure(
            [f"{name}={choice.versions[name]}" for name in names], "choosing the packages of Bazel"
        )
    else:
        wanted = set(names)
        packages = [
            package
            for package in apt.closure(
                [f"{name}={choice.versions[name]}" for name in names], "choosing the rule sets"
            )
            if package.name in wanted
        ]
    label = "Bazel and its rule sets" if patchelf else "rule sets of Bazel"
    files = apt.fetch(packages, stage / "deb", label)
    apt.unpack(files, stage, label)
    shutil.rmtree(stage / "deb")
    for spare in SPARE:
        shutil.rmtree(stage / spare, ignore_errors=True)
    folders = place_rules(pins, stage)
    if patchelf is not None:
        patch_programs(runner, patchelf, stage, final)
        patch_class_path(pins, stage, final)
    contents = {
        "suite": choice.suite,
        "bazel": choice.versions[pins.bazel_packages[0]] if patchelf is not None else None,
        "note": describe(pins, choice, patchelf is not None),
        "rules": folders,
    }
    (stage / CONTENTS).write_text(json.dumps(contents, indent=1) + "\n")


def place_rules(pins: Pins, stage: Path) -> dict[str, str]:
    """Finds each rule set in the unpacked packages and gives those without one a BUILD file.

    Returns:
        Repository name -> folder, relative to ``stage``.

    Raises:
        StartError: a package no longer holds the folder.
    """
    folders: dict[str, str] = {}
    for rule in pins.rules:
        found = sorted(stage.glob(rule.folder))
        if not found:
            raise StartError(
                "unpacking the rule sets",
                f"package {rule.package} has no folder {rule.folder}",
                f"its layout changed: {BAZELISK}",
            )
        folder = found[-1]
        if rule.build_file is not None:
            source = stage / folders[rule.build_file[0]] / rule.build_file[1]
            shutil.copyfile(source, folder / "BUILD.bazel")
        if not any((folder / name).exists() for name in ("WORKSPACE", "WORKSPACE.bazel")):
            (folder / "WORKSPACE").write_text(f'workspace(name = "{rule.repository}")\n')
        folders[rule.repository] = str(folder.relative_to(stage))
    return folders


def patch_programs(runner: Runner, patchelf: Path, stage: Path, final: Path) -> None:
    """Points Bazel's programs at the C library and the other libraries beside them."""
    for program in [stage / PROGRAM, *sorted((stage / HELPERS).iterdir())]:
        must(
            runner,
            [
                str(patchelf),
                "--set-interpreter", str(final / LOADER),
                "--force-rpath",
                "--set-rpath", str(final / LIBRARIES),
                str(program),
            ],
            f"patching {program.name}",
            f"the package changed: {BAZELISK}",
            cwd=str(stage),
        )  # fmt: skip


def patch_class_path(pins: Pins, stage: Path, final: Path) -> None:
    """Rewrites the server's class path and gives the server its release label.

    Jars of packages that are left out are dropped from it.
    """
    path = stage / CLASS_PATH
    jars = [line.strip() for line in path.read_text().splitlines() if line.strip()]
    jars += [f"/usr/share/java/{name}" for name in pins.extra_jars]
    kept = [jar for jar in dict.fromkeys(jars) if (stage / jar.lstrip("/")).exists()]
    label = (stage / LABEL).read_text().strip()
    with zipfile.ZipFile(stage / LABEL_JAR, "w") as jar:
        jar.writestr("build-data.properties", f"build.label={label}\n")
    kept.append(f"/{LABEL_JAR}")
    path.write_text("".join(f"{final}{jar}\n" for jar in kept))


def startup_options(prefix: Path, java: Path) -> list[str]:
    """Startup options of the provisioned Bazel."""
    return [
        "--nosystem_rc",
        f"--install_base={prefix / INSTALL_BASE}",
        "--trust_install_base",
        f"--server_javabase={java}",
    ]


def trials(prefix: Path) -> list[list[str]]:
    """Commands that end with status 0 if the provisioned Bazel and its helpers run here."""
    base = prefix / INSTALL_BASE
    return [
        [str(prefix / PROGRAM), f"--install_base={base}", "--trust_install_base", "--version"],
        [str(prefix / HELPERS / "process-wrapper"), "/bin/true"],
    ]


def read_contents(folder: Path) -> dict[str, object]:
    """What a provisioned folder says of itself."""
    data = json.loads((folder / CONTENTS).read_text())
    assert isinstance(data, dict)
    return data


def overrides(folder: Path) -> list[str]:
    """One bazelrc line per rule set that lies in ``folder``."""
    rules = read_contents(folder)["rules"]
    assert isinstance(rules, dict)
    return [f"common --override_repository={name}={folder / path}" for name, path in rules.items()]


def key_files(prefix: Path, java: Path) -> list[str]:
    """Files whose size and time are compared at every start."""
    names: Sequence[str] = (PROGRAM, LOADER, CLASS_PATH, LABEL, f"{INSTALL_BASE}/A-server.jar")
    return [str(prefix / name) for name in names] + [
        str(java / "bin/java"),
        str(java / "lib/server/libjvm.so"),
        str(java / "lib/modules"),
    ]
