"""What happened: one line for each event, appended and never rewritten."""
