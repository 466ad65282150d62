"""`@glee.tool`: the signature is the schema, the docstring what a model reads, and the function stays a function."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import enum
import functools
import inspect
import math
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

import msgspec
import pytest

import glee
from glee.definitions.permissions import Hosts, Permissions
from glee.definitions.tool import Approval, Example, Origin, Outputs, Tool
from glee.errors import DefinitionError
from glee.testing import Project

MISSING = object()


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Person(TypedDict):
    name: str
    age: NotRequired[int]


TAGS = ["x"]
MOVED = [Point(1, 2)]


def plain(
    text: str, count: int, ratio: float, loud: bool, tags: list[str], more: dict[str, int], anything: Any
) -> None: ...


def defaulted(
    text: str = "a", count: int = 3, ratio: float = 0.5, tags: list[str] = TAGS, colour: Colour = Colour.RED
) -> None: ...


def optional(old: Optional[str] = None, new: int | None = None, wanted: str | None = "a") -> None: ...  # noqa: UP045


def chosen(size: Literal["s", "m"], level: Level = Level.LOW) -> None: ...


def structured(where: Point, who: Person, moved: list[Point] = []) -> None: ...  # noqa: B006


def timed(when: datetime.datetime, day: datetime.date, data: bytes) -> None: ...


def annotated(
    count: Annotated[int, "How many", msgspec.Meta(ge=1)], other: Annotated[str, "What else"] = "x"
) -> None: ...


def contextual(first: int, ctx: glee.Context, *, last: int = 2) -> None: ...


def maybe_contextual(ctx: glee.Context | None = None) -> None: ...


def untyped(a, b=5): ...


def own_defaults(text: str = None, limit: float = math.inf, start: int = MISSING) -> None: ...  # type: ignore[assignment]  # noqa: RUF013


POINT = {
    "title": "Point",
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
    "required": ["x"],
}
PERSON = {
    "title": "Person",
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}


@pytest.mark.parametrize(
    ("function", "properties", "required", "definitions"),
    [
        (
            plain,
            {
                "text": {"type": "string"},
                "count": {"type": "integer"},
                "ratio": {"type": "number"},
                "loud": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "more": {"type": "object", "additionalProperties": {"type": "integer"}},
                "anything": {},
            },
            ["text", "count", "ratio", "loud", "tags", "more", "anything"],
            None,
        ),
        (
            defaulted,
            {
                "text": {"type": "string", "default": "a"},
                "count": {"type": "integer", "default": 3},
                "ratio": {"type": "number", "default": 0.5},
                "tags": {"type": "array", "items": {"type": "string"}, "default": ["x"]},
                "colour": {"$ref": "#/$defs/Colour", "default": "red"},
            },
            None,
            {"Colour": {"title": "Colour", "enum": ["blue", "red"]}},
        ),
        (
            optional,
            {
                "old": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
                "new": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
                "wanted": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": "a"},
            },
            None,
            None,
        ),
        (
            chosen,
            {"size": {"enum": ["m", "s"]}, "level": {"$ref": "#/$defs/Level", "default": 1}},
            ["size"],
            {"Level": {"title": "Level", "enum": [1, 2]}},
        ),
        (
            structured,
            {
                "where": {"$ref": "#/$defs/Point"},
                "who": {"$ref": "#/$defs/Person"},
                "moved": {"type": "array", "items": {"$ref": "#/$defs/Point"}, "default": []},
            },
            ["where", "who"],
            {"Point": POINT, "Person": PERSON},
        ),
        (
            timed,
            {
                "when": {"type": "string"},
                "day": {"type": "string", "format": "date"},
                "data": {"type": "string", "contentEncoding": "base64"},
            },
            ["when", "day", "data"],
            None,
        ),
        (
            annotated,
            {
                "count": {"type": "integer", "minimum": 1, "description": "How many"},
                "other": {"type": "string", "description": "What else", "default": "x"},
            },
            ["count"],
            None,
        ),
        (contextual, {"first": {"type": "integer"}, "last": {"type": "integer", "default": 2}}, ["first"], None),
        (maybe_contextual, {}, None, None),
        (untyped, {"a": {}, "b": {"default": 5}}, ["a"], None),
        (
            own_defaults,
            {"text": {"type": "string"}, "limit": {"type": "number"}, "start": {"type": "integer"}},
            None,
            None,
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_signature_becomes_a_schema(
    function: Any, properties: dict[str, Any], required: list[str] | None, definitions: dict[str, Any] | None
) -> None:
    expected: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": properties}
    if required:
        expected["required"] = required
    if definitions:
        expected["$defs"] = definitions

    assert glee.tool(function).definition.inputs == expected


def google(path: str, depth: int = 1) -> None:
    """Scan a folder.

    Every file is read once.

    Args:
        path: Where to begin.
        depth (int): How far to go,
            in folders.

    Returns:
        Nothing.
    """


def numpy(path: str, depth: int = 1) -> None:
    """Scan a folder.

    Every file is read once.

    Parameters
    ----------
    path : str
        Where to begin.
    depth : int
        How far to go,
        in folders.
    """


def rest(path: str, depth: int = 1) -> None:
    """Scan a folder.

    Every file is read once.

    :param path: Where to begin.
    :param int depth: How far to go,
        in folders.
    :return: Nothing.
    """


@pytest.mark.parametrize("function", [google, numpy, rest], ids=lambda function: function.__name__)
def test_every_style_of_docstring_is_read(function: Any) -> None:
    definition = glee.tool(function).definition

    assert definition.description == "Scan a folder.\n\nEvery file is read once."
    assert {name: field["description"] for name, field in definition.inputs["properties"].items()} == {
        "path": "Where to begin.",
        "depth": "How far to go,\nin folders.",
    }


def odd_docstring(x: int) -> None:
    """Do it.

    :param : nothing
    :param int x y z: too much
    :raises
    """


def bare_docstring(x: int) -> None:
    """Do it: now.

    Note: the rest is told, too.
    """


def no_docstring(x: int) -> None: ...


@pytest.mark.parametrize(
    ("function", "description"),
    [
        (odd_docstring, "Do it.\n\n:param : nothing\n:param int x y z: too much\n:raises"),
        (bare_docstring, "Do it: now.\n\nNote: the rest is told, too."),
        (no_docstring, "no docstring"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_docstring_of_no_style_is_told_as_it_is(function: Any, description: str) -> None:
    assert glee.tool(function).definition.description == description


def test_a_text_in_the_annotation_wins_over_the_docstring() -> None:
    @glee.tool
    def scan(path: Annotated[str, "From the annotation"]) -> None:
        """Scan.

        Args:
            path: From the docstring.
        """

    assert scan.definition.inputs["properties"]["path"]["description"] == "From the annotation"


def positional(*paths: str) -> None: ...


def named(**paths: str) -> None: ...


def only_positional(path: str, /) -> None: ...


def of_path(path: Path) -> None: ...


def of_object(thing: list[object]) -> None: ...


def wrong_default(count: int = "three") -> None: ...  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (positional, "the parameter paths has no name of its own; tools take named inputs"),
        (named, "the parameter paths has no name of its own; tools take named inputs"),
        (only_positional, "the parameter path has no name of its own; tools take named inputs"),
        (
            of_path,
            f"the parameter path has a type no JSON Schema can be made of, {inspect.formatannotation(Path)}; "
            "use plain types, Literal, enums, dataclasses or TypedDicts",
        ),
        (
            of_object,
            "the parameter thing has a type no JSON Schema can be made of, list[object]; "
            "use plain types, Literal, enums, dataclasses or TypedDicts",
        ),
        (
            wrong_default,
            "the parameter count has the default 'three', which does not fit its type; change one of the two",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_signature_that_cannot_be_a_schema_is_refused_with_the_reason(function: Any, reason: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        glee.tool(function)

    assert str(refused.value) == f"{function.__module__}:{function.__name__}: {reason}"


def test_an_annotation_that_names_nothing_is_refused() -> None:
    def lost(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(DefinitionError, match="an annotation cannot be read: name 'Nowhere' is not defined"):
        glee.tool(lost)


def test_two_types_of_one_name_are_never_taken_for_each_other() -> None:
    def make(kind: Any) -> Any:
        return dataclasses.make_dataclass("Same", [("value", kind)])

    def both(a, b): ...

    both.__annotations__ = {"a": make(int), "b": make(str)}

    with pytest.raises(DefinitionError, match="the parameter b has a type of the same name"):
        glee.tool(both)


class Callable_:  # noqa: N801
    def __call__(self, x: int) -> None: ...


@pytest.mark.parametrize("thing", [functools.partial(plain), Callable_(), 5, classmethod(no_docstring)], ids=str)
def test_what_is_not_a_function_is_refused(thing: Any) -> None:
    with pytest.raises(DefinitionError, match="is not a function; write a def that calls it"):
        glee.tool(thing)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"name": "a/b"}, "'a/b' cannot name a tool"),
        ({"name": "a\nb"}, r"'a\\nb' cannot name a tool"),
        ({"name": "x" * 129}, "cannot name a tool"),
        ({"group": "nonsense"}, "the group 'nonsense' is unknown"),
        ({"permissions": {"netwrk": True}}, "permissions: Object contains unknown field `netwrk`"),
        ({"permissions": {"network": "yes"}}, "permissions: Expected"),
        ({"permissions": {"secrets": {"KEY": {"host": "a.example"}}}}, "the secret KEY has a host, which is for kinds"),
        ({"approval": {"required": True}}, "approval is required without a reason"),
        ({"approval": ""}, "approval is required without a reason"),
        ({"approval": {"requird": True}}, "approval: Object contains unknown field `requird`"),
        ({"examples": [{"params": {"x": "no"}}]}, 'does not fit: "no" is not of type "integer"'),
        ({"examples": [{"parms": {}}]}, "examples: Object contains unknown field `parms`"),
    ],
    ids=str,
)
def test_an_option_that_a_manifest_could_not_have_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(DefinitionError, match=reason):
        glee.tool(**options)(no_docstring)


def test_every_option_reaches_the_definition() -> None:
    @glee.tool(
        name="send.it",
        description="Sends it",
        version="2.1",
        group="net",
        permissions={"network": {"hosts": ["api.example.com"]}},
        approval="It cannot be unsent",
        examples=[{"description": "once", "params": {"text": "hi"}, "expected_output": 1}],
        dangerous=True,
        idempotent=True,
        timeout_ms=50,
        blocking=True,
    )
    def send(text: str) -> int:
        """Not this text."""
        return 1

    definition = send.definition
    assert {
        field: getattr(definition, field) for field in definition.__struct_fields__ if field not in ("exec", "digest")
    } == {
        "name": "send.it",
        "description": "Sends it",
        "kind": "function",
        "inputs": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        },
        "origin": Origin(source="program", location=f"{__name__}:{send.__qualname__}"),
        "version": "2.1",
        "outputs": Outputs(format="json", schema={"type": "integer"}),
        "permissions": Permissions(network=Hosts(hosts=("api.example.com",))),
        "limits": {},
        "approval": Approval(required=True, reason="It cannot be unsent"),
        "examples": (Example(description="once", params={"text": "hi"}, expected_output=1),),
        "group": "web",
        "dangerous": True,
        "idempotent": True,
    }
    assert (definition.exec.timeout_ms, definition.exec.blocking) == (50, True)  # type: ignore[union-attr]


def test_a_digest_changes_with_what_an_approval_was_given_for() -> None:
    digests = [
        glee.tool(**options)(no_docstring).definition.digest
        for options in ({"version": 1}, {"permissions": {"network": True}}, {"description": "other"}, {"version": 2})
    ]

    assert len(set(digests)) == 4
    assert digests[0] == glee.tool(no_docstring).definition.digest


@pytest.mark.parametrize(
    ("hint", "outputs"),
    [
        (str, Outputs(format="text")),
        (None, Outputs(format="json")),
        (Any, Outputs(format="json")),
        (int, Outputs(format="json", schema={"type": "integer"})),
        (
            list[Point],
            Outputs(
                format="json", schema={"type": "array", "items": {"$ref": "#/$defs/Point"}, "$defs": {"Point": POINT}}
            ),
        ),
        (Path, Outputs(format="json")),
    ],
    ids=str,
)
def test_the_return_annotation_becomes_the_output(hint: Any, outputs: Outputs) -> None:
    def give(): ...

    give.__annotations__ = {"return": hint}

    assert glee.tool(give).definition.outputs == outputs


def test_a_tool_is_still_just_the_function() -> None:
    @glee.tool
    def add(a: int, b: int = 2) -> int:
        """Add."""
        return a + b

    @glee.tool
    async def add_later(a: int) -> int:
        return a + 1

    assert (add(1), add(1, b=5), add.__name__, add.__doc__) == (3, 6, "add", "Add.")
    assert asyncio.run(add_later(1)) == 2
    assert (repr(add), add.definition.exec.asynchronous) == ("<FunctionTool add>", False)  # type: ignore[union-attr]
    assert add_later.definition.exec.asynchronous is True  # type: ignore[union-attr]


class Shelf:
    """A set of tools that share one dependency."""

    def __init__(self, books: list[str]) -> None:
        self.books = books

    @glee.tool
    def count(self) -> int:
        """Count the books."""
        return len(self.books)

    @glee.tool(name="shelf.add")
    async def add(self, title: str) -> list[str]:
        """Add a book."""
        self.books.append(title)
        return self.books

    def not_a_tool(self) -> None: ...

    @property
    def never_touched(self) -> None:
        raise AssertionError("a toolset looks at no property")


def test_a_set_of_tools_shares_one_instance(project: Project) -> None:
    shelf, other = Shelf(["a"]), Shelf([])

    with project.open(tools=glee.toolset(shelf)) as engine:
        added = engine.call_sync("shelf.add", {"title": "b"})
        counted = engine.call_sync("count")

    assert (added.output, counted.output, shelf.count(), other.count()) == (["a", "b"], 2, 2, 0)


def test_a_set_is_in_the_order_of_names_and_leaves_self_out_of_the_schema() -> None:
    tools = glee.toolset(Shelf([]))

    assert [tool.definition.name for tool in tools] == ["shelf.add", "count"]
    assert list(tools[0].definition.inputs["properties"]) == ["title"]


def test_a_method_without_its_instance_is_no_tool_yet() -> None:
    with pytest.raises(DefinitionError, match=r"Shelf.count is a method: take it from an instance"):
        _ = Shelf.count.definition
    assert Shelf.count(Shelf(["a"])) == 1


def make_greeter(greeting: str) -> glee.FunctionTool[..., str]:
    """The factory pattern: a tool closed over what it needs."""

    @glee.tool(name=f"greet_{greeting}")
    def greet(name: str) -> str:
        return f"{greeting} {name}"

    return greet


def test_a_factory_makes_tools_that_differ(project: Project) -> None:
    with project.open(tools=[make_greeter("hello"), make_greeter("bye")]) as engine:
        outputs = [engine.call_sync(name, {"name": "you"}).output for name in ("greet_hello", "greet_bye")]

    assert outputs == ["hello you", "bye you"]


def test_a_call_gives_the_function_the_types_it_asked_for(project: Project) -> None:
    @glee.tool
    def show(
        when: datetime.datetime,
        where: Point,
        who: Person,
        colour: Colour = Colour.BLUE,
        moved: list[Point] = MOVED,
        data: bytes = b"hi",
        ids: tuple[int, ...] = (1,),
    ) -> str:
        return repr((when, where, who, colour, moved, data, ids))

    arguments = {"when": "2024-01-02T03:04:05", "where": {"x": 1}, "who": {"name": "A"}}
    with project.open(tools=[show]) as engine:
        result = engine.call_sync("show", arguments)

    assert result.output == repr(
        (
            datetime.datetime(2024, 1, 2, 3, 4, 5),
            Point(1, 0),
            {"name": "A"},
            Colour.BLUE,
            [Point(1, 2)],
            b"hi",
            (1,),
        )
    )
    assert arguments == {"when": "2024-01-02T03:04:05", "where": {"x": 1}, "who": {"name": "A"}}


@pytest.mark.parametrize("when", ["yesterday", "2024-13-01T00:00:00Z", 5, None])
def test_a_value_that_is_not_of_the_type_is_invalid_input_and_nothing_runs(project: Project, when: Any) -> None:
    ran: list[Any] = []

    @glee.tool
    def note(when: datetime.datetime) -> None:
        ran.append(when)

    with project.open(tools=[note]) as engine:
        result = engine.call_sync("note", {"when": when})

    assert (result.ok, result.error.code if result.error else None, ran) == (False, "invalid_input", [])


def test_a_default_that_only_the_function_knows_is_left_to_it(project: Project) -> None:
    @glee.tool
    def show(text: str = None, limit: float = math.inf, start: int = MISSING) -> str:  # type: ignore[assignment]  # noqa: RUF013
        return f"{text} {limit} {start is MISSING}"

    with project.open(tools=[show]) as engine:
        assert engine.call_sync("show").output == "None inf True"


def test_a_default_is_never_shared_between_calls(project: Project) -> None:
    @glee.tool
    def collect(item: str, into: list[str] = []) -> list[str]:  # noqa: B006
        into.append(item)
        return into

    with project.open(tools=[collect]) as engine:
        outputs = [engine.call_sync("collect", {"item": item}).output for item in "ab"]

    assert outputs == [["a"], ["b"]]


def test_the_context_is_given_and_cannot_be_passed_in(project: Project) -> None:
    @glee.tool
    def who(ctx: glee.Context) -> dict[str, Any]:
        return {"session": ctx.session, "workdir": str(ctx.workdir), "environment": dict(ctx.environment)}

    call = glee.Call(tool="who", caller=glee.Caller(session="s1"))
    with project.open(tools=[who]) as engine:
        given = engine.call_sync(call)
        forged = engine.call_sync("who", {"ctx": {}})

    assert given.output == {"session": "s1", "workdir": str(project.root), "environment": {}}
    assert forged.error is not None and forged.error.code == "invalid_input"


def test_a_definition_is_a_tool_like_any_other() -> None:
    assert isinstance(glee.tool(no_docstring).definition, Tool)


def test_a_whole_number_written_with_a_point_arrives_as_an_int(project: Project) -> None:
    @glee.tool
    def count(n: int) -> list[int]:
        return list(range(n))

    with project.open(tools=[count]) as engine:
        assert engine.call_sync("count", {"n": 2.0}).output == [0, 1]


def test_whole_numbers_within_lists_and_objects_arrive_as_ints(project: Project) -> None:
    given: list[Any] = []

    @glee.tool
    def take(many: list[int], named: dict[str, list[int]], perhaps: int | None, measure: list[float]) -> None:
        given.append((many, named, perhaps, measure))

    arguments = {"many": [2.0, 3], "named": {"a": [4.0]}, "perhaps": 5.0, "measure": [6.0]}
    with project.open(tools=[take]) as engine:
        engine.call_sync("take", arguments)

    assert repr(given) == "[([2, 3], {'a': [4]}, 5, [6.0])]"


def test_keys_that_are_numbers_arrive_as_numbers(project: Project) -> None:
    @glee.tool
    def total(prices: dict[int, float]) -> float:
        return sum(key * value for key, value in prices.items())

    with project.open(tools=[total]) as engine:
        assert engine.call_sync("total", {"prices": {"2": 1.5}}).output == 3.0


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_a_time_that_is_none_is_refused(timeout_ms: int) -> None:
    with pytest.raises(DefinitionError, match="at least one millisecond"):
        glee.tool(timeout_ms=timeout_ms)(no_docstring)


def test_a_generator_is_refused_when_it_is_made_a_tool() -> None:
    def count() -> Iterator[int]:
        """Count."""
        yield 1

    async def count_slowly() -> AsyncIterator[int]:
        """Count."""
        yield 1

    for function in (count, count_slowly):
        with pytest.raises(DefinitionError, match="is a generator; collect what it yields and return it as a list"):
            glee.tool(function)
