"""Element-wise functions of tensors: one for each row of the table of element-wise functions.

`elementwise.pyi` declares the functions for type checkers and editors. Write it with
`python -m tests.operations.stubs` after a change of the table.
"""

from tecomp.topi.row_functions import elementwise_functions

_FUNCTIONS = elementwise_functions(__name__)
__all__ = [*_FUNCTIONS]
globals().update(_FUNCTIONS)
