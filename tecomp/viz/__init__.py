"""Figures of user-visible objects: one module per kind, with a function that returns SVG."""
