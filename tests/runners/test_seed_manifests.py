"""The four manifests of the specification, unchanged: their servers, script and module stood up for real."""

from __future__ import annotations

import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from seed_manifests import NAMES, load_seed_manifests
from servers import Authority, Server
from tool_parts import bare, failure, success

from glee.testing import AnsweringPerson, Project

FRAMEWORKS = [
    {"title": "FastAPI - Modern Python Framework", "url": "https://fastapi.tiangolo.com", "description": "Fast."},
    {"title": "Django - The Web Framework for Perfectionists", "url": "https://djangoproject.com", "description": "D."},
]
NEWS = [{"title": f"News {n}", "url": f"https://news.example/{n}", "description": "..."} for n in range(10)]
BRAVE_API_KEY = "BSA-brave-key-4711"
SLACK_BOT_TOKEN = "xoxb-slack-token-4711"


def answer_search(handler: BaseHTTPRequestHandler) -> None:
    """Brave's search, as far as the manifest speaks to it."""
    if handler.headers["X-Subscription-Token"] != BRAVE_API_KEY:
        return send(handler, 401, {"error": "who are you?"})
    query = parse_qs(urlsplit(handler.path).query)
    found = NEWS if "freshness" in query else FRAMEWORKS
    results = [{**item, "age": "1 day", "profile": {"name": "x"}} for item in found[: int(query["count"][0])]]
    return send(handler, 200, {"query": {"original": query["q"][0]}, "web": {"type": "search", "results": results}})


def send(handler: BaseHTTPRequestHandler, status: int, value: Any) -> None:
    body = json.dumps(value).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json; charset=utf-8")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


@pytest.fixture
def seed(project: Project, secure_server: Server, authority: Authority) -> Project:
    """A project with the four tools and all that they name."""
    for name, text in load_seed_manifests().items():
        project.add_tool(name, text)
    project.environ |= {"BRAVE_API_KEY": BRAVE_API_KEY, "SLACK_BOT_TOKEN": SLACK_BOT_TOKEN}
    project.configure_person(
        f"""
        egress:
          resolve:
            api.search.brave.com: {secure_server.address}
            slack.com: {secure_server.address}
          ca_file: {authority.file}
        """
    )
    secure_server.answer_with("/res/v1/web/search", answer_search)
    secure_server.answer_with(
        "/api/chat.postMessage",
        lambda handler: send(
            handler,
            200,
            {
                "ok": True,
                "ts": "1234567890.789012"
                if "thread_ts" in json.loads(secure_server.last.body)
                else "1234567890.123456",
            },
        ),
    )
    project.write("src/one.py", "# TODO: one\npass\n")
    project.write("src/two.py", "# TODO: two\n")
    project.write(
        "scripts/scan_todos.sh",
        """\
        #!/bin/sh
        echo "Scan complete."
        echo "Matches found: $(grep -r TODO --include='*.py' -- "$1/src" | wc -l)"
        """,
        executable=True,
    )
    project.write(
        "tools/repo_stats.py",
        """
        from pathlib import Path

        def run(path):
            files = list(Path(path, "many").glob("*.txt"))
            return {"files": len(files), "loc": sum(len(file.read_text().splitlines()) for file in files)}
        """,
    )
    for number in range(120):
        project.write(f"many/{number}.txt", "line\n" * (127 if number else 15342 - 119 * 127))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(project.root / ".venv")], check=True)
    return project


def test_a_search_runs_as_the_manifest_says(seed: Project, secure_server: Server) -> None:
    person = AnsweringPerson()
    with seed.open(approver=person) as engine:
        result = engine.call_sync("web_search", {"query": "best python web frameworks 2025", "count": 5})

    assert bare(result) == success("web_search", FRAMEWORKS)
    assert [question.reason for question in person.questions] == ["Accesses external API with secrets"]
    request = secure_server.last
    assert (request.method, request.target) == (
        "GET",
        "/res/v1/web/search?q=best%20python%20web%20frameworks%202025&count=5",
    )
    assert [request.header(name) for name in ("host", "accept", "x-subscription-token")] == [
        "api.search.brave.com",
        "application/json",
        BRAVE_API_KEY,
    ]


def test_the_default_count_and_the_freshness_are_sent(seed: Project, secure_server: Server) -> None:
    with seed.open(approver=AnsweringPerson()) as engine:
        result = engine.call_sync("web_search", {"query": "artificial intelligence news", "freshness": "week"})

    assert bare(result) == success("web_search", NEWS)
    assert secure_server.last.target == (
        "/res/v1/web/search?q=artificial%20intelligence%20news&count=10&freshness=week"
    )


def test_a_message_is_sent_without_the_thread_that_was_not_given(seed: Project, secure_server: Server) -> None:
    with seed.open(approver=AnsweringPerson()) as engine:
        result = engine.call_sync("slack_notify", {"channel": "general", "message": "done ☃"})

    assert bare(result) == success("slack_notify", {"ok": True, "ts": "1234567890.123456"})
    request = secure_server.last
    assert (request.method, request.target, json.loads(request.body)) == (
        "POST",
        "/api/chat.postMessage",
        {"channel": "general", "text": "done ☃"},
    )
    assert [request.header(name) for name in ("host", "authorization", "content-type")] == [
        "slack.com",
        f"Bearer {SLACK_BOT_TOKEN}",
        "application/json",
    ]


def test_a_reply_carries_its_thread(seed: Project, secure_server: Server) -> None:
    with seed.open(approver=AnsweringPerson()) as engine:
        result = engine.call_sync("slack_notify", {"channel": "C1", "message": "m", "thread_ts": "1234567890.123456"})

    assert bare(result) == success("slack_notify", {"ok": True, "ts": "1234567890.789012"})
    assert json.loads(secure_server.last.body) == {"channel": "C1", "text": "m", "thread_ts": "1234567890.123456"}


def test_the_repository_is_scanned_with_the_default_path(seed: Project) -> None:
    with seed.open() as engine:
        assert bare(engine.call_sync("repo_scan")) == success(
            "repo_scan", "Scan complete.\nMatches found: 2\n", exit_code=0
        )


def test_the_statistics_come_from_the_venvs_interpreter(seed: Project) -> None:
    with seed.open() as engine:
        assert bare(engine.call_sync("repo_stats", {"path": "."})) == success(
            "repo_stats", {"files": 120, "loc": 15342}
        )


@pytest.mark.parametrize("name", ["web_search", "slack_notify"])
def test_nothing_is_sent_without_a_persons_yes(seed: Project, secure_server: Server, name: str) -> None:
    arguments = {"query": "q"} if name == "web_search" else {"channel": "c", "message": "m"}
    with seed.open() as engine:
        result = engine.call_sync(name, arguments)

    assert result.error is not None
    assert (result.error.code, secure_server.connections) == ("approval_required", 0)


def test_nothing_is_sent_without_the_secret(seed: Project, secure_server: Server) -> None:
    del seed.environ["BRAVE_API_KEY"]
    with seed.open(approver=AnsweringPerson()) as engine:
        result = engine.call_sync("web_search", {"query": "q"})

    assert bare(result) == failure(
        "web_search",
        "secret_missing",
        "the secret BRAVE_API_KEY is not set; set the environment variable BRAVE_API_KEY and call again",
        {"missing": ["BRAVE_API_KEY"]},
    )
    assert secure_server.connections == 0


def test_the_four_load_without_a_problem_and_their_examples_pass(seed: Project) -> None:
    main = "from glee.doors.cli import main; main()"

    def glee(*arguments: str) -> tuple[int, Any]:
        done = subprocess.run(
            [sys.executable, "-c", main, *arguments, "--json"],
            cwd=seed.root,
            env=seed.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        return done.returncode, json.loads(done.stdout)

    linted, _ = glee("lint")
    tested, verdicts = glee("test", "--yes")

    assert (linted, tested) == (0, 0)
    assert sorted((verdict["tool"], verdict["ok"]) for verdict in verdicts) == sorted(
        (name, True) for name in (*NAMES, "web_search", "slack_notify")
    )


def test_no_secret_is_written_anywhere(seed: Project) -> None:
    with seed.open(approver=AnsweringPerson()) as engine:
        engine.call_sync("web_search", {"query": BRAVE_API_KEY})
        engine.call_sync("slack_notify", {"channel": "c", "message": f"my token is {SLACK_BOT_TOKEN}"})

    written = "\n".join(seed.audit_lines)
    assert (BRAVE_API_KEY in written, SLACK_BOT_TOKEN in written, "[secret]" in written) == (False, False, True)
