"""Functions of the namespace, one file for each group of the standard."""
