"""Tables: rows of figures with their targets, as text for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.measure import Figure

_HEADER = ("", "median", "p10 – p90", "ratio", "target", "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    name: str
    figure: Figure | None = None
    unit: str = ""
    problem: str | None = None
    """Why there is no figure."""
    ratio: float | None = None
    target: str = ""
    met: bool | None = None
    """None where there is no target, or where nothing could be judged."""
    own: bool = False
    """True for Glee's own rows: without a figure there, the bench is broken."""

    @property
    def verdict(self) -> str:
        if self.met is None:
            return ""
        return "met" if self.met else "falls short"


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    title: str
    rows: list[Row]
    notes: list[str] = field(default_factory=list)

    @property
    def broken(self) -> list[str]:
        return [f"{row.name}: {row.problem}" for row in self.rows if row.own and row.figure is None]

    def to_json(self) -> dict[str, Any]:
        rows = [{**asdict(row), "verdict": row.verdict} for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": self.notes}

    def to_text(self) -> str:
        lines = [_HEADER, *(_cells(row) for row in self.rows)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADER))]
        body = (_align(line, widths) for line in lines)
        rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
        return "\n".join([self.title, rule, *_problems(body, self.rows), *(f"  {note}" for note in self.notes)])


def judge(value: float | None, limit: float, *, at_least: bool = False) -> bool | None:
    if value is None:
        return None
    return value >= limit if at_least else value <= limit


def show(value: float) -> str:
    """Three figures are as many as a measurement bears."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _cells(row: Row) -> tuple[str, ...]:
    if row.figure is None:
        return (row.name, "–", "", "", row.target, "")
    figure = row.figure
    spread = f"{show(figure.low)} – {show(figure.high)}" if figure.count > 1 else "one run"
    ratio = f"{show(row.ratio)}×" if row.ratio is not None else ""
    return (row.name, f"{show(figure.median)} {row.unit}", spread, ratio, row.target, row.verdict)


def _align(line: tuple[str, ...], widths: list[int]) -> str:
    name, *rest = line
    cells = [name.ljust(widths[0])]
    for number, cell in enumerate(rest, 1):
        cells.append(cell.rjust(widths[number]) if number < 4 else cell.ljust(widths[number]))
    return "  ".join(cells).rstrip()


def _problems(lines: Iterator[str], rows: list[Row]) -> Iterator[str]:
    """Each line, and below a row without a figure the reason."""
    yield next(lines)
    for line, row in zip(lines, rows, strict=True):
        yield line
        if row.problem:
            yield f"    {row.problem}"
