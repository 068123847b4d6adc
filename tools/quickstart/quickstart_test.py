"""The quickstart, as README's first command runs it."""

from __future__ import annotations

import json
import os
import subprocess


def test_every_node_and_the_training_agree_with_the_cpu() -> None:
    done = subprocess.run(
        [os.environ["QUICKSTART"], "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["problem"] == ""
