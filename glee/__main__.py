"""`python -m glee` is `glee`."""

from glee.doors.cli import main

main()
