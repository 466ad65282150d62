"""What Landlock can allow below a path, by the names that Glee uses."""

from __future__ import annotations

from typing import Final

_EXECUTE: Final = 1 << 0
_WRITE_FILE: Final = 1 << 1
_READ_FILE: Final = 1 << 2
_READ_DIR: Final = 1 << 3
_REMOVE_DIR: Final = 1 << 4
_REMOVE_FILE: Final = 1 << 5
_MAKE_DIR: Final = 1 << 7
_MAKE_REG: Final = 1 << 8
_MAKE_FIFO: Final = 1 << 10
_MAKE_SYM: Final = 1 << 12
REFER: Final = 1 << 13
TRUNCATE: Final = 1 << 14
IOCTL_DEV: Final = 1 << 15

LIST: Final = _READ_DIR
LOOK: Final = _READ_FILE | _READ_DIR
READ: Final = LOOK | _EXECUTE
WRITE: Final = (
    READ
    | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_FIFO | _MAKE_SYM | REFER | TRUNCATE
)  # fmt: skip
DEVICE: Final = _READ_FILE | _WRITE_FILE | IOCTL_DEV | TRUNCATE
OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | TRUNCATE | IOCTL_DEV
