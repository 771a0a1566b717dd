"""Kernel dispatch from Python: argument checks, the process runtime and its threads."""
