"""Extents that are products or quotients of sizes, which integer sets cannot represent."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import prod
from operator import mul
from random import Random
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.poly import products_of
from tests.messages import Diagnostic, diagnostic

Agrees = Callable[..., Any]
n, m = te.var("n"), te.var("m")
X = te.placeholder((n, m), "int32", name="X")
F = te.compute((n * m,), lambda i: X[i // m, i % m], name="F")
H = te.compute((m * n,), lambda i: F[i] + F[n * m - 1 - i], name="H")
k = te.reduce_axis((0, n * m), name="k")
R = te.compute((1,), lambda _: te.sum(F[k], axis=k), name="R")


def plain(s: te.Schedule) -> None:
    assert s[F].leaf_iter_vars


def vectors(s: te.Schedule) -> None:
    outer, inner = s[F].split(F.op.axis[0], factor=8)
    s[F].vectorize(inner)
    s[F].parallel(outer)


def inside(s: te.Schedule) -> None:
    outer, _ = s[H].split(H.op.axis[0], factor=4)
    s[F].compute_at(s[H], outer)


def inlined(s: te.Schedule) -> None:
    s[F].compute_inline()


def tiled_memory(s: te.Schedule) -> None:
    s[F].transform_layout(lambda i: [i // 4, i % 4], pad_value=-1)


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("sizes", [(6, 5), (1, 1), (3, 8), (0, 4)])
@pytest.mark.parametrize("decide", [plain, vectors, inside, inlined, tiled_memory])
def test_elements_in_one_row(
    agrees: Agrees, decide: Callable[[te.Schedule], None], sizes: tuple[int, int]
) -> None:
    x = np.arange(sizes[0] * sizes[1], dtype=np.int32).reshape(sizes)
    s = te.create_schedule(H)
    decide(s)

    values = {n: sizes[0], m: sizes[1], X: x, H: x.ravel() + x.ravel()[::-1]}
    agrees(s, [n, m, X, H], values)


def test_reduction_over_a_product(agrees: Agrees) -> None:
    x = np.arange(30, dtype=np.int32).reshape(6, 5)
    s = te.create_schedule(R)
    outer, _ = s[R].split(k, factor=4)
    s.rfactor(R, outer)

    agrees(s, [n, m, X, R], {n: 6, m: 5, X: x, R: np.array([x.sum()], np.int32)})


@pytest.mark.parametrize("size", [1, 2, 5])
def test_rows_twice_as_long_as_those_that_are_read(agrees: Agrees, size: int) -> None:
    """Row `f // (2 * n)` of P has n elements, but the fused loop f runs 2n iterations per row."""
    P = te.placeholder((n + n, n), "int32", name="P")
    twice = te.compute(
        (n + n, n + n),
        lambda i, j: te.if_then_else(j < n, P[i, j], P[i, j - n]),
        name="twice",
    )
    s = te.create_schedule(twice)
    s[twice].fuse(*twice.op.axis)
    p = np.arange(2 * size * size, dtype=np.int32).reshape(2 * size, size)

    agrees(s, [n, P, twice], {n: size, P: p, twice: np.hstack([p, p])})


MAPS: dict[str, Callable[..., list[Any]]] = {
    "rows of four": lambda i: [i // 4, i % 4],
    "from the third on": lambda i: [(i + 3) // 4, (i + 3) % 4],
    "every other": lambda i: [i * 2],
    "with gaps": lambda i: [i * 3 + i % 2],
    "two parts": lambda i: [te.min(i, 5), te.max(i - 5, 0)],
    "turned in blocks": lambda i: [i // 6, i % 6 // 2, (i + 1) % 2],
}
EXTENTS: dict[str, tuple[Any, Callable[[int, int], int]]] = {
    "n * m": (n * m, lambda n, m: n * m),
    "n * m + n": (n * m + n, lambda n, m: n * m + n),
    "n // m": (n // m + 2, lambda n, m: n // m + 2),
    "n % m": (n % m, lambda n, m: n % m),
    "n ^ m": (n ^ m, lambda n, m: n ^ m),
    "n & 5": ((n & 5) + (n << m), lambda n, m: (n & 5) + (n << m)),
    "half": (n // 2 * 2, lambda n, m: n // 2 * 2),
    "max": (te.max(n, m), max),
}


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("layout", MAPS)
def test_layouts_of_computed_extents(layout: str, extent: str) -> None:
    """A map of one axis whose extent is not affine in the sizes."""
    symbolic, number = EXTENTS[extent]
    A = te.placeholder((symbolic,), "int32", name="A")
    B = te.compute((symbolic,), lambda i: A[i] * 2, name="B")
    C = te.compute((symbolic,), lambda i: B[i] + 1, name="C")
    s = te.create_schedule(C)
    s[B].transform_layout(MAPS[layout])
    kernel = tecomp.build(s, [n, m, A, C], check_bounds=True)

    for sizes in ((0, 1), (1, 1), (3, 4), (5, 2)):
        a = np.arange(number(*sizes), dtype=np.int32)
        c = np.zeros_like(a)
        kernel(*sizes, a, c)
        assert np.array_equal(c, a * 2 + 1), sizes


def test_quotient_of_two_sizes(agrees: Agrees) -> None:
    """Rows of m elements, n // m in number."""
    A = te.placeholder((n,), "int32", name="A")
    rows = te.compute((n // m, m), lambda i, j: A[i * m + j], name="rows")
    last = te.compute((n // m,), lambda i: rows[i, m - 1], name="last")
    a = np.arange(17, dtype=np.int32)

    agrees(te.create_schedule(last), [m, A, last], {m: 5, A: a, last: a[:15].reshape(3, 5)[:, 4]})


def test_out_of_bounds_reads_are_reported_at_run_time() -> None:
    wrong = te.compute((n * m,), lambda i: F[i + 1], name="wrong")
    kernel = tecomp.build(te.create_schedule(wrong), [X, wrong])

    with pytest.raises(tecomp.CallError) as refused:
        kernel(np.zeros((2, 3), np.int32), np.zeros(6, np.int32))

    line = test_out_of_bounds_reads_are_reported_at_run_time.__code__.co_firstlineno + 1
    assert diagnostic(refused.value) == (
        Diagnostic("out-of-bounds", value=6, text=f"{__file__}:{line}: F[i + 1] (axis 0 of F[n * m])")
    )


def test_one_name_for_each_product() -> None:
    a, b = te.var("a", "int64"), te.var("size", "int64")

    products = products_of([a * b // 4 + 1, b * a, a * b * a, a % b], [a, b])

    assert {v.name: str(part) for v, part in products.parts.items()} == {
        "size_1": "a * size", "size_2": "size_1 * a", "size_3": "a % size",
    }
    assert str(products.named(b * a + 1)) == "size_1 + 1"
    assert str(products.values[products.variables[1]]) == "a * size * a"


def test_whole_tiles_of_an_argument_of_computed_extent() -> None:
    """Edge tiles are computed in full if their inputs, of `n * m` rows, are in memory."""
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n * m, 4, 5), name="A")
    P = te.compute(A.shape, lambda *x: A[x] * 3.0, name="P")
    C = te.compute(A.shape, lambda i, *x: P[(te.max(i - 1, 0), *x)] + P[(i, *x)], name="C")
    s = te.create_schedule(C)
    s[P].compute_at(s[C], s[C].fuse(*C.op.axis[:2]))
    s[P].vectorize(s[P].split(s[P].fuse(*P.op.axis), factor=4)[1])
    kernel = tecomp.build(s, [n, m, A, C], check_bounds=True)

    for sizes in [(1, 1), (3, 2), (0, 2)]:
        a = np.arange(sizes[0] * sizes[1] * 20, dtype=np.float32).reshape(-1, 4, 5)
        c = np.zeros_like(a)
        kernel(*sizes, a, c)
        np.testing.assert_array_equal(c, a * 3 + np.concatenate([a[:1], a[:-1]]) * 3)


def parts_of(dice: Random, count: int) -> list[list[int]]:
    """Partition the numbers below `count` into groups of consecutive numbers."""
    cuts = sorted(dice.sample(range(1, count), dice.randrange(count)))
    return [[*range(*ends)] for ends in zip([0, *cuts], [*cuts, count], strict=True)]


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("seed", range(40))
def test_reshapes_of_symbolic_sizes_need_no_checks(agrees: Agrees, seed: int) -> None:
    """Reads at `i // (n * m)` and `i % (n * m)` are proved to be in bounds."""
    dice = Random(seed)
    factors: list[Any] = [te.var(f"n{k}") for k in range(dice.choice([2, 3, 3, 4]))]
    numbers = [dice.choice([1, 2, 3, 5]) for _ in factors]
    if dice.random() < 0.2:
        numbers[dice.randrange(len(numbers))] = 0
    variables = [*factors]
    if dice.random() < 0.4:
        at = dice.randrange(len(factors))
        factors[at], numbers[at] = 4, 4
    source, expected = (parts_of(dice, len(factors)) for _ in range(2))
    old, new = (
        [reduce(mul, [factors[k] for k in part]) for part in parts] for parts in (source, expected))
    shapes = [[prod(numbers[k] for k in part) for part in parts] for parts in (source, expected)]
    A = te.placeholder(old, "int32", name="A")

    def element(*index: Any) -> Any:
        place = index[0]
        for extent, each in zip(new[1:], index[1:], strict=True):
            place = place * extent + each
        found = []
        for axis in range(len(old)):
            inner = reduce(mul, old[axis + 1:], 1)
            digit = place if isinstance(inner, int) and inner == 1 else place // inner
            found.append(digit % old[axis] if axis else digit)
        return A(*found)

    B = te.compute(new, element, name="B")
    s = te.create_schedule(B)
    if dice.random() < 0.5:
        _, inner = s[B].split(s[B].fuse(*B.op.axis), factor=4)
        s[B].vectorize(inner)
    args = [*variables, A, B]
    assert tecomp.lower(s, args).sites == ()
    a = np.arange(prod(numbers), dtype=np.int32)
    values = {var: n for var, n in zip(variables, numbers, strict=True)}

    agrees(s, args, {**values, A: a.reshape(shapes[0]), B: a.reshape(shapes[1])})


def test_a_reshape_of_a_symbolic_matrix_is_a_copy() -> None:
    func = tecomp.lower(te.create_schedule(F), [X, F])

    assert str(func).splitlines()[1:] == ["    for i in range(n * m):", "        F[i] = X[i]"]
