"""What this machine gets: the order of Python, Bazel, its rule sets, Rust and the formatter.

Each choice adds its bazelrc lines and one line for the user that says what was chosen and why.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from tools.provision import bazel, interpreter, rust
from tools.provision.folders import (
    provisioned_buildifier,
    provisioned_jre,
    provisioned_python,
    provisioned_release,
    provisioned_rules,
    provisioned_rust,
    rule_wheels,
)
from tools.provision.formatter import present_buildifier
from tools.provision.messages import StartError
from tools.provision.work import Work


def choose_python(work: Work) -> None:
    """Chooses the interpreter of the build.

    What TFP_PYTHON names comes first; then the Python that runs this, if it is of the preferred
    version; then Debian's of that version, so that every machine has the same; and, without any
    mirror of Debian, the Python that runs this, if the locked packages know its version.

    Raises:
        StartError: there is none that will do.
    """
    pins = work.pins
    mine = interpreter.running()
    lacking = interpreter.lacking()
    usable = not lacking and mine.version in pins.python_versions
    if work.environ.get("TFP_PYTHON"):
        if not usable:
            lack = f" without {', '.join(lacking)}" if lacking else ""
            raise StartError(
                "checking TFP_PYTHON",
                f"{mine.path} is Python {mine.version}{lack}, expected one of "
                f"{', '.join(pins.python_versions)}: the locked packages have no other",
                "name such a Python, or unset it: the launcher brings its own then",
            )
        chosen = replace(mine, note="TFP_PYTHON says so")
    elif usable and mine.version == pins.python_preferred:
        chosen = mine
    else:
        why = f"this machine's is {mine.version}"
        try:
            chosen = provisioned_python(work)
            chosen = replace(chosen, note=f"{chosen.note}; {why}")
        except StartError as error:
            if not usable:
                raise
            chosen = replace(mine, note=f"no {pins.python_preferred} to be had: {error.line()}")
    work.notes.append(f"Python {chosen.version} at {chosen.path} ({chosen.note})")
    work.lines.append(f"common --repo_env=TFP_PYTHON={chosen.path}")
    work.files.append(str(chosen.path))
    work.python = str(chosen.path)


def choose_bazel(work: Work, archives: bool) -> list[str]:
    """Chooses Bazel and where the rule sets come from; gives the start of the command line."""
    present, why = present_bazel(work)
    site = "the site of the rule sets is reached" if archives else "their site is not reached"
    if present is None and archives:
        try:
            present = str(provisioned_release(work))
            why = f"{why}; its site is reached"
        except StartError as error:
            why = f"{why}; {error.line()}"
    if present is not None:
        work.notes.append(f"Bazel: {present} ({why})")
        work.files.append(str(Path(present).resolve()))
        if archives:
            work.lines += rule_wheels(work, None)
        else:
            folder = provisioned_rules(work, with_bazel=False)
            work.notes.append(f"rule sets: {bazel.read_contents(folder)['note']} ({site})")
            work.lines += bazel.overrides(folder) + rule_wheels(work, folder)
        # Wrapper scripts and Bazelisk would call this launcher once more.
        work.variables |= {"BAZELISK_SKIP_WRAPPER": "1", "TFP_INSIDE_LAUNCHER": "1"}
        return [present]
    folder = provisioned_rules(work, with_bazel=True)
    java = provisioned_jre(work)
    work.notes.append(f"{bazel.read_contents(folder)['note']}, in {folder} ({why}; {site})")
    work.files += bazel.key_files(folder, java)
    if archives:
        work.lines += rule_wheels(work, None)
    else:
        work.lines += bazel.overrides(folder) + rule_wheels(work, folder)
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


def choose_rust(work: Work, site: bool) -> None:
    """Chooses Rust: a toolchain that is there, the rule set's own download, or Debian's."""
    told = work.environ.get("TFP_RUST_SYSROOT")
    if told:
        sysroot = told_sysroot(work, told)
    else:
        found, reasons = rust.local_sysroot(work.pins, work.runner, work.environ)
        if found is None and site:
            why = "; ".join(reasons)
            work.notes.append(f"Rust: downloaded by rules_rust ({why}; its site is reached)")
            work.lines.append("common --repo_env=TFP_RUST_DOWNLOAD=1")
            return
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
        StartError: it will not do.
    """
    path = Path(told).resolve()
    described = rust.describe_rustc(work.runner, str(path / "bin/rustc"))
    lack = "its rustc does not run"
    if described is not None:
        version = described[0]
        lack = rust.shortcoming(work.pins, version, path) or ""
        if not lack:
            return rust.Sysroot(path, version, "TFP_RUST_SYSROOT says so")
    raise StartError(
        "checking TFP_RUST_SYSROOT",
        f"{path}: {lack}",
        f"name the sysroot of a stable toolchain from {work.pins.rust_oldest} on, or unset it",
    )


def choose_buildifier(work: Work) -> None:
    """Chooses the formatter of BUILD files, or says why there is none."""
    npm = work.pins.buildifier
    program = present_buildifier(npm, work.runner, work.environ)
    if program is None and shutil.which("npm", path=work.environ.get("PATH")) is None:
        work.notes.append(
            "no buildifier and no npm on PATH: the format of BUILD files is not tested "
            f"(buildifier {npm.version} is expected)"
        )
        return
    note = "on PATH"
    if program is None:
        try:
            program, note = str(provisioned_buildifier(work)), "from npm"
        except StartError as error:
            if not error.step.startswith("fetching"):
                raise
            work.notes.append(
                f"no buildifier: {error.line()}; the format of BUILD files is not tested "
                "(TFP_VERIFY=1 tries again)"
            )
            return
    work.notes.append(f"buildifier: {program} ({note})")
    work.lines.append(f"common --repo_env=TFP_BUILDIFIER={program}")
    work.files.append(program)
