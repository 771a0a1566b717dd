"""Statistical functions, `all`, `any` and `diff`."""

from __future__ import annotations

import builtins
from functools import lru_cache
from typing import Any, SupportsIndex

from tecomp.array.array_object import Array, made, node_of
from tecomp.array.graph.node import Node, record
from tecomp.array.validation import dtype_name, flag, integer
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.devices import default_dtype
from tecomp.ptensor.operations.elementwise import Cast
from tecomp.ptensor.operations.manipulation import Combine
from tecomp.ptensor.operations.reduction import CountNonzero, Cumulative, Diff, Reduce, TruthTest
from tecomp.ptensor.types import Axes, axes_of, axis_of

_reduce = lru_cache(1024, typed=True)(Reduce)
"""An operation, made once: what is looked up by it is found sooner by the same object."""


def sum(
    x: Array, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False
) -> Array:
    """The sum of all elements along axes; 0 of none.

    Args:
        x: the array, of numbers, or of booleans, which count as 0 and 1.
        axis: one axis or several; all of them if None.
        dtype: the element type of the result; that of `x` if None, and 64 bits for integers
            and booleans.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        The sums.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> x = xp.asarray([[1, 2, 3], [4, 5, 6]])
    >>> sum(x), sum(x, axis=0)
    (Array(21, dtype=int64), Array([5, 7, 9], dtype=int64))
    """
    return _reduced("sum", x, axis, keepdims, dtype=dtype)


def prod(
    x: Array, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False
) -> Array:
    """The product of all elements along axes; 1 of none.

    Args:
        x: the array, of numbers, or of booleans, which count as 0 and 1.
        axis: one axis or several; all of them if None.
        dtype: the element type of the result; that of `x` if None, and 64 bits for integers
            and booleans.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        The products.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> prod(xp.asarray([1.5, 2.0, 4.0]))
    Array(12., dtype=float64)
    """
    return _reduced("prod", x, axis, keepdims, dtype=dtype)


def max(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The greatest element along axes; NaN if one is NaN.

    Args:
        x: Input array of real-valued dtype.
        axis: one axis or several, with an element at least; all of them if None.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        The greatest elements.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: there is no element along one, or it is named twice.

    >>> import tecomp.array as xp
    >>> max(xp.asarray([[1, 5, 3], [4, 2, 6]]), axis=1)
    Array([5, 6], dtype=int64)
    """
    return _reduced("max", x, axis, keepdims)


def min(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The least element along axes; NaN if one is NaN.

    Args:
        x: Input array of real-valued dtype.
        axis: one axis or several, with an element at least; all of them if None.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        The least elements.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: there is no element along one, or it is named twice.

    >>> import tecomp.array as xp
    >>> min(xp.asarray([[1, 5, 3], [4, 2, 6]]), axis=1)
    Array([1, 2], dtype=int64)
    """
    return _reduced("min", x, axis, keepdims)


def mean(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The mean of all elements along axes; NaN of none.

    Args:
        x: Input array of floating-point dtype, real or complex.
        axis: one axis or several; all of them if None.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        The means.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> mean(xp.asarray([1.0, 2.0, 6.0]))
    Array(3., dtype=float64)
    """
    return _reduced("mean", x, axis, keepdims)


def var(
    x: Array, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """The variance of all elements along axes: the mean square of what they are off the mean.

    Args:
        x: Input array of floating-point dtype, real or complex.
        axis: one axis or several; all of them if None.
        correction: what is taken off the count of elements; 1 for that of a sample.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        The variances, real; NaN of as many elements as `correction`, or fewer.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> var(xp.asarray([1.0, 2.0, 6.0]), correction=1)
    Array(7., dtype=float64)
    """
    return _reduced("var", x, axis, keepdims, correction=correction)


def std(
    x: Array, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """The standard deviation of all elements along axes: the root of `var`.

    Args:
        x: Input array of floating-point dtype, real or complex.
        axis: one axis or several; all of them if None.
        correction: what is taken off the count of elements; 1 for that of a sample.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        The standard deviations, real; NaN of as many elements as `correction`, or fewer.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> std(xp.asarray([1.0, 1.0, 5.0, 5.0]))
    Array(2., dtype=float64)
    """
    return _reduced("std", x, axis, keepdims, correction=correction)


def _reduced(
    kind: str, x: object, axis: Axes, keepdims: bool, *, correction: float = 0, dtype: Any = None
) -> Array:
    node = node_of(x, kind)
    if not isinstance(correction, int | float):
        raise ArrayTypeError(f"{kind}: correction is {correction!r}; give a number of Python")
    axes = axes_of(axis, node.type.rank, kind)
    wanted = None if dtype is None else dtype_name(dtype, kind)
    keeps = flag(keepdims, kind, "keepdims")
    if kind in ("sum", "prod"):
        if kind == "sum" and wanted is None and node.type.dtype == "bool":
            return made(record(CountNonzero(axes, keeps), node))
        node = _numeric(node, wanted)
    return made(record(_reduce(kind, axes, keeps, correction, wanted), node))


def _numeric(node: Node, dtype: str | None) -> Node:
    """Cast booleans to the dtype of their sum: `dtype`, or the default integer if None."""
    if node.type.dtype != "bool" or dtype == "bool":
        return node
    return record(Cast(dtype or default_dtype("int64", node.type.device)), node)


def cumulative_sum(
    x: Array,
    /,
    *,
    axis: SupportsIndex | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Array:
    """The sum of all elements up to each along an axis.

    Args:
        x: the array, of numbers, or of booleans, which count as 0 and 1.
        axis: along which; None if there is one only.
        dtype: the element type of the result; that of `x` if None, and 64 bits for integers
            and booleans.
        include_initial: whether the result begins with that of no element.

    Returns:
        The sums, in the shape of `x`, or with one element more along the axis.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: there are several axes, and none is given; or there are none.

    >>> import tecomp.array as xp
    >>> cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int64)
    """
    return _running("sum", x, axis, dtype, include_initial)


def cumulative_prod(
    x: Array,
    /,
    *,
    axis: SupportsIndex | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Array:
    """The product of all elements up to each along an axis.

    Args:
        x: the array, of numbers, or of booleans, which count as 0 and 1.
        axis: along which; None if there is one only.
        dtype: the element type of the result; that of `x` if None, and 64 bits for integers
            and booleans.
        include_initial: whether the result begins with that of no element.

    Returns:
        The products, in the shape of `x`, or with one element more along the axis.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: there are several axes, and none is given; or there are none.

    >>> import tecomp.array as xp
    >>> cumulative_prod(xp.asarray([1, 2, 3]))
    Array([1, 2, 6], dtype=int64)
    """
    return _running("prod", x, axis, dtype, include_initial)


def _running(
    kind: str, x: object, axis: SupportsIndex | None, dtype: Any, include_initial: bool
) -> Array:
    where = f"cumulative_{kind}"
    node = node_of(x, where)
    rank = node.type.rank
    if axis is None and rank != 1:
        raise ArrayValueError(
            f"{where}: x has shape {node.type.shape}, {rank} axes; say along which: axis=0"
            if rank else f"{where}: x has no axes; give it one: xp.reshape(x, (1,))",
            kind="array-shapes",
        )
    along = 0 if axis is None else axis_of(axis, rank, where)
    wanted = None if dtype is None else dtype_name(dtype, where)
    initial = flag(include_initial, where, "include_initial")
    return made(record(Cumulative(kind, along, initial, wanted), _numeric(node, wanted)))


def all(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Whether all elements along axes are true; numbers are true unless they are 0.

    Args:
        x: Input array.
        axis: one axis or several; all of them if None.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Truth; true of no element.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> all(xp.asarray([[1, 0], [2, 3]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    return _tested("all", x, axis, keepdims)


def any(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Whether an element along axes is true; numbers are true unless they are 0.

    Args:
        x: Input array.
        axis: one axis or several; all of them if None.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Truth; false of no element.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> any(xp.asarray([[1, 0], [0, 0]]), axis=1)
    Array([ True, False], dtype=bool)
    """
    return _tested("any", x, axis, keepdims)


def _tested(kind: str, x: object, axis: Axes, keepdims: bool) -> Array:
    node = node_of(x, kind)
    axes = axes_of(axis, node.type.rank, kind)
    return made(record(TruthTest(kind, axes, flag(keepdims, kind, "keepdims")), node))


def diff(
    x: Array,
    /,
    n: SupportsIndex = 1,
    *,
    axis: SupportsIndex = -1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> Array:
    """What each element is more than the one before it along an axis.

    Args:
        x: the array, of numbers.
        n: how often: of the differences again. The standard takes `n` by name; SciPy and
            scikit-learn pass it by position, as NumPy's `diff` takes it.
        axis: along which.
        prepend: what stands before `x` along the axis.
        append: what stands behind it.

    Returns:
        `n` elements less along the axis.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype, or `n` is not an integer.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: shapes do not fit, or `n` is below 0.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> diff(xp.asarray([1, 4, 9, 16])), diff(xp.asarray([1, 4, 9, 16]), n=2)
    (Array([3, 5, 7], dtype=int64), Array([2, 2], dtype=int64))
    """
    node = node_of(x, "diff")
    along = axis_of(axis, node.type.rank, "diff")
    times = integer(n, "diff", "n")
    if times < 0:
        raise ArrayValueError(f"diff: n is {times}; give 0 or more")
    before = () if prepend is None else (node_of(prepend, "diff", "prepend"),)
    behind = () if append is None else (node_of(append, "diff", "append"),)
    if before or behind:
        node = record(Combine("concat", along), *before, node, *behind)
    for _ in range(builtins.min(times, node.type.shape[along])):
        node = record(Diff(along), node)
    return made(node)
