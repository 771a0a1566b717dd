"""Intermediate representation shared by all passes: expressions, statements, functions."""
