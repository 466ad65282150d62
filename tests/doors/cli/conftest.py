from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from shell import Glee


@pytest.fixture
def glee(tmp_path: Path) -> Glee:
    """The program in an empty project."""
    return Glee(tmp_path)


@pytest.fixture(scope="session")
def make_glee(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Glee]:
    """For projects that the tests of a module share."""
    return lambda: Glee(tmp_path_factory.mktemp("shared"))
