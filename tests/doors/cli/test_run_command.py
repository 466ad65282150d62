"""One call from the terminal: its result, its errors, its exit status."""

from __future__ import annotations

import http.server
import signal
import threading
from collections.abc import Callable, Iterator

import pytest
from process_watch import new_mark, wait_gone, wait_there
from shell import Glee, inputs

from glee.doors.cli.failures import EXIT_STATUS
from glee.errors import all_codes
from glee.testing import WRITES

KEYS = ["ok", "tool", "call_id", "output", "error", "warnings", "artifacts", "exit_code", "duration_ms"]
SLEEP = new_mark()


class _Refusing(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(418)
        self.end_headers()
        self.wfile.write(b"no coffee here")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}/"
        listening.shutdown()


@pytest.fixture(scope="module")
def glee(make_glee: Callable[[], Glee], server: str) -> Glee:
    made = make_glee()
    add = made.project
    add.add_command(
        "hello",
        'echo "hello $1"',
        command={"args": ["${name}"]},
        inputs=inputs(name={"type": "string", "default": "world"}),
    )
    add.add_command("repo.scan", "pwd")
    add.add_command(
        "numbers",
        "echo '[1, 2]'",
        command={"stdout": {"format": "json"}},
        outputs={"format": "json", "schema": {"type": "object"}},
    )
    add.add_command("fails", "echo checked; echo first >&2; echo 'the last words' >&2; exit 3")
    add.add_command("slow", f"exec sleep {SLEEP}")
    add.add_command("asks", "echo done", approval={"required": True, "reason": "it cannot be undone"})
    add.add_command("count", "echo x >> runs; wc -l < runs", permissions=WRITES)
    add.add_command("needs_secret", 'echo "$TOKEN"', permissions={"secrets": {"TOKEN": {"type": "string"}}})
    add.add_command("gone", "true")
    (made.root / "scripts/gone.sh").unlink()
    add.add_command("floods", "yes")
    add.add_python("raises", "def run():\n    raise ValueError('not today')\n")
    add.add_command("denied", "true")
    add.add_tool("broken", "name: broken\n")
    add.add_tool("refused", _http("refused", server))
    add.add_tool("unreachable", _http("unreachable", "http://127.0.0.1:1/"))
    add.configure("tools:\n  deny: [denied]\nlimits:\n  output_bytes: 100000\n")
    return made


def _http(name: str, url: str) -> dict[str, object]:
    return {
        "name": name,
        "description": "Ask a server",
        "kind": "http",
        "inputs": inputs(),
        "exec": {"http": {"url": url}},
        "permissions": {"network": True},
    }


def test_text_is_printed_as_it_is(glee: Glee) -> None:
    assert glee("run", "hello", "name=you") == (0, "hello you\n", "")


def test_json_has_exactly_the_keys_of_the_contract(glee: Glee) -> None:
    ran = glee("run", "hello", "--json")

    result = ran.json
    assert list(result) == KEYS
    assert (ran.status, ran.err) == (0, "")
    assert result | {"call_id": "", "duration_ms": 0} == {
        "ok": True,
        "tool": "hello",
        "call_id": "",
        "output": "hello world\n",
        "error": None,
        "warnings": [],
        "artifacts": [],
        "exit_code": 0,
        "duration_ms": 0,
    }


def test_a_warning_goes_to_standard_error_and_the_output_is_still_printed(glee: Glee) -> None:
    ran = glee("run", "numbers")

    assert (ran.status, ran.out) == (0, "[\n  1,\n  2\n]\n")
    assert ran.err.startswith("warning: the output does not fit outputs.schema: ")


def test_the_exit_status_of_every_code_is_known() -> None:
    assert EXIT_STATUS.keys() == all_codes()


@pytest.mark.parametrize(
    ("args", "status", "code"),
    [
        (["helo"], 2, "not_found"),
        (["broken"], 2, "not_found"),
        (["hello", "--vocabulary", "klingon"], 2, "not_found"),
        (["hello", "name:=1"], 2, "invalid_input"),
        (["denied"], 3, "denied"),
        (["asks"], 3, "approval_required"),
        (["needs_secret"], 1, "secret_missing"),
        (["fails"], 1, "exit_code"),
        (["raises"], 1, "exception"),
        (["gone"], 1, "unavailable"),
        (["floods"], 1, "too_large"),
        (["refused"], 1, "http_status"),
        (["unreachable"], 1, "network"),
        (["slow", "--timeout", "0.2"], 124, "timeout"),
        (["hello", "--timeout", "1e-9"], 124, "timeout"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_an_error_has_its_code_in_json_and_its_exit_status(glee: Glee, args: list[str], status: int, code: str) -> None:
    ran = glee("run", "--json", *args)

    result = ran.json
    assert (ran.status, result["ok"], result["output"], result["error"]["code"]) == (status, False, None, code)
    assert list(result) == KEYS
    assert list(result["error"]) == ["code", "message", "details"]


def test_an_error_is_printed_to_standard_error_alone(glee: Glee) -> None:
    assert glee("run", "numbrs") == (2, "", "error: there is no tool numbrs; did you mean numbers?\n")


def test_what_a_failed_command_wrote_is_shown(glee: Glee) -> None:
    assert glee("run", "fails") == (
        1,
        "",
        "error: ./scripts/fails.sh ended with exit code 3: the last words\nchecked\nfirst\nthe last words\n",
    )


def test_the_body_of_a_refusal_is_shown(glee: Glee) -> None:
    ran = glee("run", "refused")

    assert "418" in ran.err.splitlines()[0]
    assert "no coffee here" in ran.err


def test_a_call_that_cannot_be_recorded_does_not_run(make_glee: Callable[[], Glee]) -> None:
    fresh = make_glee()
    fresh.project.add_command("touch", "touch ran", permissions=WRITES)
    fresh.project.write(".glee/audit", "in the way")

    ran = fresh("run", "touch", "--json")

    assert (ran.status, ran.json["error"]["code"]) == (1, "internal")
    assert not (fresh.root / "ran").exists()


def test_yes_answers_the_approval_of_this_one_call(glee: Glee) -> None:
    assert glee("run", "asks", "--yes").out == "done\n"
    refused = glee("run", "asks", stdin="y\n")
    assert (refused.status, refused.out) == (3, "")
    assert "it cannot be undone" in refused.err


def test_one_idempotency_key_means_one_run(glee: Glee) -> None:
    first = glee("run", "count", "--idempotency-key", "k1", "--json").json
    again = glee("run", "count", "--idempotency-key", "k1", "--json").json
    other = glee("run", "count", "--idempotency-key", "k2", "--json").json

    assert (first["output"].strip(), again["output"].strip(), other["output"].strip()) == ("1", "1", "2")
    assert first["call_id"] in again["warnings"][0]


def test_a_tool_runs_in_the_project_root_from_wherever_it_is_called(glee: Glee) -> None:
    deep = glee.root / "a" / "b"
    deep.mkdir(parents=True, exist_ok=True)

    assert glee("run", "repo.scan", cwd=deep).out == f"{glee.root}\n"
    assert glee("run", "repo.scan", "--root", str(deep), cwd=glee.base).out == f"{glee.root}\n"


def test_the_name_a_provider_accepts_calls_the_same_tool(glee: Glee) -> None:
    assert glee("run", "repo_scan", "--json").json["tool"] == "repo.scan"


def test_who_calls_is_in_the_record(glee: Glee) -> None:
    glee("run", "hello", "--agent", "A", "--provider", "P", "--skill", "S", "--session", "N")

    assert "door=cli agent=A provider=P skill=S session=N" in glee.project.audit_lines[-1]


def test_a_secret_comes_from_the_environment_and_is_not_printed(glee: Glee) -> None:
    ran = glee("run", "needs_secret", env={"TOKEN": "tell-nobody-7"})

    assert ran.status == 0
    assert "tell-nobody-7" not in ran.out + ran.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_interrupted_is_cancelled_and_leaves_no_process(glee: Glee, number: signal.Signals) -> None:
    process = glee.start("run", "slow", "--json")
    wait_there(SLEEP)

    process.send_signal(number)
    out, err = process.communicate(timeout=60)

    assert process.returncode == 130, err
    assert b'"code": "cancelled"' in out
    wait_gone(SLEEP)


def test_what_a_tool_says_beside_its_output_is_shown_on_standard_error(make_glee: Callable[[], Glee]) -> None:
    made = make_glee()
    made.project.add_command("speak", "echo result; echo beside >&2")

    assert made("run", "speak") == (0, "result\n", "beside\n")
