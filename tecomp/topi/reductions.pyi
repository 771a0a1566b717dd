"""Reductions along axes, and cumulative functions, from the rows of the table of reductions.

`reductions.pyi` declares the functions for type checkers and editors. Write it with
`python -m tests.operations.stubs` after a change of the table.
"""

# Generated: `python -m tests.operations.stubs`.

from tecomp.compute.tensor import Tensor
from tecomp.topi.validation import Axes

__all__ = [  # noqa: RUF022
    "all",
    "any",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "logsumexp",
    "max",
    "min",
    "prod",
    "sum",
]

# tecomp/operations/reductions.py: "all"
def all(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Test whether all elements along the given axes are true; an empty reduction gives True.

    Args:
        data: Input tensor, bool.
        axis: Axis or axes to reduce. Negative values count from the last axis. Default: all axes,
            also for an empty list.
        keepdims: If True, keep reduced axes with extent 1.

    Returns:
        Tensor of dtype bool.

    Raises:
        DefinitionError: If `axis` is out of bounds or contains duplicates.
        TypeMismatchError: If `data` is not bool.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 5, 6), "bool", name="A")
    >>> topi.all(A, 0).shape, topi.all(A, (0, -1), keepdims=True).shape
    ((5, 6), (1, 5, 1))
    """

# tecomp/operations/reductions.py: "any"
def any(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Test whether any element along the given axes is true; an empty reduction gives False.

    Args:
        data: Input tensor, bool.
        axis: Axis or axes to reduce. Negative values count from the last axis. Default: all axes,
            also for an empty list.
        keepdims: If True, keep reduced axes with extent 1.

    Returns:
        Tensor of dtype bool.

    Raises:
        DefinitionError: If `axis` is out of bounds or contains duplicates.
        TypeMismatchError: If `data` is not bool.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 5, 6), "bool", name="A")
    >>> topi.any(A, 0).shape, topi.any(A, (0, -1), keepdims=True).shape
    ((5, 6), (1, 5, 1))
    """

# tecomp/operations/reductions.py: "argmax"
def argmax(
    data: Tensor, axis: Axes = None, keepdims: bool = False, select_last_index: bool = False
) -> Tensor:
    """Return the index of the maximum along the given axes; NaN counts as the maximum.

    Args:
        data: Input tensor.
        axis: Axis or axes to reduce. Negative values count from the last axis. Default: all axes,
            also for an empty list. Several axes are indexed jointly, in row-major order.
        keepdims: If True, keep reduced axes with extent 1.
        select_last_index: If True, return the last of several equal elements, else the first.

    Returns:
        int32 indices.

    Raises:
        DefinitionError: If `axis` is out of bounds or contains duplicates, or if the reduction is
            known to be empty.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 5, 6), name="A")
    >>> topi.argmax(A, 0).shape, topi.argmax(A, (0, -1), keepdims=True).shape
    ((5, 6), (1, 5, 1))
    """

# tecomp/operations/reductions.py: "argmin"
def argmin(
    data: Tensor, axis: Axes = None, keepdims: bool = False, select_last_index: bool = False
) -> Tensor:
    """Return the index of the minimum along the given axes; NaN counts as the minimum.

    Args:
        data: Input tensor.
        axis: Axis or axes to reduce. Negative values count from the last axis. Default: all axes,
            also for an empty list. Several axes are indexed jointly, in row-major order.
        keepdims: If True, keep reduced axes with extent 1.
        select_last_index: If True, return the last of several equal elements, else the first.

    Returns:
        int32 indices.

    Raises:
        DefinitionError: If `axis` is out of bounds or contains duplicates, or if the reduction is
            known to be empty.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 5, 6), name="A")
    >>> topi.argmin(A, 0).shape, topi.argmin(A, (0, -1), keepdims=True).shape
    ((5, 6), (1, 5, 1))
    """

# tecomp/operations/reductions.py: "prod"
def cumprod(
    data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None
) -> Tensor:
    """Compute the cumulative product along an axis.

    Args:
        data: Input tensor. float16 and bfloat16 are accumulated in float32.
        axis: Axis along which to accumulate. Negative values count from the last axis. None
            flattens `data`.
        dtype: Result dtype. Default: the dtype of `data`, or int32 for bool.
        exclusive: If True, exclude each element from its own result.

    Raises:
        DefinitionError: If `axis` is out of bounds.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 9), name="A")
    >>> topi.cumprod(A, 1).shape, topi.cumprod(A).shape
    ((4, 9), (36,))
    """

# tecomp/operations/reductions.py: "sum"
def cumsum(
    data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None
) -> Tensor:
    """Compute the cumulative sum along an axis.

    Args:
        data: Input tensor. float16 and bfloat16 are accumulated in float32.
        axis: Axis along which to accumulate. Negative values count from the last axis. None
            flattens `data`.
        dtype: Result dtype. Default: the dtype of `data`, or int32 for bool.
        exclusive: If True, exclude each element from its own result.

    Raises:
        DefinitionError: If `axis` is out of bounds.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 9), name="A")
    >>> topi.cumsum(A, 1).shape, topi.cumsum(A).shape
    ((4, 9), (36,))
    """

# tecomp/operations/reductions.py: "logsumexp"
def logsumexp(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Compute `log(sum(exp(x)))` along the given axes without intermediate overflow.

    Args:
        data: Input tensor, real floating-point dtype.
        axis: Axis or axes to reduce. Negative values count from the last axis. Default: all axes,
            also for an empty list.
        keepdims: If True, keep reduced axes with extent 1.

    Returns:
        Tensor of logarithms; an empty reduction gives -infinity.

    Raises:
        DefinitionError: If `axis` is out of bounds or contains duplicates.
        TypeMismatchError: If `data` has an unsupported dtype.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 5, 6), name="A")
    >>> topi.logsumexp(A, 0).shape, topi.logsumexp(A, (0, -1), keepdims=True).shape
    ((5, 6), (1, 5, 1))
    """

# tecomp/operations/reductions.py: "max"
def max(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Compute the maximum along the given axes; NaN propagates.

    An empty reduction gives the smallest value of the dtype, -infinity for floating-point dtypes.

    Args:
        data: Input tensor.
        axis: Axis or axes to reduce. Negative values count from the last axis. Default: all axes,
            also for an empty list.
        keepdims: If True, keep reduced axes with extent 1.

    Returns:
        Tensor of the dtype of `data`.

    Raises:
        DefinitionError: If `axis` is out of bounds or contains duplicates.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 5, 6), name="A")
    >>> topi.max(A, 0).shape, topi.max(A, (0, -1), keepdims=True).shape
    ((5, 6), (1, 5, 1))
    """

# tecomp/operations/reductions.py: "min"
def min(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Compute the minimum along the given axes; NaN propagates.

    An empty reduction gives the largest value of the dtype, infinity for floating-point dtypes.

    Args:
        data: Input tensor.
        axis: Axis or axes to reduce. Negative values count from the last axis. Default: all axes,
            also for an empty list.
        keepdims: If True, keep reduced axes with extent 1.

    Returns:
        Tensor of the dtype of `data`.

    Raises:
        DefinitionError: If `axis` is out of bounds or contains duplicates.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 5, 6), name="A")
    >>> topi.min(A, 0).shape, topi.min(A, (0, -1), keepdims=True).shape
    ((5, 6), (1, 5, 1))
    """

# tecomp/operations/reductions.py: "prod"
def prod(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Compute the product along the given axes; an empty reduction gives 1.

    Args:
        data: Input tensor. Booleans count as 0 and 1 in int32. float16 and bfloat16 are
            accumulated in float32.
        axis: Axis or axes to reduce. Negative values count from the last axis. Default: all axes,
            also for an empty list.
        keepdims: If True, keep reduced axes with extent 1.

    Returns:
        Tensor of the dtype of `data`, or of int32 for bool.

    Raises:
        DefinitionError: If `axis` is out of bounds or contains duplicates.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 5, 6), name="A")
    >>> topi.prod(A, 0).shape, topi.prod(A, (0, -1), keepdims=True).shape
    ((5, 6), (1, 5, 1))
    """

# tecomp/operations/reductions.py: "sum"
def sum(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Compute the sum along the given axes; an empty reduction gives 0.

    Args:
        data: Input tensor. Booleans count as 0 and 1 in int32. float16 and bfloat16 are
            accumulated in float32.
        axis: Axis or axes to reduce. Negative values count from the last axis. Default: all axes,
            also for an empty list.
        keepdims: If True, keep reduced axes with extent 1.

    Returns:
        Tensor of the dtype of `data`, or of int32 for bool.

    Raises:
        DefinitionError: If `axis` is out of bounds or contains duplicates.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 5, 6), name="A")
    >>> topi.sum(A, 0).shape, topi.sum(A, (0, -1), keepdims=True).shape
    ((5, 6), (1, 5, 1))
    """
