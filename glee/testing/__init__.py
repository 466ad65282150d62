"""Fakes for us and for users: real projects in a temporary folder, and a person who answers."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from glee.approval import Answer, Question
from glee.definitions.event import Event

if TYPE_CHECKING:
    from glee.engine import Engine

READS: Final = {"fs": {"read": ["."]}}
"""`permissions` of a tool that may read the whole project."""
WRITES: Final = {"fs": {"write": ["."]}}
"""`permissions` of a tool that may also write there."""


class AnsweringPerson:
    """Answers every question the same way and remembers what was asked."""

    answers_in_place = True

    def __init__(self, answer: Answer = "yes") -> None:
        self.answer = answer
        self.questions: list[Question] = []

    async def ask(self, question: Question) -> Answer:
        self.questions.append(question)
        return self.answer


class Watcher:
    """A listener that keeps what it heard."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    @property
    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


class Project:
    """A project on disk, with its own state, cache and config folders and its own environment."""

    def __init__(self, base: Path) -> None:
        self.root = base / "project"
        self.tools = self.root / ".glee" / "tools"
        self.tools.mkdir(parents=True)
        self.person_config = base / "config" / "glee" / "config.yml"
        self.environ: dict[str, str] = {
            "HOME": str(base / "home"),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "XDG_CONFIG_HOME": str(base / "config"),
            "XDG_STATE_HOME": str(base / "state"),
            "XDG_CACHE_HOME": str(base / "cache"),
        }

    def write(self, path: str, text: str | bytes, *, executable: bool = False) -> Path:
        """A file of the project, its text dedented."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, bytes):
            file.write_bytes(text)
        else:
            file.write_text(textwrap.dedent(text))
        if executable:
            file.chmod(0o755)
        return file

    def add_tool(self, name: str, manifest: str | Mapping[str, Any]) -> Path:
        """`.glee/tools/<name>/tool.yml`, from YAML or from a mapping."""
        if not isinstance(manifest, str):
            import json

            manifest = json.dumps(manifest, indent=2, ensure_ascii=False)
        return self.write(f".glee/tools/{name}/tool.yml", manifest)

    def add_command(self, name: str, script: str, **fields: Any) -> Path:
        """A command tool whose program is a shell script; `fields` replace parts of its manifest."""
        self.write(f"scripts/{name}.sh", "#!/bin/sh\n" + textwrap.dedent(script), executable=True)
        command = {"entrypoint": f"./scripts/{name}.sh", **fields.pop("command", {})}
        return self.add_tool(name, manifest(name, "command", command, **fields))

    def add_python(self, name: str, source: str, **fields: Any) -> Path:
        """A Python tool whose module lies in the project; its function is `run`."""
        self.write(f"tools/{name}.py", source)
        python = {"module": f"tools.{name}", "function": "run", **fields.pop("python", {})}
        return self.add_tool(name, manifest(name, "python", python, **fields))

    def configure(self, text: str) -> None:
        """The project's own config."""
        self.write(".glee/config.yml", text)

    def configure_person(self, text: str) -> None:
        """The person's config, which may widen."""
        self.person_config.parent.mkdir(parents=True, exist_ok=True)
        self.person_config.write_text(textwrap.dedent(text))

    def open(self, **options: Any) -> Engine:
        """An engine that sees this project and this environment alone."""
        from glee.compose import open_engine

        return open_engine(self.root, environ=self.environ, **options)

    @property
    def audit_lines(self) -> list[str]:
        log = self.root / ".glee" / "audit" / "tools.log"
        return log.read_text().splitlines() if log.exists() else []


def manifest(name: str, kind: str, block: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """The smallest manifest that lints, with fields replaced."""
    base: dict[str, Any] = {
        "name": name,
        "description": f"The tool {name}",
        "kind": kind,
        "inputs": {"schema": {"type": "object", "properties": {}}},
        "exec": {kind: dict(block)},
    }
    return {**base, **fields}
