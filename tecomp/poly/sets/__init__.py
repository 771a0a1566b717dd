"""Expressions as quasi-affine sums, as sets and functions of isl, and back."""
