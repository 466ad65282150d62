"""`kind: python`: a function of a module, in an interpreter and a process of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from glee.definitions.json_text import decode_json, encode_json
from glee.definitions.placeholder import fill_value
from glee.definitions.tool import PythonExec
from glee.errors import ExitCode, ToolException, Unavailable
from glee.formats.surroundings import find_interpreter
from glee.runners import Outcome, Run
from glee.runners.arguments import with_secrets
from glee.runners.jailed import JailedProcess
from glee.runners.plain import PlainProcess
from glee.runners.processes import SHOWN, Finished, Process, run_process
from glee.runners.templates import Template, TemplateProcess, Templates
from glee.sandbox.jails import Jail, Jails

_CHILD: Final = Path(__file__).resolve().with_name("python_child.py")
_TEMPLATE: Final = _CHILD.with_name("python_template.py")


class PythonRunner:
    def __init__(self, jails: Jails | None, *, search_path: str, locale: dict[str, str]) -> None:
        self._jails = jails
        self._templates = Templates()
        self._environment = {"PATH": search_path, "LANG": "C.UTF-8", **locale}

    async def run(self, run: Run) -> Outcome:
        execution = run.tool.exec
        assert isinstance(execution, PythonExec)
        interpreter = find_interpreter(execution, run.root)
        if interpreter is None:
            raise Unavailable(
                f"there is no interpreter at {execution.venv}/bin/python; `glee lint` says how to make it"
            )
        template = self._find_template(run, execution, interpreter)
        process = self._make_process(run, execution, interpreter, template)
        run.held(process.isolation)
        request = _in_memory(encode_json(_request(run, execution)))
        try:
            finished = await run_process(
                process,
                _command(interpreter),
                cwd=run.root / execution.cwd,
                env={**self._environment, **run.secrets},
                timeout=run.timeout,
                output_bytes=run.output_bytes,
                redactor=run.redactor,
                stdin=request,
                channel=True,
            )
        finally:
            os.close(request)
            if template is not None:
                template.prepare()
        return _outcome(run, execution, finished)

    def _make_process(self, run: Run, execution: PythonExec, interpreter: Path, template: _Warm | None) -> Process:
        if self._jails is None:
            return PlainProcess()
        waiting = template.take() if template is not None else None
        if waiting is not None:
            return TemplateProcess(waiting, self._templates)
        return JailedProcess(self._get_jail(self._jails, run, execution, interpreter))

    def _get_jail(
        self, jails: Jails, run: Run, execution: PythonExec, interpreter: Path, *, forks: bool = False
    ) -> Jail:
        needs = {_CHILD, *((_TEMPLATE,) if forks else ()), *_find_package(run, execution)}
        return jails.get(run.tool, interpreter, cwd=run.root / execution.cwd, needs=needs, forks=forks)

    def _find_template(self, run: Run, execution: PythonExec, interpreter: Path) -> _Warm | None:
        """None for a tool with secrets: a template would have imported its module without them, or for all calls."""
        if self._jails is None or run.tool.permissions.secrets or not self._jails.abilities().can_fork:
            return None
        jail = self._get_jail(self._jails, run, execution, interpreter, forks=True)
        request = {"module": execution.module, "function": execution.function, "path": _search_folders(run, execution)}
        return _Warm(self._templates, jail, _command(interpreter), self._environment, request)

    def close(self) -> None:
        self._templates.close()


class _Warm(Struct, frozen=True):
    """Where the templates of one tool are, and how to start one."""

    templates: Templates
    jail: Jail
    argv: list[str]
    env: dict[str, str]
    request: dict[str, Any]

    def take(self) -> Template | None:
        return self.templates.take(self.jail)

    def prepare(self) -> None:
        self.templates.prepare(self.jail, self.argv, self.env, self.request)


def _command(interpreter: Path) -> list[str]:
    return [str(interpreter), "-I", "-X", "utf8", str(_CHILD)]


def _request(run: Run, execution: PythonExec) -> dict[str, Any]:
    args = fill_value(execution.args, with_secrets(run.tool, run.arguments, run.secrets))
    if not execution.args:
        args = run.arguments
    return {
        "module": execution.module,
        "function": execution.function,
        "args": args if isinstance(args, list) else [],
        "kwargs": args if isinstance(args, dict) else {},
        "return": execution.returns or run.tool.outputs.format,
        "path": _search_folders(run, execution),
    }


def _search_folders(run: Run, execution: PythonExec) -> list[str]:
    folders = [str(run.root / execution.cwd)]
    return [*folders, run.tool.origin.folder] if run.tool.origin.folder else folders


def _find_package(run: Run, execution: PythonExec) -> Iterator[Path]:
    """The top-level package or module that the manifest names, which it need not list among what it reads."""
    name = execution.module.partition(".")[0]
    for folder in map(Path, _search_folders(run, execution)):
        for path in (folder / name, folder / f"{name}.py"):
            if path.exists() and path.resolve().is_relative_to(folder.resolve()):  # a link could lead anywhere
                yield path.resolve()


def _in_memory(data: bytes) -> int:
    """A file without a name, so that a request of any size neither blocks nor lies on disk."""
    file = os.memfd_create("request", os.MFD_CLOEXEC)
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _outcome(run: Run, execution: PythonExec, finished: Finished) -> Outcome:
    try:
        answer = decode_json(finished.channel)
    except ValueError:
        stderr = run.redactor.text(finished.stderr.decode("utf-8", "replace").strip())[-SHOWN:]
        raise ExitCode(
            f"the interpreter ended with exit code {finished.exit_code} before {execution.function} returned",
            details={"exit_code": finished.exit_code, "stderr": stderr},
        ) from None
    if not isinstance(answer, dict) or not answer:
        answer = {"message": "the result channel was tampered with"}
    if "value" in answer:
        said = (finished.stdout + finished.stderr).decode("utf-8", "replace")
        return Outcome(output=answer["value"], said=said)
    if "missing" in answer:
        raise Unavailable(f"{answer['missing']}; correct the manifest, or run `glee lint`")
    kind, message = str(answer.get("type", "ValueError")), str(answer.get("message", ""))
    raise ToolException(
        f"{answer.get('step', execution.function)} raised {kind}: {message}",
        detail=str(answer.get("traceback", "")) + finished.stderr.decode("utf-8", "replace"),
        details={"type": kind, "message": message},
    )
