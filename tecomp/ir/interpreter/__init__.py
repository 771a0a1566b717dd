"""Functions run on NumPy arrays: the oracle of the tests."""
