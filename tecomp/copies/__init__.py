"""Compiled copies into layouts, out of them, and from one to another."""
