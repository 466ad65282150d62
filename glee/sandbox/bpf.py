"""Programs for the kernel's packet filter, which judges system calls: instructions, labels and a search tree."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Final

LOAD: Final = 0x20
"""Into the accumulator: four bytes of the call's description, at an offset."""
AND: Final = 0x54
RETURN: Final = 0x06
_GO: Final = 0x05
_EQUAL: Final = 0x15
_AT_LEAST: Final = 0x35
_ANY_BIT: Final = 0x45

NUMBER: Final = 0
ARCHITECTURE: Final = 4
ALLOW: Final = 0x7FFF_0000
KILL: Final = 0x8000_0000
ASK: Final = 0x7FC0_0000
"""Whoever holds the filter's descriptor is told, and answers."""


def refuse(errno: int) -> int:
    return 0x0005_0000 | errno


def argument(index: int) -> int:
    """The offset of the low half of an argument, on a little-endian machine."""
    return 16 + 8 * index


class Program:
    """Written from top to bottom; every jump leads forward, to a label."""

    def __init__(self) -> None:
        self._code: list[tuple[int, int, str | None, str | None]] = []
        self._labels: dict[str, int] = {}

    def label(self, name: str) -> None:
        self._labels[name] = len(self._code)

    def load(self, offset: int) -> None:
        self._code.append((LOAD, offset, None, None))

    def mask(self, bits: int) -> None:
        self._code.append((AND, bits, None, None))

    def answer(self, verdict: int) -> None:
        self._code.append((RETURN, verdict, None, None))

    def go(self, label: str) -> None:
        self._code.append((_GO, 0, label, None))

    def if_equal(self, value: int, then: str | None, otherwise: str | None = None) -> None:
        self._code.append((_EQUAL, value, then, otherwise))

    def if_at_least(self, value: int, then: str | None, otherwise: str | None = None) -> None:
        self._code.append((_AT_LEAST, value, then, otherwise))

    def if_any_bit(self, bits: int, then: str | None, otherwise: str | None = None) -> None:
        self._code.append((_ANY_BIT, bits, then, otherwise))

    def assemble(self) -> bytes:
        return b"".join(self._encode(place, *step) for place, step in enumerate(self._code))

    def _encode(self, place: int, code: int, value: int, then: str | None, otherwise: str | None) -> bytes:
        if code == _GO:
            assert then is not None
            return struct.pack("=HBBI", code, 0, 0, self._labels[then] - place - 1)
        jumps = [0 if label is None else self._labels[label] - place - 1 for label in (then, otherwise)]
        if not all(0 <= jump <= 255 for jump in jumps):
            raise ValueError("a jump is too long for the filter")
        return struct.pack("=HBBI", code, *jumps, value)


def search(program: Program, table: Mapping[int, str], otherwise: str) -> None:
    """Goes to the label of the number in the accumulator, in as few steps as a balanced tree takes.

    The kernel tries every system call when a filter is installed, so its depth decides what that costs.
    """
    ranges: list[tuple[int, str]] = []
    for number in range(max(table) + 2):
        label = table.get(number, otherwise)
        if not ranges or ranges[-1][1] != label:
            ranges.append((number, label))
    _branch(program, ranges)


def _branch(program: Program, ranges: Sequence[tuple[int, str]]) -> None:
    if len(ranges) == 1:
        program.go(ranges[0][1])
        return
    middle = len(ranges) // 2
    upper = f"from {ranges[middle][0]}"
    skip = f"below {ranges[middle][0]}"
    program.if_at_least(ranges[middle][0], None, skip)
    program.go(upper)
    program.label(skip)
    _branch(program, ranges[:middle])
    program.label(upper)
    _branch(program, ranges[middle:])
