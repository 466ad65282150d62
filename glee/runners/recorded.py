"""Cells that note what each run tries to touch. They hold it as any other does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from glee.definitions.tool import Tool
from glee.egress.proxy import Attempt, Proxy
from glee.runners import Run
from glee.runners.cells import JailCells
from glee.runners.jailed import JailedProcess
from glee.runners.processes import Process
from glee.runners.way_out import WayOut
from glee.sandbox.jails import Jails
from glee.sandbox.recording import Recorder
from glee.sandbox.spec import Spec


class RecordedCells(JailCells):
    def __init__(self, jails: Jails, search_path: str, make_proxy: Callable[[], Proxy]) -> None:
        super().__init__(jails, search_path, make_proxy)
        self.recorder = Recorder()
        self.refused: list[Attempt] = []
        self.reached: list[tuple[str, int]] = []
        self.specs: list[Spec] = []
        self._ways: list[WayOut] = []

    @property
    def jails(self) -> Jails | None:  # type: ignore[override]
        """None: a template would have imported its module unheard."""
        return None

    def find_way_out(self, run: Run) -> WayOut | None:
        way_out = super().find_way_out(run)
        if way_out is not None:
            self._ways.append(way_out)
        return way_out

    def make_process(
        self, tool: Tool, program: str, *, cwd: Path, needs: Iterable[Path] = (), way_out: WayOut | None = None
    ) -> Process:
        jail = self._jails.get(tool, Path(program), cwd=cwd, needs=needs)
        self.specs.append(jail.spec)
        return JailedProcess(jail, way_out, self.recorder)

    def finish(self) -> None:
        """All that was heard is in."""
        self.recorder.wait()
        self.refused = [attempt for way_out in self._ways for attempt in way_out.refused]
        self.reached = [place for way_out in self._ways for place in way_out.reached]
