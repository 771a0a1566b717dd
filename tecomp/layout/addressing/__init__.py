"""Which place each element of a tensor has, as numbers."""
