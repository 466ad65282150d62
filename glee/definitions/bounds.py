"""How much of the machine one run may use."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, structs


class Bounds(Struct, frozen=True, kw_only=True):
    memory_mb: int = 2048
    processes: int = 256
    open_files: int = 1024
    file_mb: int = 1024
    """The size of one file."""
    cpu_seconds: int = 600
    cpu_percent: int | None = None
    """Of one core."""
    tmp_mb: int = 256
    """What /tmp and HOME hold, each."""

    def narrow(self, wanted: Mapping[str, int]) -> Bounds:
        """The smaller of each: whoever asks can only ask for less."""
        least = {name: _least(getattr(self, name), value) for name, value in wanted.items()}
        return structs.replace(self, **least) if least else self


def _least(most: int | None, value: int) -> int:
    return value if most is None else min(most, value)
