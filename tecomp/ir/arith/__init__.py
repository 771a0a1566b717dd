"""Integer index arithmetic: quasi-affine sums, bounds and simplification."""
