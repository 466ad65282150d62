"""Held runs, at `Engine.call` in a running process, and the bare start of the same program beside them."""

from __future__ import annotations

import itertools
import select
import subprocess
import tempfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from bench.contestants import Subject
from bench.docker import IMAGE

_WARM_UP: Final = 20
_HELLO: Final = "def run():\n    return 'hello'\n"
_FETCH: Final = """
import urllib.request


def run():
    return urllib.request.urlopen("http://one.example/").read().decode()
"""


def open_subject(way: str, *options: str) -> Subject:
    """`sync-bare`; else `sync` with what is called: true, python, cold, cold-python, hosts, container; and by what."""
    if way == "sync-bare":
        call = lambda: subprocess.run(["/bin/true"], capture_output=True)  # noqa: E731
        return Subject(call=call, read=_code, answer=0, warm_up=0)
    what, launcher = options
    return _held(what, launcher)


def _code(done: subprocess.CompletedProcess[bytes]) -> int:
    return done.returncode


def _held(what: str, launcher: str) -> Subject:
    from glee.egress.proxy import Proxy
    from glee.holding import compose_jails
    from glee.runners.cells import JailCells
    from glee.testing import Project, manifest

    folder = tempfile.TemporaryDirectory(prefix="glee-bench-")
    project = Project(Path(folder.name))
    server = _serve() if what == "hosts" else None
    if server is not None:
        host, port = server.server_address[:2]
        project.configure_person(f"egress: {{resolve: {{one.example: '{host!s}:{port}'}}}}")
        project.add_python("hosts", _FETCH, permissions={"network": {"hosts": ["one.example"]}})
    if what == "container":
        project.environ["DOCKER_HOST"] = launcher
        project.configure_person(f"sandbox: {{mode: container, engine: docker, image: '{IMAGE}'}}")
    project.add_tool("true", manifest("true", "command", {"entrypoint": "/bin/true"}))
    project.add_python("python", _HELLO)
    engine = project.open()
    if launcher in ("c", "python"):
        runners: Any = engine._parts.runners
        jails = compose_jails(runners._settings, native=launcher == "c")
        runners._cells = JailCells(jails, runners._settings.search_path, Proxy)
    names = itertools.count()

    def call_cold() -> Any:
        """A tool that was never called, with a jail that no other has."""
        name = f"new{next(names)}"
        project.write(f"{name}/x", "")
        grants = {"fs": {"read": [name]}}
        if what == "cold":
            project.add_tool(name, manifest(name, "command", {"entrypoint": "/bin/true"}, permissions=grants))
        else:
            project.add_python(name, _HELLO, permissions=grants)
        return engine.call_sync(name)

    def close() -> None:
        engine.close()
        if server is not None:
            server.shutdown()
            server.server_close()
        folder.cleanup()

    name = "true" if what == "container" else what
    call: Callable[[], Any] = call_cold if what.startswith("cold") else (lambda: engine.call_sync(name))
    for _ in range(_WARM_UP if what in ("true", "python") else 1):
        call()
    if what == "python":
        _wait_warm(engine)
    return Subject(call=call, read=lambda result: result.ok, answer=True, warm_up=0, close=close)


def _wait_warm(engine: Any) -> None:
    for waiting in engine._parts.runners["python"]._templates._idle.values():
        poll = select.poll()
        poll.register(waiting[0].control, select.POLLIN)
        poll.poll(30_000)


class _Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: object) -> None:
        return


def _serve() -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hello)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
