"""What the bench is doing, on standard error, so that the tables can be kept from standard output."""

from __future__ import annotations

import sys
import time

_BEGAN = time.monotonic()


def tell(text: str) -> None:
    print(f"[{time.monotonic() - _BEGAN:5.1f} s] {text}", file=sys.stderr, flush=True)
