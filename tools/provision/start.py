"""One start of the launcher: use the plan, or make one under the lock, then become Bazel."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.provision import machine, mounts
from tools.provision.messages import EXIT_ENVIRONMENT, StartError, say
from tools.provision.plan import Plan, fingerprint, read_plan


def cache_root(environ: Mapping[str, str]) -> Path:
    """The cache folder: TFP_CACHE, else tfp in XDG_CACHE_HOME, else in ``~/.cache``."""
    told = environ.get("TFP_CACHE")
    if told:
        return Path(told).absolute()
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base).absolute() if base else Path.home() / ".cache") / "tfp"


def output_options(root: Path, environ: Mapping[str, str]) -> list[str]:
    """Where Bazel works if it cannot in the home folder: in the cache folder, too."""
    home = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    fits = not machine.has_space(home)
    while not home.exists() and home != home.parent:
        home = home.parent
    return [] if fits and os.access(home, os.W_OK) else [f"--output_user_root={root / 'output'}"]


def ready_plan(root: Path, environ: Mapping[str, str]) -> Plan:
    """The plan of this machine, made if need be."""
    key = fingerprint(environ)
    plan: Plan | None = None
    why_not: str | None = None
    if environ.get("TFP_VERIFY") != "1":
        plan, why_not = read_plan(root, key)
    if plan is not None:
        return plan
    if why_not is not None:
        say(f"the plan of the last start cannot be used: {why_not}; checking everything")
    # Before the import: a Python that lacks a part could not import it.
    machine.check(root)
    from tools.provision.provision import provision  # not needed by most starts

    return provision(root, key, environ)


def main(arguments: Sequence[str]) -> int:
    """Becomes Bazel; returns an exit status only if that failed."""
    environ = os.environ
    try:
        root = cache_root(environ)
        plan = ready_plan(root, environ)
        if environ.get("TFP_VERBOSE") == "1":
            for note in plan.notes:
                say(note)
        if environ.get("TFP_PROVISION_ONLY") == "1":
            return 0
        options = [
            *plan.argv,
            *mounts.startup_options(root, environ),
            *output_options(root, environ),
        ]
        if any(argument.startswith("--config") for argument in arguments):
            from tools.provision.remote import executor_options  # not needed by most starts

            options += executor_options(root, environ, arguments)
        if environ.get("TFP_REMOTE_CACHE"):
            from tools.provision.remote import shown, startup_options  # not needed by most starts

            cache = startup_options(root, environ, arguments)
            if cache:
                from tools.provision import relay

                argv = [*options, *cache, *arguments]
                return relay.run(argv, {**environ, **plan.variables}, relay.Relay(shown(environ)))
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(plan.argv[0], [*options, *arguments], {**environ, **plan.variables})
    except StartError as error:
        say(error.line())
    except KeyboardInterrupt:
        say("interrupted; nothing half-done is kept, start again to go on")
        return 130
    except OSError as error:
        say(f"starting Bazel failed: {error.strerror} ({error.filename}); start again")
    except Exception as error:
        if environ.get("TFP_DEBUG") == "1":
            raise
        say(
            f"provisioning failed: {type(error).__name__}: {' '.join(str(error).split())}; this is "
            "a defect of tools/provision, TFP_DEBUG=1 shows where"
        )
    return EXIT_ENVIRONMENT
