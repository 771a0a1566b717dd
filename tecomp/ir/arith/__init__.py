"""Index arithmetic: quasi-affine sums, what is known about them, their shortest form."""
