"""What was found, judged against what the settings ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from glee.definitions.sandbox import Sandbox
from glee.doctor.engines import State
from glee.doctor.trying import Outcome
from glee.sandbox.compile import Abilities
from glee.sandbox.facts import Facts
from glee.sandbox.remedies import LAYERS, advise_engine, can_hold_hosts, explain_level, find_remedies
from glee.sandbox.trials import EAT_TOGETHER, OUTLIVE, STAT, Kind, Trial

ALL: Final = "all"
BARE: Final = "bare"
"""A jail without layers. Unless root runs it, it still lies in the user namespace in which jails are built."""
NOTHING: Final = "nothing"
"""An ordinary process: what is held there too needs no layer. Not tried by root, whose bare jails are in none."""
_ERROR_NUMBER: Final = re.compile(r"^\[Errno \d+\] ")
Tried = Mapping[str, Mapping[str, Outcome]]
"""By the name of the set of layers, and that of the trial."""


class Layer(Struct, frozen=True, kw_only=True):
    there: bool
    version: int | None = None
    """Of Landlock."""
    reason: str = ""
    """Why it is missing, in the kernel's words."""
    remedy: str = ""


class Attempt(Struct, frozen=True, kw_only=True):
    name: str
    kind: Kind
    held: bool
    promised: bool
    """False where it is known that this level does not hold it."""
    by: tuple[str, ...]
    """What holds it alone. `kernel`: an ordinary process may not do it at all. `limits`: those of each process."""
    answer: str


class Report(Struct, frozen=True, kw_only=True):
    ok: bool
    """True if the level is what the settings ask for, and all that it promises was held."""
    verdict: str
    level: Literal["full", "reduced", "none"]
    meaning: str
    minimum: Literal["full", "reduced"]
    mode: str
    layers: dict[str, Layer]
    limits: Literal["group", "process"] | None
    hosts: bool
    """Whether `network: {hosts: [...]}` can be held."""
    engines: dict[str, State]
    trials: tuple[Attempt, ...]
    notes: tuple[str, ...]
    remedies: tuple[str, ...]


def judge(
    sandbox: Sandbox,
    facts: Facts,
    abilities: Abilities,
    trials: Sequence[Trial],
    tried: Tried,
    engines: dict[str, State],
    faults: Sequence[str] = (),
) -> Report:
    """`faults` says what could not be tried."""
    layers = _describe_layers(abilities, find_remedies(facts, abilities))
    attempts = tuple(_describe(trial, abilities, tried) for trial in trials) if ALL in tried else ()
    escaped = [attempt.name for attempt in attempts if attempt.promised and not attempt.held]
    objections = list(_object(sandbox, abilities.level, attempts, escaped))
    remedies = [layer.remedy for layer in layers.values() if layer.remedy]
    remedies += _advise(sandbox, abilities.level, engines, escaped)
    limits: Literal["group", "process"] = "group" if "group" in abilities.layers else "process"
    return Report(
        ok=not objections,
        verdict="; ".join(objections) or f"{len(attempts)} attempts, and all that is promised was held",
        level=abilities.level or "none",
        meaning=explain_level(abilities),
        minimum=sandbox.minimum,
        mode=sandbox.mode,
        layers=layers,
        limits=limits if abilities.level else None,
        hosts=abilities.level is not None and can_hold_hosts(abilities.layers),
        engines=engines,
        trials=attempts,
        notes=(*_note(attempts), *faults),
        remedies=tuple(dict.fromkeys(remedies)),
    )


def _describe_layers(abilities: Abilities, remedies: Mapping[str, str]) -> dict[str, Layer]:
    return {
        name: Layer(
            there=name in abilities.layers,
            version=abilities.landlock if name == "landlock" and name in abilities.layers else None,
            reason="" if name in abilities.layers else _find_reason(name, abilities),
            remedy=remedies.get(name, ""),
        )
        for name in LAYERS
    }


def _find_reason(name: str, abilities: Abilities) -> str:
    if name in abilities.faults:
        return _ERROR_NUMBER.sub("", abilities.faults[name])
    if name in ("pid", "proc", "ipc", "net") and "mount" in abilities.faults:
        return "not tried: it needs mounts of its own"
    return "left out"


def _describe(trial: Trial, abilities: Abilities, tried: Tried) -> Attempt:
    outcome = tried[ALL][trial.name]
    return Attempt(
        name=trial.name,
        kind=trial.kind,
        held=outcome.held,
        promised=trial.needs <= abilities.layers,
        by=_find_holders(trial, abilities, tried) if outcome.held else (),
        answer=outcome.answer,
    )


def _find_holders(trial: Trial, abilities: Abilities, tried: Tried) -> tuple[str, ...]:
    others = {name: outcomes[trial.name].held for name, outcomes in tried.items() if trial.name in outcomes}
    others.pop(ALL)
    if trial.kind == "limits":  # no other set has a group, and each has the limits of every process
        if any(others.values()) or "group" not in abilities.layers:
            return ("limits",)
        return ("group",) if others else ()
    if trial == OUTLIVE:
        return ("process one",)
    bare, nothing = others.pop(BARE, False), others.pop(NOTHING, None)
    if nothing or (bare and nothing is None):
        return ("kernel",)
    return ("namespaces",) if bare else tuple(name for name, held in others.items() if held)


def _object(sandbox: Sandbox, level: str | None, attempts: Sequence[Attempt], escaped: Sequence[str]) -> Iterator[str]:
    if sandbox.mode == "off":
        yield "sandbox.mode is off: no tool is held here, whatever this machine could hold"
    if level is None:
        yield "this machine cannot hold programs and Python tools, so none is run"
    elif level == "reduced" and sandbox.minimum == "full":
        yield "sandbox.minimum is full and this machine reaches reduced, so no program and no Python tool is run"
    if not attempts:
        yield "no jail could be made, so nothing could be tried, and no tool would run"
    if escaped:
        yield f"NOT HELD, though it was promised: {', '.join(escaped)}"


def _advise(sandbox: Sandbox, level: str | None, engines: Mapping[str, State], escaped: Sequence[str]) -> Iterator[str]:
    if sandbox.mode == "off":
        yield "set sandbox.mode: native in your own config, or take the line out: it is the default"
    if level is None:
        yield advise_engine(engines)
    elif escaped:
        yield "run only tools that you trust here, and report this with the output of `glee doctor --json`"


def _note(attempts: Sequence[Attempt]) -> Iterator[str]:
    if any(attempt.name == STAT.name and not attempt.held for attempt in attempts):
        yield "without mounts of its own a run can see the names, sizes and times of files outside, not what is in them"
    if any(attempt.name == EAT_TOGETHER.name and not attempt.held for attempt in attempts):
        yield "without a control group each process is bounded alone: several together get more memory"
