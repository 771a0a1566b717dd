"""Emission of memory accesses: addresses and efficient load and store instructions."""
