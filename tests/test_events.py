"""One stream of typed events: whoever watches can change nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

import glee
from glee.definitions.call import Call, Caller
from glee.definitions.decision import Allow
from glee.definitions.event import Decided, Event, Finished, Progressed, Requested, Started
from glee.events import Events
from glee.testing import Project, Watcher


@glee.tool
def work(steps: int, context: glee.Context) -> str:
    """Work, and say how far it is."""
    for step in range(steps):
        context.progress(step + 1, steps, f"step {step + 1}")
    return "done"


def test_a_call_is_told_from_beginning_to_end_in_order(project: Project) -> None:
    watcher = Watcher()
    call = Call(tool="work", arguments={"steps": 2}, caller=Caller(agent="ann"))

    with project.open(tools=[work]) as engine:
        engine.subscribe(watcher)
        result = engine.call_sync(call)

    told = {"call_id": result.call_id, "tool": "work"}
    times = [event.at for event in watcher.events]
    assert times == sorted(times)
    assert [msgspec.structs.replace(event, at=0.0) for event in watcher.events] == [
        Requested(**told, at=0.0, call=call),
        Decided(**told, at=0.0, decision=Allow()),
        Started(**told, at=0.0),
        Progressed(**told, at=0.0, done=1, total=2, message="step 1"),
        Progressed(**told, at=0.0, done=2, total=2, message="step 2"),
        Finished(**told, at=0.0, result=result),
    ]


def test_awaiting_a_call_tells_the_same_events(project: Project) -> None:
    watcher = Watcher()

    async def scene() -> None:
        async with project.open(tools=[work]) as engine:
            engine.subscribe(watcher)
            await engine.call("work", {"steps": 1})

    asyncio.run(scene())

    assert watcher.names == ["Requested", "Decided", "Started", "Progressed", "Finished"]


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("nothing", {}, ["Requested", "Finished"]),
        ("work", {"steps": "x"}, ["Requested", "Finished"]),
        ("hidden", {}, ["Requested", "Decided", "Finished"]),
        ("poor", {}, ["Requested", "Decided", "Finished"]),
        ("bad", {}, ["Requested", "Decided", "Started", "Finished"]),
    ],
)
def test_a_call_that_goes_no_further_says_no_more(
    project: Project, tool: str, arguments: dict[str, Any], told: list[str]
) -> None:
    project.add_command("hidden", "true")
    project.add_command("poor", "true", permissions={"secrets": {"TOKEN": {"type": "string"}}})
    project.add_command("bad", "exit 1")
    project.configure("tools: {deny: [hidden]}")
    watcher = Watcher()

    with project.open(tools=[work]) as engine:
        engine.subscribe(watcher)
        result = engine.call_sync(tool, arguments)

    assert watcher.names == told
    last = watcher.events[-1]
    assert isinstance(last, Finished)
    assert (last.isolation is not None) == ("Started" in told)
    assert last == Finished(call_id=result.call_id, tool=tool, at=last.at, result=result, isolation=last.isolation)


def test_a_listener_that_fails_harms_neither_the_call_nor_the_others(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    watcher = Watcher()

    def fall(event: Event) -> None:
        raise RuntimeError("fell asleep")

    with project.open(tools=[work]) as engine:
        engine.subscribe(fall)
        engine.subscribe(watcher)
        result = engine.call_sync("work", {"steps": 1})

    assert (result.ok, watcher.names) == (True, ["Requested", "Decided", "Started", "Progressed", "Finished"])
    assert [record.getMessage() for record in caplog.records] == [
        f"a listener failed on {name}" for name in watcher.names
    ]


def test_every_listener_hears_every_event() -> None:
    events, first, second = Events(), Watcher(), Watcher()
    events.subscribe(first)
    events.subscribe(second)
    event = Started(call_id="1", tool="work", at=0.0)

    events.emit(event)

    assert (first.events, second.events) == ([event], [event])


def test_an_ended_subscription_hears_nothing_more() -> None:
    events, watcher, other = Events(), Watcher(), Watcher()
    unsubscribe = events.subscribe(watcher)
    events.subscribe(other)
    event = Started(call_id="1", tool="work", at=0.0)

    events.emit(event)
    unsubscribe()
    unsubscribe()
    events.emit(event)

    assert (watcher.events, other.events) == ([event], [event, event])


def test_a_listener_that_subscribed_twice_and_stopped_once_hears_once() -> None:
    events, watcher = Events(), Watcher()
    unsubscribe = events.subscribe(watcher)
    events.subscribe(watcher)

    unsubscribe()
    unsubscribe()
    events.emit(Started(call_id="1", tool="work", at=0.0))

    assert watcher.names == ["Started"]


def test_a_listener_may_stop_while_it_is_told() -> None:
    events, watcher = Events(), Watcher()

    def once(event: Event) -> None:
        unsubscribe()

    unsubscribe = events.subscribe(once)
    events.subscribe(watcher)
    for _ in range(2):
        events.emit(Started(call_id="1", tool="work", at=0.0))

    assert (len(watcher.events), len(events.listeners)) == (2, 1)


def test_an_event_is_told_apart_in_json_by_its_name() -> None:
    events: list[Event] = [
        Requested(call_id="1", tool="t", at=0.0, call=Call(tool="t")),
        Decided(call_id="1", tool="t", at=0.0, decision=Allow(), approved=True),
        Started(call_id="1", tool="t", at=0.0),
        Progressed(call_id="1", tool="t", at=0.0, done=1, message="x"),
    ]

    encoded = msgspec.json.encode(events)

    assert [event["event"] for event in msgspec.json.decode(encoded)] == [
        "requested",
        "decided",
        "started",
        "progressed",
    ]
    assert msgspec.json.decode(encoded, type=list[Event]) == events


def test_an_event_cannot_be_changed_by_a_listener(project: Project) -> None:
    refused: list[str] = []

    def meddle(event: Event) -> None:
        try:
            event.tool = "other"  # type: ignore[misc]
        except AttributeError:
            refused.append(type(event).__name__)

    with project.open(tools=[work]) as engine:
        engine.subscribe(meddle)
        assert engine.call_sync("work", {"steps": 1}).output == "done"

    assert refused == ["Requested", "Decided", "Started", "Progressed", "Finished"]
