"""Builds the documentation as a site, or shows it and follows what is changed.

`build` writes an archive with the site; `serve` needs a checkout to look at.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys
import tempfile
from collections.abc import Sequence
from typing import Final

from absl import app, flags

from docs import tree

_API = flags.DEFINE_string("api", None, "Archive of the crates' pages.", required=True)
_CONFIG = flags.DEFINE_string("config", None, "Build from this mkdocs.yml, and do not serve.")
_OUT = flags.DEFINE_string("out", None, "With --config: the archive to write.")
_ADDRESS = flags.DEFINE_string("address", "127.0.0.1:8000", "Where to serve.")

API: Final = "TFP_SITE_API"
"""Environment variable with the folder of the crates' pages, for api_hook.py."""


def build(config: pathlib.Path, out: pathlib.Path) -> None:
    """Builds the site; a warning is an error.

    Args:
        config: The file mkdocs.yml.
        out: The archive to write.

    Raises:
        mkdocs.exceptions.Abort: If a page is missing or a link is broken; it has said which.
    """
    from mkdocs.commands.build import build as build_site
    from mkdocs.config import load_config

    with tempfile.TemporaryDirectory() as site:
        loaded = load_config(str(config), strict=True, site_dir=site)
        loaded.plugins.on_startup(command="build", dirty=False)
        build_site(loaded)
        tree.pack(pathlib.Path(site), out)


def serve(workspace: pathlib.Path) -> None:
    """Shows a checkout's documentation until it is interrupted."""
    from mkdocs.commands import serve as serving

    with contextlib.suppress(KeyboardInterrupt):
        serving.serve(config_file=str(workspace / "mkdocs.yml"), dev_addr=_ADDRESS.value)


def main(argv: Sequence[str]) -> int:
    """Builds or serves; returns the exit status."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    config, out = _CONFIG.value, _OUT.value
    workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if (config is None) != (out is None):
        raise app.UsageError("--config and --out go together")
    if workspace is None and config is None:
        print("serve: run it with `tools/bazel run //docs:serve`", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as api:
        tree.unpack(pathlib.Path(_API.value), pathlib.Path(api))
        os.environ[API] = api
        if config is not None and out is not None:
            # The time that pages would carry, where equal inputs have to give equal bytes.
            os.environ["SOURCE_DATE_EPOCH"] = "0"
            build(pathlib.Path(config).absolute(), pathlib.Path(out).absolute())
        else:
            serve(pathlib.Path(workspace or ""))
    return 0


if __name__ == "__main__":
    app.run(main)
