"""The examination: the layers there are, the same trials with all of them and with each kind alone, a report."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import structs

from glee.config import Settings
from glee.definitions.bounds import Bounds
from glee.doctor.engines import Engines
from glee.doctor.report import ALL, BARE, NOTHING, Report, judge
from glee.doctor.trying import Outcome, try_all
from glee.doctor.world import World, build_world
from glee.errors import SandboxUnavailable
from glee.holding import compose_jails
from glee.sandbox.compile import Abilities
from glee.sandbox.facts import Facts, read_facts
from glee.sandbox.jails import Jails
from glee.sandbox.remedies import LAYERS
from glee.sandbox.trials import Trial, find_trials

ALONE: Final = {
    "namespaces": frozenset({"user", "mount", "pid", "proc", "ipc", "net"}),
    "landlock": frozenset({"landlock"}),
    "seccomp": frozenset({"seccomp"}),
}
_TELLING: Final = frozenset({"mount", "pid", "net", "landlock", "seccomp"})
"""The layers of which one at least must be there for a set to be worth trying."""
Tell = Callable[[str], None]


def examine(
    settings: Settings,
    *,
    without: frozenset[str] = frozenset(),
    facts: Facts | None = None,
    tell: Tell = lambda _: None,
) -> Report:
    """Tries escapes on this machine, as if it lacked the layers in `without`; `tell` hears what is being done."""
    facts = facts or read_facts()
    with contextlib.closing(Engines(settings.search_path)) as engines:
        examination = _Examination(settings, without, tell)
        if facts.system != "Linux" or facts.machine is None:
            examination.give_up(f"not on {facts.system} on {os.uname().machine}")
        else:
            examination.run()
        tell("asking container engines")
        return judge(
            settings.sandbox,
            facts,
            examination.abilities,
            examination.trials,
            examination.tried,
            engines.collect(),
            examination.faults,
        )


class _Examination:
    def __init__(self, settings: Settings, without: frozenset[str], tell: Tell) -> None:
        bounded = structs.replace(settings.sandbox, limits=Bounds())  # so that the prisoner always has room to try
        self._settings = structs.replace(settings, sandbox=bounded)
        self._left = frozenset(LAYERS) - without
        self._tell = tell
        self.abilities = Abilities(machine="", layers=frozenset(), uid=os.getuid(), gid=os.getgid())
        self.trials: Sequence[Trial] = ()
        self.tried: dict[str, dict[str, Outcome]] = {}
        self.faults: list[str] = []

    def run(self) -> None:
        self._tell("trying every layer")
        with contextlib.closing(self._compose(self._left)) as jails:
            try:
                found = jails.abilities()
            except SandboxUnavailable as error:
                self.give_up(error.message)
                return
            faults = {name: fault for name, fault in found.faults.items() if name in self._left}
            self.abilities = structs.replace(found, faults=faults)
            self.trials = find_trials(found.machine)
            with build_world((found.uid, found.gid), self._settings.state.parent) as world:
                self._try(ALL, jails, self.trials, world)
                self._try_alone(world)
                self._try_unheld(jails, world)

    def _try_alone(self, world: World) -> None:
        sets = {name: layers & self.abilities.layers for name, layers in ALONE.items()}
        sets = {name: layers for name, layers in sets.items() if layers & _TELLING}
        unbounded = [trial for trial in self.trials if trial.kind != "limits"]
        for name, layers in sets.items():
            self._tell(f"trying {name} alone")
            first = name == next(iter(sets))  # limits hold in every set alike, so they are tried in one
            with contextlib.closing(self._compose(layers)) as jails:
                self._try(name, jails, self.trials if first else unbounded, world)

    def _try_unheld(self, jails: Jails, world: World) -> None:
        """In a jail without layers and, unless it would be root's, by an ordinary process."""
        self._tell("trying without any layer")
        unbounded = [trial for trial in self.trials if trial.kind != "limits"]
        with contextlib.closing(self._compose(frozenset())) as bare:
            self._try(BARE, bare, unbounded, world)
        if os.getuid() != 0:
            self._try(NOTHING, jails, unbounded, world, plain=True)

    def give_up(self, reason: str) -> None:
        self.abilities = structs.replace(self.abilities, faults=dict.fromkeys(LAYERS, reason))

    def _compose(self, layers: frozenset[str]) -> Jails:
        return compose_jails(self._settings, layers=layers, minimum="none")

    def _try(self, name: str, jails: Jails, trials: Sequence[Trial], world: World, *, plain: bool = False) -> None:
        try:
            self.tried[name] = try_all(jails, trials, world, self._settings, plain=plain)
        except SandboxUnavailable as error:
            self.faults.append(f"{'every layer' if name == ALL else name}: {error.message}")
