"""Traversal of IR graphs: rewriting, verification, analyses and serialization."""
