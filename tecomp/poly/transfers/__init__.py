"""Copies between two maps of one tensor: digits they share, nests of strides, runs."""
