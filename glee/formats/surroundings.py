"""What a manifest points to: program, folder, interpreter, module. Looked at, never run."""

from __future__ import annotations

import ast
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from glee.definitions.tool import CommandExec, PythonExec, Tool
from glee.formats.finding import Finding


def find_program(execution: CommandExec, root: Path, search_path: str) -> Path | None:
    """A path is taken from the project root; a bare name is looked for on PATH first.

    PATH comes first so that whoever can write a file into the project cannot take the place of `git`.
    """
    name = execution.entrypoint
    if "/" not in name:
        found = shutil.which(name, path=search_path)
        if found:
            return Path(found)
    path = root / name
    return path if _is_file(path) and os.access(path, os.X_OK) else None


def find_interpreter(execution: PythonExec, root: Path) -> Path | None:
    """The interpreter of the tool's venv, or the one that runs Glee."""
    if execution.venv is None:
        return Path(sys.executable)
    path = root / execution.venv / "bin" / "python"
    return path if _is_file(path) and os.access(path, os.X_OK) else None


def check_surroundings(tool: Tool, root: Path, search_path: str) -> Iterator[Finding]:
    """What a checked manifest names and is not there."""
    if isinstance(tool.exec, CommandExec):
        yield from _check_program(tool.exec, root, search_path)
        yield from _check_folder("command", tool.exec.cwd, root)
    elif isinstance(tool.exec, PythonExec):
        yield from _check_folder("python", tool.exec.cwd, root)
        yield from _check_interpreter(tool.exec, root)
        yield from _check_module(tool, tool.exec, root)


def _check_program(execution: CommandExec, root: Path, search_path: str) -> Iterator[Finding]:
    if find_program(execution, root, search_path) is not None:
        return
    path = root / execution.entrypoint
    where = ("exec", "command", "entrypoint")
    if _is_folder(path):
        yield Finding(where, "entrypoint", f"{path} is a folder", "name a program")
    elif _is_file(path):
        yield Finding(
            where, "entrypoint", f"{path} may not be executed", f"run chmod +x {shlex.quote(execution.entrypoint)}"
        )
    elif "/" in execution.entrypoint:
        yield Finding(where, "entrypoint", f"{path} does not exist", "create it, or correct the path")
    else:
        yield Finding(
            where,
            "entrypoint",
            f"no program {execution.entrypoint} on PATH or in the project root",
            "install it, or write its path",
        )


def _check_folder(kind: str, cwd: str, root: Path) -> Iterator[Finding]:
    if not _is_folder(root / cwd):
        yield Finding(
            ("exec", kind, "cwd"), "cwd", f"the folder {root / cwd} does not exist", "create it, or correct the path"
        )


def _check_interpreter(execution: PythonExec, root: Path) -> Iterator[Finding]:
    if find_interpreter(execution, root) is None:
        yield Finding(
            ("exec", "python", "venv"),
            "venv",
            f"there is no interpreter in {root / str(execution.venv)}",
            f"make it: python3 -m venv {shlex.quote(str(execution.venv))}",
        )


def _check_module(tool: Tool, execution: PythonExec, root: Path) -> Iterator[Finding]:
    places = [root / execution.cwd]
    if tool.origin.folder:
        places.append(Path(tool.origin.folder))
    file = _find_module(execution.module, places)
    if file is None:
        top = execution.module.split(".")[0]
        if top not in sys.stdlib_module_names and not any(
            _may_hold(folder, top) for folder in _installed(execution, root)
        ):
            looked = " or ".join(map(str, places))
            yield Finding(
                ("exec", "python", "module"),
                "module",
                f"there is no module {execution.module} in {looked}",
                "create it, or correct the name",
            )
        return
    fault = _find_syntax_fault(file)
    if fault is not None:
        yield Finding(("exec", "python", "module"), "module", f"{file} is not Python: {fault}", "mend the module")
    names = _names_in(file)
    if names is not None and execution.function not in names:
        yield Finding(
            ("exec", "python", "function"),
            "function",
            f"{file} has no function {execution.function}",
            "define it, or correct the name",
        )


def _is_file(path: Path) -> bool:
    """A name too long for the disk is merely not there."""
    try:
        return path.is_file()
    except OSError:
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _find_module(module: str, places: list[Path]) -> Path | None:
    parts = module.split(".")
    for place in places:
        for file in (place.joinpath(*parts).with_suffix(".py"), place.joinpath(*parts, "__init__.py")):
            if _is_file(file):
                return file
    return None


def _installed(execution: PythonExec, root: Path) -> list[Path]:
    if execution.venv is None:
        return [Path(entry) for entry in sys.path if entry]
    venv = root / execution.venv
    return list(venv.glob("lib/python*/site-packages")) if _is_folder(venv) else []


def _may_hold(folder: Path, top: str) -> bool:
    """True if a module may come from a folder of packages; most .pth files there can lead anywhere."""
    if _is_folder(folder / top) or _is_file(folder / f"{top}.py"):
        return True
    if not _is_folder(folder):
        return False
    elsewhere = {file.name for file in folder.glob("*.pth")} - {"distutils-precedence.pth"}
    return bool(elsewhere) or any(True for _ in folder.glob(f"{top}.*.so"))


def _find_syntax_fault(file: Path) -> str | None:
    try:
        ast.parse(file.read_bytes())
    except SyntaxError as error:
        return f"{error.msg} on line {error.lineno}"
    except (OSError, ValueError, RecursionError, MemoryError):
        pass
    return None


def _names_in(file: Path) -> set[str] | None:
    """The names a module binds at its top; None if that cannot be told without running it."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))
        elif not isinstance(node, ast.Expr):
            return None
    return None if names & {"*", "__getattr__"} else names
