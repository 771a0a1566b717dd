"""Vectorization and unrolling of loops."""
