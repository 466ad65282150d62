"""Files and functions into definitions."""
