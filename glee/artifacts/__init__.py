"""What was too large to return, kept whole and read by handle."""
