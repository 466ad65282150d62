"""The second table: from the start of a command to its end."""

from __future__ import annotations

import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.commands import GLEE, SETTLE, command_turn, own_environment, time_command
from bench.measure import ContestantFailed, Figure, Plan, Turn, interleave
from bench.peers import Peer
from bench.progress import tell
from bench.table import Row, Table, judge, show

PEERS: Final = frozenset({"fastmcp", "llm"})
_BARE: Final = "python -c pass"
_HERE: Final = "python -c pass, where Glee is installed"
_REFERENCE_MS: Final = 17.0
"""What `python -c pass` took where the targets were set."""
_TARGETS: Final = {"glee --help": 100.0, "glee list": 150.0}


def measure_startup(peers: dict[str, Peer], plan: Plan) -> Table:
    with tempfile.TemporaryDirectory(prefix="glee-bench-") as folder:
        base = Path(folder)
        commands = {**_own_commands(base), **_peer_commands(peers)}
        env = own_environment(base)
        project = _make_project(base, env)
        turns = {name: command_turn(command, env=env, cwd=project) for name, command in commands.items()}
        tell(f"start-up: {len(turns)} commands, up to {plan.rounds} rounds")
        _warm_up(turns)
        outcomes = interleave(turns, plan)
    bare = outcomes[_BARE]
    rows = [_row(name, outcome, bare) for name, outcome in outcomes.items()]
    rows += [Row(name=_label(peer), problem=peer.problem) for peer in peers.values() if _is_missing(peer)]
    return Table(title="Start-up: a command from start to end", rows=rows, notes=_notes(bare))


def _own_commands(base: Path) -> dict[str, Sequence[str | Path]]:
    """The bare interpreter is one without packages: what others hang into its start is not its own cost."""
    venv.create(base / "bare", symlinks=True)
    return {
        _BARE: [base / "bare" / "bin" / "python", "-c", "pass"],
        _HERE: [sys.executable, "-c", "pass"],
        "glee --help": [GLEE, "--help"],
        "glee list": [GLEE, "list"],
    }


def _peer_commands(peers: dict[str, Peer]) -> dict[str, Sequence[str | Path]]:
    present = (peer for peer in peers.values() if peer.name in PEERS and peer.problem is None)
    return {_label(peer): [peer.bin / peer.name, "--help"] for peer in present}


def _is_missing(peer: Peer) -> bool:
    return peer.name in PEERS and peer.problem is not None


def _label(peer: Peer) -> str:
    return f"{peer.name} --help ({peer.version})"


def _make_project(base: Path, env: dict[str, str]) -> Path:
    """What `glee init` lays: a config and a tool of each kind."""
    time_command([GLEE, "init", base / "project"], env=env, cwd=base)
    time.sleep(SETTLE)
    return base / "project"


def _warm_up(turns: Mapping[str, Turn]) -> None:
    """The first run writes bytecode and caches; what fails here fails again, and is reported then."""
    for turn in turns.values():
        try:
            turn()
        except ContestantFailed:
            continue


def _row(name: str, outcome: Figure | str, bare: Figure | str) -> Row:
    own = name in (_BARE, _HERE, *_TARGETS)
    if isinstance(outcome, str):
        return Row(name=name, problem=outcome, own=own)
    if isinstance(bare, str):
        return Row(name=name, figure=outcome, unit="ms", own=own)
    ratio = outcome.median / bare.median
    if name not in _TARGETS:
        return Row(name=name, figure=outcome, unit="ms", ratio=ratio, own=own)
    limit = _TARGETS[name] * bare.median / _REFERENCE_MS
    target, met = f"≤ {_TARGETS[name]:g} ms, here ≤ {show(limit)} ms", judge(outcome.median, limit)
    return Row(name=name, figure=outcome, unit="ms", ratio=ratio, target=target, met=met, own=True)


def _notes(bare: Figure | str) -> list[str]:
    if isinstance(bare, str):
        return []
    return [
        f"The targets hold where `{_BARE}` takes {_REFERENCE_MS:g} ms; here it takes {show(bare.median)} ms, so they",
        f"are scaled by {bare.median / _REFERENCE_MS:.2f} and judged so. Ratio: to `{_BARE}` without any packages.",
        "`glee list` lists what `glee init` lays.",
    ]
