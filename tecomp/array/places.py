"""Kernels for arrays of any length whose results depend on values: indices, and masks."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import numpy as np

import tecomp
from tecomp import te
from tecomp.array.counters import counters
from tecomp.array.node import Buffer
from tecomp.array.writes import in_order
from tecomp.ptensor.promotion import UNSIGNED


def places_of(mask: Buffer) -> Buffer:
    """The places where a row is true.

    >>> places_of(np.array([True, False, True]))
    array([0, 2])
    """
    places = np.empty(mask.size, np.int64)
    count = np.empty(1, np.int64)
    if not mask.size:
        return places
    counters.called += 1
    _places_kernel()(mask, places, count)
    return places[: int(count[0])].copy()


def counted_from_start(indices: Buffer, extent: int) -> tuple[Buffer, int | None]:
    """Indices counted from the first element, and the place of one that is out of bounds.

    >>> counted_from_start(np.array([0, -1, 1]), 3)
    (array([0, 2, 1]), None)
    """
    result, wrong = np.empty(indices.size, np.int64), np.empty(1, np.int64)
    if not indices.size:
        return result, None
    counters.called += 1
    _index_kernel(indices.dtype.name)(indices, np.array([extent]), result, wrong)
    place = int(wrong[0])
    return result, None if place < 0 else place


def rows_at(data: Buffer, axis: int, places: Buffer) -> Buffer:
    """The elements at places along an axis.

    Args:
        data: without places between its elements.
        axis: that is indexed.
        places: counted from the first element, a row; each is there.

    >>> rows_at(np.array([[1, 2, 3], [4, 5, 6]]), 1, np.array([2, 0]))
    array([[3, 1],
           [6, 4]])
    """
    shape = (*data.shape[:axis], places.size, *data.shape[axis + 1 :])
    result = np.empty(shape, data.dtype)
    if not result.size:
        return result
    outer, inner = prod(shape[:axis]), prod(shape[axis + 1 :])
    source, target = data.reshape(outer, -1, inner), result.reshape(outer, -1, inner)
    if data.dtype.kind == "c":
        source, target = source.view(data.real.dtype), target.view(data.real.dtype)
    counters.called += 1
    if source.shape[2] == 1:
        _elements_kernel(source.dtype.name)(source[..., 0], places, target[..., 0])
    else:
        _rows_kernel(source.dtype.name)(source, places, target)
    return result


def repeated_places(counts: Buffer) -> tuple[Buffer, int | None]:
    """Each place of a row as often as the row says there, and where it says less than 0.

    >>> repeated_places(np.array([1, 0, 2]))
    (array([0, 2, 2]), None)
    """
    ends, wrong = np.empty(counts.size, np.int64), np.empty(1, np.int64)
    if not counts.size:
        return ends, None
    counters.called += 1
    _ends_kernel(counts.dtype.name)(in_order(counts), ends, wrong)
    if wrong[0] >= 0:
        return ends[:0], int(wrong[0])
    places = np.empty(int(ends[-1]), np.int64)
    if places.size:
        counters.called += 1
        _repeat_kernel()(ends, places)
    return places, None


@cache
def _places_kernel() -> Any:
    n = te.size_var("n")
    mask = te.placeholder((n,), "bool", name="mask")

    def body(ins: Any, outs: Any) -> Any:
        (given,), (places, count) = ins, outs

        def step(i: te.Expr) -> Any:  # without a branch: what is not kept is written over
            return te.stmt_seq(
                places.store((count[0],), te.cast(i, "int64")),
                count.store((0,), count[0] + te.cast(given[i], "int64")),
            )

        return te.stmt_seq(count.store((0,), te.const(0, "int64")), te.for_range(0, n, step))

    results = te.extern([(n,), (1,)], [mask], body, name="places", dtype=["int64", "int64"])
    return _built([mask, *results], "places")


@cache
def _index_kernel(dtype: str) -> Any:
    n = te.size_var("n")
    indices = te.placeholder((n,), dtype, name="indices")
    extent = te.placeholder((1,), "int64", name="extent")

    def body(ins: Any, outs: Any) -> Any:
        (given, size), (result, wrong) = ins, outs

        def step(i: te.Expr) -> Any:
            place, inside = _place(given[i], size[0], dtype)
            first = te.all(te.logical_not(inside), wrong[0] < 0)
            return te.stmt_seq(
                result.store((i,), place),
                te.if_stmt(first, wrong.store((0,), te.cast(i, "int64"))),
            )

        return te.stmt_seq(wrong.store((0,), te.const(-1, "int64")), te.for_range(0, n, step))

    results = te.extern(
        [(n,), (1,)], [indices, extent], body, name="index", dtype=["int64", "int64"])
    return _built([indices, extent, *results], "index")


def _place(index: te.Expr, extent: te.Expr, dtype: str) -> tuple[te.Expr, te.Expr]:
    """An index counted from the first element, and whether there is such an element."""
    wide = te.cast(index, "int64")
    if dtype in UNSIGNED:  # none is counted from the end
        return wide, te.cast(index, "uint64") < te.cast(extent, "uint64")
    place = te.select(wide < 0, wide + extent, wide)
    return place, te.all(place >= 0, place < extent)


@cache
def _elements_kernel(dtype: str) -> Any:
    outer, n, count = [te.size_var(name) for name in ("outer", "n", "count")]
    x = te.placeholder((outer, n), dtype, name="x")
    places = te.placeholder((count,), "int64", name="places")
    elements = te.compute((outer, count), lambda i, j: x(i, places(j)), name="elements")
    return _built([x, places, elements], "take")


@cache
def _rows_kernel(dtype: str) -> Any:
    outer, n, inner, count = [te.size_var(name) for name in ("outer", "n", "inner", "count")]
    x = te.placeholder((outer, n, inner), dtype, name="x")
    places = te.placeholder((count,), "int64", name="places")
    rows = te.compute((outer, count, inner), lambda i, j, k: x(i, places(j), k), name="rows")
    return _built([x, places, rows], "take")


@cache
def _ends_kernel(dtype: str) -> Any:
    n = te.size_var("n")
    counts = te.placeholder((n,), dtype, name="counts")

    def body(ins: Any, outs: Any) -> Any:
        (given,), (ends, wrong) = ins, outs

        def step(i: te.Expr) -> Any:
            count = te.cast(given[i], "int64")
            first = te.all(count < 0, wrong[0] < 0)
            return te.stmt_seq(
                ends.store((i,), _end(ends, i - 1) + count),
                te.if_stmt(first, wrong.store((0,), te.cast(i, "int64"))),
            )

        return te.stmt_seq(wrong.store((0,), te.const(-1, "int64")), te.for_range(0, n, step))

    results = te.extern([(n,), (1,)], [counts], body, name="ends", dtype=["int64", "int64"])
    return _built([counts, *results], "ends")


def _end(ends: Any, i: te.Expr) -> te.Expr:
    """The sum of the counts up to a place, 0 before the first."""
    return te.select(i >= 0, ends[te.max(i, 0)], te.const(0, "int64"))


@cache
def _repeat_kernel() -> Any:
    n, total = te.size_var("n"), te.size_var("total")
    ends = te.placeholder((n,), "int64", name="ends")

    def body(ins: Any, outs: Any) -> Any:
        (given,), (places,) = ins, outs

        def row(i: te.Expr) -> Any:
            return te.for_range(
                _end(given, i - 1), given[i], lambda j: places.store((j,), te.cast(i, "int64")),
                name="j")

        return te.for_range(0, n, row)

    return _built([ends, te.extern((total,), [ends], body, name="places", dtype="int64")], "repeat")


def _built(tensors: list[te.Tensor], name: str) -> Any:
    counters.compiled += 1
    results = [tensor for tensor in tensors if not isinstance(tensor.op, te.PlaceholderOp)]
    return tecomp.build(results, tensors, name=name)
