"""Element-wise functions of `te` that are intrinsics: one for each row with `te`.

`elementwise.pyi` declares the functions for type checkers and editors. Write it with
`python -m tests.operations.stubs` after a change of the table.
"""

from tecomp.compute.intrinsics import elementwise_functions

_FUNCTIONS = elementwise_functions(__name__)
__all__ = [*_FUNCTIONS]
globals().update(_FUNCTIONS)
