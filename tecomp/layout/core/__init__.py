"""Layouts: one index map on a tensor of known shape, and what follows from it."""
