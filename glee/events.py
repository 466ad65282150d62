"""The one stream of events: whoever wants to watch a call subscribes here and can change nothing."""

from __future__ import annotations

from collections.abc import Callable

from glee.definitions.event import Event, Listener


class Events:
    def __init__(self) -> None:
        self.listeners: tuple[Listener, ...] = ()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Returns a function that ends the subscription."""
        self.listeners = (*self.listeners, listener)
        subscribed = True

        def unsubscribe() -> None:
            nonlocal subscribed
            if subscribed:
                subscribed = False
                at = self.listeners.index(listener)
                self.listeners = self.listeners[:at] + self.listeners[at + 1 :]

        return unsubscribe

    def emit(self, event: Event) -> None:
        """A listener that fails is the listener's fault, never the call's."""
        for listener in self.listeners:
            try:
                listener(event)
            except Exception:
                import logging

                logging.getLogger("glee").exception("a listener failed on %s", type(event).__name__)
