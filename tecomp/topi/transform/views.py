"""Views: operators that change shape or element order, and that schedules inline into readers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tecomp import DefinitionError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.topi import tag
from tecomp.topi.extents import (
    Size,
    differ,
    equal,
    is_product,
    minus,
    modulo,
    product,
    quotient,
    ravel,
    times,
    unravel,
)
from tecomp.topi.validation import (
    as_list,
    axes_of,
    axis_of,
    extents_of,
    integer_of,
    integers_of,
    shape_of,
    tensor_of,
)


def expand_dims(a: te.Tensor, axis: int, num_newaxis: int = 1) -> te.Tensor:
    """Insert axes of extent 1.

    Args:
        a: Input tensor.
        axis: Position of the first new axis in the result. Negative values count from the end of
            the result with one new axis.
        num_newaxis: Number of new axes.

    Raises:
        DefinitionError: If `axis` is out of bounds.

    >>> expand_dims(te.placeholder((4, 8), name="A"), 1).shape
    (4, 1, 8)
    """
    where = "topi.expand_dims"
    a = tensor_of(a, where, "a")
    count = integer_of(num_newaxis, where, "num_newaxis", least=0)
    first = axis_of(axis, a.ndim + 1, where)
    shape = (*a.shape[:first], *[1] * count, *a.shape[first:])
    return te.compute(
        shape, lambda *i: a(*i[:first], *i[first + count :]), name="T_expand_dims",
        tag=tag.BROADCAST,
    )


def expand_like(a: te.Tensor, shape_like: te.Tensor, axis: Sequence[int]) -> te.Tensor:
    """Broadcast `a` to the shape of another tensor along the given axes.

    Args:
        a: Input tensor.
        shape_like: Tensor with the result shape.
        axis: Axes of `shape_like` that `a` does not have.

    Raises:
        DefinitionError: If the other axes of `shape_like` differ from the axes of `a`.

    >>> A, B = te.placeholder((4,), name="A"), te.placeholder((4, 8), name="B")
    >>> expand_like(A, B, [1]).shape
    (4, 8)
    """
    where = "topi.expand_like"
    a, other = tensor_of(a, where, "a"), tensor_of(shape_like, where, "shape_like")
    new = axes_of(axis, other.ndim, where)
    common = [k for k in range(other.ndim) if k not in new]
    if a.ndim == 1 and not common and equal(a.shape[0], 1):
        return te.compute(other.shape, lambda *_: a(0), name="T_expand_like", tag=tag.BROADCAST)
    extents = [other.shape[k] for k in common]
    if len(common) != a.ndim or any(map(differ, extents, a.shape)):
        raise DefinitionError(
            "{where}: {a} has shape {shape}, but axes {axes} of {other} have extents {extents}; "
            "pass the axes of {other} that {a} does not have",
            kind="shapes", where=where, a=a.name, shape=shape_text(a.shape), axes=tuple(common),
            other=other.name, extents=shape_text(extents),
        )
    return te.compute(
        other.shape, lambda *i: a(*(i[k] for k in common)), name="T_expand_like", tag=tag.BROADCAST
    )


def squeeze(a: te.Tensor, axis: int | Sequence[int] | None = None) -> te.Tensor:
    """Remove axes of extent 1.

    Args:
        a: Input tensor.
        axis: Axis or axes to remove. Default: all axes whose extent is known to be 1.

    Raises:
        DefinitionError: If an axis is out of bounds, or if its extent is not known to be 1.

    >>> squeeze(te.placeholder((1, 4, 1), name="A")).shape
    (4,)
    """
    where = "topi.squeeze"
    a = tensor_of(a, where, "a")
    unit_axes = [k for k, extent in enumerate(a.shape) if equal(extent, 1)]
    out = unit_axes if axis is None else axes_of(axis, a.ndim, where)
    for k in out:
        if k not in unit_axes:
            raise DefinitionError(
                "{where}: axis {k} of {a}, shape {shape}, has extent {extent}; only axes of "
                "extent 1 can be squeezed",
                kind="shapes", where=where, k=k, a=a.name, shape=shape_text(a.shape),
                extent=a.shape[k],
            )
    retained = [k for k in range(a.ndim) if k not in out]

    def value(*i: te.Expr) -> te.Expr:
        position: list[Any] = [0] * a.ndim
        for k, index in zip(retained, i, strict=True):
            position[k] = index
        return a(*position)

    shape = tuple(a.shape[k] for k in retained)
    return te.compute(shape, value, name="T_squeeze", tag=tag.INJECTIVE)


def reshape(a: te.Tensor, newshape: Size | Sequence[Size]) -> te.Tensor:
    """Give the tensor a new shape; elements stay in row-major order.

    Args:
        a: Input tensor.
        newshape: New shape. One extent may be -1, which is computed from the others.

    Raises:
        DefinitionError: If the shapes are not known to have the same number of elements, or if the
            value of -1 is ambiguous.

    >>> reshape(te.placeholder((4, 6), name="A"), (8, -1)).shape
    (8, 3)
    """
    where = "topi.reshape"
    a = tensor_of(a, where, "a")
    shape = _infer_extent(a, tuple(extents_of(shape_of(newshape), where, "newshape")), where)
    if not is_product(a.shape, shape):
        raise DefinitionError(
            "{where}: {a} of shape {shape} has {count} elements, but {new_shape} has "
            "{new_count}; pass a shape with the same number of elements",
            kind="shapes", where=where, a=a.name, shape=shape_text(a.shape),
            count=_count(a.shape), new_shape=shape_text(shape), new_count=_count(shape),
        )
    return te.compute(
        shape, lambda *i: a(*unravel(ravel(i, shape), a.shape)), name="T_reshape",
        tag=tag.INJECTIVE,
    )


def _infer_extent(a: te.Tensor, shape: tuple[Size, ...], where: str) -> tuple[Size, ...]:
    """Replace an extent of -1 by the computed extent."""
    unknown = [k for k, extent in enumerate(shape) if equal(extent, -1)]
    if not unknown:
        return shape
    known_product = product(extent for k, extent in enumerate(shape) if k not in unknown)
    if len(unknown) > 1 or equal(known_product, 0):
        raise DefinitionError(
            "{where}: the extent for -1 in shape {shape} cannot be inferred; specify the extent",
            kind="shapes", where=where, shape=shape_text(shape),
        )
    extent = quotient(product(a.shape), known_product)
    return tuple(extent if k in unknown else n for k, n in enumerate(shape))


def _count(shape: Sequence[Size]) -> Size:
    return product(shape)


def in_blocks(a: te.Tensor, axis: int, size: int) -> te.Tensor:
    """Split an axis into blocks and positions within a block, without the remainder.

    >>> in_blocks(te.placeholder((te.var("n"), 6), name="A"), 1, 2).shape
    (n, 3, 2)
    """
    shape = (*a.shape[:axis], quotient(a.shape[axis], size), size, *a.shape[axis + 1 :])

    def value(*i: te.Expr) -> te.Expr:
        return a(*i[:axis], i[axis] * size + i[axis + 1], *i[axis + 2 :])

    return te.compute(shape, value, name="T_blocks", tag=tag.INJECTIVE)


def transpose(a: te.Tensor, axes: Sequence[int] | None = None) -> te.Tensor:
    """Permute all axes.

    Args:
        a: Input tensor.
        axes: Axis of `a` for each axis of the result. Default: reversed order.

    Raises:
        DefinitionError: If `axes` is not a permutation of the axes of `a`.

    >>> transpose(te.placeholder((2, 3, 4), name="A"), (0, 2, 1)).shape
    (2, 4, 3)
    """
    where = "topi.transpose"
    a = tensor_of(a, where, "a")
    requested = list(reversed(range(a.ndim))) if axes is None else as_list(axes, where, "axes")
    order = [axis_of(k, a.ndim, where, "an axis") for k in requested]
    if sorted(order) != list(range(a.ndim)):
        raise DefinitionError(
            "{where}: axes {axes} is not a permutation of the {ndim} axes of {a}; pass each axis "
            "once",
            kind="duplicate-argument", where=where, axes=tuple(requested), a=a.name, ndim=a.ndim,
        )
    slots = [order.index(k) for k in range(a.ndim)]
    return te.compute(
        tuple(a.shape[k] for k in order), lambda *i: a(*(i[k] for k in slots)), name="T_transpose",
        tag=tag.INJECTIVE,
    )


def flip(a: te.Tensor, axis: int | Sequence[int] = 0) -> te.Tensor:
    """Reverse the order of elements along the given axes.

    Raises:
        DefinitionError: If `axis` is out of bounds or contains duplicates.

    >>> flip(te.placeholder((4, 8), name="A"), -1).shape
    (4, 8)
    """
    a = tensor_of(a, "topi.flip", "a")
    reverse = axes_of(axis, a.ndim, "topi.flip")

    def value(*i: te.Expr) -> te.Expr:
        return a(*(a.shape[k] - 1 - index if k in reverse else index for k, index in enumerate(i)))

    return te.compute(a.shape, value, name="T_flip", tag=tag.INJECTIVE)


def tile(a: te.Tensor, reps: int | Sequence[int]) -> te.Tensor:
    """Repeat the whole tensor along each axis, as `numpy.tile`.

    Args:
        a: Input tensor.
        reps: Number of repetitions per axis, aligned at the last axis. Surplus numbers create
            leading axes.

    >>> tile(te.placeholder((4,), name="A"), (2, 3)).shape
    (2, 12)
    """
    a = tensor_of(a, "topi.tile", "a")
    repetitions = shape_of(reps)
    rep_counts = integers_of(list(repetitions), len(repetitions), "topi.tile", "reps", least=0)
    rank = max(a.ndim, len(rep_counts))
    counts = (1,) * (rank - len(rep_counts)) + rep_counts
    extents = (1,) * (rank - a.ndim) + a.shape

    def value(*i: te.Expr) -> te.Expr:
        last = list(zip(i, extents, counts, strict=True))[rank - a.ndim :]
        return a(*(
            index if count == 1 else 0 if equal(extent, 1) else modulo(index, extent)
            for index, extent, count in last
        ))

    shape = tuple(map(times, extents, counts))
    return te.compute(shape, value, name="T_tile", tag=tag.BROADCAST)


def repeat(a: te.Tensor, repeats: int, axis: int) -> te.Tensor:
    """Repeat each element along an axis.

    Args:
        a: Input tensor.
        repeats: Number of repetitions, at least 0.
        axis: Axis; negative values count from the last axis.

    Raises:
        DefinitionError: If `axis` is out of bounds.

    >>> repeat(te.placeholder((4, 8), name="A"), 2, 1).shape
    (4, 16)
    """
    a = tensor_of(a, "topi.repeat", "a")
    count = integer_of(repeats, "topi.repeat", "repeats", least=0)
    dim = axis_of(axis, a.ndim, "topi.repeat")
    shape = tuple(times(n, count) if k == dim else n for k, n in enumerate(a.shape))

    def value(*i: te.Expr) -> te.Expr:
        return a(*i[:dim], i[dim] if count == 1 else i[dim] // max(count, 1), *i[dim + 1 :])

    return te.compute(shape, value, name="T_repeat", tag=tag.BROADCAST)


def sliding_window(
    data: te.Tensor, axis: int, window_shape: Sequence[int], strides: Sequence[int]
) -> te.Tensor:
    """Return all windows over the trailing axes, with the window axes last.

    Args:
        data: Input tensor.
        axis: First axis along which windows move; all following axes move too.
        window_shape: Extents of a window.
        strides: Distances between adjacent windows.

    Raises:
        DefinitionError: If a window is larger than its axis, or if there is not one number per
            axis.

    >>> sliding_window(te.placeholder((2, 9, 9), name="A"), 1, (3, 3), (2, 2)).shape
    (2, 4, 4, 3, 3)
    """
    where = "topi.sliding_window"
    data = tensor_of(data, where)
    first = axis_of(axis, data.ndim, where)
    count = data.ndim - first
    sizes = integers_of(
        as_list(window_shape, where, "window_shape"), count, where, "window_shape", least=1)
    steps = integers_of(as_list(strides, where, "strides"), count, where, "strides", least=1)
    for k, (extent, size) in enumerate(zip(data.shape[first:], sizes, strict=True), first):
        if isinstance(extent, int) and extent < size:
            raise DefinitionError(
                "{where}: window size {size} exceeds extent {extent} of axis {k} of {data}, shape "
                "{shape}; pass a smaller window",
                kind="shapes", where=where, size=size, k=k, data=data.name,
                shape=shape_text(data.shape), extent=extent,
            )
    windows = [
        quotient(minus(extent, size - step), step)
        for extent, size, step in zip(data.shape[first:], sizes, steps, strict=True)
    ]

    def value(*i: te.Expr) -> te.Expr:
        starts, inside = i[first : first + count], i[first + count :]
        positions = (s * step + w for s, step, w in zip(starts, steps, inside, strict=True))
        return data(*i[:first], *positions)

    return te.compute(
        (*data.shape[:first], *windows, *sizes), value, name="T_sliding_window", tag=tag.INJECTIVE
    )
