"""Sources in a fixed order behind one registry; a broken definition never hides another."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

import glee
from glee.catalog.catalog import Catalog
from glee.catalog.source import Found, Progress, Summary, summarise
from glee.definitions.problem import Problem
from glee.definitions.tool import FunctionExec, Origin, Tool
from glee.errors import DefinitionError
from glee.formats.manifest import read_manifest
from glee.testing import Project


def a_tool(name: str, source: str = "package", location: str = "first") -> Tool:
    return Tool(
        name=name,
        description=name,
        kind="function",
        inputs={"type": "object"},
        exec=FunctionExec(function=print, target="print"),
        origin=Origin(source=source, location=location),
    )


class Shelf:
    """A source that holds what it is given, and counts how often it is asked."""

    def __init__(self, *tools: Tool, broken: Iterable[str] = ()) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self.broken = tuple(broken)
        self.asked: list[str] = []
        self.listed = 0

    def find(self, name: str) -> Found | None:
        self.asked.append(name)
        if name in self.broken:
            return Found(None, (a_problem(name),))
        return Found(self.tools[name]) if name in self.tools else None

    def is_current(self, tool: Tool) -> bool:
        return True

    def summaries(self, progress: Progress | None = None) -> Iterable[Summary]:
        self.listed += 1
        yield from map(summarise, self.tools.values())
        for name in self.broken:
            yield Summary(name=name, origin="shelf", broken="it fell down")


def a_problem(name: str) -> Problem:
    return Problem(file=name, line=1, column=1, field="", rule="test", message="it fell down", hint="pick it up")


def test_the_first_source_that_has_a_name_has_it() -> None:
    first, second = a_tool("greet", location="first"), a_tool("greet", location="second")

    assert Catalog([Shelf(first), Shelf(second)]).find("greet") is first
    assert Catalog([Shelf(second), Shelf(first)]).find("greet") is second


def test_a_tool_is_asked_of_its_source_once() -> None:
    shelf = Shelf(a_tool("greet"))
    catalog = Catalog([shelf])

    assert catalog.find("greet") is catalog.find("greet")
    assert shelf.asked == ["greet"]


def test_a_broken_definition_is_kept_apart_with_its_problems() -> None:
    catalog = Catalog([Shelf(broken=["bad"])])

    assert catalog.find("bad") is None
    assert catalog.find_broken("bad") == Found(None, (a_problem("bad"),))
    assert catalog.find_broken("other") is None


def test_a_broken_definition_is_not_replaced_by_a_weaker_source() -> None:
    """Somebody meant their own tool; running another one of that name in its stead would be a surprise."""
    catalog = Catalog([Shelf(broken=["greet"]), Shelf(a_tool("greet"))])

    assert catalog.find("greet") is None


def test_a_mended_definition_is_no_longer_broken() -> None:
    shelf = Shelf(broken=["greet"])
    catalog = Catalog([shelf])
    assert catalog.find("greet") is None

    shelf.broken, shelf.tools = (), {"greet": a_tool("greet")}

    assert (catalog.find("greet"), catalog.find_broken("greet")) == (shelf.tools["greet"], None)


def test_everything_is_listed_in_the_order_of_names() -> None:
    catalog = Catalog([Shelf(a_tool("zebra"), broken=["bad"]), Shelf(a_tool("ape"))])
    catalog.register(a_tool("mine", source="program"))

    assert [(summary.name, summary.broken) for summary in catalog.summaries()] == [
        ("ape", None),
        ("bad", "it fell down"),
        ("mine", None),
        ("zebra", None),
    ]


def test_a_listing_is_made_once_until_something_changes() -> None:
    shelf = Shelf(a_tool("greet"))
    catalog = Catalog([shelf])
    catalog.summaries()
    assert (catalog.summaries() is catalog.summaries(), shelf.listed) == (True, 1)

    catalog.register(a_tool("mine", source="program"))
    assert [summary.name for summary in catalog.summaries()] == ["greet", "mine"]

    catalog.unregister("mine")
    assert [summary.name for summary in catalog.summaries()] == ["greet"]

    catalog.reload()
    catalog.summaries()
    assert shelf.listed == 4


def test_two_sources_with_one_name_are_both_listed_and_the_second_is_said_to_be_unused() -> None:
    first, second = a_tool("greet", location="first"), a_tool("greet", location="second")

    assert Catalog([Shelf(first), Shelf(second)]).summaries() == (
        summarise(first),
        Summary(
            name="greet",
            description="greet",
            kind="function",
            origin="package second",
            broken="two tools are called greet: package first is used, not package second; rename one",
        ),
    )


def test_a_tool_that_was_called_is_not_listed_twice() -> None:
    catalog = Catalog([Shelf(a_tool("greet"))])
    catalog.find("greet")

    assert [(summary.name, summary.broken) for summary in catalog.summaries()] == [("greet", None)]


def test_a_program_cannot_take_the_name_of_a_tool_that_a_source_has(project: Project) -> None:
    path = project.add_command("greet", "true")

    @glee.tool
    def greet() -> str:
        """Greet."""
        return "hello"

    with project.open() as engine, pytest.raises(DefinitionError) as raised:
        engine.register(greet)

    assert str(raised.value) == (
        f"two tools are called greet: one from project {path}, one from {greet.definition.origin}; rename one"
    )


def test_reloading_forgets_what_was_read_and_keeps_what_the_program_registered() -> None:
    shelf = Shelf(a_tool("greet"), broken=["bad"])
    catalog = Catalog([shelf])
    mine = a_tool("mine", source="program")
    catalog.register(mine)
    before = catalog.find("greet")
    catalog.find("bad")
    shelf.tools["greet"] = a_tool("greet")

    catalog.reload()

    assert catalog.find("mine") is mine
    assert catalog.find("greet") is shelf.tools["greet"] is not before
    assert catalog.find_broken("bad") is None


def test_a_tool_is_found_by_its_api_name() -> None:
    dotted, natural = a_tool("web.search"), a_tool("web_search")

    assert Catalog([Shelf(dotted)]).find_by_api_name("web_search") is dotted
    assert Catalog([Shelf(dotted, natural)]).find_by_api_name("web_search") is natural
    assert Catalog([Shelf(dotted)]).find_by_api_name("nothing") is None


def test_the_nearest_names_are_those_most_alike() -> None:
    known = ["web_search", "web_fetch", "repo_scan"]

    assert Catalog().nearest("web_serch", known) == ["web_search", "web_fetch"]
    assert Catalog().nearest("zzz", known) == []


def test_threads_that_want_the_same_tool_first_all_get_it() -> None:
    shelf = Shelf(a_tool("greet"))
    catalog = Catalog([shelf])
    threads, start = 8, threading.Barrier(8)
    found: list[Tool | None] = []

    def look() -> None:
        start.wait()
        found.append(catalog.find("greet"))

    running = [threading.Thread(target=look) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()

    assert (found, shelf.asked) == ([shelf.tools["greet"]] * threads, ["greet"])


def test_a_definition_that_was_read_elsewhere_and_registered_stays_whatever_is_listed(
    project: Project, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    tool = read_manifest(Project(tmp_path / "elsewhere").add_command("greet", "echo hello")).tool
    project.write("scripts/greet.sh", "#!/bin/sh\necho hello\n", executable=True)
    assert tool is not None

    with project.open(tools=[tool]) as engine:
        engine.list()
        engine.reload()
        assert engine.call_sync("greet").output == "hello\n"
