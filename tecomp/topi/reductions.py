"""Reductions along axes: one function for each row of the table of reductions with `topi`.

`reductions.pyi` declares the functions for type checkers and editors. Write it with
`python -m tests.operations.stubs` after a change of the table.
"""

from tecomp.topi.reduction import reductions

_FUNCTIONS = reductions(__name__)
__all__ = [*_FUNCTIONS]
globals().update(_FUNCTIONS)
