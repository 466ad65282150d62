"""Python tools that wait for their call: as quick as they may be, calls share nothing, and nothing goes stale."""

from __future__ import annotations

import os
import select
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from process_watch import find_processes, new_mark, wait_gone
from tool_parts import takes

from glee.engine import Engine
from glee.testing import Project, Watcher, manifest

pytestmark = pytest.mark.usefixtures("each_launcher")
PATIENCE = 30_000


def warm(engine: Engine, name: str, arguments: dict[str, Any] | None = None) -> None:
    """Calls a tool once, and waits until its template is ready or has said that it never will be."""
    engine.call_sync(name, arguments or {})
    for template in [one for waiting in _templates(engine)._idle.values() for one in waiting]:
        poll = select.poll()
        poll.register(template.control, select.POLLIN)
        assert poll.poll(PATIENCE)


def _templates(engine: Engine) -> Any:
    if not engine._parts.runners["python"]._cells.jails.abilities().can_fork:  # type: ignore[attr-defined]
        pytest.skip("this machine lacks what keeps calls of one template apart: namespaces, and Landlock 6")
    return engine._parts.runners["python"]._templates  # type: ignore[attr-defined]


WHERE = "import os\n\n\ndef run():\n    return 'anew' if os.getppid() == 1 else 'from a template'\n"


def test_the_first_call_starts_an_interpreter_and_later_ones_are_forked(project: Project, engine: Engine) -> None:
    project.add_python("where", WHERE)

    first = engine.call_sync("where").output
    warm(engine, "where")

    assert (first, [engine.call_sync("where").output for _ in range(5)]) == ("anew", ["from a template"] * 5)


def test_a_project_in_a_folder_whose_name_is_not_utf8_has_templates_too(tmp_path: Path) -> None:
    project = Project(tmp_path / os.fsdecode(b"caf\xe9"))
    project.add_python("where", WHERE)

    with project.open() as engine:
        warm(engine, "where")

        assert engine.call_sync("where").output == "from a template"


POISON = {
    "a global": ("COUNT.append(1)", "len(COUNT)", 0),
    "the environment": ("os.environ.update(POISON='x')", "os.environ.get('POISON')", None),
    "a builtin": ("setattr(builtins, 'poison', 1)", "hasattr(builtins, 'poison')", False),
    "a module": ("setattr(random, 'random', None)", "random.random() < 1", True),
    "the working folder": ("os.chdir('/')", "os.getcwd() == '/'", False),
    "a file in /tmp": ("open('/tmp/poison', 'w').write('x')", "os.path.exists('/tmp/poison')", False),
    "a file in HOME": ("open(os.environ['HOME'] + '/.p', 'w').write('x')", "os.listdir(os.environ['HOME'])", []),
    "a process": ("subprocess.Popen(['sleep', '1000'])", "subprocess.getoutput('pgrep -c sleep')", "0"),
    "shared memory": ("shared_memory.SharedMemory('poison', True, 64)", "os.listdir('/dev/shm') == []", True),
    "a signal handler": ("signal.signal(10, print)", "signal.getsignal(10) == signal.SIG_DFL", True),
    "a limit": ("resource.setrlimit(7, (64, 64))", "resource.getrlimit(7)[0]", 1024),
    "its priority": ("os.nice(19)", "os.nice(0)", 0),
    "the seed": ("random.seed(1)", "random.random() == random.Random(1).random()", False),
    "a mode": ("os.umask(0)", "os.umask(0)", 0o22),
}
MODULE = """
import builtins, ctypes, json, os, random, resource, signal, socket, subprocess, sys
from multiprocessing import shared_memory

COUNT = []


def run(code):
    return repr(eval(code)), os.getppid() != 1
"""


@pytest.mark.parametrize("name", POISON)
def test_a_call_leaves_nothing_for_the_next(project: Project, engine: Engine, name: str) -> None:
    poison, look, expected = POISON[name]
    project.add_python("work", MODULE, inputs=takes(code="string"))
    warm(engine, "work", {"code": "1"})

    forked = engine.call_sync("work", {"code": poison}).output[1]
    after = [engine.call_sync("work", {"code": look}) for _ in range(2)]

    assert forked
    if name in ("a file in /tmp", "shared memory") and "/tmp" in str(project.root):
        assert "poison" not in str(after)
    else:
        assert {result.output[0] for result in after} == {repr(expected)}


ATTACKS = {
    "kill it": "os.kill(os.getppid(), 9)",
    "stop it": "os.kill(os.getppid(), 19)",
    "kill process one": "os.kill(1, 9)",
    "read its memory": "open(f'/proc/{os.getppid()}/mem', 'rb').read(1)",
    "write to its memory": "open(f'/proc/{os.getppid()}/mem', 'wb')",
    "see its descriptors": "os.listdir(f'/proc/{os.getppid()}/fd')",
    "see its environment": "open(f'/proc/{os.getppid()}/environ').read()",
    "change its limits": "resource.prlimit(os.getppid(), 7, (9, 9))",
    "change its priority": "os.setpriority(0, os.getppid(), 19)",
    "pin it": "os.sched_setaffinity(os.getppid(), {0})",
    "take its line": "ctypes.CDLL(None, use_errno=True).syscall(438, os.pidfd_open(os.getppid()), 3, 0) == -1 and 1/0",
    "trace it": "ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0) == -1 and 1/0",
    "leave its domain": "ctypes.CDLL(None).syscall(446, -1, 0) == -1 and 1/0",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_call_cannot_reach_its_template(project: Project, engine: Engine, name: str) -> None:
    project.add_python("work", MODULE, inputs=takes(code="string"))
    warm(engine, "work", {"code": "1"})

    result = engine.call_sync("work", {"code": ATTACKS[name]})

    assert result.error is not None, result
    assert result.error.details["type"] in ("PermissionError", "ZeroDivisionError")
    assert engine.call_sync("work", {"code": "1"}).output == ["1", True]


def test_what_a_call_starts_and_leaves_is_gone_when_it_is_over(project: Project, engine: Engine) -> None:
    mark = new_mark()
    project.add_python("work", MODULE, inputs=takes(code="string"))
    warm(engine, "work", {"code": "1"})

    engine.call_sync("work", {"code": f"subprocess.Popen(['sleep', '{mark}'], start_new_session=True).pid"})

    assert find_processes(mark) == []


def test_a_call_that_takes_too_long_ends_with_its_template_and_the_next_one_works(project: Project) -> None:
    mark = new_mark()
    project.add_python("work", MODULE, inputs=takes(code="string"), python={"timeout_ms": 3000})

    with project.open() as engine:
        warm(engine, "work", {"code": "1"})
        late = engine.call_sync("work", {"code": f"subprocess.run(['sleep', '{mark}'])"})
        left = find_processes(mark)
        again = engine.call_sync("work", {"code": "2"})

    assert late.error is not None
    assert (late.error.code, left, again.output[0]) == ("timeout", [], "2")


def test_a_change_of_the_module_or_of_what_it_read_counts_at_once(project: Project, engine: Engine) -> None:
    source = "DATA = open('data.txt').read()\n\n\ndef run():\n    return DATA + '{}'\n"
    project.write("data.txt", "one ")
    project.add_python("work", source.format("a"), permissions={"fs": {"read": ["data.txt"]}})
    outputs = []

    for change in (
        None,
        lambda: project.write("tools/work.py", source.format("bb")),
        lambda: project.write("data.txt", "three "),
    ):
        if change:
            change()
        warm(engine, "work")
        outputs.append(engine.call_sync("work").output)

    assert outputs == ["one a", "one bb", "three bb"]


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("threads", "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()"),
        ("shared memory", "import mmap\nM = mmap.mmap(-1, 4096)"),
        ("open files", "F = open('/dev/null')"),
        ("files", "open('/tmp/left', 'w').close()"),
        ("processes", "import subprocess\nP = subprocess.Popen(['sleep', '60'])"),
    ],
)
def test_a_module_whose_import_leaves_something_is_imported_anew_each_time(
    project: Project, engine: Engine, name: str, before: str
) -> None:
    project.add_python("where", before + "\n" + WHERE)

    for _ in range(3):
        warm(engine, "where")

    assert engine.call_sync("where").output == "anew"
    assert [reason.startswith("importing it") for reason, _ in _templates(engine)._unfit.values()] == [True]


def test_a_tool_with_secrets_is_imported_anew_with_them(project: Project) -> None:
    project.environ["KEY"] = "opensesame1"
    source = "import os\nKEY = os.environ['KEY']\n" + WHERE.replace("return", "return KEY[:4] +")
    project.add_python("where", source, permissions={"secrets": {"KEY": {"required": True}}})

    with project.open() as engine:
        warm(engine, "where")
        assert engine.call_sync("where").output == "openanew"


def test_what_a_call_prints_is_its_own(project: Project, engine: Engine) -> None:
    project.add_python("say", "print('imported')\n\n\ndef run(word):\n    print(word)\n", inputs=takes(word="string"))
    warm(engine, "say", {"word": "x"})
    watcher = Watcher()
    engine.subscribe(watcher)
    for word in ("one", "two"):
        engine.call_sync("say", {"word": word})

    assert [event.said for event in watcher.events if hasattr(event, "said")] == ["one\n", "two\n"]


def test_standard_streams_can_be_opened_by_name_in_a_fork_too(project: Project, engine: Engine) -> None:
    project.add_python("work", MODULE, inputs=takes(code="string"))
    warm(engine, "work", {"code": "1"})

    result = engine.call_sync("work", {"code": "open('/dev/stdout', 'w').write('x')"})

    assert result.output == ["1", True], result


def test_a_call_that_ends_its_process_says_how(project: Project, engine: Engine) -> None:
    project.add_python("work", MODULE, inputs=takes(code="string"))
    warm(engine, "work", {"code": "1"})

    codes = []
    for code in ("os._exit(7)", "os.kill(os.getpid(), 9)"):
        error = engine.call_sync("work", {"code": code}).error
        assert error is not None
        codes.append((error.code, error.details["exit_code"]))

    assert codes == [("exit_code", 7), ("exit_code", 137)]
    assert engine.call_sync("work", {"code": "1"}).output == ["1", True]


def test_many_calls_at_once_get_their_own_answers(project: Project, engine: Engine) -> None:
    project.add_python("work", MODULE, inputs=takes(code="string"))
    warm(engine, "work", {"code": "1"})

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: engine.call_sync("work", {"code": str(n)}).output[0], range(60)))

    assert results == [str(n) for n in range(60)]


def test_templates_end_with_their_engine(project: Project) -> None:
    mark = new_mark()
    project.add_python(mark, MODULE, inputs=takes(code="string"))

    with project.open() as engine:
        warm(engine, mark, {"code": "1"})

    wait_gone(mark)


def test_a_manifest_that_names_another_function_is_followed_at_once(project: Project, engine: Engine) -> None:
    project.add_python("one", "def run():\n    return 'run'\n\n\ndef other():\n    return 'other'\n")
    warm(engine, "one")

    project.add_tool("one", manifest("one", "python", {"module": "tools.one", "function": "other"}))

    assert [engine.call_sync("one").output for _ in range(2)] == ["other", "other"]
