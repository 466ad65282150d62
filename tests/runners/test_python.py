"""`kind: python` in a real interpreter: what the function is given, and what becomes of what it returns."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from process_watch import find_processes, new_mark, wait_gone
from tool_parts import bare, failure, needs, success, takes

from glee.engine import Engine
from glee.testing import Project, Watcher, manifest

ECHO = """
def run(*args, **kwargs):
    return [args, kwargs]
"""


def returning(expression: str, before: str = "") -> str:
    return f"{before}\ndef run():\n    return {expression}\n"


@pytest.mark.parametrize(
    ("args", "given", "received"),
    [
        (["${a}", "x-${a}", 3, {"deep": "${b}"}], {"a": 1, "b": [True]}, [[1, "x-1", 3, {"deep": [True]}], {}]),
        (["${a}", "${b}"], {"b": 2}, [[2], {}]),
        (
            {"n": "${a}", "fixed": "$${a}", "gone": "${b}"},
            {"a": {"k": None}},
            [[], {"n": {"k": None}, "fixed": "${a}"}],
        ),
        ([], {"a": 1, "b": "two"}, [[], {"a": 1, "b": "two"}]),
        (None, {"a": 1}, [[], {"a": 1}]),
        (["${a}"], {}, [[], {}]),
        (["${a}"], {"a": "--help"}, [["--help"], {}]),
    ],
)
def test_arguments_come_as_a_list_as_a_mapping_or_as_the_inputs_themselves(
    project: Project, engine: Engine, args: Any, given: dict[str, Any], received: list[Any]
) -> None:
    python = {} if args is None else {"args": args}
    project.add_python("echo", ECHO, python=python, inputs=takes(a={}, b={}))

    assert bare(engine.call_sync("echo", given)) == success("echo", received)


def test_another_function_of_a_module_in_a_package_is_called(project: Project, engine: Engine) -> None:
    project.write("deep/er/__init__.py", "")
    project.write("deep/er/thing.py", "def other():\n    return __name__\n")
    project.add_python("call", "", python={"module": "deep.er.thing", "function": "other"})

    assert bare(engine.call_sync("call")) == success("call", "deep.er.thing")


def test_a_module_may_lie_beside_its_manifest(project: Project, engine: Engine) -> None:
    project.write(".glee/tools/near/beside.py", "def run():\n    return 'beside'\n")
    project.add_python("near", "", python={"module": "beside"})

    assert bare(engine.call_sync("near")) == success("near", "beside")


def test_cwd_is_where_the_function_runs_and_where_its_module_is_found(project: Project, engine: Engine) -> None:
    project.write("elsewhere/there.py", "import os\ndef run():\n    return os.getcwd()\n")
    project.add_python("where", "", python={"module": "there", "cwd": "elsewhere"})

    assert bare(engine.call_sync("where")) == success("where", str(project.root / "elsewhere"))


def test_a_module_may_be_found_through_links(project: Project, engine: Engine) -> None:
    source = "def run():\n    return 'found'\n"
    project.write("src/pack/__init__.py", source)
    project.write("elsewhere/there.py", source)
    project.write("shared/near/beside.py", source)
    links = {"pack": "src/pack", "link": "elsewhere", ".glee/tools/near": "../../shared/near"}
    for link, target in links.items():
        (project.root / link).symlink_to(target)
    project.add_python("package", "", python={"module": "pack"})
    project.add_python("folder", "", python={"module": "there", "cwd": "link"})
    project.add_python("near", "", python={"module": "beside"})

    assert [engine.call_sync(name).output for name in ("package", "folder", "near")] == ["found"] * 3


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with nothing in it but one module."""
    folder = tmp_path_factory.mktemp("venv") / "own"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "only_there.py").write_text("VALUE = 'from the venv'\n")
    return folder


def test_the_interpreter_of_the_venv_is_used(project: Project, engine: Engine, venv: Path) -> None:
    (project.root / ".venv").symlink_to(venv)
    source = """
    import sys
    import only_there

    def run():
        return [only_there.VALUE, sys.prefix, "glee" in sys.modules, "msgspec" in sys.modules]
    """
    project.add_python("which", source, python={"venv": ".venv"})
    project.add_python("absolute", source, python={"venv": str(venv)})

    assert bare(engine.call_sync("which")) == success(
        "which", ["from the venv", str(project.root / ".venv"), False, False]
    )
    assert bare(engine.call_sync("absolute")) == success("absolute", ["from the venv", str(venv), False, False])


def test_a_venv_that_is_not_there_is_named(project: Project, engine: Engine) -> None:
    project.add_python("which", returning("1"), python={"venv": ".venv"})

    assert bare(engine.call_sync("which")) == failure(
        "which", "unavailable", "there is no interpreter at .venv/bin/python; `glee lint` says how to make it"
    )


@pytest.mark.parametrize(
    ("expression", "form", "output"),
    [
        ("'plain é\\n'", "text", "plain é\n"),
        ("12", "text", "12"),
        ("{'a': 1}", "text", "{'a': 1}"),
        ("None", "text", "None"),
        ("'text'", "json", "text"),
        ("{'a': [1.5, None, True], 1: 'x'}", "json", {"a": [1.5, None, True], "1": "x"}),
        ("None", "json", None),
        ("(1, 2)", "json", [1, 2]),
        ("{3, 1, 2}", "json", [1, 2, 3]),
        ("__import__('datetime').date(2025, 1, 9)", "json", "2025-01-09"),
        ("__import__('pathlib').Path('a/b')", "json", "a/b"),
    ],
)
def test_what_is_returned_is_text_or_json_as_declared(
    project: Project, engine: Engine, expression: str, form: str, output: Any
) -> None:
    project.add_python("give", returning(expression), python={"return": form})

    assert bare(engine.call_sync("give")) == success("give", output)


def test_a_dataclass_becomes_an_object(project: Project, engine: Engine) -> None:
    before = """
import dataclasses

@dataclasses.dataclass
class Point:
    x: int
    tags: set
"""
    project.add_python("give", returning("[Point(1, {'a'})]", before))

    assert bare(engine.call_sync("give")) == success("give", [{"x": 1, "tags": ["a"]}])


def test_an_async_function_is_awaited(project: Project, engine: Engine) -> None:
    project.add_python("wait", "import asyncio\nasync def run():\n    await asyncio.sleep(0)\n    return 'waited'\n")

    assert bare(engine.call_sync("wait")) == success("wait", "waited")


def test_what_a_function_prints_does_not_disturb_its_result(project: Project, engine: Engine) -> None:
    source = """
    import os, subprocess, sys

    print("on import")

    def run():
        print('{"value": "not this"}')
        os.write(1, b'{"value": "nor this"}')
        os.write(2, b"noise")
        subprocess.run(["echo", "nor that"])
        sys.stdout = None
        return "the result"
    """
    project.add_python("loud", source)

    assert bare(engine.call_sync("loud")) == success("loud", "the result")


def test_a_lot_of_printing_neither_blocks_nor_disturbs(project: Project, engine: Engine) -> None:
    project.add_python("loud", "def run():\n    print('x' * 2_000_000)\n    return 'done'\n")

    assert bare(engine.call_sync("loud")) == success("loud", "done")


def test_printing_without_end_is_too_large(project: Project) -> None:
    project.configure("limits: {output_bytes: 50000}")
    mark = new_mark()
    project.add_python(
        "flood",
        f"""
        import os, subprocess

        def run():
            subprocess.Popen(["sleep", "{mark}"])
            while True:
                os.write(1, b"again and again ")
        """,
    )

    with project.open() as engine:
        result = engine.call_sync("flood")

    assert result.error is not None
    assert (result.error.code, result.error.details) == ("too_large", {"limit": 50_000})
    wait_gone(mark)


def test_standard_input_is_empty_for_the_function(project: Project, engine: Engine) -> None:
    project.add_python("read", "import sys\ndef run():\n    return sys.stdin.read()\n")

    assert bare(engine.call_sync("read")) == success("read", "")


def test_an_exception_comes_back_with_type_and_message_and_its_traceback_goes_to_the_log(
    project: Project, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    source = """
    class Odd(ValueError):
        pass

    def inner():
        raise Odd("not like this: é")

    def run():
        inner()
    """
    project.add_python("fail", source)

    with caplog.at_level(logging.ERROR, logger="glee"):
        result = engine.call_sync("fail")

    assert bare(result) == failure(
        "fail",
        "exception",
        "run raised Odd: not like this: é",
        {"type": "Odd", "message": "not like this: é"},
    )
    assert [(record.name, record.levelname) for record in caplog.records] == [("glee", "ERROR")]
    assert "in inner" in caplog.text and "Odd: not like this: é" in caplog.text
    assert "in inner" not in repr(result)


def test_a_secret_in_an_exception_is_neither_returned_nor_logged(
    project: Project, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    project.environ["API_KEY"] = "sk-live-4711-abcdef"
    project.add_python(
        "fail",
        "import os\ndef run():\n    raise ValueError('bad key ' + os.environ['API_KEY'])\n",
        permissions=needs("API_KEY"),
    )

    with caplog.at_level(logging.ERROR, logger="glee"):
        result = engine.call_sync("fail")

    assert bare(result) == failure(
        "fail",
        "exception",
        "run raised ValueError: bad key [secret]",
        {"type": "ValueError", "message": "bad key [secret]"},
    )
    assert "bad key [secret]" in caplog.text and "sk-live" not in caplog.text


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("import sys\ndef run():\n    sys.exit(3)\n", "SystemExit", "3"),
        ("def run():\n    raise KeyboardInterrupt\n", "KeyboardInterrupt", ""),
        ("import no_such_module_at_all\n", "ModuleNotFoundError", "No module named 'no_such_module_at_all'"),
        ("1 / 0\n", "ZeroDivisionError", "division by zero"),
        ("run = 3\n", "TypeError", "'int' object is not callable"),
        ("def run(a):\n    pass\n", "TypeError", "run() missing 1 required positional argument: 'a'"),
        (returning("object()"), "TypeError", "the function returned a object, which is not JSON"),
        (returning("b'bytes'"), "TypeError", "the function returned a bytes, which is not JSON"),
        (returning("float('nan')"), "ValueError", None),
        (returning("{(1, 2): 3}"), "TypeError", None),
        ("def run():\n    raise ExceptionGroup('several', [ValueError('a')])\n", "ExceptionGroup", None),
        ("def run():\n    a = []\n    a.append(a)\n    return a\n", "ValueError", "Circular reference detected"),
    ],
)
def test_whatever_goes_wrong_in_the_module_is_an_exception(
    project: Project, engine: Engine, source: str, kind: str, message: str | None
) -> None:
    project.add_python("fail", source)

    result = engine.call_sync("fail")

    assert result.error is not None
    assert (result.error.code, result.error.details["type"]) == ("exception", kind)
    assert message is None or result.error.details["message"] == message


def test_a_function_that_is_not_there_is_unavailable(project: Project, engine: Engine) -> None:
    project.add_python("fail", "def other():\n    pass\n")

    assert bare(engine.call_sync("fail")) == failure(
        "fail",
        "unavailable",
        "the module tools.fail has no function run; correct the manifest, or run `glee lint`",
    )


def test_a_module_that_is_not_there_is_unavailable(project: Project, engine: Engine) -> None:
    project.add_tool("fail", manifest("fail", "python", {"module": "nowhere.at.all", "function": "run"}))

    assert bare(engine.call_sync("fail")) == failure(
        "fail", "unavailable", "there is no module nowhere.at.all; correct the manifest, or run `glee lint`"
    )


def test_what_a_function_prints_is_told_to_listeners_without_secrets(project: Project) -> None:
    project.add_python(
        "speak",
        """
        import os, sys

        def run():
            print("out", os.environ["TOKEN"])
            print("err", file=sys.stderr)
            return 1
        """,
        permissions=needs("TOKEN"),
    )
    project.environ["TOKEN"] = "S3CR3T-VALUE"
    watcher = Watcher()
    with project.open() as engine:
        engine.subscribe(watcher)
        result = engine.call_sync("speak")

    assert (result.output, watcher.events[-1].said) == (1, "out [secret]\nerr\n")


def test_an_interpreter_that_just_ends_is_an_exit_code(project: Project, engine: Engine) -> None:
    project.add_python("leave", "import os\ndef run():\n    os.write(2, b'last words')\n    os._exit(5)\n")

    assert bare(engine.call_sync("leave")) == failure(
        "leave",
        "exit_code",
        "the interpreter ended with exit code 5 before run returned",
        {"exit_code": 5, "stderr": "last words"},
        exit_code=5,
    )


def test_an_interpreter_that_crashes_is_an_exit_code(project: Project, engine: Engine) -> None:
    project.add_python("crash", "import os, signal\ndef run():\n    os.kill(os.getpid(), signal.SIGSEGV)\n")

    assert bare(engine.call_sync("crash")) == failure(
        "crash",
        "exit_code",
        "the interpreter ended with exit code 139 before run returned",
        {"exit_code": 139, "stderr": ""},
        exit_code=139,
    )


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        ("{}", "ValueError", "the result channel was tampered with"),
        ('{"type": 5}', "5", ""),
        ('{"type": "Odd", "message": ["a"], "traceback": 7}', "Odd", "['a']"),
        ('{"message": "no type", "traceback": null}', "ValueError", "no type"),
    ],
)
def test_an_answer_that_only_a_meddler_would_write_is_an_exception(
    project: Project, engine: Engine, answer: str, kind: str, message: str
) -> None:
    source = f"import os, sys\n\ndef run():\n    os.write(int(sys.argv[1]), {answer.encode()!r})\n    os._exit(0)\n"
    project.add_python("forge", source)

    assert bare(engine.call_sync("forge")) == failure(
        "forge", "exception", f"run raised {kind}: {message}", {"type": kind, "message": message}
    )


def test_huge_arguments_and_results_pass(project: Project, engine: Engine) -> None:
    text = "é☃" * 1_250_000
    project.add_python("measure", "def run(text):\n    return [len(text), text[-2:]]\n", inputs=takes(text="string"))
    project.add_python("grow", "def run():\n    return 'x' * 5_000_000\n")

    assert bare(engine.call_sync("measure", {"text": text})) == success("measure", [2_500_000, "é☃"])
    grown = engine.call_sync("grow")
    assert engine.read_artifact(grown.artifacts[0]) == b"x" * 5_000_000


def test_a_function_that_runs_too_long_is_ended_with_all_it_started(project: Project, engine: Engine) -> None:
    mark = new_mark()
    project.add_python(
        "hang",
        f"import subprocess\ndef run():\n    subprocess.run(['sleep', '{mark}'])\n",
        python={"timeout_ms": 500},
    )

    assert bare(engine.call_sync("hang")) == failure(
        "hang",
        "timeout",
        "the tool ran longer than 0.5 s and was ended; give it less to do, or raise timeout_ms",
        {"timeout_ms": 500},
    )
    wait_gone(mark)
    assert find_processes(mark) == []


def test_the_environment_is_clean_and_holds_the_declared_secrets(
    project: Project, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAKED", "from the process that runs Glee")
    monkeypatch.setenv("PYTHONPATH", "/from/the/process/that/runs/glee")
    project.environ |= {"API_KEY": "value-of-the-key", "OTHER": "x"}
    project.add_python(
        "env",
        """
        import os, sys

        def run():
            return [dict(os.environ), len(os.environ["API_KEY"]), "/from" in str(sys.path)]
        """,
        permissions=needs("API_KEY"),
    )

    output = engine.call_sync("env").output
    output[0].pop("LC_CTYPE", None)  # the interpreter may set it for itself

    own = {"HOME": "/run/home", "TMPDIR": "/tmp"}
    assert output == [
        {"PATH": project.environ["PATH"], "LANG": "C.UTF-8", **own, "API_KEY": "[secret]"},
        16,
        False,
    ]


def test_a_secret_may_be_an_argument_because_no_one_can_see_it_there(project: Project, engine: Engine) -> None:
    project.environ["API_KEY"] = "value-of-the-key"
    project.add_python(
        "use",
        "import sys\ndef run(key):\n    return [len(key), key in open('/proc/self/cmdline').read()]\n",
        python={"args": ["${API_KEY}"]},
        permissions=needs("API_KEY"),
    )

    assert bare(engine.call_sync("use")) == success("use", [16, False])


def test_the_request_is_not_left_open_for_the_function(project: Project, engine: Engine) -> None:
    project.add_python("count", "import os\ndef run():\n    return sorted(map(int, os.listdir('/proc/self/fd')))\n")

    output = engine.call_sync("count").output

    assert output[:3] == [0, 1, 2]
    assert len(output) <= 6


def test_an_output_that_does_not_fit_its_schema_is_returned_with_a_warning(project: Project, engine: Engine) -> None:
    project.add_python(
        "give", returning("[1, 'two']"), outputs={"format": "json", "schema": {"items": {"type": "integer"}}}
    )

    result = engine.call_sync("give")

    assert (result.ok, result.output, len(result.warnings)) == (True, [1, "two"], 1)
    assert result.warnings[0].startswith("the output does not fit outputs.schema: /1: ")


def test_the_interpreter_that_runs_glee_is_used_without_a_venv(project: Project, engine: Engine) -> None:
    project.add_python("which", "import sys\ndef run():\n    return sys.executable\n")

    assert os.path.realpath(str(engine.call_sync("which").output)) == os.path.realpath(sys.executable)


def test_a_module_of_the_tool_comes_before_one_that_only_glee_wanted(project: Project) -> None:
    project.add_tool("own", manifest("own", "python", {"module": "json", "function": "run"}))
    project.write(".glee/tools/own/json.py", "def run():\n    return 'own'\n")

    with project.open() as engine:
        assert engine.call_sync("own").output == "own"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import nowhere_at_all", "importing tools.bad raised ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("def run():\n    return float('nan')", "writing what run returned as JSON raised ValueError: "),
        ("def run():\n    raise KeyError('x')", "run raised KeyError: 'x'"),
    ],
)
def test_an_error_says_in_what_it_was_raised(project: Project, source: str, message: str) -> None:
    project.add_python("bad", source)

    with project.open() as engine:
        error = engine.call_sync("bad").error

    assert error is not None
    assert error.message.startswith(message)
