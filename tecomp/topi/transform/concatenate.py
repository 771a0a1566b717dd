"""Operators that join or split tensors: concatenate, stack, split, meshgrid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

from tecomp import DefinitionError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.topi import tag
from tecomp.topi.extents import Size, ceil_div, differ, equal, minus, plus, times
from tecomp.topi.transform.slices import part_of
from tecomp.topi.validation import (
    axis_of,
    extents_of,
    integer_of,
    tensor_of,
    tensors_of,
    validate_choice,
)

_MAX_PARTS = 1 << 16
"""Maximum number of parts of one tensor."""


def concatenate(a_tuple: Sequence[te.Tensor], axis: int = 0) -> te.Tensor:
    """Join tensors along an existing axis.

    Args:
        a_tuple: Tensors with equal extents along all other axes.
        axis: Axis; negative values count from the last axis.

    Raises:
        DefinitionError: If there are no tensors, if `axis` is out of bounds, or if the other
            extents differ.

    >>> A, B = te.placeholder((4, 8), name="A"), te.placeholder((2, 8), name="B")
    >>> concatenate([A, B]).shape
    (6, 8)
    """
    where = "topi.concatenate"
    parts = tensors_of(a_tuple, where, "a_tuple")
    dim = axis_of(axis, parts[0].ndim, where)
    _check_alike(parts, dim, where)
    ends = list(accumulate((x.shape[dim] for x in parts), plus))

    def value(*i: te.Expr) -> te.Expr:
        def read(k: int) -> te.Expr:
            start = ends[k - 1] if k else 0
            return parts[k](*i[:dim], i[dim] if k == 0 else i[dim] - start, *i[dim + 1 :])

        return select_part(i[dim], ends, read)

    shape = (*parts[0].shape[:dim], ends[-1], *parts[0].shape[dim + 1 :])
    return te.compute(shape, value, name="T_concat", tag=tag.INJECTIVE)


def stack(tensors: Sequence[te.Tensor], axis: int = 0) -> te.Tensor:
    """Join tensors along a new axis.

    Args:
        tensors: Tensors with equal shapes.
        axis: Position of the new axis in the result. Negative values count from the last axis of
            the result.

    Raises:
        DefinitionError: If there are no tensors, if the shapes differ, or if `axis` is out of
            bounds.

    >>> A, B = te.placeholder((4, 8), name="A"), te.placeholder((4, 8), name="B")
    >>> stack([A, B], -1).shape
    (4, 8, 2)
    """
    where = "topi.stack"
    parts = tensors_of(tensors, where, "tensors")
    dim = axis_of(axis, parts[0].ndim + 1, where)
    _check_alike(parts, None, where)
    ends: list[Size] = list(range(1, len(parts) + 1))

    def value(*i: te.Expr) -> te.Expr:
        return select_part(i[dim], ends, lambda k: parts[k](*i[:dim], *i[dim + 1 :]))

    shape = (*parts[0].shape[:dim], len(parts), *parts[0].shape[dim:])
    return te.compute(shape, value, name="T_stack", tag=tag.INJECTIVE)


def _check_alike(parts: Sequence[te.Tensor], dim: int | None, where: str) -> None:
    """Raise if the shapes of tensors differ, except along one axis if it is given."""
    first = parts[0]
    for k, x in enumerate(parts):
        matching = x.ndim == first.ndim and all(
            axis == dim or equal(a, b)
            for axis, (a, b) in enumerate(zip(x.shape, first.shape, strict=True))
        )
        if not matching:
            clause = "" if dim is None else f" except along axis {dim}"
            raise DefinitionError(
                "{where}: tensor 0 has shape {shape}, but tensor {k} has shape {x_shape}; pass "
                "tensors of equal shape{but}",
                kind="shapes", where=where, shape=shape_text(first.shape), k=k,
                x_shape=shape_text(x.shape), but=clause,
            )


def select_part(index: te.Expr, ends: Sequence[Size], read: Callable[[int], te.Expr]) -> te.Expr:
    """Return the value of the part that contains an index; part `k` ends before `ends[k]`.

    The conditions form a binary search tree of logarithmic depth.
    """

    def between(low: int, high: int) -> te.Expr:
        if high - low == 1:
            return read(low)
        middle = (low + high) // 2
        return te.if_then_else(
            index < ends[middle - 1], between(low, middle), between(middle, high))

    return between(0, len(ends))


def split(
    ary: te.Tensor, indices_or_sections: int | Sequence[Size], axis: int = 0
) -> list[te.Tensor]:
    """Split a tensor along an axis into several tensors.

    Args:
        ary: Input tensor.
        indices_or_sections: Number of parts, which have equal extents except for the last ones, or
            the first index of each part after the first.
        axis: Axis; negative values count from the last axis.

    Raises:
        DefinitionError: If `axis` is out of bounds, if there are too many parts, or if the indices
            are not in ascending order within the extent.

    >>> [x.shape for x in split(te.placeholder((6, 8), name="A"), [1, 4])]
    [(1, 8), (3, 8), (2, 8)]
    """
    where = "topi.split"
    ary = tensor_of(ary, where, "ary")
    dim = axis_of(axis, ary.ndim, where)
    extent = ary.shape[dim]
    if isinstance(indices_or_sections, list | tuple):
        begins = extents_of(indices_or_sections, where, "indices_or_sections")
        bounds: list[Size] = [0, *begins, extent]
    else:
        count = integer_of(indices_or_sections, where, "indices_or_sections", least=1)
        if count > _MAX_PARTS:
            raise DefinitionError(
                "{where}: indices_or_sections must be at most {most_parts}, got {count!r}",
                kind="limit-exceeded", where=where, count=count, most_parts=_MAX_PARTS,
            )
        step = ceil_div(extent, count)
        bounds = [_min_size(times(step, k), extent) for k in range(count)] + [extent]
    known = [bound for bound in bounds if isinstance(bound, int)]
    if sorted(known) != known or known[0] < 0:
        raise DefinitionError(
            "{where}: split positions {positions!r} are not valid for axis {axis} of {ary}, extent "
            "{extent}; pass positions in ascending order, from 0 to the extent",
            kind="shapes", where=where, positions=tuple(bounds[1:-1]), axis=dim, ary=ary.name,
            extent=extent,
        )
    return [
        part_of(ary, dim, begin, minus(end, begin), f"T_split_{k}")
        for k, (begin, end) in enumerate(pairwise(bounds))
    ]


def _min_size(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return a if equal(a, b) or equal(a, 0) or not differ(a, b) else te.min(a, b)


def meshgrid(a_tuple: Sequence[te.Tensor], indexing: str) -> list[te.Tensor]:
    """Return coordinate grids; each repeats one vector along the axes of the others.

    Args:
        a_tuple: Tensors of rank 1 or 0.
        indexing: "ij", or "xy", which exchanges the first two axes.

    Raises:
        DefinitionError: If a tensor has more than one axis, or if `indexing` is unknown.

    >>> x, y = te.placeholder((3,), name="x"), te.placeholder((4,), name="y")
    >>> [grid.shape for grid in meshgrid([x, y], "ij")]
    [(3, 4), (3, 4)]
    """
    where = "topi.meshgrid"
    parts = tensors_of(a_tuple, where, "a_tuple")
    validate_choice(indexing, ("ij", "xy"), where, "indexing")
    for x in parts:
        if x.ndim > 1:
            raise DefinitionError(
                "{where}: {x} has shape {shape}, expected coordinates with 0 or 1 axes",
                kind="shapes", where=where, x=x.name, shape=shape_text(x.shape),
            )
    order = list(range(len(parts)))
    if indexing == "xy" and len(parts) > 1:
        order[:2] = [1, 0]
    extents: list[Size] = [x.shape[0] if x.ndim else 1 for x in parts]
    shape = tuple(extents[k] for k in order)

    def grid(k: int, x: te.Tensor) -> te.Tensor:
        dim = order.index(k)
        return te.compute(
            shape, lambda *i: x(i[dim]) if x.ndim else x(), name=f"T_meshgrid_{k}",
            tag=tag.INJECTIVE,
        )

    return [grid(k, x) for k, x in enumerate(parts)]


