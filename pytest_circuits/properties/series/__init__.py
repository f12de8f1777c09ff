"""Claims over a series of checkpoints or seeds."""
