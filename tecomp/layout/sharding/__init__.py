"""Sharded layouts: tiled tensors distributed over core grids."""
