"""Stick layouts: rows of fixed bytes, tiled."""
