"""`kind: command`: a program and its arguments, never a shell."""

from __future__ import annotations

from typing import Any

from glee.definitions.json_text import decode_json
from glee.definitions.tool import CommandExec, Format, Tool
from glee.errors import ExitCode, Unavailable
from glee.runners import Outcome, Run
from glee.runners.arguments import fill_arguments
from glee.runners.cells import Cells
from glee.runners.explaining import explain
from glee.runners.processes import SHOWN, Finished, run_process
from glee.secrets.redaction import Redactor


class CommandRunner:
    def __init__(self, cells: Cells, *, search_path: str, locale: dict[str, str]) -> None:
        self._cells = cells
        self._environment = {"PATH": search_path, "LANG": "C.UTF-8", **locale}

    def check(self, tool: Tool, arguments: dict[str, Any]) -> None:
        assert isinstance(tool.exec, CommandExec)
        fill_arguments(tool.exec.args, arguments, tool.inputs)

    async def run(self, run: Run) -> Outcome:
        execution = run.tool.exec
        assert isinstance(execution, CommandExec)
        program = self._cells.find_program(execution, run.root)
        if program is None:
            raise Unavailable(
                f"the program {execution.entrypoint} is not there or may not be executed; run `glee lint`"
            )
        cwd = run.root / execution.cwd
        way_out = self._cells.find_way_out(run)
        process = self._cells.make_process(run.tool, program, cwd=cwd, way_out=way_out)
        run.held(process.isolation)
        finished = await run_process(
            process,
            [program, *fill_arguments(execution.args, run.arguments, run.tool.inputs)],
            cwd=cwd,
            env={**self._environment, **(way_out.secrets if way_out else run.secrets)},
            timeout=run.timeout,
            output_bytes=run.output_bytes,
            redactor=run.redactor,
        )
        refused = way_out.refused if way_out else ()
        if finished.exit_code not in execution.exit_codes_ok:
            error = explain(_failed(execution, finished, run.redactor), run, process.isolation, cwd, refused)
            error.warnings = (*error.warnings, *(way_out.warnings() if way_out else ()))
            raise error
        form = execution.stdout.format if execution.stdout else run.tool.outputs.format
        return _outcome(finished, form, way_out.warnings() if way_out else ())


def _failed(execution: CommandExec, finished: Finished, redactor: Redactor) -> ExitCode:
    """Secrets go before the cuts, which could halve one."""
    stderr = redactor.text(finished.stderr.decode("utf-8", "replace").strip())
    shown = stderr[-SHOWN:]
    last = shown.splitlines()[-1][:300] if shown else "nothing on standard error"
    return ExitCode(
        f"{execution.entrypoint} ended with exit code {finished.exit_code}: {last}",
        details={
            "exit_code": finished.exit_code,
            "stderr": shown,
            "stdout": redactor.text(finished.stdout.decode("utf-8", "replace"))[:SHOWN],
        },
    )


def _outcome(finished: Finished, form: Format, warnings: tuple[str, ...]) -> Outcome:
    output: Any
    raw = None
    try:
        output = finished.stdout.decode()
        if form == "json":
            output = decode_json(output)
    except UnicodeDecodeError:
        output, raw = finished.stdout.decode("utf-8", "replace"), finished.stdout
        warnings = (*warnings, "the output is not UTF-8 text; what could not be shown is replaced by \ufffd")
    except ValueError as error:
        warnings = (*warnings, f"the output was declared to be JSON and is not: {error}")
    said = finished.stderr.decode("utf-8", "replace")
    return Outcome(output=output, exit_code=finished.exit_code, warnings=warnings, raw=raw, said=said)
