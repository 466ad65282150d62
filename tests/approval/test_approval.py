"""Who said yes: a call waits until a person has answered, and only a call that could run asks."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

import glee
from glee.approval import Always, Answer, Nobody
from glee.definitions.call import Call
from glee.definitions.decision import Ask, Rule
from glee.definitions.event import Decided
from glee.definitions.result import Failure
from glee.testing import WRITES, AnsweringPerson, Project, Watcher

INPUTS = {"schema": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}}


@pytest.fixture
def mark(project: Project) -> Path:
    """Where the tool leaves a mark when it runs."""
    approval = {"required": True, "reason": "Sends a message"}
    project.add_command("send", "touch ran", inputs=INPUTS, permissions=WRITES, approval=approval)
    return project.root / "ran"


def test_a_yes_lets_the_call_run(project: Project, mark: Path) -> None:
    person = AnsweringPerson("yes")

    with project.open(approver=person) as engine:
        result = engine.call_sync("send", {"to": "ann"})

    assert (result.ok, mark.exists(), len(person.questions)) == (True, True, 1)


def test_a_no_rejects_the_call(project: Project, mark: Path) -> None:
    with project.open(approver=AnsweringPerson("no")) as engine:
        result = engine.call_sync("send", {"to": "ann"})

    assert result.error == Failure(
        code="rejected", message="a person said no to send; do not try again without asking them"
    )
    assert not mark.exists()


def test_where_nobody_can_be_asked_approval_is_required(project: Project, mark: Path) -> None:
    with project.open() as engine:
        result = engine.call_sync("send", {"to": "ann"})

    assert result.error == Failure(
        code="approval_required",
        message="send needs a person's approval: Sends a message; "
        "call it where a person can answer (--yes at the terminal, approver= in Python)",
        details={"reason": "Sends a message"},
    )
    assert not mark.exists()


def test_a_person_is_asked_about_this_call_of_this_tool_for_its_reason(project: Project, mark: Path) -> None:
    person = AnsweringPerson()
    call = Call(tool="send", arguments={"to": "ann"})

    with project.open(approver=person) as engine:
        result = engine.call_sync(call)

    (question,) = person.questions
    assert (question.call_id, question.tool.name, question.call, question.reason) == (
        result.call_id,
        "send",
        call,
        "Sends a message",
    )


def test_every_call_is_asked_about_anew(project: Project, mark: Path) -> None:
    person = AnsweringPerson()

    with project.open(approver=person) as engine:
        for to in ("ann", "ann", "bob"):
            engine.call_sync("send", {"to": to})

    assert [question.call.arguments["to"] for question in person.questions] == ["ann", "ann", "bob"]


def test_a_person_is_not_asked_about_a_tool_that_needs_no_approval(project: Project) -> None:
    project.add_command("look", "true")
    person = AnsweringPerson("no")

    with project.open(approver=person) as engine:
        assert engine.call_sync("look").ok

    assert person.questions == []


def test_a_person_is_not_asked_about_an_input_that_does_not_fit(project: Project, mark: Path) -> None:
    person = AnsweringPerson()

    with project.open(approver=person) as engine:
        result = engine.call_sync("send", {"to": 7})

    assert (result.error and result.error.code, person.questions, mark.exists()) == ("invalid_input", [], False)


def test_a_person_is_not_asked_about_a_denied_tool(project: Project, mark: Path) -> None:
    project.configure("tools: {deny: [send]}")
    person = AnsweringPerson()

    with project.open(approver=person) as engine:
        result = engine.call_sync("send", {"to": "ann"})

    assert (result.error and result.error.code, person.questions, mark.exists()) == ("denied", [], False)


@pytest.mark.parametrize(("answer", "approved"), [("yes", True), ("no", False), ("nobody", False)])
def test_the_answer_is_told_once_it_is_given(project: Project, mark: Path, answer: Answer, approved: bool) -> None:
    watcher = Watcher()

    with project.open(approver=AnsweringPerson(answer)) as engine:
        engine.subscribe(watcher)
        engine.call_sync("send", {"to": "ann"})

    (decided,) = (event for event in watcher.events if isinstance(event, Decided))
    manifest = project.tools / "send" / "tool.yml"
    assert (decided.decision, decided.approved) == (
        Ask(reason="Sends a message", rule=Rule(text="approval", source=str(manifest))),
        approved,
    )


@pytest.mark.parametrize(("answer", "status"), [("no", "rejected"), ("nobody", "approval_required")])
def test_a_refused_call_is_recorded_as_such(project: Project, mark: Path, answer: Answer, status: str) -> None:
    with project.open(approver=AnsweringPerson(answer)) as engine:
        engine.call_sync("send", {"to": "ann"})

    (line,) = project.audit_lines
    assert f' TOOL_REFUSED name=send params={{"to":"ann"}} status={status} ' in line


def test_a_function_s_reason_is_what_a_person_is_told(project: Project) -> None:
    @glee.tool(approval="Deletes everything")
    def wipe() -> str:
        """Wipe."""
        return "wiped"

    person = AnsweringPerson()
    with project.open(tools=[wipe], approver=person) as engine:
        assert engine.call_sync("wipe").output == "wiped"

    assert [question.reason for question in person.questions] == ["Deletes everything"]


def test_a_person_who_takes_their_time_is_waited_for_without_blocking_others(project: Project, mark: Path) -> None:
    """The first question is answered only after the second call is through."""
    project.add_command("look", "true")

    class Slow:
        def __init__(self) -> None:
            self.free = asyncio.Event()

        async def ask(self, question: object) -> Answer:
            await self.free.wait()
            return "yes"

    async def scene() -> tuple[bool, bool]:
        person = Slow()
        async with project.open(approver=person) as engine:
            waiting = asyncio.create_task(engine.call("send", {"to": "ann"}))
            other = await engine.call("look")
            assert not waiting.done()
            person.free.set()
            return other.ok, (await waiting).ok

    assert asyncio.run(scene()) == (True, True)


@pytest.mark.parametrize("answer", ["yes", "no", "nobody"])
def test_an_answer_can_be_given_beforehand(project: Project, mark: Path, answer: Answer) -> None:
    with project.open(approver=Always(answer)) as engine:
        engine.call_sync("send", {"to": "ann"})

    assert mark.exists() is (answer == "yes")


def test_nobody_answers_nobody(project: Project, mark: Path) -> None:
    person = AnsweringPerson()
    with project.open(approver=person) as engine:
        engine.call_sync("send", {"to": "ann"})

    assert asyncio.run(Nobody().ask(person.questions[0])) == "nobody"


def test_an_approver_that_fails_lets_nothing_run(project: Project, mark: Path) -> None:
    class Broken:
        async def ask(self, question: object) -> Answer:
            raise OSError("the bell is broken")

    with project.open(approver=Broken()) as engine:
        result = engine.call_sync("send", {"to": "ann"})

    assert (result.error and result.error.code, mark.exists()) == ("internal", False)


@pytest.mark.parametrize("awaited", [True, False])
def test_a_person_who_is_slower_than_the_deadline_is_not_waited_for(
    project: Project, mark: Path, awaited: bool
) -> None:
    class Silent:
        async def ask(self, question: object) -> Answer:
            await asyncio.wait_for(asyncio.Event().wait(), 10)
            return "yes"

    call = Call(tool="send", arguments={"to": "ann"}, deadline=time.time() + 0.05)
    with project.open(approver=Silent()) as engine:
        result = asyncio.run(engine.call(call)) if awaited else engine.call_sync(call)

    assert result.error == Failure(
        code="timeout", message="nobody answered before the call's deadline; nothing was run"
    )
    assert ([line.split(" ")[1] for line in project.audit_lines], mark.exists()) == (["TOOL_REFUSED"], False)
