"""What a launcher is told of a jail: plain steps in order, made by the engine and carried out without a thought.

A launcher holds no policy. It reads steps of known arity, each a word and its arguments, all text that ends in a
zero byte, so that the smallest of programs can read them too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final

Step = tuple[str, ...]

PLAN_BYTES: Final = 16 * 1024 * 1024
"""A plan that is larger is refused."""
STRANGER: Final = 64_999
"""Whom a run is when Glee is run by root: a number that belongs to nobody."""
ARITY: Final = {
    "layer": 1,
    "user": 2,
    "folder": 1,
    "file": 1,
    "link": 2,
    "bind": 3,
    "mask": 1,
    "late": 2,
    "fresh": 3,
    "processes": 1,
    "private": 1,
    "version": 1,
    "rule": 2,
    "inside": 2,
    "ports": 1,
    "limit": 2,
    "group": 2,
    "net": 1,
    "door": 1,
    "filter": 1,
    "record": 1,
    "stamp": 1,
}
"""
layer NAME              one of the layers that hold this jail
user UID GID            whom the run runs as
folder PATH             an empty folder in the private root
file PATH               an empty file in it, to mount something on
link TARGET PATH        a symbolic link in it
bind MODE SOURCE PATH   something of the machine, in the private root; MODE is r, w, s (the system's) or d (a device)
mask PATH               nothing, where something of the machine would be
late KIND PATH          what is at this path lies below a fresh folder, so it is put there for each run anew
fresh BYTES MODE PATH   an empty folder in memory, for each run its own
processes PATH          where /proc is
private FOLDER          where there are no mounts: each run has a folder of its own in this one
version N               of Landlock
rule RIGHTS PATH        what Landlock allows below a path of the machine
inside RIGHTS PATH      the same for a path that only this run has
ports yes|no            whether Landlock forbids TCP
limit RESOURCE VALUE    a resource limit, for each process
group MEMORY PROCESSES  limits for all processes of the run together, in bytes and in number
net none|open|hosts     no network, the machine's, or one of its own that holds nothing but the door
door PORT               where that network has a listener, which is handed to the engine
filter HEX              the system call filter
record HEX              a second filter, whose descriptor is handed to the engine: it is told of calls, and decides none
stamp TEXT              nothing; it tells apart plans whose paths are the same and what is there is not
"""


def encode_steps(steps: Iterable[Step]) -> bytes:
    for step in steps:
        if len(step) != ARITY[step[0]] + 1:
            raise ValueError(f"the step {step[0]} takes {ARITY[step[0]]} arguments")
        if any("\0" in word for word in step):
            raise ValueError("a path in a jail cannot hold a zero byte")
    return b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for step in steps for word in step)


def decode_steps(data: bytes) -> Iterator[Step]:
    """Raises ValueError for what no engine writes."""
    if len(data) > PLAN_BYTES:
        raise ValueError("the plan is too large")
    words = iter(data.decode("utf-8", "surrogateescape").split("\0")[:-1])
    for word in words:
        if word not in ARITY:
            raise ValueError(f"the step {word[:40]} is not known")
        step = (word, *itertools.islice(words, ARITY[word]))
        if len(step) <= ARITY[word]:
            raise ValueError(f"the step {word} takes {ARITY[word]} arguments")
        yield step
