"""The only way out of a jail with a network of named hosts: a proxy that knows the rules of each run.

The jail listens on a loopback of its own and hands over the listening socket. Whoever connects there is a
process of that one run, so no token is needed, and nothing is left once its gate is closed.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from glee.definitions.hosts import HostRule
from glee.egress.addresses import Resolver
from glee.egress.checkpoint import Attempt, Checkpoint, Limits
from glee.egress.forward import Forward
from glee.egress.gate import Gate
from glee.egress.injection import Injected, check_injected
from glee.egress.loop_thread import LoopThread
from glee.egress.trust import make_context

__all__ = ["Attempt", "Gate", "Injected", "Limits", "Proxy"]

_LEFT_BEHIND: Final[list[Any]] = []
"""What a fork copied. It shares its selector with the parent, whom tidying it away would disturb."""


class Proxy:
    """One for each engine. Its thread starts when the first gate is opened, in the process that opens it."""

    def __init__(
        self, *, resolve: Mapping[str, str] | None = None, ca_file: str | None = None, limits: Limits | None = None
    ) -> None:
        self._resolver = Resolver(resolve)
        self._ca_file = ca_file
        self._limits = limits or Limits()
        self._context: ssl.SSLContext | None = None
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._thread: LoopThread | None = None
        self._gates: list[Gate] = []

    def open(self, listener: socket.socket, rules: Sequence[HostRule], injected: Sequence[Injected] = ()) -> Gate:
        """Serves what connects to a listener, which from now on belongs to the gate."""
        check_injected(injected)
        if injected:
            self._trust()  # so that a fault in it shows before anything runs
        self._notice_fork()
        with self._lock:
            self._thread = self._thread or LoopThread("glee-egress")
            checkpoint = Checkpoint(rules, self._resolver, self._limits)
            gate = Gate(self._thread, listener, checkpoint, Forward(checkpoint, tuple(injected), self._trust))
            self._gates = [*(known for known in self._gates if not known.is_closed), gate]
        return gate

    def close(self) -> None:
        """Closes every gate and ends the thread; another gate would start a new one."""
        self._notice_fork()
        with self._lock:
            gates, self._gates = self._gates, []
            thread, self._thread = self._thread, None
        for gate in gates:
            gate.close()
        if thread is not None:
            thread.close()

    def _notice_fork(self) -> None:
        """A forked process has no thread but its own, and a lock that another thread held stays locked."""
        if self._pid != os.getpid():
            _LEFT_BEHIND.append((self._thread, self._gates))
            self._pid, self._lock, self._thread, self._gates = os.getpid(), threading.Lock(), None, []

    def _trust(self) -> ssl.SSLContext:
        if self._context is None:
            context = make_context(self._ca_file)
            context.set_alpn_protocols(["http/1.1"])
            self._context = context
        return self._context
