"""How programs are held: each in a jail, or not at all where the person said so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from glee.definitions.permissions import Hosts
from glee.definitions.tool import Tool
from glee.errors import SandboxUnavailable
from glee.runners import Run
from glee.runners.jailed import JailedProcess
from glee.runners.plain import PlainProcess
from glee.runners.processes import Process
from glee.sandbox.jails import Jails

if TYPE_CHECKING:
    from glee.egress.proxy import Proxy
    from glee.runners.way_out import WayOut


class Holding:
    def __init__(self, jails: Jails | None, get_proxy: Callable[[], Proxy]) -> None:
        self.jails = jails
        self._get_proxy = get_proxy

    def find_way_out(self, run: Run) -> WayOut | None:
        """For a tool whose network ends at named hosts. A secret that is not to be seen needs one."""
        network = run.tool.permissions.network
        if self.jails is not None and isinstance(network, Hosts) and network.hosts:
            from glee.runners.way_out import WayOut

            return WayOut(self._get_proxy(), run.tool, run.secrets)
        hidden = [name for name, need in run.tool.permissions.secrets.items() if need.host is not None]
        if hidden:
            raise SandboxUnavailable(
                f"{run.tool.name} was not run: the secret {hidden[0]} cannot be kept from it here; "
                "that needs sandbox.mode: native and its host under permissions.network.hosts"
            )
        return None

    def make_process(
        self, tool: Tool, program: Path, *, cwd: Path, needs: Iterable[Path] = (), way_out: WayOut | None = None
    ) -> Process:
        if self.jails is None:
            return PlainProcess()
        return JailedProcess(self.jails.get(tool, program, cwd=cwd, needs=needs), way_out)
