"""Puts the pages of the Rust crates into the site, from the folder that TFP_SITE_API names."""

from __future__ import annotations

import os
import pathlib
from typing import Any


def on_post_build(config: Any, **_: Any) -> None:
    """Links them; called by the site's generator, which may have done so for an earlier build."""
    folder = os.environ.get("TFP_SITE_API")
    place = pathlib.Path(config["site_dir"]) / "api"
    if folder and not place.is_symlink():
        place.symlink_to(folder, target_is_directory=True)
