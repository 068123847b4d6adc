"""What the tests of clusters share."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest

from bindings.client.tests.distribute_test.processes import Tasks


@pytest.fixture
def tasks() -> Iterator[Tasks]:
    """Returns a place for processes."""
    tasks = Tasks()
    yield tasks
    tasks.end()


@pytest.fixture
def folder() -> str:
    """Returns an empty folder."""
    return tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
