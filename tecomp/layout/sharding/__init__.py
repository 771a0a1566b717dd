"""Sharded layouts: tensors on grids of cores, in tiles."""
