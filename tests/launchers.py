"""Both launchers, the one in C and the one in Python, for tests that each of them must pass."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from glee.egress.proxy import Proxy
from glee.engine import Engine
from glee.holding import compose_jails
from glee.runners.cells import JailCells
from glee.sandbox import launcher
from glee.sandbox.jails import Jails

LAUNCHERS = ("python", "c")


def is_native(name: str) -> bool:
    """True for the one in C; skips where that cannot be there."""
    if name == "c" and not launcher.find_program():
        if shutil.which("cc"):
            pytest.fail("the launcher in C is not built; run: make setup")
        pytest.skip("there is no C compiler here, so there is no launcher in C")
    return name == "c"


@pytest.fixture(params=LAUNCHERS)
def each_launcher(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs once with each: with the one in C, and as on a machine where that was not built."""
    if not is_native(request.param):
        monkeypatch.setattr(launcher, "NATIVE", Path("/not/built"))


def hold_with(engine: Engine, *, native: bool | None = None, layers: frozenset[str] | None = None) -> Jails:
    """Has the engine use this launcher, and these layers alone, even where they are not enough to hold anything."""
    runners = engine._parts.runners
    jails = compose_jails(runners._settings, layers=layers, minimum="none", native=native)  # type: ignore[attr-defined]
    runners._cells = JailCells(jails, "/usr/bin:/bin", Proxy)  # type: ignore[attr-defined]
    return jails
