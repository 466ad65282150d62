"""`python -m bench`: measures, prints the tables, and ends well unless something is broken."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench import calls, startup
from bench.calls import measure_calls
from bench.catalog import measure_catalog
from bench.machine import describe_machine, to_lines
from bench.measure import ContestantFailed, Plan
from bench.peers import Peer, set_up_peers
from bench.process import measure_process
from bench.progress import tell
from bench.sandbox import measure_sandbox
from bench.startup import measure_startup
from bench.table import Table
from glee.version import VERSION

SECTIONS: Final = ("call", "startup", "catalog", "process", "sandbox")
_PEERS_OF: Final = {"call": calls.PEERS, "startup": startup.PEERS}


def main() -> int:
    options = _parse(sys.argv[1:])
    machine = describe_machine()
    wanted = set().union(*(_PEERS_OF.get(section, ()) for section in options.only))
    peers = set_up_peers(wanted) if options.peers else {}
    print("\n".join([f"Glee {VERSION}", *to_lines(machine)]))
    tables: dict[str, Table] = {}
    broken: list[str] = []
    for section in options.only:
        try:
            table = tables[section] = _measure(section, peers, quick=options.quick, install=options.peers)
        except ContestantFailed as error:
            broken.append(f"{section}: {error}")
            continue
        print(f"\n{table.to_text()}", flush=True)
        broken += table.broken
    if options.json:
        _write(options.json, machine, tables)
    for sentence in broken:
        tell(f"broken: {sentence}")
    return 1 if broken else 0


def _write(file: Path, machine: dict[str, str | int | float], tables: dict[str, Table]) -> None:
    sections = {section: table.to_json() for section, table in tables.items()}
    figures = {"glee": VERSION, "machine": machine, "tables": sections}
    file.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n")


def _measure(section: str, peers: dict[str, Peer], *, quick: bool, install: bool) -> Table:
    """Quick or not, the same is measured; only less often."""
    measures: dict[str, Callable[[], Table]] = {
        "call": lambda: measure_calls(peers, _plan(quick, rounds=120, calls=50, seconds=60)),
        "startup": lambda: measure_startup(peers, _plan(quick, rounds=15, calls=1, seconds=45)),
        "catalog": lambda: measure_catalog(_plan(quick, rounds=60, calls=100, seconds=20), repeats=1 if quick else 3),
        "process": lambda: measure_process(_plan(quick, rounds=60, calls=5, seconds=20)),
        "sandbox": lambda: measure_sandbox(_plan(quick, rounds=200, calls=3, seconds=300), peers=install),
    }
    return measures[section]()


def _plan(quick: bool, *, rounds: int, calls: int, seconds: float) -> Plan:
    if quick:
        return Plan(rounds=max(rounds // 5, 3), calls=calls, seconds=seconds / 5)
    return Plan(rounds=rounds, calls=calls, seconds=seconds)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: half a minute instead of some minutes")
    parser.add_argument(
        "--only", type=_sections, default=SECTIONS, metavar="A,B", help=f"some of {', '.join(SECTIONS)}"
    )
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="Glee alone: nothing is installed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file too")
    return parser.parse_args(arguments)


def _sections(text: str) -> tuple[str, ...]:
    named = text.split(",")
    unknown = [name for name in named if name not in SECTIONS]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no section {unknown[0]}; there are {', '.join(SECTIONS)}")
    return tuple(section for section in SECTIONS if section in named)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
