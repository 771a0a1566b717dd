"""`eval`: compute arrays now."""

from __future__ import annotations

from tecomp.array.arrays import Array, node_of
from tecomp.array.graph.evaluate import evaluate


def eval(*arrays: Array) -> None:
    """Compute arrays that are not computed yet, all of them in as few kernels as possible.

    Args:
        arrays: the arrays; what is computed already stays as it is.

    Raises:
        ArrayTypeError: something is no array.

    >>> import tecomp.array as xp
    >>> x = xp.arange(4)
    >>> y, z = x + 1, x * x
    >>> xp.eval(y, z)
    """
    evaluate([node_of(array, "eval") for array in arrays])
