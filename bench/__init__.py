"""`make bench`: what Glee costs, measured beside its peers in one interleaved run."""
