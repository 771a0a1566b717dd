"""Kernels for data-dependent results."""

from __future__ import annotations

from functools import cache
from typing import Any

import tecomp
from tecomp import te
from tecomp.array.graph.locking import compiling
from tecomp.array.statistics import counters
from tecomp.ptensor.types import UNSIGNED


@cache
def places_kernel() -> Any:
    """Build the kernel that returns the indices where a mask is true, and their count."""
    n = te.size_var("n")
    mask = te.placeholder((n,), "bool", name="mask")

    def body(ins: Any, outs: Any) -> Any:
        (given,), (places, count) = ins, outs

        def step(i: te.Expr) -> Any:  # branch-free: rejected indices are overwritten
            return te.stmt_seq(
                places.store((count[0],), te.cast(i, "int64")),
                count.store((0,), count[0] + te.cast(given[i], "int64")),
            )

        return te.stmt_seq(count.store((0,), te.const(0, "int64")), te.for_range(0, n, step))

    results = te.extern([(n,), (1,)], [mask], body, name="places", dtype=["int64", "int64"])
    return _build([mask, *results], "places")


@cache
def index_kernel(dtype: str) -> Any:
    """Build the kernel that converts negative indices and finds the first index out of bounds."""
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
    return _build([indices, extent, *results], "index")


def _place(index: te.Expr, extent: te.Expr, dtype: str) -> tuple[te.Expr, te.Expr]:
    """Return an index counted from the first element, and whether it is in bounds."""
    wide = te.cast(index, "int64")
    if dtype in UNSIGNED:  # unsigned indices are never negative
        return wide, te.cast(index, "uint64") < te.cast(extent, "uint64")
    place = te.select(wide < 0, wide + extent, wide)
    return place, te.all(place >= 0, place < extent)


@cache
def elements_kernel(dtype: str) -> Any:
    """Build the kernel that takes elements of rows at indices."""
    outer, n, count = [te.size_var(name) for name in ("outer", "n", "count")]
    x = te.placeholder((outer, n), dtype, name="x")
    places = te.placeholder((count,), "int64", name="places")
    elements = te.compute((outer, count), lambda i, j: x(i, places(j)), name="elements")
    return _build([x, places, elements], "take")


@cache
def rows_kernel(dtype: str) -> Any:
    """Build the kernel that takes blocks of rows at indices."""
    outer, n, inner, count = [te.size_var(name) for name in ("outer", "n", "inner", "count")]
    x = te.placeholder((outer, n, inner), dtype, name="x")
    places = te.placeholder((count,), "int64", name="places")
    rows = te.compute((outer, count, inner), lambda i, j, k: x(i, places(j), k), name="rows")
    return _build([x, places, rows], "take")


@cache
def ends_kernel(dtype: str) -> Any:
    """Build the kernel for cumulative sums of counts and the first negative count."""
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
    return _build([counts, *results], "ends")


def _end(ends: Any, i: te.Expr) -> te.Expr:
    """Return the sum of the counts up to a position; 0 before the first position."""
    return te.select(i >= 0, ends[te.max(i, 0)], te.const(0, "int64"))


@cache
def repeat_kernel() -> Any:
    """Build the kernel that repeats each position by its count, given the cumulative sums."""
    n, total = te.size_var("n"), te.size_var("total")
    ends = te.placeholder((n,), "int64", name="ends")

    def body(ins: Any, outs: Any) -> Any:
        (given,), (places,) = ins, outs

        def row(i: te.Expr) -> Any:
            return te.for_range(
                _end(given, i - 1), given[i], lambda j: places.store((j,), te.cast(i, "int64")),
                name="j")

        return te.for_range(0, n, row)

    return _build([ends, te.extern((total,), [ends], body, name="places", dtype="int64")], "repeat")


def _build(tensors: list[te.Tensor], name: str) -> Any:
    results = [tensor for tensor in tensors if not isinstance(tensor.op, te.PlaceholderOp)]
    with compiling:
        counters.compiled += 1
        return tecomp.build(results, tensors, name=name)
