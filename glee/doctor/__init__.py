"""WHAT CAN THIS MACHINE HOLD: escapes are tried from inside real jails, and what was not stopped is told."""
