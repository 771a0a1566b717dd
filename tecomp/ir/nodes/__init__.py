"""Expressions, statements and functions, and how they are printed."""
