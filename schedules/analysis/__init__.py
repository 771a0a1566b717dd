"""Pattern recognition on access relations: matrix products, convolutions, windows, reductions."""
