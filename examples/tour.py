"""`make run`: a sample project with one tool of each kind, listed, linted, tested and called.

The HTTP tool asks api.github.com. So that the tour also works without a network, a server on loopback
plays that host: `egress.resolve` in a person's config maps the name to it, as it may in yours.
"""

from __future__ import annotations

import json
import os
import shlex
import ssl
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import trustme

GLEE = Path(sys.executable).with_name("glee")


class GitHub(BaseHTTPRequestHandler):
    """Answers the one request the sample tool makes."""

    def do_GET(self) -> None:
        name = self.path.removeprefix("/repos/")
        body = json.dumps({"full_name": name, "description": "played on loopback", "stargazers_count": 1}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


def play_github(folder: Path) -> str:
    """Starts the server; returns the person's config that leads to it."""
    authority = trustme.CA()
    certificates = folder / "ca.pem"
    authority.cert_pem.write_to_path(str(certificates))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("api.github.com").configure_cert(context)
    server = ThreadingHTTPServer(("127.0.0.1", 0), GitHub)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    return f"egress:\n  resolve:\n    api.github.com: 127.0.0.1:{port}\n  ca_file: {certificates}\n"


def show(project: Path, environment: dict[str, str], *words: str) -> None:
    line = f"$ {shlex.join(['glee', *words])}"
    print(f"\n\033[1m{line}\033[0m" if sys.stdout.isatty() else f"\n{line}")
    sys.stdout.flush()
    subprocess.run([GLEE, *words], cwd=project, env=environment, check=True)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="glee-tour-") as name:
        base = Path(name)
        config = base / "config" / "glee" / "config.yml"
        config.parent.mkdir(parents=True)
        config.write_text(play_github(base))
        environment = {
            **os.environ,
            **{f"XDG_{kind}_HOME": str(base / kind.lower()) for kind in ("CONFIG", "STATE", "CACHE")},
        }
        project = base / "demo"
        project.mkdir()
        show(project, environment, "init")
        show(project, environment, "list")
        show(project, environment, "lint")
        show(project, environment, "test")
        show(project, environment, "run", "find_text", "text=limits", "path=.glee/config.yml")
        show(project, environment, "run", "count_words", "text=to be or not to be", "top=2")
        show(project, environment, "run", "github_repo", "owner=python", "repo=cpython", "--json")
        print("\nEvery call left two lines in .glee/audit/tools.log, the last of them:")
        print((project / ".glee" / "audit" / "tools.log").read_text().splitlines()[-1])
        print("\nMake a project of your own: .venv/bin/glee init demo. The docs begin at docs/quickstart.md.")


if __name__ == "__main__":
    main()
