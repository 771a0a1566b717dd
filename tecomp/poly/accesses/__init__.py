"""Comparison of the elements that lanes, iterations and cores access."""
