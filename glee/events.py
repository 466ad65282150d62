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

        def unsubscribe() -> None:
            self.listeners = tuple(other for other in self.listeners if other is not listener)

        return unsubscribe

    def emit(self, event: Event) -> None:
        """A listener that fails is the listener's fault, never the call's."""
        for listener in self.listeners:
            try:
                listener(event)
            except Exception:
                import logging

                logging.getLogger("glee").exception("a listener failed on %s", type(event).__name__)
