"""Reductions along axes, and cumulative functions, from the rows of the table of reductions.

`reductions.pyi` declares the functions for type checkers and editors. Write it with
`python -m tests.operations.stubs` after a change of the table.
"""

from tecomp.topi.reduction import reductions
from tecomp.topi.scan import cumulative_functions

_FUNCTIONS = dict(sorted({**reductions(__name__), **cumulative_functions(__name__)}.items()))
__all__ = [*_FUNCTIONS]
globals().update(_FUNCTIONS)
