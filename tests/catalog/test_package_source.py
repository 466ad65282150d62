"""Tools of installed packages, found through real entry points of real, tiny packages."""

from __future__ import annotations

import asyncio
import os
import sys
import textwrap
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from sites import GREETER, Site

import glee
from glee.catalog.packages import EntryPoint, PackageSource
from glee.compose import compose_catalog
from glee.config import load_settings
from glee.definitions.call import Call, Caller
from glee.definitions.event import Finished
from glee.definitions.tool import PackageExec, Tool
from glee.errors import NotFound, SandboxUnavailable, TimedOut
from glee.testing import Project, Watcher

LATER = 60.0
"""Seconds after which nobody could take a file that was just written for one that is being written."""


class Describer:
    """Stands for the jails: gives the same answer to every probe, and remembers who was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def __call__(self, probes: Sequence[Tool]) -> list[Any]:
        self.asked += [probe.name for probe in probes]
        return [self.answer for _ in probes]


def told(name: str) -> dict[str, Any]:
    return {"name": name, "description": f"The tool {name}", "inputs": {"schema": {"type": "object"}}}


def names(source: PackageSource) -> list[str]:
    return [summary.name for summary in source.summaries()]


def test_a_package_provides_a_tool(site: Site, project: Project) -> None:
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")

    with project.open() as engine:
        listed = [(summary.name, summary.origin, summary.broken) for summary in engine.list()]
        result = engine.call_sync("greet", {"name": "world"})

    assert (listed, result.output) == ([("greet", "package acme-greeter", None)], "hello world")


def test_a_package_provides_a_list_a_function_that_returns_one_and_a_function_that_returns_a_tool(
    site: Site, project: Project
) -> None:
    source = """
        import glee

        @glee.tool
        def one() -> int:
            '''One.'''
            return 1

        @glee.tool
        def two() -> int:
            '''Two.'''
            return 2

        class Home:
            @staticmethod
            def make():
                return [two]

        tools = [one]

        def three():
            @glee.tool(name="three")
            def make() -> int:
                '''Three.'''
                return 3
            return make
    """
    site.install("acme-numbers", source, a="acme_numbers:tools", b="acme_numbers:Home.make", c="acme_numbers:three")

    with project.open() as engine:
        assert [engine.call_sync(summary.name).output for summary in engine.list()] == [1, 3, 2]


@pytest.mark.parametrize(
    ("source", "value", "reason"),
    [
        ("raise RuntimeError('out of order')", "acme_broken:tool", "RuntimeError: out of order"),
        ("raise SystemExit('I leave')", "acme_broken:tool", "SystemExit: I leave"),
        ("def", "acme_broken:tool", "SyntaxError: invalid syntax (acme_broken.py, line 1)"),
        ("", "acme_broken:tool", "AttributeError: module 'acme_broken' has no attribute 'tool'"),
        ("", "acme_missing:tool", "ModuleNotFoundError: No module named 'acme_missing'"),
        ("tool = [1]", "acme_broken:tool", "TypeError: 1 was not made by @glee.tool"),
        ("tool = 7", "acme_broken:tool", "TypeError: 7 was not made by @glee.tool"),
        ("def tool(): raise OSError('no disk')", "acme_broken:tool", "OSError: no disk"),
    ],
)
def test_a_broken_package_is_listed_with_its_reason_and_hides_no_other(
    site: Site, project: Project, source: str, value: str, reason: str
) -> None:
    site.install("acme-broken", source, bad=value)
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    project.add_command("mine", "true")

    with project.open() as engine:
        listed = {summary.name: (summary.origin, summary.broken) for summary in engine.list()}
        called = engine.call_sync("greet", {"name": "world"})
        broken = engine.call_sync("bad")

    assert listed["bad"] == ("package acme-broken", f"the entry point {value} cannot be loaded: {reason}")
    assert [name for name, (_, problem) in listed.items() if problem is None] == ["greet", "mine"]
    assert called.output == "hello world"
    assert broken.error is not None
    assert (broken.error.code, reason in broken.error.message) == (NotFound.code, True)


def test_of_two_packages_with_one_name_both_are_listed_and_the_first_by_name_is_used(
    site: Site, project: Project
) -> None:
    site.install("zeta-greeter", GREETER.replace("hello", "zeta"), greet="zeta_greeter:greet")
    site.install("acme-greeter", GREETER.replace("hello", "acme"), greet="acme_greeter:greet")

    with project.open() as engine:
        listed = [(summary.name, summary.origin, summary.broken) for summary in engine.list()]
        result = engine.call_sync("greet", {"name": "world"})

    reason = "two tools are called greet: package acme-greeter is used, not package zeta-greeter; rename one"
    assert listed == [("greet", "package acme-greeter", None), ("greet", "package zeta-greeter", reason)]
    assert result.output == "acme world"


def test_a_project_s_own_tool_wins_over_a_package_s(site: Site, project: Project) -> None:
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    path = project.add_command("greet", "echo project")

    with project.open() as engine:
        listed = [(summary.origin, summary.broken) for summary in engine.list()]
        result = engine.call_sync("greet")

    reason = f"two tools are called greet: project {path} is used, not package acme-greeter; rename one"
    assert (result.output, listed) == ("project\n", [(f"project {path}", None), ("package acme-greeter", reason)])


def test_the_unused_tool_of_a_denied_name_is_not_listed_either(site: Site, project: Project) -> None:
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    project.add_command("greet", "echo project")
    project.configure("tools: {deny: [greet]}")

    with project.open() as engine:
        assert engine.list() == ()


def test_what_is_installed_is_looked_for_once_and_again_when_the_path_changes(site: Site, tmp_path: Path) -> None:
    cache, describe = tmp_path / "packages.msgpack", Describer([told("greet")])
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    later = time.time() + LATER
    assert names(PackageSource(cache, describe=describe, now=lambda: later)) == ["greet"]

    info = site.folder / "acme_greeter-1.0.dist-info" / "entry_points.txt"
    info.write_text(info.read_text().replace("greet =", "other ="))  # unseen: the folder on the path is unchanged
    assert names(PackageSource(cache, describe=describe, now=lambda: later)) == ["greet"]

    site.install("acme-late", GREETER, late="acme_late:greet")
    assert names(PackageSource(cache, describe=describe, now=lambda: later)) == ["greet", "greet"]
    assert describe.asked == ["greet", "other", "late"]


def test_a_package_that_was_asked_once_is_not_asked_again(site: Site, project: Project) -> None:
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    settings = load_settings(project.root, environ=project.environ)
    cache = settings.cache.parent / "packages.msgpack"
    later = time.time() + LATER
    catalog = compose_catalog(settings)
    catalog._sources[-1]._now = lambda: later  # type: ignore[attr-defined]
    first = catalog.summaries()
    describe = Describer(SandboxUnavailable("asked again"))

    warm = PackageSource(cache, describe=describe, now=lambda: later)
    found = warm.find("greet")

    assert (tuple(warm.summaries()), describe.asked) == (first, [])
    assert found is not None and found.tool is not None
    assert found.tool.inputs["required"] == ["name"]
    assert b"return f" not in cache.read_bytes()


def test_a_package_that_changed_is_asked_again(site: Site, tmp_path: Path) -> None:
    cache, describe = tmp_path / "packages.msgpack", Describer([told("greet")])
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    later = time.time() + LATER
    source = PackageSource(cache, describe=describe, now=lambda: later)
    found = source.find("greet")
    assert found is not None and found.tool is not None and source.is_current(found.tool)

    site.write("acme-greeter", GREETER + "# changed")
    describe.answer = [told("hail")]
    later += 2.0

    assert not source.is_current(found.tool)
    assert (source.find("greet"), names(source)) == (None, ["hail"])
    assert names(PackageSource(cache, describe=describe, now=lambda: later)) == ["hail"]
    assert describe.asked == ["greet", "greet"]


def test_a_package_that_was_written_a_moment_ago_is_not_kept(site: Site, tmp_path: Path) -> None:
    cache, describe = tmp_path / "packages.msgpack", Describer([told("greet")])
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")

    for _ in range(2):
        assert names(PackageSource(cache, describe=describe)) == ["greet"]

    assert describe.asked == ["greet", "greet"]


def test_a_failure_is_kept_for_a_while_and_a_missing_sandbox_never(site: Site, tmp_path: Path) -> None:
    cache, now = tmp_path / "packages.msgpack", time.time() + LATER
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    describe = Describer(TimedOut("too long", details={"timeout_ms": 30_000}))

    def look() -> list[str | None]:
        return [summary.broken for summary in PackageSource(cache, describe=describe, now=lambda: now).summaries()]

    reason = "the entry point acme_greeter:greet cannot be loaded: importing it took longer than 30 s"
    assert (look(), look(), describe.asked) == ([reason], [reason], ["greet"])
    now += 601
    describe.answer = SandboxUnavailable("not here")
    reason = "it was not loaded, because it could not be held: not here"
    assert (look(), look(), describe.asked) == ([reason], [reason], ["greet"] * 3)


def test_another_interpreter_asks_anew(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, describe = tmp_path / "packages.msgpack", Describer([told("greet")])
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    later = time.time() + LATER
    names(PackageSource(cache, describe=describe, now=lambda: later))

    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    names(PackageSource(cache, describe=describe, now=lambda: later))

    assert describe.asked == ["greet", "greet"]


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x92\x90\x91\x01"])
def test_a_corrupt_cache_of_packages_is_read_over(site: Site, tmp_path: Path, content: bytes) -> None:
    cache = tmp_path / "packages.msgpack"
    cache.write_bytes(content)
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")

    assert names(PackageSource(cache, describe=Describer([told("greet")]))) == ["greet"]


def test_a_package_whose_metadata_is_broken_hides_no_other(site: Site) -> None:
    site.install("acme-broken", GREETER, bad="acme_broken:greet")
    (site.folder / "acme_broken-1.0.dist-info" / "entry_points.txt").write_bytes(b"[glee.tools]\n\xff\xfe = 1")
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")

    assert names(PackageSource(describe=Describer([told("greet")]))) == ["greet"]


def test_an_entry_point_that_can_lead_nowhere_is_broken(site: Site) -> None:
    site.install("acme-broken", GREETER, bad="acme_broken/../../etc:greet")

    (summary,) = PackageSource(describe=Describer([told("greet")])).summaries()

    reason = "the entry point 'acme_broken/../../etc:greet' is not of the form module:attribute"
    assert (summary.name, summary.broken) == ("bad", reason)


def test_no_package_is_looked_at_where_a_project_has_the_tool(site: Site, project: Project) -> None:
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    project.add_command("mine", "echo mine")

    with project.open() as engine:
        assert engine.call_sync("mine").output == "mine\n"

    assert not list(project.root.parent.rglob("packages.msgpack"))


def test_what_is_installed_is_looked_for_once() -> None:
    looked: list[int] = []

    def points() -> list[EntryPoint]:
        looked.append(1)
        return []

    source = PackageSource(points=points)
    for _ in range(3):
        assert (source.find("greet"), list(source.summaries())) == (None, [])

    assert looked == [1]


def test_nothing_of_a_package_is_loaded_into_this_process_and_its_words_are_no_part_of_the_output(
    site: Site, project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    site.install("acme-loud", f"print('loaded')\n{textwrap.dedent(GREETER)}", greet="acme_loud:greet")

    with project.open() as engine:
        assert engine.call_sync("greet", {"name": "you"}).output == "hello you"

    assert (capfd.readouterr(), "acme_loud" in sys.modules) == (("", ""), False)


RICH = """
    import asyncio
    import dataclasses
    import datetime
    import enum
    import os

    import glee

    class Unit(enum.Enum):
        METRE = "m"
        FOOT = "ft"

    @dataclasses.dataclass
    class Place:
        city: str
        since: datetime.date

    @glee.tool(
        name="rich",
        version="1.2",
        group="net",
        dangerous=True,
        idempotent=True,
        permissions={"secrets": {"TOKEN": {"type": "string"}}},
        examples=[{"params": {"place": {"city": "Rome", "since": "2020-01-02"}, "count": 1}}],
        timeout_ms=20_000,
    )
    async def rich(place: Place, count: int, unit: Unit = Unit.METRE, *, context: glee.Context) -> dict[str, object]:
        '''Tell everything.'''
        context.progress(1, 2, "half")
        await asyncio.sleep(0)
        return {
            "place": place,
            "year": place.since.year,
            "count": (type(count).__name__, count),
            "unit": unit,
            "secrets": dict(context.environment),
            "environment": sorted(name for name in os.environ if name != "LC_CTYPE"),
            "workdir": context.workdir,
            "who": (context.caller.agent, context.session, len(context.call_id)),
            "sandbox": context.sandbox.split(":")[0],
            "cancelled": context.cancelled,
        }

    @glee.tool
    def fail(reason: str) -> None:
        '''Fail.'''
        raise ValueError(reason)

    @glee.tool
    def on(day: datetime.date) -> datetime.date:
        '''The day after.'''
        return day + datetime.timedelta(days=1)

    @glee.tool
    def hold() -> object:
        '''Return what is not JSON.'''
        return object()

    tools = [rich, fail, on, hold]
"""


def test_a_packaged_function_has_all_that_it_would_have_in_process(site: Site, project: Project) -> None:
    site.install("acme-rich", RICH, rich="acme_rich:tools")
    project.environ |= {"TOKEN": "t0k3n-of-some-length", "OTHER": "not for it"}
    call = Call(
        tool="rich",
        arguments={"place": {"city": "Rome", "since": "2020-01-02"}, "count": 2.0},
        caller=Caller(agent="a", session="s"),
    )
    with project.open() as engine:
        tool = engine.find("rich")
        result = engine.call_sync(call)

    assert tool is not None and isinstance(tool.exec, PackageExec)
    assert (tool.kind, tool.version, tool.group, tool.exec.timeout_ms) == ("python", "1.2", "web", 20_000)
    assert (tool.dangerous, tool.idempotent, len(tool.examples), tool.outputs.format) == (True, True, 1, "json")
    assert result.output == {
        "place": {"city": "Rome", "since": "2020-01-02"},
        "year": 2020,
        "count": ["int", 2],
        "unit": "m",
        "secrets": {"TOKEN": "[secret]"},
        "environment": ["HOME", "LANG", "PATH", "TMPDIR", "TOKEN"],
        "workdir": str(project.root),
        "who": ["a", "s", 28],
        "sandbox": "a jail",
        "cancelled": False,
    }


def test_what_goes_wrong_in_a_packaged_function_is_told_as_for_any_other(site: Site, project: Project) -> None:
    site.install("acme-rich", RICH, rich="acme_rich:tools")

    with project.open() as engine:
        failed = engine.call_sync("fail", {"reason": "no such luck"}).error
        wrong = engine.call_sync("on", {"day": "yesterday"}).error
        right = engine.call_sync("on", {"day": "2024-02-28"}).output
        odd = engine.call_sync("hold").error

    assert failed is not None and wrong is not None and odd is not None
    assert (failed.code, failed.message) == ("exception", "fail raised ValueError: no such luck")
    assert failed.details == {"type": "ValueError", "message": "no such luck"}
    assert (wrong.code, wrong.details["violations"][0]["pointer"]) == ("invalid_input", "/day")
    assert (right, odd.code) == (str(date(2024, 2, 29)), "exception")


def test_a_packaged_tool_is_held_and_recorded_so_and_waits_for_its_next_call(site: Site, project: Project) -> None:
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    watcher = Watcher()

    with project.open() as engine:
        engine.subscribe(watcher)
        for _ in range(2):
            assert engine.call_sync("greet", {"name": "you"}).ok
        templates = engine._parts.runners["python"]._templates  # type: ignore[attr-defined]
        unfit, waiting = templates._unfit, sum(map(len, templates._idle.values()))

    (held,) = {event.isolation and event.isolation.level for event in watcher.events if isinstance(event, Finished)}
    assert held in ("full", "reduced")
    assert f"isolation={held}" in project.audit_lines[-1]
    assert (unfit, waiting) == ({}, 1 if held == "full" else 0)


async def _find(project: Project) -> Tool | None:
    async with project.open() as engine:
        return engine.find("greet")


def test_a_package_can_be_asked_while_an_event_loop_runs(site: Site, project: Project) -> None:
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")

    tool = asyncio.run(_find(project))

    assert tool is not None and tool.name == "greet"


def test_a_package_that_cannot_be_held_is_not_loaded_at_all(
    site: Site, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    state = Path(project.environ["XDG_STATE_HOME"]) / "glee"
    state.mkdir(parents=True)
    (state / "jails").write_text("in the way")
    monkeypatch.setattr("glee.sandbox.launcher._VIEW", Path("/nowhere"))

    with project.open() as engine:
        (summary,) = engine.list()
        error = engine.call_sync("greet", {"name": "you"}).error

    assert summary.broken is not None and error is not None
    assert summary.broken.startswith("it was not loaded, because it could not be held: the folder ")
    assert error.message.endswith("uninstall it, or trust it in your own config: sandbox: {trust: [acme-greeter]}")
    assert "acme_greeter" not in sys.modules


def test_a_trusted_package_runs_in_this_process_and_says_so(site: Site, project: Project) -> None:
    site.install("acme-greeter", GREETER.replace("hello", "{__import__('os').getpid()}"), greet="acme_greeter:greet")
    project.configure_person("sandbox: {trust: [Acme_Greeter]}")

    with project.open() as engine:
        listed = [(summary.name, summary.kind, summary.trusted) for summary in engine.list()]
        result = engine.call_sync("greet", {"name": "you"})

    assert (listed, result.output) == ([("greet", "function", True)], f"{os.getpid()} you")
    assert "isolation=trusted" in project.audit_lines[-1]
    assert result.warnings == ()


def test_trust_is_for_the_packages_it_names(site: Site, project: Project) -> None:
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    site.install("acme-other", GREETER.replace("def greet", "def other"), other="acme_other:other")
    project.configure_person("sandbox: {trust: [acme-other]}")

    with project.open() as engine:
        assert [(summary.name, summary.trusted) for summary in engine.list()] == [("greet", False), ("other", True)]

    assert ("acme_greeter" in sys.modules, "acme_other" in sys.modules) == (False, True)


def test_where_containers_hold_tools_no_package_is_loaded(site: Site, project: Project) -> None:
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    project.configure_person("sandbox: {mode: container, image: python}")

    with project.open() as engine:
        (summary,) = engine.list()

    assert summary.broken is not None and "which no container has; use sandbox.mode: native" in summary.broken
    assert "acme_greeter" not in sys.modules


def test_where_the_sandbox_is_off_packages_run_in_this_process_and_every_result_says_so(
    site: Site, project: Project
) -> None:
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    project.configure_person('sandbox: {mode: "off"}')

    with project.open() as engine:
        (summary,) = engine.list()
        result = engine.call_sync("greet", {"name": "you"})

    assert (summary.trusted, result.output, "acme_greeter" in sys.modules) == (False, "hello you", True)
    assert "isolation=off" in project.audit_lines[-1]
    assert any("the sandbox is off" in warning for warning in result.warnings)


def test_a_broken_package_that_is_trusted_hides_no_other(site: Site, project: Project) -> None:
    site.install("acme-broken", "raise SystemExit('I leave')", bad="acme_broken:tool")
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    project.configure_person("sandbox: {trust: [acme-broken]}")

    with project.open() as engine:
        listed = [(summary.name, summary.broken) for summary in engine.list()]

    reason = "the entry point acme_broken:tool cannot be loaded: SystemExit: I leave"
    assert listed == [("bad", reason), ("greet", None)]


def test_what_is_loaded_into_this_process_is_never_read_from_a_cache(site: Site, tmp_path: Path) -> None:
    cache, trusted = tmp_path / "packages.msgpack", frozenset({"acme-greeter"})
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    planted = EntryPoint("x", "os:abort", "acme-greeter")
    names(PackageSource(cache, points=lambda: [planted], describe=Describer([])))
    assert b"os:abort" in cache.read_bytes()

    assert names(PackageSource(cache, trusted=trusted)) == ["greet"]


def test_a_function_of_the_program_itself_has_no_isolation(project: Project) -> None:
    @glee.tool
    def own() -> int:
        """One."""
        return os.getpid()

    watcher = Watcher()
    with project.open(tools=[own]) as engine:
        engine.subscribe(watcher)
        assert engine.call_sync("own").output == os.getpid()

    assert [event.isolation for event in watcher.events if isinstance(event, Finished)] == [None]
    assert "isolation" not in project.audit_lines[-1]
