"""Access relations of operations with arbitrary indices."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import tecomp
from tecomp import te
from tests.messages import Diagnostic, diagnostic

WIDE = te.placeholder((400,), name="W")
A = te.placeholder((40, 50), name="A")
I = te.placeholder((40,), "int32", name="I")  # noqa: E741


def test_indices_are_sums() -> None:
    B = te.compute((8, 9), lambda i, j: A[(i + j) * 2 - 3 + 4 * i - j, 5 - j], name="B")
    i, j = B.op.axis
    ((first, second),) = (read.index for read in tecomp.accesses(B).reads)

    assert (first.coefficient(i), first.coefficient(j), first.const) == (6, 1, -3)
    assert (second.coefficient(i), second.coefficient(j), second.const) == (0, -1, 5)
    assert (first.axis, first.is_affine, first.axes) == (None, True, (i, j))


def test_non_sums_are_single_terms() -> None:
    B = te.compute((8, 9), lambda i, j: A[I[i] + j, i // 2 + i], name="B")
    i, j = B.op.axis
    first, second = tecomp.accesses(B).reads[0].index

    assert (first.is_affine, first.coefficient(j), first.coefficient(i)) == (False, 1, None)
    assert (second.is_affine, second.coefficient(i), second.axes) == (False, None, (i,))
    assert [read.tensor.name for read in tecomp.accesses(B).reads] == ["A", "I"]


@pytest.mark.parametrize("seed", range(8))
def test_footprints_contain_all_reads(seed: int) -> None:
    """Footprints of sums, quotients and remainders are upper bounds, by enumeration."""
    dice = random.Random(seed)
    for _ in range(20):
        a, b = dice.choice((1, 2, 3, -2)), dice.randint(1, 9)
        c, d = dice.randint(2, 7), dice.randint(0, 3)
        forms: list[Any] = [
            lambda i, j, a=a, d=d: i * a + j * 2 + d,
            lambda i, j, b=b, c=c: (i * b + j) // c,
            lambda i, j, b=b, c=c: (i * b + j) % c,
            lambda i, j, c=c, d=d: (i // c) * 3 + j + d,
        ]
        form = dice.choice(forms)
        B = te.compute((12, 12), lambda i, j, form=form: WIDE[form(i, j) + 40], name="B")
        (read,) = tecomp.accesses(B).reads
        part = dice.randint(1, 5), dice.randint(1, 5)
        (extent,) = read.footprint(dict(zip(B.op.axis, part, strict=True)))
        for y, x in product(range(12 - part[0]), range(12 - part[1])):
            values = [form(y + i, x + j) for i in range(part[0]) for j in range(part[1])]
            assert max(values) - min(values) < extent


def test_data_dependent_accesses_cover_the_tensor() -> None:
    B = te.compute((8, 9), lambda i, j: A[I[i], j], name="B")
    i, j = B.op.axis
    table, index = tecomp.accesses(B).reads

    assert (table.follows_data, index.follows_data) == (True, False)
    assert table.footprint({i: 2, j: 3}) == (40, 3)
    assert table.footprint({j: 3}) == (1, 3)
    assert index.footprint({i: 2}) == (2,)


def test_footprints_need_numbers() -> None:
    S = te.placeholder((te.var("n"),), name="S")
    B = te.compute((4,), lambda i: S[i], name="B")
    with pytest.raises(tecomp.DefinitionError) as error:
        tecomp.accesses(B).reads[0].footprint({})

    assert diagnostic(error.value) == (
        Diagnostic("unbound-size", tensor="S", extent="n")
    )


def test_the_same_place_is_read_once() -> None:
    B = te.compute((8,), lambda i: A[i, 1] * A[i, 2] + A[i, 3 - 2] + A[1, i], name="B")

    assert len(tecomp.accesses(B).reads) == 3


def test_factors_are_elements_converted_to_wider_types() -> None:
    k = te.reduce_axis((0, 40), name="k")

    def factors(value: te.Expr) -> int:
        return len(tecomp.accesses(te.compute((1,), lambda i: te.sum(value, axis=k))).factors)

    assert factors(A[k, 0] * te.cast(I[k], "float64")) == 2
    assert factors(A[k, 0] * A[k, 1] * A[k, 2]) == 3
    # A rounded value is not a factor; nor is a product whose result, not its operands, is cast.
    assert factors(A[k, 0] * te.cast(I[k], "float32")) == 0
    assert factors(te.cast(A[k, 0] * A[k, 1], "float64")) == 0
    assert factors(A[k, 0] * 2) == 0


def test_reducers_are_recognized_by_definition() -> None:
    k = te.reduce_axis((0, 40), name="k")
    reducer = te.comm_reducer(lambda x, y: y + x, lambda t: te.const(0, t), name="any name")
    other = te.comm_reducer(lambda x, y: x + y * 2, lambda t: te.const(0, t), name="sum")

    def found(value: te.Expr) -> tecomp.Accesses:
        return tecomp.accesses(te.compute((1,), lambda i: value))

    assert [found(f(A[k, 0], axis=k)).reducer for f in (reducer, other, te.max)] == ["sum", None, "max"]
    assert found(te.sum(A[k, 0], axis=k)).is_plain
    assert not found(te.sum(A[k, 0], axis=k, where=k > 3)).is_plain
    assert not found(te.sum(A[k, 0], axis=k, init=1.0)).is_plain
    assert found(A[0, 0] + 1).reducer is None


def test_increasing_values_order_tuples() -> None:
    k, m = te.reduce_axis((0, 40), name="k"), te.reduce_axis((0, 30), name="m")

    def rising(index: te.Expr, condition: Any, axis: Any = k, swapped: int = 0) -> int | None:
        def combine(x: Any, y: Any) -> list[te.Expr]:
            return [te.Select(condition(x, y), x[n], (x if n < swapped else y)[n]) for n in (0, 1)]

        best = te.comm_reducer(combine, lambda a, b: [te.min_value(a), te.min_value(b)])
        value, _ = te.compute((1,), lambda i: best((A[k, 0], index), axis=axis))
        return tecomp.accesses(value).rising

    def first(x: Any, y: Any) -> Any:
        return x[0] >= y[0]

    assert rising(te.cast(2 * k - 5, "int8"), first) == 1
    assert rising(te.cast(k * 4, "int8"), first) is None
    assert rising(-k, first) is None
    assert rising(k, first, axis=[k, m]) is None
    assert rising(k, first, swapped=1) is None
    k = te.reduce_axis((0, te.size_var("n")), name="k")
    assert rising(k, first, axis=k) == rising(te.cast(k, "int64"), first, axis=k) == 1
    assert rising(2 * te.cast(k, "int64") + 3, first, axis=k) == 1
    assert rising(te.cast(k, "int16"), first, axis=k) is None
    assert rising(te.cast(2 * k, "int64"), first, axis=k) is None
    k = te.reduce_axis((0, 40), name="k")
    assert tecomp.accesses(te.compute((1,), lambda i: te.max(A[k, 0], axis=k))).rising is None


def test_values_that_are_reduced_side_by_side_are_apart() -> None:
    k = te.reduce_axis((0, 40), name="k")

    def is_apart(combine: Any) -> bool:
        both = te.comm_reducer(combine, lambda a, b: [te.const(0, a), te.const(0, b)])
        value, _ = te.compute((1,), lambda i: both((A[k, 0], A[k, 1]), axis=k))
        return tecomp.accesses(value).is_apart

    assert is_apart(lambda x, y: [x[0] + y[0], te.max(x[1], y[1])])
    assert not is_apart(lambda x, y: [x[0] + y[0], x[1] + y[0]])
    assert not is_apart(lambda x, y: [x[0] + y[0], x[1] - y[1]])
    assert not tecomp.accesses(te.compute((1,), lambda i: te.max(A[k, 0], axis=k))).is_apart


def test_a_narrowing_cast_of_an_axis_is_no_axis() -> None:
    A = te.placeholder((300,), name="A")
    widened = te.compute((300,), lambda i: A[te.cast(i, "int64")], name="wide")
    narrow = te.compute((300,), lambda i: A[te.abs(te.cast(i, "int8"))], name="narrow")
    direct = te.compute((300,), lambda i: A[te.cast(i, "uint8")], name="direct")

    assert [read.axes for read in tecomp.accesses(widened).reads] == [(widened.op.axis[0],)]
    for item in (narrow, direct):
        assert [read.axes for read in tecomp.accesses(item).reads] == [(None,)]


def test_squares_of_squares_are_no_list_of_factors() -> None:
    """Sixty nested squares have 2**60 factors, but each is visited once."""
    def power(squares: int) -> te.Tensor:
        def value(i: te.Expr) -> te.Expr:
            x = A[i, 0]
            for _ in range(squares):
                x = x * x
            return x

        return te.compute((8,), value, name="P")

    assert [len(tecomp.accesses(power(n)).factors) for n in (0, 1, 6, 7, 60)] == [1, 2, 64, 0, 0]


def test_dependent_operations_are_counted() -> None:
    A, B = te.placeholder((8,), name="A"), te.placeholder((8,), name="B")
    at = te.placeholder((8,), "int32", name="at")

    def paths(formula: Callable[[te.Expr], te.Expr]) -> dict[te.Tensor | None, int]:
        return dict(tecomp.accesses(te.compute((8,), formula, name="C")).paths)

    assert paths(lambda i: A[i]) == {None: 0, A: 0}
    assert paths(lambda i: te.exp(A[i]) + B[i]) == {None: 11, A: 11, B: 1}
    assert paths(lambda i: A[i] * te.log(te.exp(A[i]) + B[i])) == {None: 22, A: 22, B: 12}
    # Index computations do not count as work.
    assert paths(lambda i: te.exp(A[at[i] + 1])) == {None: 10, A: 10}
