"""Strided slices, read and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from tecomp import DefinitionError, TypeMismatchError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.ir.nodes.expr_nodes import Const
from tecomp.topi import tag
from tecomp.topi.extents import Size, differ, equal, minus, plus, quotient
from tecomp.topi.validation import (
    as_list,
    axis_of,
    check_integer,
    check_rank,
    integer_of,
    shape_of,
    tensor_of,
    validate_choice,
)

Bound: TypeAlias = "Size | None"


def part_of(a: te.Tensor, axis: int, begin: Size, count: Size, name: str) -> te.Tensor:
    """Return `count` elements along an axis, starting at `begin`."""
    shape = (*a.shape[:axis], count, *a.shape[axis + 1 :])

    def value(*i: te.Expr) -> te.Expr:
        position = i[axis] if equal(begin, 0) else i[axis] + begin
        return a(*i[:axis], position, *i[axis + 1 :])

    return te.compute(shape, value, name=name, tag=tag.INJECTIVE)


def strided_slice(
    a: te.Tensor,
    begin: Sequence[Bound],
    end: Sequence[Bound],
    strides: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    slice_mode: str = "end",
    assume_inbound: bool = True,
) -> te.Tensor:
    """Return the slice `a[begin:end:strides]`, with the semantics of NumPy.

    Args:
        a: Input tensor.
        begin: First index per axis. Negative values count from the end; None starts at the first
            element in the direction of the stride.
        end: Exclusive end per axis, in the form of `begin`. With `slice_mode="size"`: number of
            elements, where -1 takes all remaining elements.
        strides: Steps per axis, which may be negative. Default: 1.
        axes: Axes to slice. Default: the first axes.
        slice_mode: "end" or "size"; "size" ignores `strides`.
        assume_inbound: Ignored; constant bounds are clipped to the extent as in NumPy, and
            expressions are used unchanged.

    Raises:
        DefinitionError: If the numbers of bounds and axes differ, if there are more bounds than
            axes of `a`, if an axis occurs twice, or if a stride is 0.

    >>> strided_slice(te.placeholder((9, 8), name="A"), [1, -3], [7, 8], [2, 1]).shape
    (3, 3)
    """
    where = "topi.strided_slice"
    a = tensor_of(a, where, "a")
    validate_choice(slice_mode, ("end", "size"), where, "slice_mode")
    begin, end = _bounds(begin, where, "begin"), _bounds(end, where, "end")
    dims = list(range(len(begin))) if axes is None else [
        axis_of(axis, a.ndim, where, "an axis") for axis in as_list(axes, where, "axes")]
    if not len(begin) == len(end) == len(dims) or len(dims) > a.ndim or len(set(dims)) < len(dims):
        raise DefinitionError(
            "{where}: got {begin_count} begin and {end_count} end values for axes {axes} of {a}, "
            "shape {shape}; pass one of each per axis",
            kind="count-mismatch", where=where, begin_count=len(begin), end_count=len(end),
            axes=tuple(dims), a=a.name, shape=shape_text(a.shape),
        )
    steps = [1] * len(dims)
    if strides is not None and slice_mode == "end":
        steps = _steps(strides, len(dims), where)
    ranges: list[tuple[Size, Size, int]] = [(0, n, 1) for n in a.shape]
    for k, low, high, step in zip(dims, begin, end, steps, strict=True):
        extent, last = a.shape[k], high
        if slice_mode == "size":
            start = _place(low, extent, 0)
            last = extent if is_bound_equal(high, -1) else _min_size(_sum(start, high), extent)
        if not step:
            raise DefinitionError(
                "{where}: the stride of axis {k} must not be 0; pass 1, -1 or another nonzero "
                "integer",
                kind="invalid-value", where=where, k=k,
            )
        ranges[k] = (*_range(low, last, step, extent), step)
    return _define_strided(a, ranges, "T_strided_slice")


def _bounds(bounds: Sequence[Bound], where: str, name: str) -> list[Bound]:
    if not isinstance(bounds, list | tuple):
        raise TypeMismatchError(
            "{where}: {subject} must be a list of numbers, got {bounds!r} ({type})",
            kind="invalid-type", where=where, subject=name, bounds=bounds,
            type=type(bounds).__name__,
        )
    return [
        bound if bound is None or (isinstance(bound, te.Expr) and not isinstance(bound, Const))
        else integer_of(bound, where, f"{name}[{k}]")
        for k, bound in enumerate(bounds)
    ]


def _steps(strides: Sequence[int], count: int, where: str) -> list[int]:
    """Return one stride per axis; omitted strides are 1."""
    if not isinstance(strides, list | tuple) or len(strides) > count:
        raise DefinitionError(
            "{where}: strides must be a list with at most one entry per axis, got {strides!r} for "
            "{count} axes",
            kind="count-mismatch", where=where, strides=strides, count=count,
        )
    steps = [integer_of(n, where, f"strides[{k}]") for k, n in enumerate(strides)]
    return [*steps, *[1] * (count - len(steps))]


def _sum(a: Size, b: Bound) -> Size:
    return plus(a, 0 if b is None else b)


def is_bound_equal(bound: Bound, number: int) -> bool:
    """Return whether a bound is known to equal this number."""
    return bound is not None and equal(bound, number)


def _define_strided(
    a: te.Tensor, ranges: Sequence[tuple[Size, Size, int]], name: str
) -> te.Tensor:
    """Return the elements at `begin + stride * i`, with a given number of elements per axis."""

    def value(*i: te.Expr) -> te.Expr:
        positions: list[Any] = []
        for index, (begin, _, step) in zip(i, ranges, strict=True):
            scaled = index if step == 1 else index * step
            positions.append(scaled if equal(begin, 0) else scaled + begin)
        return a(*positions)

    return te.compute(tuple(count for _, count, _ in ranges), value, name=name, tag=tag.INJECTIVE)


def _range(begin: Bound, end: Bound, step: int, extent: Size) -> tuple[Size, Size]:
    """Return the first index and the length of a slice, with Python's slice semantics."""
    if all(isinstance(x, int | None) for x in (begin, end)) and isinstance(extent, int):
        numbers = range(extent)[begin : end : step]
        return (numbers.start if len(numbers) else 0), len(numbers)
    if step > 0:
        first, last = _place(begin, extent, 0), _place(end, extent, extent)
        return first, _count(minus(last, first), step)
    # A slice with a negative step starts at n - 1 at most and stops before -1, so both bounds
    # are clipped to [0, n] after adding 1.
    first = minus(_place(begin, extent, extent, 1), 1)
    last = minus(_place(end, extent, 0, 1), 1)
    return first, _count(minus(first, last), -step)


def _count(length: Size, step: int) -> Size:
    """Return `max(ceil(length / step), 0)`."""
    count = quotient(plus(length, step - 1), step)
    return max(count, 0) if isinstance(count, int) else _max_size(count, 0)


def _place(bound: Bound, extent: Size, default: Size, delta: int = 0) -> Size:
    """Return `bound + more` clipped to [0, extent]; expressions are not clipped."""
    if bound is None:
        return default
    if not isinstance(bound, int):
        return plus(bound, delta)
    if bound < 0:
        return _max_size(plus(extent, bound + delta), 0)
    return 0 if bound + delta == 0 else _min_size(bound + delta, extent)


def _max_size(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    # A size variable is never negative.
    return a if equal(b, 0) and isinstance(a, te.Var) else te.max(a, b)


def _min_size(a: Size, b: Size) -> Size:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else te.min(a, b)


def dynamic_strided_slice(
    a: te.Tensor, begin: te.Tensor, end: te.Tensor, strides: te.Tensor,
    output_shape: Size | Sequence[Size],
) -> te.Tensor:
    """Return the slice `a[begin:end:strides]` with bounds that are data.

    Args:
        a: Input tensor.
        begin: First indices, integers of rank 1 with one entry per axis. Negative values count from
            the end.
        end: Ignored; `output_shape` gives the number of elements.
        strides: Steps, integers of rank 1 with one entry per axis.
        output_shape: Result shape.

    Raises:
        DefinitionError: If the rank of `output_shape` differs from the rank of `a`, or if a bound
            tensor does not have rank 1.
        TypeMismatchError: If a bound tensor does not have an integer dtype.

    >>> A, i = te.placeholder((9, 8), name="A"), te.placeholder((2,), "int64", name="i")
    >>> dynamic_strided_slice(A, i, i, i, (3, 2)).shape
    (3, 2)
    """
    where = "topi.dynamic_strided_slice"
    a, shape = tensor_of(a, where, "a"), shape_of(output_shape)
    for x, name in ((begin, "begin"), (end, "end"), (strides, "strides")):
        check_integer(tensor_of(x, where, name), where, name)
        check_rank(x, 1, where, name)
    if len(shape) != a.ndim:
        raise DefinitionError(
            "{where}: the result has shape {shape}, but {a} has shape {a_shape}; the numbers of "
            "axes must be equal",
            kind="shapes", where=where, shape=shape_text(shape), a=a.name,
            a_shape=shape_text(a.shape),
        )

    def value(*i: te.Expr) -> te.Expr:
        positions = []
        for k, (index, extent) in enumerate(zip(i, a.shape, strict=True)):
            first = te.cast(begin(k), "int64")
            first = te.Select(first < 0, first + extent, first)
            first = te.max(te.min(first, te.const(0, "int64") + extent), 0)
            positions.append(first + index * te.cast(strides(k), "int64"))
        return a(*positions)

    return te.compute(shape, value, name="T_dynamic_strided_slice", tag=tag.INJECTIVE)


def strided_set(
    a: te.Tensor, v: te.Tensor, begin: te.Tensor, end: te.Tensor, strides: te.Tensor | None = None
) -> te.Tensor:
    """Return a copy of `a` with `a[begin:end:strides]` replaced by `v`; the bounds are data.

    Args:
        a: Input tensor.
        v: New elements, with the rank of `a`.
        begin: First indices, integers of rank 1 for the first axes or all axes, converted to int32.
            Negative values count from the end.
        end: Exclusive ends, in the form of `begin`.
        strides: Steps, integers of rank 1, converted to int32. Default: 1.

    Raises:
        DefinitionError: If a bound tensor has more entries than `a` has axes.
        TypeMismatchError: If a bound tensor does not have an integer dtype.

    >>> A, V = te.placeholder((9, 8), name="A"), te.placeholder((2, 8), name="V")
    >>> b, e = te.placeholder((1,), "int32", name="b"), te.placeholder((1,), "int32", name="e")
    >>> strided_set(A, V, b, e).shape
    (9, 8)
    """
    where = "topi.strided_set"
    a, v = tensor_of(a, where, "a"), tensor_of(v, where, "v")
    check_rank(v, a.ndim, where, "v")
    inputs = [(begin, "begin"), (end, "end"), *([] if strides is None else [(strides, "strides")])]
    for x, name in inputs:
        check_integer(tensor_of(x, where, name), where, name)
        check_rank(x, 1, where, name)
        if not isinstance(x.shape[0], int) or x.shape[0] > a.ndim:
            raise DefinitionError(
                "{where}: {subject} has {extent} numbers, but {a} has {ndim} axes; pass at most "
                "one number per axis",
                kind="count-mismatch", where=where, subject=name, extent=x.shape[0], a=a.name,
                ndim=a.ndim,
            )

    def bounds(k: int) -> tuple[Any, Any, Any]:
        extent = te.cast(a.shape[k], "int32")
        step = _number(strides, k, te.const(1, "int32"))
        is_up = step > 0
        low = _number(begin, k, te.Select(is_up, te.const(0, "int32"), extent - 1))
        high = _number(end, k, te.Select(is_up, extent, -extent - 1))
        low, high = (te.Select(x < 0, x + extent, x) for x in (low, high))
        return te.max(te.min(low, extent - te.cast(step < 0, "int32")), 0), high, step

    def value(*i: te.Expr) -> te.Expr:
        inside, positions = [], []
        for k, index in enumerate(i):
            low, high, step = bounds(k)
            delta = te.Select(step > 0, index - low, low - index)
            size = te.abs(step)
            before_end = te.Select(step > 0, index < high, index > high)
            inside += [delta >= 0, before_end, delta % size == 0, delta // size < v.shape[k]]
            positions.append(delta // size)
        return te.if_then_else(te.all(*inside), v(*positions), a(*i)) if i else v()

    return te.compute(a.shape, value, name="T_strided_set", tag=tag.INJECTIVE)


def _number(x: te.Tensor | None, k: int, default: te.Expr) -> te.Expr:
    """Return entry `k` of a vector, or the default if the vector is shorter."""
    if x is None or not isinstance(x.shape[0], int) or x.shape[0] <= k:
        return default
    return te.cast(x(k), "int32")


def slice_scatter(
    input_tensor: te.Tensor, src: te.Tensor, start: int, end: int, step: int, axis: int
) -> te.Tensor:
    """Return a copy of `input_tensor` with `[start:end:step]` along an axis replaced by `src`.

    Raises:
        DefinitionError: If `src` does not have the shape of the slice, if `axis` is out of bounds,
            or if `step` is less than 1.

    >>> A, V = te.placeholder((9, 8), name="A"), te.placeholder((3, 8), name="V")
    >>> slice_scatter(A, V, 1, 7, 2, 0).shape
    (9, 8)
    """
    where = "topi.slice_scatter"
    a, src = tensor_of(input_tensor, where, "input_tensor"), tensor_of(src, where, "src")
    dim = axis_of(axis, a.ndim, where)
    if not isinstance(step, int) or step < 1:
        raise DefinitionError(
            "{where}: step must be at least 1, got {step}",
            kind="invalid-value", where=where, step=step,
        )
    first, count = _range(start, end, step, a.shape[dim])
    expected = (*a.shape[:dim], count, *a.shape[dim + 1 :])
    if src.ndim != a.ndim or any(map(differ, src.shape, expected)):
        raise DefinitionError(
            "{where}: src has shape {shape}, expected {expected}; pass a src with the shape of the "
            "slice",
            kind="shapes", where=where, shape=shape_text(src.shape), expected=shape_text(expected),
        )

    def value(*i: te.Expr) -> te.Expr:
        delta = i[dim] - first
        inside = te.all(delta >= 0, delta // step < count, delta % step == 0)
        return te.if_then_else(inside, src(*i[:dim], delta // step, *i[dim + 1 :]), a(*i))

    return te.compute(a.shape, value, name="T_slice_scatter", tag=tag.INJECTIVE)
