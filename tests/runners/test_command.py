"""`kind: command` with real programs: what they are given, and what becomes of what they write."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from process_watch import find_processes, new_mark, wait_gone
from tool_parts import NOBODY_BOTHERED, RAN, bare, call_with_key, failure, needs, success, takes

from glee.definitions.result import Artifact
from glee.engine import Engine
from glee.testing import READS, WRITES, Project, manifest

SHOW_ARGUMENTS = """
for argument in "$@"; do printf '[%s]' "$argument"; done
"""


def add_program(project: Project, name: str, entrypoint: str, **command: Any) -> None:
    fields = manifest(name, "command", {"entrypoint": entrypoint, **command}, permissions=READS)
    project.add_tool(name, fields)


def test_arguments_never_pass_through_a_shell(project: Project, engine: Engine) -> None:
    evil = "; echo no $(echo no) `echo no` && no | no > no * ~ $HOME 'no' \"no\" \\ \n\té☃"
    project.add_command("show", SHOW_ARGUMENTS, command={"args": ["${a}", "x ${a}"]}, inputs=takes(a="string"))

    assert bare(engine.call_sync("show", {"a": evil})) == success("show", f"[{evil}][x {evil}]", exit_code=0)


def test_a_list_becomes_several_arguments_and_an_absent_input_none(project: Project, engine: Engine) -> None:
    project.add_command(
        "show", SHOW_ARGUMENTS, command={"args": ["${many}", "${none}", "--n=${n}", "end"]},
        inputs=takes(many="array", none="string", n="integer"),
    )  # fmt: skip

    result = engine.call_sync("show", {"many": ["a b", "c"], "n": 2})

    assert bare(result) == success("show", "[a b][c][--n=2][end]", exit_code=0)


def test_a_value_that_looks_like_an_option_never_reaches_the_program(project: Project, engine: Engine) -> None:
    project.add_command("show", "touch ran", command={"args": ["${a}"]}, inputs=takes(a="string"), permissions=WRITES)

    result = engine.call_sync("show", {"a": "--output=/etc/passwd"})

    assert result.error is not None
    assert (result.error.code, result.error.details["violations"][0]["rule"]) == ("invalid_input", "dash")
    assert not (project.root / "ran").exists()


def test_a_nul_character_never_reaches_the_program(project: Project, engine: Engine) -> None:
    project.add_command("show", "touch ran", command={"args": ["${a}"]}, inputs=takes(a="string"), permissions=WRITES)

    assert bare(engine.call_sync("show", {"a": "a\0b"})) == failure(
        "show", "invalid_input", "the input a holds a NUL character, which no argument can"
    )
    assert not (project.root / "ran").exists()


@pytest.mark.parametrize("wrong", ["--output=/etc/passwd", "a\0b"])
def test_a_value_that_no_program_could_be_given_bothers_nobody_and_leaves_the_key_free(
    project: Project, wrong: str
) -> None:
    asks = {"required": True, "reason": "It matters"}
    project.add_command("show", SHOW_ARGUMENTS, command={"args": ["${a}"]}, inputs=takes(a="string"), approval=asks)

    assert call_with_key(project, "show", {"a": wrong}) == NOBODY_BOTHERED
    assert call_with_key(project, "show", {"a": "fine"}) == RAN


def test_json_on_standard_output_becomes_a_value(project: Project, engine: Engine) -> None:
    project.add_command("say", """echo '{"a": [1, null, "é"]}'""", command={"stdout": {"format": "json"}})

    assert bare(engine.call_sync("say")) == success("say", {"a": [1, None, "é"]}, exit_code=0)


def test_the_format_of_the_outputs_counts_where_stdout_says_nothing(project: Project, engine: Engine) -> None:
    project.add_command("say", "echo '[1]'", outputs={"format": "json"})

    assert bare(engine.call_sync("say")) == success("say", [1], exit_code=0)


@pytest.mark.parametrize("text", ["not json", "", "{'a': 1}", "[1,"])
def test_output_that_is_not_the_json_it_was_declared_to_be_is_a_warning(
    project: Project, engine: Engine, text: str
) -> None:
    project.add_command("say", f'printf %s "{text}"', outputs={"format": "json"})

    result = engine.call_sync("say")

    assert (result.ok, result.output, result.exit_code, len(result.warnings)) == (True, text, 0, 1)
    assert result.warnings[0].startswith("the output was declared to be JSON and is not: ")


def test_exit_codes_that_are_declared_fine_are_fine(project: Project, engine: Engine) -> None:
    project.add_command(
        "find", "echo nothing; exit $1", command={"args": ["${code}"], "exit_codes_ok": [0, 3]},
        inputs=takes(code="integer"),
    )  # fmt: skip

    assert bare(engine.call_sync("find", {"code": 3})) == success("find", "nothing\n", exit_code=3)
    assert engine.call_sync("find", {"code": 0}).ok
    assert not engine.call_sync("find", {"code": 1}).ok


def test_zero_is_a_failure_where_it_is_not_declared_fine(project: Project, engine: Engine) -> None:
    project.add_command("odd", "true", command={"exit_codes_ok": [1]})

    assert bare(engine.call_sync("odd")) == failure(
        "odd",
        "exit_code",
        "./scripts/odd.sh ended with exit code 0: nothing on standard error",
        {"exit_code": 0, "stderr": "", "stdout": ""},
        exit_code=0,
    )


def test_another_exit_code_is_an_error_with_standard_error(project: Project, engine: Engine) -> None:
    project.add_command("fail", "echo partial; echo first >&2; echo 'last words' >&2; exit 7")

    assert bare(engine.call_sync("fail")) == failure(
        "fail",
        "exit_code",
        "./scripts/fail.sh ended with exit code 7: last words",
        {"exit_code": 7, "stderr": "first\nlast words", "stdout": "partial\n"},
        exit_code=7,
    )


def test_a_program_that_a_signal_ended_has_the_shells_exit_code(project: Project, engine: Engine) -> None:
    project.add_command("die", "kill -9 $$")

    result = engine.call_sync("die")

    assert result.error is not None
    assert (result.error.code, result.exit_code) == ("exit_code", 137)


def test_a_long_standard_error_is_cut_to_its_end(project: Project, engine: Engine) -> None:
    project.add_command("fail", "yes line | head -n 5000 >&2; printf end >&2; exit 1")

    result = engine.call_sync("fail")

    assert result.error is not None
    whole = "line\n" * 5000 + "end"
    assert result.error.details == {"exit_code": 1, "stderr": whole[-4000:], "stdout": ""}


def test_a_secret_that_lies_across_the_cut_of_standard_error_does_not_show_its_end(
    project: Project, engine: Engine
) -> None:
    secret = "sk-live-4711-abcdef"
    project.environ["API_KEY"] = secret
    project.add_command(
        "fail",
        """
        printf '%s' "$API_KEY" >&2
        head -c 3990 /dev/zero | tr '\\0' x >&2
        head -c 3990 /dev/zero | tr '\\0' x
        printf '%s' "$API_KEY"
        exit 1
        """,
        permissions=needs("API_KEY"),
    )

    result = engine.call_sync("fail")

    assert result.error is not None
    assert result.error.details == {
        "exit_code": 1,
        "stderr": "[secret]" + "x" * 3990,
        "stdout": "x" * 3990 + "[secret]",
    }


@pytest.mark.parametrize("entrypoint", ["./beside", "./folder/real", "./chain"])
def test_a_program_may_be_named_through_links(project: Project, engine: Engine, entrypoint: str) -> None:
    project.write("programs/real", "#!/bin/sh\necho here\n", executable=True)
    for link, target in {"beside": "programs/real", "folder": "programs", "chain": "beside"}.items():
        (project.root / link).symlink_to(target)
    project.add_tool("linked", manifest("linked", "command", {"entrypoint": entrypoint}))

    assert bare(engine.call_sync("linked")) == success("linked", "here\n", exit_code=0)


def test_standard_input_is_empty(project: Project, engine: Engine) -> None:
    project.add_command("read", "cat; echo end")

    assert bare(engine.call_sync("read")) == success("read", "end\n", exit_code=0)


def test_the_environment_is_path_language_own_folders_and_declared_secrets_and_nothing_else(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.environ |= {
        "API_KEY": "value-of-the-key", "OTHER_KEY": "other", "LANG": "de_DE.UTF-8", "LC_ALL": "C", "TZ": "UTC",
        "LD_PRELOAD": "", "PYTHONPATH": "/nowhere",
    }  # fmt: skip
    monkeypatch.setenv("LEAKED", "from the process that runs Glee")
    project.add_tool(
        "env",
        manifest("env", "command", {"entrypoint": "/usr/bin/env"}, permissions=needs("API_KEY")),
    )

    with project.open() as engine:
        lines = sorted(str(engine.call_sync("env").output).splitlines())

    assert lines == [
        "API_KEY=[secret]",
        "HOME=/run/home",
        "LANG=de_DE.UTF-8",
        "LC_ALL=C",
        f"PATH={project.environ['PATH']}",
        "TMPDIR=/tmp",
        "TZ=UTC",
    ]


def test_without_a_locale_the_language_is_plain_utf8(project: Project, engine: Engine) -> None:
    add_program(project, "env", "/usr/bin/env")

    names = {line.partition("=")[0] for line in str(engine.call_sync("env").output).splitlines()}
    assert names == {"HOME", "LANG", "PATH", "TMPDIR"}
    assert "LANG=C.UTF-8" in str(engine.call_sync("env").output)


def test_an_optional_secret_that_is_not_set_is_not_in_the_environment(project: Project, engine: Engine) -> None:
    permissions = {"secrets": {"API_KEY": {"type": "string", "required": False}}}
    project.add_tool("env", manifest("env", "command", {"entrypoint": "/usr/bin/env"}, permissions=permissions))

    assert "API_KEY" not in str(engine.call_sync("env").output)


def test_a_relative_path_in_PATH_does_not_count(project: Project) -> None:
    project.environ["PATH"] = ".:bin:/usr/bin:/bin"
    project.write("ls", "#!/bin/sh\necho taken over\n", executable=True)
    project.write("bin/ls", "#!/bin/sh\necho taken over\n", executable=True)
    add_program(project, "list", "ls", args=["/dev/null"])

    with project.open() as engine:
        assert engine.call_sync("list").output == "/dev/null\n"


def test_the_program_runs_in_cwd_from_the_project_root(project: Project, engine: Engine, tmp_path: Path) -> None:
    (project.root / "deep/er").mkdir(parents=True)
    (tmp_path / "absolute").mkdir()
    add_program(project, "root", "/bin/pwd")
    add_program(project, "deep", "/bin/pwd", cwd="deep/er")
    add_program(project, "absolute", "/bin/pwd", cwd=str(tmp_path / "absolute"))

    outputs = [str(engine.call_sync(name).output).strip() for name in ("root", "deep", "absolute")]

    assert outputs == [str(project.root), str(project.root / "deep/er"), str(tmp_path / "absolute")]


def test_a_relative_entrypoint_is_taken_from_the_project_root_whatever_cwd_says(
    project: Project, engine: Engine, tmp_path: Path
) -> None:
    project.write("scripts/here.sh", "#!/bin/sh\npwd\n", executable=True)
    (project.root / "deep").mkdir()
    add_program(project, "dotted", "./scripts/here.sh", cwd="deep")
    add_program(project, "plain", "scripts/here.sh", cwd="deep")
    add_program(project, "absolute", str(project.root / "scripts/here.sh"), cwd="deep")

    outputs = [engine.call_sync(name).output for name in ("dotted", "plain", "absolute")]

    assert outputs == [f"{project.root}/deep\n"] * 3


def test_a_bare_name_is_looked_for_on_PATH_before_the_project_root(project: Project, engine: Engine) -> None:
    project.write("echo", "#!/bin/sh\necho from the project\n", executable=True)
    project.write("only-here", "#!/bin/sh\necho from the project\n", executable=True)
    add_program(project, "known", "echo", args=["from PATH"])
    add_program(project, "own", "only-here")

    assert [engine.call_sync(name).output for name in ("known", "own")] == ["from PATH\n", "from the project\n"]


@pytest.mark.parametrize("entrypoint", ["./missing", "no-such-program", "/no/such/program", "./folder", "./data.txt"])
def test_a_program_that_is_not_there_or_may_not_be_executed_is_named(
    project: Project, engine: Engine, entrypoint: str
) -> None:
    (project.root / "folder").mkdir()
    project.write("data.txt", "#!/bin/sh\n")
    add_program(project, "broken", entrypoint)

    assert bare(engine.call_sync("broken")) == failure(
        "broken",
        "unavailable",
        f"the program {entrypoint} is not there or may not be executed; run `glee lint`",
    )


def test_a_program_whose_interpreter_is_missing_is_named(project: Project, engine: Engine) -> None:
    path = project.write("bad.sh", "#!/no/such/interpreter\n", executable=True)
    add_program(project, "bad", "./bad.sh")

    assert bare(engine.call_sync("bad")) == failure(
        "bad",
        "unavailable",
        f"the program {path} does not exist, or the interpreter its first line names does not",
    )


def test_a_file_that_is_no_program_is_named(project: Project, engine: Engine) -> None:
    path = project.write("data", b"\x00\x01\x02", executable=True)
    add_program(project, "bad", "./data")

    assert bare(engine.call_sync("bad")) == failure(
        "bad", "unavailable", f"the program {path} cannot be started: Exec format error"
    )


def test_a_folder_to_run_in_that_is_missing_is_named(project: Project, engine: Engine) -> None:
    add_program(project, "lost", "/bin/pwd", cwd="no/such/folder")

    assert bare(engine.call_sync("lost")) == failure(
        "lost",
        "unavailable",
        f"the folder {project.root}/no/such/folder does not exist; make it, or change cwd in the manifest",
    )


def test_output_that_is_not_text_is_kept_whole_as_an_artifact(project: Project, engine: Engine) -> None:
    project.add_command("bytes", r"printf 'a\000b\377\376c'")

    result = engine.call_sync("bytes")

    handle = f"artifact:{result.call_id}.bin"
    assert bare(result) == success(
        "bytes",
        "a\0b\ufffd\ufffdc",
        exit_code=0,
        warnings=(
            "the output is not UTF-8 text; what could not be shown is replaced by \ufffd",
            f"the bytes as they came are {handle}",
        ),
        artifacts=(Artifact(handle=handle, media_type="application/octet-stream", size=6),),
    )
    assert engine.read_artifact(handle) == b"a\0b\xff\xfec"


def test_output_over_the_limit_of_characters_is_cut_and_kept_whole(project: Project) -> None:
    project.configure("limits: {output_chars: 1000}")
    whole = "é" * 5000
    project.write("text", whole)
    add_program(project, "long", "/bin/cat", args=["text"])

    with project.open() as engine:
        result = engine.call_sync("long")
        handle = f"artifact:{result.call_id}.txt"
        kept = engine.read_artifact(handle)

    assert bare(result) == success(
        "long",
        f"{'é' * 1000}\n[output cut: 4,000 of 5,000 characters hidden; the whole is {handle}]",
        exit_code=0,
        artifacts=(Artifact(handle=handle, media_type="text/plain; charset=utf-8", size=10_000),),
    )
    assert kept.decode() == whole


def test_json_over_the_limit_of_characters_stays_json(project: Project) -> None:
    project.configure("limits: {output_chars: 2000}")
    whole = [{"n": number} for number in range(5000)]
    project.write("data.json", json.dumps(whole))
    add_program(project, "long", "/bin/cat", args=["data.json"], stdout={"format": "json"})

    with project.open() as engine:
        result = engine.call_sync("long")
        kept = engine.read_artifact(result.artifacts[0])

    assert result.output["preview"][:2] == [{"n": 0}, {"n": 1}]
    assert result.output["artifact"] == f"artifact:{result.call_id}.json"
    assert json.loads(kept) == whole


@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_program_that_never_stops_writing_is_ended(project: Project, stream: str) -> None:
    project.configure("limits: {output_bytes: 100000}")
    mark = new_mark()
    project.add_command("flood", f"sleep {mark} & exec yes {mark} >&{stream}")

    with project.open() as engine:
        result = engine.call_sync("flood")

    assert bare(result) == failure(
        "flood",
        "too_large",
        "the tool wrote more than 100,000 bytes and was ended; make it write less, "
        "or raise limits.output_bytes in your config",
        {"limit": 100_000},
    )
    wait_gone(mark)
    assert find_processes(mark) == []


def test_as_much_output_as_the_limit_allows_is_no_problem(project: Project) -> None:
    project.configure("limits: {output_bytes: 90000}")
    add_program(project, "fill", "/usr/bin/head", args=["-c", "90000", "/dev/zero"])

    with project.open() as engine:
        assert bare(engine.call_sync("fill")) == success("fill", "\0" * 90_000, exit_code=0)


def test_a_program_may_close_its_output_and_go_on(project: Project, engine: Engine) -> None:
    project.add_command("quiet", "echo said; exec >&- 2>&-; cat /dev/null; exit 4", command={"exit_codes_ok": [4]})

    assert bare(engine.call_sync("quiet")) == success("quiet", "said\n", exit_code=4)


def test_the_same_call_awaited_gives_the_same_result(project: Project, engine: Engine) -> None:
    project.add_command("both", "echo out; head -c 90000 /dev/zero; echo err >&2")

    awaited = asyncio.run(engine.call("both"))

    assert bare(awaited) == success("both", "out\n" + "\0" * 90_000, exit_code=0)
    assert bare(awaited) == bare(engine.call_sync("both"))
