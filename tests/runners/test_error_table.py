"""The error table of the specification, one test for each row."""

from __future__ import annotations

import socket

from process_watch import new_mark, wait_gone
from servers import Server
from tool_parts import add_http, bare, failure, needs, takes

from glee.engine import Engine
from glee.testing import WRITES, Project


def test_input_validation_fails_returns_the_schema_violations_and_the_tool_is_not_executed(
    project: Project, engine: Engine
) -> None:
    inputs = takes(count="integer", word="string")
    inputs["schema"]["required"] = ["word"]
    project.add_command("work", "touch ran", inputs=inputs, permissions=WRITES)

    result = engine.call_sync("work", {"count": "many", "other": 1})

    assert result.error is not None
    assert (result.ok, result.error.code) == (False, "invalid_input")
    violations = result.error.details["violations"]
    assert {(violation["pointer"], violation["rule"]) for violation in violations} == {
        ("/count", "type"),
        ("", "required"),
        ("", "additionalProperties"),
    }
    assert all(violation["message"] and violation["hint"] for violation in violations)
    assert not (project.root / "ran").exists()


def test_http_request_fails_with_a_status_returns_the_status_code_and_message(
    project: Project, engine: Engine, server: Server
) -> None:
    server.answer("/", {"message": "come back later"}, status=503)
    add_http(project, "ask", f"{server.url}/")

    assert bare(engine.call_sync("ask")) == failure(
        "ask",
        "http_status",
        f"127.0.0.1:{server.port} answered 503 Service Unavailable",
        {"status": 503, "body": '{"message": "come back later"}'},
    )


def test_http_request_fails_on_the_network_returns_a_message_and_no_status(project: Project, engine: Engine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        host = f"127.0.0.1:{taken.getsockname()[1]}"
    add_http(project, "ask", f"http://{host}/")

    assert bare(engine.call_sync("ask")) == failure(
        "ask",
        "network",
        f"the request to {host} failed: All connection attempts failed; check the host and the network",
        {"host": host, "status": None},
    )


def test_http_request_times_out_returns_a_timeout(project: Project, engine: Engine, server: Server) -> None:
    server.hang("/")
    add_http(project, "ask", f"{server.url}/", http={"timeout_ms": 100})

    result = engine.call_sync("ask")

    assert result.error is not None
    assert (result.error.code, result.error.details["timeout_ms"]) == ("timeout", 100)


def test_command_exits_with_code_not_in_exit_codes_ok_returns_the_exit_code_and_stderr(
    project: Project, engine: Engine
) -> None:
    project.add_command("work", "echo 'it broke' >&2; exit 4", command={"exit_codes_ok": [0, 1]})

    assert bare(engine.call_sync("work")) == failure(
        "work",
        "exit_code",
        "./scripts/work.sh ended with exit code 4: it broke",
        {"exit_code": 4, "stderr": "it broke", "stdout": ""},
        exit_code=4,
    )


def test_python_function_raises_exception_returns_its_type_and_message(project: Project, engine: Engine) -> None:
    project.add_python("work", "def run():\n    raise KeyError('missing')\n")

    assert bare(engine.call_sync("work")) == failure(
        "work",
        "exception",
        "run raised KeyError: 'missing'",
        {"type": "KeyError", "message": "'missing'"},
    )


def test_timeout_exceeded_kills_the_process_and_returns_a_timeout_error(project: Project, engine: Engine) -> None:
    mark = new_mark()
    project.add_command("work", f"sleep {mark}", command={"timeout_ms": 200})

    assert bare(engine.call_sync("work")) == failure(
        "work",
        "timeout",
        "the tool ran longer than 0.2 s and was ended; give it less to do, or raise timeout_ms",
        {"timeout_ms": 200},
    )
    wait_gone(mark)


def test_output_validation_fails_returns_a_warning_and_the_output(project: Project, engine: Engine) -> None:
    project.add_command(
        "work", """echo '{"n": "one"}'""",
        outputs={"format": "json", "schema": {"properties": {"n": {"type": "integer"}}}},
    )  # fmt: skip

    result = engine.call_sync("work")

    assert (result.ok, result.output, result.error, len(result.warnings)) == (True, {"n": "one"}, None, 1)
    assert result.warnings[0].startswith("the output does not fit outputs.schema: /n: ")


def test_secret_not_found_in_environment_returns_an_error_and_the_tool_is_not_executed(
    project: Project, engine: Engine
) -> None:
    project.environ["SET"] = "yes"
    project.add_command("work", "touch ran", permissions={**WRITES, **needs("SET", "UNSET")})

    assert bare(engine.call_sync("work")) == failure(
        "work",
        "secret_missing",
        "the secret UNSET is not set; set the environment variable UNSET and call again",
        {"missing": ["UNSET"]},
    )
    assert not (project.root / "ran").exists()
