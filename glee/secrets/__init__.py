"""Where secret values come from, and how they are kept out of everything else."""
