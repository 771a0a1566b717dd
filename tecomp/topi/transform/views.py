"""The same elements in another shape or order: views, which readers read where the elements are."""

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
    axes_of,
    axis_of,
    integer_of,
    integers_of,
    listed,
    shape_of,
    tensor_of,
)


def expand_dims(a: te.Tensor, axis: int, num_newaxis: int = 1) -> te.Tensor:
    """`a` with axes of extent 1 put in.

    Args:
        a: the tensor.
        axis: the first of them in the result; counted from the end of the result for one axis.
        num_newaxis: how many.

    Raises:
        DefinitionError: there is no such place.

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
    """`a` repeated along axes that it lacks, to the shape of another tensor.

    Args:
        a: the tensor.
        shape_like: a tensor of the shape that is wanted.
        axis: the axes of that shape that `a` lacks.

    Raises:
        DefinitionError: the other axes are not those of `a`.

    >>> A, B = te.placeholder((4,), name="A"), te.placeholder((4, 8), name="B")
    >>> expand_like(A, B, [1]).shape
    (4, 8)
    """
    where = "topi.expand_like"
    a, other = tensor_of(a, where, "a"), tensor_of(shape_like, where, "shape_like")
    new = axes_of(axis, other.ndim, where)
    kept = [k for k in range(other.ndim) if k not in new]
    if a.ndim == 1 and not kept and equal(a.shape[0], 1):
        return te.compute(other.shape, lambda *_: a(0), name="T_expand_like", tag=tag.BROADCAST)
    extents = [other.shape[k] for k in kept]
    if len(kept) != a.ndim or any(map(differ, extents, a.shape)):
        raise DefinitionError(
            f"{where}: {a.name} has shape {shape_text(a.shape)}, and axes {tuple(kept)} of "
            f"{other.name} {shape_text(extents)}; name the axes of {other.name} that {a.name} "
            "lacks",
            kind="shapes",
        )
    return te.compute(
        other.shape, lambda *i: a(*(i[k] for k in kept)), name="T_expand_like", tag=tag.BROADCAST
    )


def squeeze(a: te.Tensor, axis: int | Sequence[int] | None = None) -> te.Tensor:
    """`a` without axes of extent 1.

    Args:
        a: the tensor.
        axis: those that are left out; all whose extent is known to be 1 if None.

    Raises:
        DefinitionError: an axis has another extent.

    >>> squeeze(te.placeholder((1, 4, 1), name="A")).shape
    (4,)
    """
    where = "topi.squeeze"
    a = tensor_of(a, where, "a")
    ones = [k for k, extent in enumerate(a.shape) if equal(extent, 1)]
    out = ones if axis is None else axes_of(axis, a.ndim, where)
    for k in out:
        if k not in ones:
            raise DefinitionError(
                f"{where}: axis {k} of {a.name}, shape {shape_text(a.shape)}, has extent "
                f"{a.shape[k]}; only axes of extent 1 can be left out",
                kind="shapes",
            )
    kept = [k for k in range(a.ndim) if k not in out]

    def value(*i: te.Expr) -> te.Expr:
        at: list[Any] = [0] * a.ndim
        for k, index in zip(kept, i, strict=True):
            at[k] = index
        return a(*at)

    shape = tuple(a.shape[k] for k in kept)
    return te.compute(shape, value, name="T_squeeze", tag=tag.INJECTIVE)


def reshape(a: te.Tensor, newshape: Size | Sequence[Size]) -> te.Tensor:
    """The elements of `a`, in their order, in another shape.

    Args:
        a: the tensor.
        newshape: the shape; one of its extents may be -1, which is what is left over.

    Raises:
        DefinitionError: the shapes have not as many elements, or are not known to.

    >>> reshape(te.placeholder((4, 6), name="A"), (8, -1)).shape
    (8, 3)
    """
    where = "topi.reshape"
    a = tensor_of(a, where, "a")
    shape = _completed(a, shape_of(newshape), where)
    if not is_product(a.shape, shape):
        raise DefinitionError(
            f"{where}: {a.name} has shape {shape_text(a.shape)}, {_count(a.shape)} elements, and "
            f"{shape_text(shape)} has {_count(shape)}; give a shape of as many",
            kind="shapes",
        )
    return te.compute(
        shape, lambda *i: a(*unravel(ravel(i, shape), a.shape)), name="T_reshape",
        tag=tag.INJECTIVE,
    )


def _completed(a: te.Tensor, shape: tuple[Size, ...], where: str) -> tuple[Size, ...]:
    """A shape without -1."""
    open_ones = [k for k, extent in enumerate(shape) if equal(extent, -1)]
    if not open_ones:
        return shape
    rest = product(extent for k, extent in enumerate(shape) if k not in open_ones)
    if len(open_ones) > 1 or equal(rest, 0):
        raise DefinitionError(
            f"{where}: the shape {shape_text(shape)} leaves open what -1 stands for; write the "
            "extent",
            kind="shapes",
        )
    extent = quotient(product(a.shape), rest)
    return tuple(extent if k in open_ones else n for k, n in enumerate(shape))


def _count(shape: Sequence[Size]) -> Size:
    return product(shape)


def in_blocks(a: te.Tensor, axis: int, size: int) -> te.Tensor:
    """An axis as blocks and the places in one; what is left of it is left out.

    >>> in_blocks(te.placeholder((te.var("n"), 6), name="A"), 1, 2).shape
    (n, 3, 2)
    """
    shape = (*a.shape[:axis], quotient(a.shape[axis], size), size, *a.shape[axis + 1 :])

    def value(*i: te.Expr) -> te.Expr:
        return a(*i[:axis], i[axis] * size + i[axis + 1], *i[axis + 2 :])

    return te.compute(shape, value, name="T_blocks", tag=tag.INJECTIVE)


def transpose(a: te.Tensor, axes: Sequence[int] | None = None) -> te.Tensor:
    """`a` with its axes in another order.

    Args:
        a: the tensor.
        axes: for each axis of the result the axis of `a`; reversed if None.

    Raises:
        DefinitionError: an axis is missing or named twice.

    >>> transpose(te.placeholder((2, 3, 4), name="A"), (0, 2, 1)).shape
    (2, 4, 3)
    """
    where = "topi.transpose"
    a = tensor_of(a, where, "a")
    given = list(reversed(range(a.ndim))) if axes is None else listed(axes, where, "axes")
    order = [axis_of(k, a.ndim, where, "an axis") for k in given]
    if sorted(order) != list(range(a.ndim)):
        raise DefinitionError(
            f"{where}: axes is {tuple(given)}, and {a.name} has {a.ndim} axes; name each once",
            kind="given-twice",
        )
    own = [order.index(k) for k in range(a.ndim)]
    return te.compute(
        tuple(a.shape[k] for k in order), lambda *i: a(*(i[k] for k in own)), name="T_transpose",
        tag=tag.INJECTIVE,
    )


def flip(a: te.Tensor, axis: int | Sequence[int] = 0) -> te.Tensor:
    """`a` with the elements along one axis, or several, in reverse.

    Raises:
        DefinitionError: there is no such axis.

    >>> flip(te.placeholder((4, 8), name="A"), -1).shape
    (4, 8)
    """
    a = tensor_of(a, "topi.flip", "a")
    reverse = axes_of(axis, a.ndim, "topi.flip")

    def value(*i: te.Expr) -> te.Expr:
        return a(*(a.shape[k] - 1 - index if k in reverse else index for k, index in enumerate(i)))

    return te.compute(a.shape, value, name="T_flip", tag=tag.INJECTIVE)


def tile(a: te.Tensor, reps: int | Sequence[int]) -> te.Tensor:
    """The whole of `a` several times along each axis, as NumPy's.

    Args:
        a: the tensor.
        reps: how many times along each axis, from the last; axes that it has more come first.

    >>> tile(te.placeholder((4,), name="A"), (2, 3)).shape
    (2, 12)
    """
    a = tensor_of(a, "topi.tile", "a")
    given = shape_of(reps)
    times_each = integers_of(list(given), len(given), "topi.tile", "reps", least=0)
    rank = max(a.ndim, len(times_each))
    counts = (1,) * (rank - len(times_each)) + times_each
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
    """Each element several times along an axis.

    Args:
        a: the tensor.
        repeats: how many times, at least 0.
        axis: counted from the end if negative.

    Raises:
        DefinitionError: there is no such axis.

    >>> repeat(te.placeholder((4, 8), name="A"), 2, 1).shape
    (4, 16)
    """
    a = tensor_of(a, "topi.repeat", "a")
    count = integer_of(repeats, "topi.repeat", "repeats", least=0)
    along = axis_of(axis, a.ndim, "topi.repeat")
    shape = tuple(times(n, count) if k == along else n for k, n in enumerate(a.shape))

    def value(*i: te.Expr) -> te.Expr:
        return a(*i[:along], i[along] if count == 1 else i[along] // max(count, 1), *i[along + 1 :])

    return te.compute(shape, value, name="T_repeat", tag=tag.BROADCAST)


def sliding_window(
    data: te.Tensor, axis: int, window_shape: Sequence[int], strides: Sequence[int]
) -> te.Tensor:
    """All windows of the last axes, each with axes of its own at the end.

    Args:
        data: the tensor.
        axis: the first of the axes along which windows move; the rest follow.
        window_shape: extents of a window.
        strides: elements from one window to the next.

    Raises:
        DefinitionError: a window is larger than its axis, or the numbers are not one for each.

    >>> sliding_window(te.placeholder((2, 9, 9), name="A"), 1, (3, 3), (2, 2)).shape
    (2, 4, 4, 3, 3)
    """
    where = "topi.sliding_window"
    data = tensor_of(data, where)
    first = axis_of(axis, data.ndim, where)
    count = data.ndim - first
    sizes = integers_of(
        listed(window_shape, where, "window_shape"), count, where, "window_shape", least=1)
    steps = integers_of(listed(strides, where, "strides"), count, where, "strides", least=1)
    for k, (extent, size) in enumerate(zip(data.shape[first:], sizes, strict=True), first):
        if isinstance(extent, int) and extent < size:
            raise DefinitionError(
                f"{where}: the window is {size} long, and axis {k} of {data.name}, shape "
                f"{shape_text(data.shape)}, has extent {extent}; take a smaller window",
                kind="shapes",
            )
    windows = [
        quotient(minus(extent, size - step), step)
        for extent, size, step in zip(data.shape[first:], sizes, steps, strict=True)
    ]

    def value(*i: te.Expr) -> te.Expr:
        starts, inside = i[first : first + count], i[first + count :]
        moved = (s * step + w for s, step, w in zip(starts, steps, inside, strict=True))
        return data(*i[:first], *moved)

    return te.compute(
        (*data.shape[:first], *windows, *sizes), value, name="T_sliding_window", tag=tag.INJECTIVE
    )
