"""Kernels with symbolic sizes are at most a small factor longer than those with fixed sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tecomp
from tecomp import te
from tecomp.ir import BufferStore, For, PrimFunc, walk
from tecomp.schedules import argreduce, auto, cumsum, elementwise, matmul, reduce, softmax
from tests.numerics import assert_product
from tests.strategies.fenced import call_fenced
from tests.strategies.machines import CORES

MOST = 3
"""Largest ratio of printed lines: a form for full tiles, one for the rest, loops over both."""

Operator = Callable[[te.Tensor], te.Tensor]

OPERATORS: dict[str, Operator] = {
    "elementwise": lambda A: elementwise.define(lambda x: x * 3.0 + 1.0, A),
    "sums of rows": lambda A: reduce.define(A, 1),
    "sums of columns": lambda A: reduce.define(A, 0),
    "softmax": softmax.define,
    "product": lambda A: matmul.define(A, A, transpose_b=True),
    "places of extremes": lambda A: argreduce.define(A, axis=1),
    "running sums": lambda A: cumsum.define(A, axis=1),
    "running sums down": lambda A: cumsum.define(A, axis=0),
}


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("name", OPERATORS)
def test_the_function_is_not_many_times_as_long(name: str) -> None:
    fixed, of_any = _lines(name, 300, 400), _lines(name, te.size_var("m"), te.size_var("n"))

    assert of_any <= MOST * fixed, (of_any, fixed)


def _lines(name: str, rows: te.Expr | int, columns: te.Expr | int) -> int:
    A = te.placeholder((rows, columns), name="A")
    B = OPERATORS[name](A)
    return len(str(tecomp.lower(auto(B, "cpu"), [A, B])).splitlines())


def test_lane_indices_need_no_division() -> None:
    def upper(i: te.Expr, j: te.Expr) -> te.Expr:
        return te.select(te.cast(i, "int64") < te.cast(j, "int64"), A[i, j], 0.0)

    A = te.placeholder((te.size_var("m"), te.size_var("n")), name="A")
    B = te.compute(A.shape, upper, name="B")
    C = te.compute(A.shape, lambda i, j: B[i, j] + 1.0, name="C")
    s = auto(C, "cpu")
    text = str(tecomp.lower(s, [A, C]))

    assert "% broadcast" not in text
    assert "// broadcast" not in text
    x, found = np.random.default_rng(0).random((37, 41), "float32"), np.empty((37, 41), "float32")
    tecomp.build(s, [A, C])(x, found)
    np.testing.assert_array_equal(found, np.triu(x, 1) + np.float32(1))


SIZES = (1, 2, 3, 5, 7, 9, 13, 15, 17, 19, 23, 29, 31, 33, 37, 47, 59, 67, 71, 97, 131)


@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_products_with_symbolic_sizes(data: st.DataObject) -> None:
    """Symbolic products have partial tiles along each axis, with packed and unpacked rows."""
    target = data.draw(st.sampled_from(CORES))
    dtype = data.draw(st.sampled_from(["float32", "float64"]))
    turned = data.draw(st.tuples(st.booleans(), st.booleans()))
    known = [data.draw(st.sampled_from((None, *SIZES))) for _ in range(3)]
    m, n, k = [te.size_var(x) if size is None else size for x, size in zip("mnk", known, strict=True)]
    A = te.placeholder((k, m) if turned[0] else (m, k), dtype, name="A")
    B = te.placeholder((n, k) if turned[1] else (k, n), dtype, name="B")
    C = matmul.define(A, B, transpose_a=turned[0], transpose_b=turned[1])
    kernel = tecomp.build(auto(C, target), [A, B, C])

    for seed in range(6):
        m, n, k = [data.draw(st.sampled_from(SIZES)) if size is None else size for size in known]
        rng = np.random.default_rng(seed)
        a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
        c = np.full((m, n), np.nan, dtype)
        x, y = (np.ascontiguousarray(z.T if t else z) for z, t in zip((a, b), turned, strict=True))
        call_fenced(kernel, x, y, c)
        assert_product(c, a, b)


@pytest.mark.parametrize("n", [3, 20, "n"])
def test_few_rows_of_an_open_number_are_shared_among_cores(n: int | str) -> None:
    target = replace(CORES[0], core=tecomp.Core(2, 64, 32, (32768, 1 << 20)))
    columns = te.size_var(n) if isinstance(n, str) else n
    A = te.placeholder((te.size_var("m"), 40), name="A")
    B = te.placeholder((40, columns), name="B")
    p = matmul.plan(matmul.define(A, B), target)

    # A block takes at least some ten thousand vector multiply-adds.
    products = p.block_rows * 40 * p.tile.vectors * (1 if n == 3 else 2)
    assert p.block_rows % p.tile.rows == 0
    assert p.block_rows == 2 * p.tile.rows if n == "n" else 1 << 14 < products <= 1 << 16


def test_rows_of_transposes_are_shared_among_cores_where_the_depth_is_open() -> None:
    A = te.placeholder((te.size_var("k"), te.size_var("m")), name="A")
    B = te.placeholder((A.shape[0], 3), name="B")
    p = matmul.plan(matmul.define(A, B, transpose_a=True), CORES[0])

    assert p.block_rows == 2 * p.tile.rows


def stores_in(func: PrimFunc) -> Iterator[tuple[For, BufferStore]]:
    """Yield each loop of a function with each store inside it."""
    for loop in walk(func.body):
        if isinstance(loop, For):
            for node in walk(loop.body):
                if isinstance(node, BufferStore):
                    yield loop, node


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("target", CORES, ids=["cpu", "small"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("n", [1, 3, 20])
def test_sums_of_rows_at_the_edge_stay_in_registers(
    n: int, turned: bool, target: tecomp.Target
) -> None:
    """Edge tiles keep sums in registers, which have no index, so loops over sums are unrolled."""
    m = te.size_var("m")
    A = te.placeholder((20, m) if turned else (m, 20), name="A")
    B = te.placeholder((20, n), name="B")
    C = matmul.define(A, B, transpose_a=turned)
    func = tecomp.lower(auto(C, target), [A, B, C])
    pairs = list(stores_in(func))

    assert any(store.buffer.scope == "local" for _, store in pairs)
    for loop, store in pairs:
        if store.buffer.scope == "local":
            assert not any(part is loop.loop_var for part in walk(*store.indices)), str(func)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_columns_that_are_cut_short_are_written_once_for_several_steps(dtype: str) -> None:
    """Partial columns are written once per several steps: a masked load after its store stalls."""
    n, k = te.size_var("n"), te.size_var("k")
    A, B = te.placeholder((5, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    C = matmul.define(A, B)
    func = tecomp.lower(auto(C, CORES[0]), [A, B, C])
    pairs = list(stores_in(func))

    assert any(store.buffer.name == C.name and store.predicate is not None for _, store in pairs)
    for loop, store in pairs:
        assert not loop.loop_var.name.startswith("k_inner") or store.buffer.scope == "local"
