"""The registry: it finds, it never runs."""

from __future__ import annotations

import pytest

import glee
from glee.catalog.registry import Registry
from glee.definitions.tool import FunctionExec, Origin, Tool
from glee.errors import DefinitionError, NotFound
from glee.testing import Project


def a_tool(name: str, *, group: str | None = None, location: str = "here") -> Tool:
    return Tool(
        name=name,
        description=name,
        kind="function",
        inputs={"type": "object"},
        exec=FunctionExec(function=print, target="print"),
        origin=Origin(source="program", location=location),
        group=group,
    )


def test_a_registered_tool_is_found_again() -> None:
    tool = a_tool("greet")
    registry = Registry([tool])

    assert (registry.get("greet"), registry.find("greet"), registry.has("greet")) == (tool, tool, True)
    assert registry.list() == (tool,)


def test_a_name_that_is_not_registered_is_not_found() -> None:
    registry = Registry()

    assert (registry.find("greet"), registry.has("greet"), registry.list()) == (None, False, ())
    with pytest.raises(NotFound, match=r"^there is no tool greet$"):
        registry.get("greet")
    with pytest.raises(NotFound, match=r"^there is no tool with the API name greet$"):
        registry.get_by_api_name("greet")


def test_a_second_tool_of_the_same_name_is_an_error_that_names_both_origins() -> None:
    first = a_tool("greet", location="one.py:greet")
    registry = Registry([first])

    with pytest.raises(DefinitionError) as raised:
        registry.register(a_tool("greet", location="two.py:greet"))

    assert str(raised.value) == (
        "two tools are called greet: one from program one.py:greet, one from program two.py:greet; rename one"
    )
    assert registry.list() == (first,)


def test_an_unregistered_tool_is_gone_and_its_name_is_free() -> None:
    registry = Registry([a_tool("greet"), a_tool("web.search")])
    registry.unregister("greet")

    assert [tool.name for tool in registry.list()] == ["web.search"]
    assert registry.api_names() == {"web_search": "web.search"}
    again = a_tool("greet")
    registry.register(again)
    assert registry.get("greet") is again


def test_unregistering_an_unknown_tool_is_an_error() -> None:
    with pytest.raises(NotFound, match=r"^there is no tool greet$"):
        Registry().unregister("greet")


def test_tools_are_listed_in_the_order_of_their_names() -> None:
    registry = Registry(map(a_tool, ["zebra", "ape", "Bee", "cat"]))

    assert [tool.name for tool in registry.list()] == ["Bee", "ape", "cat", "zebra"]


def test_tools_are_found_by_group() -> None:
    registry = Registry([a_tool("b", group="web"), a_tool("c", group="fs"), a_tool("a", group="web"), a_tool("d")])

    assert [tool.name for tool in registry.by_group("web")] == ["a", "b"]
    assert registry.by_group("cron") == ()


def test_a_tool_is_found_by_its_api_name_after_others_came_and_went() -> None:
    dotted, natural = a_tool("web.search"), a_tool("web_search")
    registry = Registry([dotted])
    assert registry.get_by_api_name("web_search") is dotted

    registry.register(natural)
    assert registry.get_by_api_name("web_search") is natural
    (hashed,) = (api_name for api_name, name in registry.api_names().items() if name == "web.search")
    assert registry.get_by_api_name(hashed) is dotted

    registry.unregister("web_search")
    assert registry.get_by_api_name("web_search") is dotted


# The three ways to write tools: static, made by a factory, and a set that shares what it depends on.


@glee.tool(name="shell.echo", group="runtime")
def echo(text: str) -> str:
    """Say it again."""
    return text


def make_memory_reader(store: dict[str, str]) -> glee.FunctionTool[..., str]:
    @glee.tool(name="memory.read", group="memory")
    def read(namespace: str) -> str:
        """Read memory from a namespace."""
        return store[namespace]

    return read


class Browser:
    """A set of tools that share one page."""

    def __init__(self) -> None:
        self.page = "about:blank"

    @glee.tool(name="browser.navigate", group="browser")
    def navigate(self, url: str) -> str:
        """Go to a URL."""
        self.page = url
        return f"now at {url}"

    @glee.tool(name="browser.content", group="browser")
    async def content(self) -> str:
        """What page is open."""
        return self.page


def test_a_static_tool_is_registered_as_it_stands(project: Project) -> None:
    with project.open(tools=[echo]) as engine:
        assert engine.call_sync("shell.echo", {"text": "hello"}).output == "hello"
    assert echo("still a function") == "still a function"


def test_a_factory_hands_a_tool_what_it_depends_on(project: Project) -> None:
    with project.open() as engine:
        engine.register(make_memory_reader({"notes": "buy milk"}))

        assert engine.call_sync("memory.read", {"namespace": "notes"}).output == "buy milk"


def test_a_set_of_tools_shares_one_dependency(project: Project) -> None:
    with project.open(tools=glee.toolset(Browser())) as engine:
        engine.call_sync("browser.navigate", {"url": "https://example.com"})

        assert engine.call_sync("browser.content").output == "https://example.com"
        assert [summary.name for summary in engine.list()] == ["browser.content", "browser.navigate"]


def test_two_sets_of_one_kind_do_not_share_their_dependencies(project: Project) -> None:
    other = Browser()
    with project.open(tools=glee.toolset(Browser())) as engine:
        engine.call_sync("browser.navigate", {"url": "https://example.com"})

    assert other.page == "about:blank"


def test_a_method_without_an_instance_cannot_be_registered(project: Project) -> None:
    with project.open() as engine, pytest.raises(DefinitionError, match="take it from an instance"):
        engine.register(Browser.navigate)
