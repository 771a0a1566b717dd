"""Construction of loop nests over logical tensors from stages."""
