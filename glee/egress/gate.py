"""The way out of one run: connections are taken from its listener, counted, and ended together."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from typing import Final

from glee.definitions.hosts import to_authority
from glee.egress.checkpoint import Attempt, Checkpoint
from glee.egress.forward import Forward
from glee.egress.loop_thread import LoopThread
from glee.egress.visit import Visit

_PASSING: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ECONNABORTED)
"""Why a connection cannot be taken now, though perhaps soon."""
_PAUSE: Final = 0.1


class Gate:
    def __init__(self, thread: LoopThread, listener: socket.socket, checkpoint: Checkpoint, forward: Forward) -> None:
        self.refused: list[Attempt] = checkpoint.refused
        """What the run tried and was not let do; complete once the gate is closed."""
        self.admitted = checkpoint.admitted
        self.failures = checkpoint.failures
        self._thread = thread
        self._listener = listener
        self._checkpoint = checkpoint
        self._forward = forward
        host, port = listener.getsockname()[:2]
        self._own = (to_authority(host, port), f"localhost:{port}")
        self._visits: dict[asyncio.Task[None], socket.socket] = {}
        self._later: asyncio.TimerHandle | None = None
        listener.setblocking(False)
        thread.soon(self._listen)

    @property
    def is_closed(self) -> bool:
        return self._listener.fileno() == -1

    def close(self) -> None:
        """Ends every connection of the run, and returns when that is so. In a forked process it does nothing."""
        self._thread.wait_for(self._end)

    def _listen(self) -> None:
        asyncio.get_running_loop().add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._listener)
            if error.errno in _PASSING:
                self._later = loop.call_later(_PAUSE, self._listen)
            return
        self._take(connection)

    def _take(self, connection: socket.socket) -> None:
        """A connection too many is told so; far too many are not even told."""
        count, most = len(self._visits), self._checkpoint.limits.connections
        if count >= 2 * most:
            connection.close()
            return
        task = asyncio.ensure_future(self._serve(connection, welcome=count < most))
        self._visits[task] = connection
        task.add_done_callback(self._forget)

    async def _serve(self, connection: socket.socket, *, welcome: bool) -> None:
        streams = await asyncio.open_connection(sock=connection)
        visit = Visit(self._checkpoint, self._forward, self._own, streams)
        await (visit.serve() if welcome else visit.turn_away())

    def _forget(self, task: asyncio.Task[None]) -> None:
        """Closes the connection also where its task was cancelled before it had begun."""
        _hang_up(self._visits.pop(task))
        if not task.cancelled():
            task.exception()  # which would be logged if nobody asked for it

    async def _end(self) -> None:
        if not self.is_closed:
            asyncio.get_running_loop().remove_reader(self._listener)
            if self._later:
                self._later.cancel()
            _hang_up(self._listener)
            for task in self._visits:
                task.cancel()
        while self._visits:
            await asyncio.wait(self._visits)
            await asyncio.sleep(0)  # for _forget


def _hang_up(connection: socket.socket) -> None:
    """Also where a process forked meanwhile holds a copy."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
