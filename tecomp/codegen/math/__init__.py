"""Vector math functions: range reductions and polynomials in portable instructions."""
