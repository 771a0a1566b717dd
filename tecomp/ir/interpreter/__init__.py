"""Interpreter of IR functions on NumPy arrays; the oracle of the tests."""
