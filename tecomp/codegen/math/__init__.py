"""Math functions on vectors: range reductions and polynomials, in instructions of every machine."""
