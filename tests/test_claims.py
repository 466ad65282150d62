"""One run for each idempotency key, in one process and between processes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

import glee
from glee.claims import FileClaims
from glee.definitions.call import Call, Caller
from glee.definitions.result import Failure, Result
from glee.errors import InvalidInput, Unavailable
from glee.testing import AnsweringPerson, Project

RUNNING = "a call with the idempotency key 'k' is running or was cut off; wait for it, or use a new key to run again"


class Counter:
    """A tool that counts its runs."""

    def __init__(self) -> None:
        self.runs: list[Any] = []

    @glee.tool
    def count(self, value: Any = None) -> int:
        """Count."""
        self.runs.append(value)
        return len(self.runs)

    @glee.tool
    def fail(self) -> None:
        """Fail."""
        self.runs.append("failed")
        raise ValueError("no")


@pytest.fixture
def counter() -> Counter:
    return Counter()


def keyed(tool: str = "count", key: str | None = "k", **arguments: Any) -> Call:
    return Call(tool=tool, arguments=arguments, idempotency_key=key)


def code_of(result: Result) -> str | None:
    return result.error.code if result.error else None


def test_a_second_call_with_the_key_gets_the_first_one_s_result_and_runs_nothing(
    project: Project, counter: Counter
) -> None:
    with project.open(tools=glee.toolset(counter)) as engine:
        first, second = engine.call_sync(keyed(value=1)), engine.call_sync(keyed(value=1))

    warning = f"answered from call {first.call_id}, which had the same idempotency key; nothing was run"
    assert counter.runs == [1]
    assert second == structs.replace(first, call_id=second.call_id, duration_ms=second.duration_ms, warnings=(warning,))
    assert second.call_id != first.call_id


def test_a_call_without_a_key_always_runs(project: Project, counter: Counter) -> None:
    with project.open(tools=glee.toolset(counter)) as engine:
        outputs = [engine.call_sync(keyed(key=None)).output for _ in range(3)]

    assert outputs == [1, 2, 3]


def test_each_key_and_each_tool_has_its_own_run(project: Project, counter: Counter) -> None:
    with project.open(tools=glee.toolset(counter)) as engine:
        codes = [code_of(engine.call_sync(call)) for call in (keyed(key="a"), keyed(key="b"), keyed("fail", key="a"))]

    assert (counter.runs, codes) == ([None, None, "failed"], [None, None, "exception"])


def test_a_failed_run_is_not_run_again_under_its_key(project: Project, counter: Counter) -> None:
    with project.open(tools=glee.toolset(counter)) as engine:
        first, second = engine.call_sync(keyed("fail")), engine.call_sync(keyed("fail"))

    assert (counter.runs, second.error) == (["failed"], first.error)


def test_a_key_cannot_stand_for_other_arguments(project: Project, counter: Counter) -> None:
    with project.open(tools=glee.toolset(counter)) as engine:
        engine.call_sync(keyed(value=1))
        result = engine.call_sync(keyed(value=2))

    assert counter.runs == [1]
    assert result.error == Failure(
        code="invalid_input", message="the idempotency key 'k' was used with other arguments; use a new key"
    )


def test_the_order_of_keys_is_no_difference(project: Project, counter: Counter) -> None:
    one = {"a": {"x": 1, "y": [{"p": 1, "q": 2}]}, "b": 2}
    same = {"b": 2, "a": {"y": [{"q": 2, "p": 1}], "x": 1}}

    with project.open(tools=glee.toolset(counter)) as engine:
        results = [engine.call_sync(keyed(value=value)) for value in (one, same)]

    assert ([result.ok for result in results], len(counter.runs)) == ([True, True], 1)


def test_a_tool_that_changes_its_arguments_does_not_change_what_the_key_stands_for(project: Project) -> None:
    @glee.tool
    def take(items: list[int]) -> int:
        """Take the last one away."""
        return items.pop()

    with project.open(tools=[take]) as engine:
        results = [engine.call_sync(keyed("take", items=[1, 2])) for _ in range(2)]

    assert [result.output for result in results] == [2, 2]


def test_a_key_holds_for_other_engines_too(project: Project, counter: Counter) -> None:
    for _ in range(3):
        with project.open(tools=glee.toolset(counter)) as engine:
            assert engine.call_sync(keyed()).output == 1


def test_a_key_belongs_to_its_project(tmp_path: Path, counter: Counter) -> None:
    (tmp_path / "two").mkdir()
    one, two = Project(tmp_path), Project(tmp_path / "two")
    two.environ = one.environ

    for project in (one, two):
        with project.open(tools=glee.toolset(counter)) as engine:
            engine.call_sync(keyed())

    assert len(counter.runs) == 2


@pytest.mark.parametrize("answer", ["no", "nobody"])
def test_a_call_that_was_not_approved_does_not_use_up_its_key(project: Project, answer: Any) -> None:
    project.add_command("send", "echo sent", approval={"required": True, "reason": "Sends"})

    with project.open(approver=AnsweringPerson(answer)) as engine:
        engine.call_sync(keyed("send"))
    with project.open(approver=AnsweringPerson("yes")) as engine:
        result = engine.call_sync(keyed("send"))

    assert (result.output, result.warnings) == ("sent\n", ())


def test_a_call_that_lacked_a_secret_does_not_use_up_its_key(project: Project) -> None:
    project.add_command("send", "echo sent", permissions={"secrets": {"TOKEN": {"type": "string"}}})

    with project.open() as engine:
        missing = engine.call_sync(keyed("send"))
        project.environ["TOKEN"] = "12345678"
        result = engine.call_sync(keyed("send"))

    assert (code_of(missing), result.output, result.warnings) == ("secret_missing", "sent\n", ())


def test_a_call_that_could_not_be_recorded_does_not_use_up_its_key(project: Project, counter: Counter) -> None:
    in_the_way = project.write(".glee/audit", "a file")

    with project.open(tools=glee.toolset(counter)) as engine:
        refused = engine.call_sync(keyed())
        in_the_way.unlink()
        result = engine.call_sync(keyed())

    assert (code_of(refused), result.output, len(counter.runs)) == ("internal", 1, 1)


def test_a_call_whose_deadline_has_passed_does_not_use_up_its_key(project: Project, counter: Counter) -> None:
    with project.open(tools=glee.toolset(counter)) as engine:
        late = engine.call_sync(Call(tool="count", idempotency_key="k", deadline=1.0))
        result = engine.call_sync(keyed())

    assert (code_of(late), result.output) == ("timeout", 1)


def test_a_call_with_the_key_of_a_running_one_is_told_to_wait(project: Project) -> None:
    running, finish = threading.Event(), threading.Event()

    @glee.tool
    def slow() -> str:
        """Wait to be told."""
        running.set()
        finish.wait()
        return "done"

    async def scene() -> tuple[Result, Result, Result]:
        async with project.open(tools=[slow]) as engine:
            first = asyncio.create_task(engine.call(keyed("slow")))
            await asyncio.to_thread(running.wait)
            second = await engine.call(keyed("slow"))
            finish.set()
            return await first, second, await engine.call(keyed("slow"))

    first, second, third = asyncio.run(scene())

    assert (first.output, third.output) == ("done", "done")
    assert second.error == Failure(code="unavailable", message=RUNNING, details={"call_id": first.call_id})


def test_of_many_threads_with_one_key_one_runs(project: Project, counter: Counter) -> None:
    start = threading.Barrier(8)
    results: list[Result] = []

    with project.open(tools=glee.toolset(counter)) as engine:

        def call() -> None:
            start.wait()
            results.append(engine.call_sync(keyed()))

        threads = [threading.Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len(counter.runs) == 1
    assert {code_of(result) for result in results} <= {None, "unavailable"}
    assert [result.output for result in results if result.ok and not result.warnings] == [1]


CHILD = textwrap.dedent("""
    import json, os, sys, glee

    root, environ, mode = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]

    @glee.tool
    def leave(word: str) -> str:
        '''Leave a mark, or leave altogether.'''
        with open(os.path.join(root, "runs"), "a") as file:
            file.write(word + "\\n")
        if mode == "die":
            os._exit(0)
        return word

    with glee.open(root, tools=[leave], environ=environ) as engine:
        print("ready", flush=True)
        sys.stdin.readline()
        result = engine.call_sync(glee.Call(tool="leave", arguments={"word": "once"}, idempotency_key="k"))
        print(result.to_json().decode())
""")


def start_child(project: Project, mode: str) -> subprocess.Popen[str]:
    program = [sys.executable, "-c", CHILD, str(project.root), json.dumps(project.environ), mode]
    return subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_of_many_processes_with_one_key_one_runs(project: Project) -> None:
    children = [start_child(project, "live") for _ in range(5)]
    for child in children:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    results = [Result.from_json(child.communicate()[0]) for child in children]

    assert (project.root / "runs").read_text() == "once\n"
    assert [result.output for result in results if result.ok and not result.warnings] == ["once"]
    assert {code_of(result) for result in results} <= {None, "unavailable"}


def test_a_run_that_was_cut_off_is_not_run_again_under_its_key(project: Project) -> None:
    """Nobody knows how far it came."""
    start_child(project, "die").communicate("go\n")
    result = Result.from_json(start_child(project, "live").communicate("go\n")[0].splitlines()[-1])

    assert (project.root / "runs").read_text() == "once\n"
    assert result.error is not None
    assert (result.error.code, result.error.message) == ("unavailable", RUNNING)


# The claim itself.


@pytest.fixture
def claims(tmp_path: Path) -> FileClaims:
    return FileClaims(tmp_path / "claims")


RESULT = Result(ok=True, tool="count", call_id="1", output={"n": 1})


def test_a_claim_is_held_settled_and_answered(claims: FileClaims) -> None:
    assert claims.claim(keyed(), "1") is None
    with pytest.raises(Unavailable, match="is running or was cut off"):
        claims.claim(keyed(), "2")

    claims.settle(keyed(), RESULT)

    assert claims.claim(keyed(), "3") == RESULT


def test_a_released_claim_is_free(claims: FileClaims) -> None:
    claims.claim(keyed(), "1")
    claims.release(keyed())
    claims.release(keyed())

    assert claims.claim(keyed(), "2") is None


@pytest.mark.parametrize("content", [b"", b"{", b"null", b"[]", b'{"call_id": 1}'])
def test_a_claim_that_cannot_be_read_counts_as_cut_off(claims: FileClaims, tmp_path: Path, content: bytes) -> None:
    claims.claim(keyed(), "1")
    (file,) = (tmp_path / "claims").iterdir()
    file.write_bytes(content)

    with pytest.raises(Unavailable):
        claims.claim(keyed(), "2")


@pytest.mark.parametrize("key", ["../../x", "/etc/passwd", "a\0b", "x" * 10_000, "", "\ud800", "é"])
def test_a_key_is_never_a_path(claims: FileClaims, tmp_path: Path, key: str) -> None:
    assert claims.claim(keyed(key=key), "1") is None

    (file,) = (tmp_path / "claims").iterdir()
    assert (len(file.name), file.suffix) == (69, ".json")


def test_a_tool_and_a_key_cannot_be_mistaken_for_another_pair(claims: FileClaims) -> None:
    assert claims.claim(keyed("ab", key="c"), "1") is None
    assert claims.claim(keyed("a", key="bc"), "2") is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Caller(agent=None), Caller(agent="None")),
        (Caller(session=None), Caller(session="None")),
        (Caller(agent="a\0b", session="c"), Caller(agent="a", session="b\0c")),
    ],
)
def test_one_caller_cannot_be_mistaken_for_another(claims: FileClaims, one: Caller, other: Caller) -> None:
    assert claims.claim(structs.replace(keyed(), caller=one), "1") is None
    assert claims.claim(structs.replace(keyed(), caller=other), "2") is None


def test_a_session_and_a_key_cannot_be_mistaken_for_another_pair(claims: FileClaims) -> None:
    assert claims.claim(structs.replace(keyed(key="b\0c"), caller=Caller(session="a")), "1") is None
    assert claims.claim(structs.replace(keyed(key="c"), caller=Caller(session="a\0b")), "2") is None


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Files can be made, and nothing can be written to them."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_claim_that_a_full_disk_cut_short_leaves_the_key_free(claims: FileClaims) -> None:
    refusal = r"^the idempotency key cannot be claimed in .*: File too large$"
    with full_disk(), pytest.raises(Unavailable, match=refusal):
        claims.claim(keyed(), "1")

    assert claims.claim(keyed(), "2") is None


def test_a_call_on_a_full_disk_does_not_use_up_its_key(project: Project, counter: Counter) -> None:
    with project.open(tools=glee.toolset(counter)) as engine:
        with full_disk():
            refused = engine.call_sync(keyed())
        result = engine.call_sync(keyed())

    assert (code_of(refused), result.output, counter.runs) == ("unavailable", 1, [None])


def test_other_arguments_are_refused_while_the_first_call_runs(claims: FileClaims) -> None:
    claims.claim(keyed(value=1), "1")

    with pytest.raises(InvalidInput):
        claims.claim(keyed(value=2), "2")


@pytest.mark.parametrize("output", [2**80, "\ud800", float("inf"), {"deep": [None, "é"]}])
def test_settling_never_fails_the_call(claims: FileClaims, output: Any) -> None:
    claims.claim(keyed(), "1")

    claims.settle(keyed(), structs.replace(RESULT, output=output))


def test_a_claim_is_its_owner_s_alone_before_and_after_the_run(claims: FileClaims, tmp_path: Path) -> None:
    claims.claim(keyed(), "1")
    (file,) = (tmp_path / "claims").iterdir()
    before = stat.S_IMODE(file.stat().st_mode)
    claims.settle(keyed(), RESULT)

    assert (before, stat.S_IMODE(file.stat().st_mode)) == (0o600, 0o600)
    assert list((tmp_path / "claims").iterdir()) == [file]


def test_a_folder_that_cannot_be_made_is_said_to_be_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(Unavailable, match=r"^the idempotency key cannot be claimed in .*: Not a directory$"):
        FileClaims(tmp_path / "file" / "claims").claim(keyed(), "1")
