"""What functions of elements compute, as expressions of numbers and of pairs of them."""
