"""Functions that tables define: element-wise functions and reductions along axes.

`table_functions.pyi` declares the functions for type checkers and editors. Write it with
`python -m tests.operations.stubs` after a change of a table.
"""

from tecomp.array.functions.row_functions import elementwise_functions, reductions

_FUNCTIONS = elementwise_functions(__name__) | reductions(__name__)
__all__ = [*_FUNCTIONS]
globals().update(_FUNCTIONS)
