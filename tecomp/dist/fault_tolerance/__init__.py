"""Loops that survive rank failures by in-memory checkpoints on neighbour ranks."""
