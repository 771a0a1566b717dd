"""How products of matrices run on a processor: what is planned, and the loops."""
