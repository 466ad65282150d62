"""What programs are run in: nothing, a jail of the kernel's, or a container. A runner asks, and never knows which."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from glee.definitions.isolation import Isolation
from glee.definitions.permissions import Hosts
from glee.definitions.tool import CommandExec, PythonExec, Tool
from glee.errors import SandboxUnavailable
from glee.formats.surroundings import find_interpreter, find_program
from glee.runners import Run
from glee.runners.processes import Process

if TYPE_CHECKING:
    from glee.egress.proxy import Proxy
    from glee.runners.way_out import WayOut
    from glee.sandbox.containers import Containers
    from glee.sandbox.jails import Jails
    from glee.sandbox.nsjail import Nsjails


class Cells(Protocol):
    """One way to hold programs. It also says which program a manifest means, since a container has its own."""

    @property
    def jails(self) -> Jails | None:
        """Where templates can wait, if that is how programs are held."""
        ...

    def find_program(self, execution: CommandExec, root: Path) -> str | None: ...

    def find_interpreter(self, execution: PythonExec, root: Path) -> str | None: ...

    def find_way_out(self, run: Run) -> WayOut | None:
        """For a tool whose network ends at named hosts. Raises if it has a secret that could not be kept from it."""
        ...

    def make_process(
        self, tool: Tool, program: str, *, cwd: Path, needs: Iterable[Path] = (), way_out: WayOut | None = None
    ) -> Process:
        """Raises SandboxUnavailable if the tool cannot be held. `needs` is what the program must be able to read."""
        ...

    def close(self) -> None: ...


class PlainCells:
    """No cell at all, for whoever turned the sandbox off."""

    def __init__(self, search_path: str) -> None:
        self._search_path = search_path

    @property
    def jails(self) -> Jails | None:
        return None

    def find_program(self, execution: CommandExec, root: Path) -> str | None:
        found = find_program(execution, root, self._search_path)
        return None if found is None else str(found)

    def find_interpreter(self, execution: PythonExec, root: Path) -> str | None:
        found = find_interpreter(execution, root)
        return None if found is None else str(found)

    def find_way_out(self, run: Run) -> WayOut | None:
        _check_secrets(run)
        return None

    def make_process(
        self, tool: Tool, program: str, *, cwd: Path, needs: Iterable[Path] = (), way_out: WayOut | None = None
    ) -> Process:
        from glee.runners.plain import PlainProcess

        return PlainProcess()

    def close(self) -> None:
        """There is nothing to close."""


class JailCells(PlainCells):
    """The machine's own programs, each in a jail."""

    def __init__(self, jails: Jails, search_path: str, make_proxy: Callable[[], Proxy]) -> None:
        super().__init__(search_path)
        self._jails = jails
        self._make_proxy = make_proxy
        self._proxy: Proxy | None = None

    @property
    def jails(self) -> Jails:
        return self._jails

    def find_way_out(self, run: Run) -> WayOut | None:
        network = run.tool.permissions.network
        if not isinstance(network, Hosts) or not network.hosts or not self._jails.network:
            return super().find_way_out(run)
        from glee.runners.way_out import WayOut

        if self._proxy is None:
            self._proxy = self._make_proxy()
        return WayOut(self._proxy, run.tool, run.secrets)

    def make_process(
        self, tool: Tool, program: str, *, cwd: Path, needs: Iterable[Path] = (), way_out: WayOut | None = None
    ) -> Process:
        from glee.runners.jailed import JailedProcess

        return JailedProcess(self._jails.get(tool, Path(program), cwd=cwd, needs=needs), way_out)

    def close(self) -> None:
        self._jails.close()
        if self._proxy is not None:
            self._proxy.close()


def _check_secrets(run: Run) -> None:
    for name, need in run.tool.permissions.secrets.items():
        if need.host is not None:
            raise SandboxUnavailable(
                f"{run.tool.name} was not run: the secret {name} cannot be kept from it here; "
                "that needs sandbox.mode: native and its host under permissions.network.hosts"
            )


class NsjailCells(PlainCells):
    """The machine's own programs, held by nsjail."""

    def __init__(self, nsjails: Nsjails, search_path: str) -> None:
        super().__init__(search_path)
        self._nsjails = nsjails

    def make_process(
        self, tool: Tool, program: str, *, cwd: Path, needs: Iterable[Path] = (), way_out: WayOut | None = None
    ) -> Process:
        from glee.runners.contained import ContainedProcess

        container = self._nsjails.get(tool, Path(program), cwd=cwd, needs=needs)
        return ContainedProcess(container, Isolation(level="nsjail", limits="process"))


class ContainerCells:
    """The image's programs, and what lies in the project."""

    def __init__(self, containers: Containers, root: Path) -> None:
        self._containers = containers
        self._root = root

    @property
    def jails(self) -> Jails | None:
        return None

    def find_way_out(self, run: Run) -> WayOut | None:
        _check_secrets(run)
        return None

    def find_program(self, execution: CommandExec, root: Path) -> str | None:
        """A bare name, or a path that leads out of the project, is in the image; whether it is, is seen there."""
        name = execution.entrypoint
        if "/" not in name:
            return None if name.startswith("-") else name
        path = Path(os.path.normpath(root / name))
        if not path.is_relative_to(self._root):
            return str(path)
        found = find_program(execution, root, "")
        return None if found is None else str(path.parent.resolve() / path.name)

    def find_interpreter(self, execution: PythonExec, root: Path) -> str | None:
        """A virtual environment's own leads to one of the image, which need not be on this machine."""
        if execution.venv is None:
            return "python3"
        path = (root / execution.venv / "bin").resolve() / "python"
        return str(path) if os.path.lexists(path) else None

    def make_process(
        self, tool: Tool, program: str, *, cwd: Path, needs: Iterable[Path] = (), way_out: WayOut | None = None
    ) -> Process:
        from glee.runners.contained import ContainedProcess

        container = self._containers.get(tool, program, cwd=cwd, needs=needs)
        return ContainedProcess(container, Isolation(level="container", limits="group"))

    def close(self) -> None:
        """Each container ended with its call."""
