"""Python tools that wait for their call: jailed, their module imported, forked once for each call."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from glee.definitions.json_text import decode_json, encode_json
from glee.errors import SandboxUnavailable
from glee.runners.jailed import CHANNEL, HeldProcess, end_jail, receive
from glee.sandbox.jails import Jail
from glee.sandbox.spec import is_below
from glee.sandbox.syscalls import machine, numbers

MOST: Final = 16
"""Templates that an engine keeps."""
MOST_EACH: Final = 4
"""Of one tool: as many calls of it as are quick at the same time."""
IDLE: Final = 240.0
"""Seconds after which one that nobody called is not used any more."""
UNFIT: Final = 60.0
"""Seconds after which a tool that could not have one is tried again: its module may have been mended."""


class Template:
    """One jailed interpreter that has imported the module. It serves one call at a time."""

    def __init__(self, jail: Jail, line: socket.socket, control: socket.socket, now: float) -> None:
        self.jail = jail
        self.line = line
        self.control = control
        self.used = now
        self._watched: dict[str, list[int] | None] | None = None

    def find_fault(self) -> str | None:
        """Why it can never be used; empty while it still imports."""
        if self._watched is not None:
            return None if self._is_current() and not _has_news(self.control) else "stale"
        if not _has_news(self.control):
            return ""
        news = receive(self.control)
        if news[:1] != b"W":
            return news[1:].decode("utf-8", "replace") if news else "ended"
        try:
            self._watched = self._read_watched(decode_json(news[1:]))
        except (ValueError, AttributeError) as error:
            return f"its word cannot be read: {error}"
        return None if self._is_current() else "stale"

    def _read_watched(self, said: dict[str, list[int] | None]) -> dict[str, list[int] | None]:
        """Only what the jail was shown: the module could name any path, and learn from what becomes of it."""
        shown = (*self.jail.spec.read, *self.jail.spec.write)
        return {path: identity for path, identity in said.items() if any(is_below(path, one) for one in shown)}

    def _is_current(self) -> bool:
        return all(_identify(path) == identity for path, identity in (self._watched or {}).items())

    def close(self) -> bool:
        self.control.close()
        whole = end_jail(self.line)
        self.line.close()
        return whole


class Templates:
    """All that wait, by the jail they are in: a jail that changed has none."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._idle: dict[bytes, list[Template]] = {}
        self._busy: dict[bytes, int] = {}
        self._unfit: dict[bytes, tuple[str, float]] = {}
        """Why a tool cannot have any, and since when that is known."""
        self._pid = os.getpid()
        self._is_closed = False

    def take(self, jail: Jail) -> Template | None:
        """One that is ready, if there is one."""
        self._notice_fork()
        with self._lock:
            chosen, useless = self._choose(jail.plan)
        for template in useless:  # outside the lock: that may take a moment
            template.close()
        return chosen

    def _choose(self, plan: bytes) -> tuple[Template | None, list[Template]]:
        """One that is ready, and those before it that can never be used again."""
        waiting = self._idle.get(plan, [])
        useless: list[Template] = []
        for template in list(waiting):
            fault = template.find_fault()
            if fault == "":
                continue
            waiting.remove(template)
            if fault is None and self._clock() - template.used < IDLE:
                self._busy[plan] = self._busy.get(plan, 0) + 1
                return template, useless
            if fault not in (None, "stale", "ended"):
                now = self._clock()
                self._unfit = {one: said for one, said in self._unfit.items() if now - said[1] < UNFIT}
                self._unfit[plan] = (fault, now)
            useless.append(template)
        return None, useless

    def give_back(self, template: Template, *, clean: bool) -> None:
        plan = template.jail.plan
        with self._lock:
            self._busy[plan] = self._busy.get(plan, 1) - 1
            if not self._busy[plan]:
                del self._busy[plan]
            if clean and not self._is_closed:
                template.used = self._clock()
                self._idle.setdefault(plan, []).insert(0, template)
                return
        if clean:
            template.close()

    def prepare(self, jail: Jail, argv: Sequence[str], env: Mapping[str, str], request: dict[str, Any]) -> None:
        """Starts one for the next call, unless enough wait or the tool cannot have any."""
        self._notice_fork()
        with self._lock:
            waiting = self._idle.setdefault(jail.plan, [])
            _, since = self._unfit.get(jail.plan, ("", -UNFIT))
            if self._is_closed or self._clock() - since < UNFIT or waiting or self._busy.get(jail.plan, 0) >= MOST_EACH:
                return
            with contextlib.suppress(OSError, SandboxUnavailable):  # it is only the next call that would be slower
                waiting.append(_start(jail, argv, env, request, self._clock()))
            useless = self._retire()
        for template in useless:
            template.close()

    def _retire(self) -> list[Template]:
        """Those that are too many, the least used first."""
        idle = sorted((template.used, plan) for plan, waiting in self._idle.items() for template in waiting)
        useless = [self._idle[plan].pop() for _, plan in idle[: max(0, len(idle) - MOST)]]
        for plan in [plan for plan, waiting in self._idle.items() if not waiting]:
            del self._idle[plan]
        return useless

    def _notice_fork(self) -> None:
        """Those of the process this one was forked from belong to that one."""
        if self._pid != os.getpid():
            self._pid, self._lock = os.getpid(), threading.Lock()
            self._idle, self._busy = {}, {}

    def close(self) -> None:
        self._notice_fork()
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, {}
        for template in (template for waiting in idle.values() for template in waiting):
            template.close()


def _start(jail: Jail, argv: Sequence[str], env: Mapping[str, str], request: dict[str, Any], now: float) -> Template:
    table = numbers(machine() or "x86_64")
    calls = {"create": table["landlock_create_ruleset"], "restrict": table["landlock_restrict_self"]}
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    with contextlib.ExitStack() as undo:
        undo.callback(ours.close)
        try:
            spare = jail.take()
            undo.callback(spare.line.close)
            jail.send(spare, [*argv, str(CHANNEL), "template"], env=env, files=[null, null, null, theirs.fileno()])
            ours.send(encode_json({**request, "numbers": calls}))
        finally:
            os.close(null)
            theirs.close()
        undo.pop_all()
    jail.refill()
    return Template(jail, spare.line, ours, now)


class TemplateProcess(HeldProcess):
    """One call in a template, as a process that can be waited for and ended."""

    def __init__(self, template: Template, templates: Templates) -> None:
        super().__init__(template.jail)
        self.exit_file = template.control.fileno()
        self._template: Template | None = template
        self._templates = templates
        self._taken = self._clean = False

    def start(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], files: Sequence[int]) -> None:
        assert self._template is not None
        self._own(files)
        try:
            socket.send_fds(self._template.control, [b"G"], list(files))
        except ConnectionError:
            raise SandboxUnavailable(
                "the tool's template was gone before it was used; nothing was run, call again"
            ) from None

    def is_over(self) -> bool:
        assert self._template is not None
        if self.exit_file == self._template.line.fileno():
            return self._is_jail_over(self._template.line)
        news = receive(self._template.control)
        if news == b"T":
            self._taken = True
            return False
        if news[:1] in (b"D", b"Z"):
            self._status = int(news[1:])
        if not self._taken:
            raise SandboxUnavailable("the tool's template ended before it took the call; nothing was run, call again")
        self._clean = news[:1] == b"D"
        self.exit_file = self._template.line.fileno()
        return self._clean

    def _is_jail_over(self, line: socket.socket) -> bool:
        """What the call left behind is gone only when process one says so."""
        news = receive(line)
        if news == b"R":
            return False
        if self._status is None:
            self._status = int(news[1:]) if news[:1] == b"X" else 128 + 9
        return True

    def end(self) -> bool:
        template, self._template = self._template, None
        if template is None:
            return True
        self.exit_file = None
        whole = self._clean or template.close()
        self._templates.give_back(template, clean=self._clean)
        return whole


def _has_news(line: socket.socket) -> bool:
    watch = select.poll()
    watch.register(line, select.POLLIN | select.POLLRDHUP)
    return bool(watch.poll(0))


def _identify(path: str) -> list[int] | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return [status.st_mtime_ns, status.st_size, status.st_ino]
