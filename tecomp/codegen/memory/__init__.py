"""Memory accesses to instructions: where elements are, and the fewest that reach them."""
