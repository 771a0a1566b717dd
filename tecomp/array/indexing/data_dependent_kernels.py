"""Kernels for data-dependent results."""

from __future__ import annotations

from functools import cache
from typing import Any

import tecomp
from tecomp import te
from tecomp.array.graph.pending import compiling
from tecomp.array.statistics import counters
from tecomp.ptensor.types import UNSIGNED


@cache
def places_kernel() -> Any:
    """Build the kernel that returns the indices where a mask is true, and their count."""
    n = te.size_var("n")
    mask = te.placeholder((n,), "bool", name="mask")

    def body(ins: Any, outs: Any) -> Any:
        (source,), (indices, count) = ins, outs

        def step(i: te.Expr) -> Any:  # branch-free: rejected indices are overwritten
            return te.stmt_seq(
                indices.store((count[0],), te.cast(i, "int64")),
                count.store((0,), count[0] + te.cast(source[i], "int64")),
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
        (source, size), (result, invalid) = ins, outs

        def step(i: te.Expr) -> Any:
            position, inside = _place(source[i], size[0], dtype)
            first = te.all(te.logical_not(inside), invalid[0] < 0)
            return te.stmt_seq(
                result.store((i,), position),
                te.if_stmt(first, invalid.store((0,), te.cast(i, "int64"))),
            )

        return te.stmt_seq(invalid.store((0,), te.const(-1, "int64")), te.for_range(0, n, step))

    results = te.extern(
        [(n,), (1,)], [indices, extent], body, name="index", dtype=["int64", "int64"])
    return _build([indices, extent, *results], "index")


def _place(index: te.Expr, extent: te.Expr, dtype: str) -> tuple[te.Expr, te.Expr]:
    """Return an index counted from the first element, and whether it is in bounds."""
    wide_index = te.cast(index, "int64")
    if dtype in UNSIGNED:  # unsigned indices are never negative
        return wide_index, te.cast(index, "uint64") < te.cast(extent, "uint64")
    position = te.select(wide_index < 0, wide_index + extent, wide_index)
    return position, te.all(position >= 0, position < extent)


@cache
def elements_kernel(dtype: str) -> Any:
    """Build the kernel that takes elements of rows at indices."""
    outer, n, count = [te.size_var(name) for name in ("outer", "n", "count")]
    x = te.placeholder((outer, n), dtype, name="x")
    indices = te.placeholder((count,), "int64", name="places")
    elements = te.compute((outer, count), lambda i, j: x(i, indices(j)), name="elements")
    return _build([x, indices, elements], "take")


@cache
def rows_kernel(dtype: str) -> Any:
    """Build the kernel that takes blocks of rows at indices."""
    outer, n, inner, count = [te.size_var(name) for name in ("outer", "n", "inner", "count")]
    x = te.placeholder((outer, n, inner), dtype, name="x")
    indices = te.placeholder((count,), "int64", name="places")
    rows = te.compute((outer, count, inner), lambda i, j, k: x(i, indices(j), k), name="rows")
    return _build([x, indices, rows], "take")


@cache
def ends_kernel(dtype: str) -> Any:
    """Build the kernel for cumulative sums of counts and the first negative count."""
    n = te.size_var("n")
    counts = te.placeholder((n,), dtype, name="counts")

    def body(ins: Any, outs: Any) -> Any:
        (source,), (ends, invalid) = ins, outs

        def step(i: te.Expr) -> Any:
            count = te.cast(source[i], "int64")
            first = te.all(count < 0, invalid[0] < 0)
            return te.stmt_seq(
                ends.store((i,), _end(ends, i - 1) + count),
                te.if_stmt(first, invalid.store((0,), te.cast(i, "int64"))),
            )

        return te.stmt_seq(invalid.store((0,), te.const(-1, "int64")), te.for_range(0, n, step))

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
        (source,), (output,) = ins, outs

        def row(i: te.Expr) -> Any:
            return te.for_range(
                _end(source, i - 1), source[i], lambda j: output.store((j,), te.cast(i, "int64")),
                name="j")

        return te.for_range(0, n, row)

    return _build([ends, te.extern((total,), [ends], body, name="places", dtype="int64")], "repeat")


def _build(tensors: list[te.Tensor], name: str) -> Any:
    results = [tensor for tensor in tensors if not isinstance(tensor.op, te.PlaceholderOp)]
    with compiling:
        counters.compiled += 1
        return tecomp.build(results, tensors, name=name)
