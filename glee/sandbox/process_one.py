"""Process one of a container: a shell script that any image with `sh` and `dd` can run, and what it is told.

    $1 bytes of orders, $2 bytes of the program's standard input, $3 the number of the result channel or "no"

Both arrive on its standard input, so that no value stands in an argument, in what the engine shows of a container
or on its disk. Afterwards that input is the lifeline: nothing more is sent, and when it closes, because Glee let go
of it or died, process one ends and the kernel ends everything else in the container with it. Nobody inside can
stop or kill process one, which is why it reads the line itself.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Final

PRIVATE: Final = "/run/glee"
"""A small file system in memory that each container has for itself."""
HOME: Final = f"{PRIVATE}/home"
CHANNEL: Final = 3
NOT_RUN: Final = (125, 126, 127, 255)
"""Exit codes of an engine that ran nothing, which programs have too: with these, process one leaves a mark."""
_PROXIES: Final = tuple(f"{name}_PROXY" for name in ("HTTP", "HTTPS", "FTP", "NO", "ALL"))
"""What an engine's own settings may put into every container."""

SCRIPT: Final = """\
size=$2 channel=$3
take() { dd bs="$1" count=1 iflag=fullblock 2>/dev/null; }
orders=$(take "$1")
set --
eval "$orders"
[ "$#" -gt 0 ] && mkdir -m 700 "$HOME" || { echo "glee: the image needs sh, dd and mkdir" >&2; exit 125; }
if [ "$size" = 0 ]; then
  exec 4</dev/null
else
  take "$size" >"$HOME/.in" && exec 4<"$HOME/.in" && rm "$HOME/.in" || exit 125
fi
[ "$channel" = no ] || eval "exec $channel>&1 1>&2"
trap 'wait "$run"; exit $?' USR1
{
  (exec "$@" <&4 4<&-)
  code=$?
  case $code in 125 | 126 | 127 | 255)
    if command -v "$1" >/dev/null 2>&1; then echo "$mark code"; else echo "$mark missing"; fi >&2 ;;
  esac
  while kill -USR1 1; do sleep 0.05 2>/dev/null || sleep 1; done &
  exit "$code"
} &
run=$!
while read -r _; do :; done
exit 143
"""
"""The signal is sent again and again because a shell may miss it just before it begins to read."""


def write_orders(argv: Sequence[str], *, env: Mapping[str, str], mark: str) -> bytes:
    """In braces, so that orders which arrive in part are no orders."""
    values = {"HOME": HOME, "TMPDIR": "/tmp", **env}
    lines = [
        f"mark={shlex.quote(mark)}",
        f"unset {' '.join((*_PROXIES, *map(str.lower, _PROXIES)))}",
        *(f"export {name}={shlex.quote(value)}" for name, value in values.items()),
        f"set -- {shlex.join(argv)}",
    ]
    return "\n".join(["{", *lines, "}\n"]).encode("utf-8", "surrogateescape")


def read_mark(stderr: bytes, mark: str) -> tuple[bytes, str]:
    """What the program itself wrote, and the word that process one left: `code`, `missing`, or nothing."""
    before, found, after = stderr.rpartition(mark.encode())
    if not found:
        return stderr, ""
    word, _, rest = after.partition(b"\n")
    return before + rest, word.strip().decode("ascii", "replace")
