"""How it is held: what a run may touch, and the kernel mechanisms that hold it."""
