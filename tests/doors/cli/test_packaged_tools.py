"""Tools of packages at the terminal: where they come from, and which of them nothing holds."""

from __future__ import annotations

import pytest
from shell import Glee, wait_until
from sites import GREETER, Site
from test_modules_loaded import _HEAVY, _loaded_by


@pytest.fixture
def installed(glee: Glee) -> Glee:
    site = Site(glee.base / "site")
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    site.install("acme-other", GREETER.replace("def greet", "def other"), other="acme_other:other")
    glee.environ["PYTHONPATH"] = str(site.folder)
    return glee


def test_a_trusted_package_is_marked_wherever_its_tools_are_shown(installed: Glee) -> None:
    installed.project.configure_person("sandbox: {trust: [acme-other]}")

    lines = installed("list").out.splitlines()
    listed = installed("list", "--json").json
    shown = {name: installed("show", name).out for name in ("greet", "other")}
    told = {name: installed("show", name, "--json").json for name in ("greet", "other")}

    assert lines == ["greet  python    Greet somebody.", "other  function  [trusted] Greet somebody."]
    assert [tool["trusted"] for tool in listed] == [False, True]
    assert "trusted" not in shown["greet"]
    assert "trusted      its package, by your config: it runs in Glee's own process\n" in shown["other"]
    assert [told[name]["origin"]["trusted"] for name in told] == [False, True]
    assert told["greet"]["exec"] == {"python": {"target": "acme_greeter:greet", "timeout_ms": None}}


def test_a_packaged_tool_runs_and_its_record_says_how_it_was_held(installed: Glee) -> None:
    installed.project.configure_person("sandbox: {trust: [acme-other]}")

    assert [installed("run", name, "name=you").out for name in ("greet", "other")] == ["hello you\n"] * 2

    held, trusted = (line for line in installed.project.audit_lines if "TOOL_EXECUTED" in line)
    assert "isolation=trusted" in trusted
    assert "isolation=full" in held or "isolation=reduced" in held


def test_a_listing_from_the_cache_starts_nothing_and_loads_nothing_that_could(installed: Glee) -> None:
    wait_until(lambda: bool(_loaded_by(installed, "list")) and _is_cached(installed))

    loaded = _loaded_by(installed, "list")

    assert not loaded & (_HEAVY | {"difflib", "importlib.metadata"})
    assert not {name for name in loaded if name.startswith(("glee.runners", "glee.formats", "glee.sandbox", "acme"))}


def _is_cached(glee: Glee) -> bool:
    files = (glee.base / "cache").rglob("packages.msgpack")
    return any(b"Greet somebody." in file.read_bytes() for file in files)
