"""One start of the launcher: use the plan, or make one under the lock, then become Bazel."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.provision.messages import EXIT_ENVIRONMENT, Trouble, say
from tools.provision.plan import Plan, fingerprint, read_plan


def cache_root(environ: Mapping[str, str]) -> Path:
    """The cache folder: TFP_CACHE, else tfp in XDG_CACHE_HOME, else in ``~/.cache``."""
    told = environ.get("TFP_CACHE")
    if told:
        return Path(os.path.abspath(told))
    base = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(os.path.abspath(base)) / "tfp"


def ready_plan(root: Path, environ: Mapping[str, str]) -> Plan:
    """The plan of this machine, made if need be."""
    key = fingerprint(environ)
    plan, why_not = (None, None)
    if environ.get("TFP_VERIFY") != "1":
        plan, why_not = read_plan(root, key)
    if plan is not None:
        return plan
    if why_not is not None:
        say(f"the plan of the last start cannot be used: {why_not}; checking everything")
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
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(plan.argv[0], [*plan.argv, *arguments])
    except Trouble as trouble:
        say(trouble.line())
    except KeyboardInterrupt:
        say("interrupted; nothing half-done is kept, start again to go on")
        return 130
    except OSError as error:
        say(f"starting Bazel failed: {error.strerror} ({error.filename}); start again")
    return EXIT_ENVIRONMENT
