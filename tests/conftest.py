"""Fixtures that every room's tests may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from containers import docker
from hypothesis import HealthCheck, settings
from launchers import each_launcher

from glee.engine import Engine
from glee.testing import Project

__all__ = ["docker", "each_launcher"]

settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty project with folders of its own for state, cache and config."""
    return Project(tmp_path)


@pytest.fixture(params=["native", "off"])
def mode(project: Project, request: pytest.FixtureRequest) -> str:
    """For what must be true of a run whether the kernel holds it or the person turned the sandbox off."""
    project.configure_person(f"sandbox: {{mode: '{request.param}'}}")
    return str(request.param)


@pytest.fixture
def engine(project: Project) -> Iterator[Engine]:
    """An engine for that project; tools added to the project are found when they are called."""
    with project.open() as opened:
        yield opened


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the person's own config, state or cache."""
    for name in ("CONFIG", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / f"own-{name.lower()}"))
