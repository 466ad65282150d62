"""`kind: python`: a function of a module, in an interpreter and a process of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

from glee.definitions.json_text import decode_json, encode_json
from glee.definitions.placeholder import fill_value
from glee.definitions.tool import PackageExec, PythonExec, Tool
from glee.errors import CallError, ExitCode, ToolException, Unavailable
from glee.runners import Outcome, Run
from glee.runners.arguments import with_secrets
from glee.runners.cells import Cells
from glee.runners.explaining import explain
from glee.runners.processes import SHOWN, Finished, Process, run_process
from glee.runners.templates import Template, TemplateProcess, Templates
from glee.sandbox.jails import Jail
from glee.sandbox.programs import find_links

if TYPE_CHECKING:
    from glee.runners.way_out import WayOut

_CHILD: Final = Path(__file__).resolve().with_name("python_child.py")
_MOST_KNOWN: Final = 1000
_TEMPLATE: Final = _CHILD.with_name("python_template.py")


class PythonRunner:
    def __init__(self, cells: Cells, *, search_path: str, locale: dict[str, str], keeps_templates: bool = True) -> None:
        self._cells = cells
        self._keeps_templates = keeps_templates
        self._templates = Templates()
        self._needs = _Needs()
        self._environment = {"PATH": search_path, "LANG": "C.UTF-8", **locale}

    async def run(self, run: Run) -> Outcome:
        execution = run.tool.exec
        assert isinstance(execution, PythonExec)
        interpreter = self._cells.find_interpreter(execution, run.root)
        if interpreter is None:
            raise Unavailable(
                f"there is no interpreter at {execution.venv}/bin/python; `glee lint` says how to make it"
            )
        way_out = self._cells.find_way_out(run)
        warm = self._find_template(run, execution, interpreter)
        process = self._make_process(run, execution, interpreter, way_out, warm)
        run.held(process.isolation)
        secrets = way_out.secrets if way_out else run.secrets
        request = _in_memory(encode_json(_request(run, execution, secrets)))
        try:
            finished = await run_process(
                process,
                _command(interpreter),
                cwd=run.root / execution.cwd,
                env={**self._environment, **secrets},
                timeout=run.timeout,
                output_bytes=run.output_bytes,
                redactor=run.redactor,
                stdin=request,
                channel=True,
            )
        finally:
            os.close(request)
            if warm is not None:
                warm.prepare()
        refused = way_out.refused if way_out else ()
        try:
            outcome = _outcome(run, execution, finished)
        except CallError as error:
            explained = explain(error, run, process.isolation, run.root / execution.cwd, refused)
            explained.warnings = (*explained.warnings, *(way_out.warnings() if way_out else ()))
            raise explained from error.__cause__
        return structs.replace(outcome, warnings=way_out.warnings()) if way_out else outcome

    def _make_process(
        self, run: Run, execution: PythonExec, interpreter: str, way_out: WayOut | None, warm: _Warm | None
    ) -> Process:
        template = warm.take() if warm is not None else None
        if template is not None:
            return TemplateProcess(template, self._templates)
        needs = {_CHILD, *self._needs.get(run, execution)}
        cwd = run.root / execution.cwd
        return self._cells.make_process(run.tool, interpreter, cwd=cwd, needs=needs, way_out=way_out)

    def _find_template(self, run: Run, execution: PythonExec, interpreter: str) -> _Warm | None:
        """None for a tool with a way out of its own, or with secrets, which its module may want when it is imported."""
        jails, permissions = self._cells.jails, run.tool.permissions
        if not self._keeps_templates or jails is None:
            return None
        if permissions.secrets or not isinstance(permissions.network, bool):
            return None
        if not jails.abilities().can_fork:
            return None
        needs = {_CHILD, _TEMPLATE, *self._needs.get(run, execution)}
        jail = jails.get(run.tool, Path(interpreter), cwd=run.root / execution.cwd, needs=needs, forks=True)
        request = {
            "module": execution.module,
            "function": execution.function,
            "path": _search_folders(run, execution),
            "after": _last_folders(execution),
        }
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


def _command(interpreter: str) -> list[str]:
    return [interpreter, "-I", "-X", "utf8", str(_CHILD)]


def _request(run: Run, execution: PythonExec, secrets: Mapping[str, str]) -> dict[str, Any]:
    args = fill_value(execution.args, with_secrets(run.tool, run.arguments, secrets))
    if not execution.args:
        args = run.arguments if not isinstance(execution, PackageExec) else _call_of(run)
    return {
        "module": execution.module,
        "function": execution.function,
        "args": args if isinstance(args, list) else [],
        "kwargs": args if isinstance(args, dict) else {},
        "return": execution.returns or run.tool.outputs.format,
        "path": _search_folders(run, execution),
        "after": _last_folders(execution),
    }


def _call_of(run: Run) -> dict[str, Any]:
    """What a package's function may know of its call, as it would in Glee's own process."""
    return {"inputs": run.arguments, "call_id": run.call_id, "caller": structs.asdict(run.caller)}


def _last_folders(execution: PythonExec) -> list[str]:
    return list(execution.site.after) if isinstance(execution, PackageExec) else []


def _search_folders(run: Run, execution: PythonExec) -> list[str]:
    if isinstance(execution, PackageExec):  # never those of a project, whose files could take the package's place
        return list(execution.site.before)
    folders = [str(run.root / execution.cwd)]
    return [*folders, run.tool.origin.folder] if run.tool.origin.folder else folders


class _Needs:
    """The top-level package or module that a manifest names, which it need not list among what it reads."""

    def __init__(self) -> None:
        self._known: dict[Tool, tuple[tuple[object, ...], frozenset[Path]]] = {}

    def get(self, run: Run, execution: PythonExec) -> frozenset[Path]:
        if isinstance(execution, PackageExec):
            return frozenset(map(Path, (*execution.site.own, *execution.site.shared)))
        name = execution.module.partition(".")[0]
        folders = _search_folders(run, execution)
        places = [f"{folder}/{name}{end}" for folder in folders for end in ("", ".py")]
        state = tuple(_identify(place) for place in (*folders, *places))
        known = self._known.get(run.tool)
        if known is None or known[0] != state:
            found = frozenset(path for place in places for path in _find_module(Path(place)))
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[run.tool] = (state, found)
        return known[1]


def _find_module(path: Path) -> Iterator[Path]:
    real = path.resolve()
    if path.exists() and real.is_relative_to(path.parent.resolve()):  # a link could lead anywhere
        yield real
        yield from find_links(path) if real != path else ()


def _identify(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


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
    step = str(answer.get("step", execution.function))
    if isinstance(execution, PackageExec):
        step = step.replace(execution.function, run.tool.name).replace(execution.module, execution.target)
        if kind == "InvalidInput":
            from glee.runners.conversion import invalid_argument

            name, _, reason = message.partition(": ")
            raise invalid_argument(name, reason)
    raise ToolException(
        f"{step} raised {kind}: {message}",
        detail=str(answer.get("traceback", "")) + finished.stderr.decode("utf-8", "replace"),
        details={"type": kind, "message": message},
    )
