"""Conversion between expressions, quasi-affine sums, and isl sets and functions."""
