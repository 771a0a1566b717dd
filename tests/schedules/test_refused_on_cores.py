"""Full error messages for programs and divisions that scratchpad cores do not support."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, cast

import pytest

from tecomp import Target, TecompError, te
from tecomp.schedules import auto
from tecomp.schedules.analysis import by_loops
from tecomp.schedules.fusion import (
    CoreScheduleCandidate,
    core_schedule_candidates,
    groups_on_cores,
    materialized_tensors,
    program_of,
)
from tecomp.schedules.scratchpad import (
    DivisionSpec,
    outline_partial,
    placement_of,
    schedule_partial,
    work_of,
)
from tests.messages import Diagnostic, diagnostic
from tests.schedules.test_scratchpads import with_capacity

HALF = DivisionSpec(cores={0: 2})


def square(name: str, size: int = 64) -> te.Tensor:
    return te.placeholder((size, size), "float16", name)


def product(x: te.Tensor, y: te.Tensor, name: str) -> te.Tensor:
    k = te.reduce_axis((0, x.shape[1]), name="k")
    return te.compute(x.shape, lambda i, j: te.sum(x[i, k] * y[k, j], axis=k), name=name)


A, B = square("A"), square("B")
FIRST = product(A, B, "first")
SECOND = product(FIRST, A, "second")
THIRD = product(SECOND, B, "third")
LARGE = square("L", 8192)
PLUS = te.compute(A.shape, lambda i, j: A[i, j] + 1.0, name="plus")
TWICE = te.compute(A.shape, lambda i, j: A[i, j] * 2.0, name="twice")
MANY = te.placeholder((4,) * 5, "float16", "M")
ALL = te.compute(MANY.shape, lambda *i: MANY(*i) + 1.0, name="all")


def steps() -> te.Tensor:
    """Return row sums that a scan computes."""
    X, state = te.placeholder((8, 64), name="X"), te.placeholder((8, 64), name="S")
    first = te.compute((1, 64), lambda _, i: X[0, i], name="init")
    then = te.compute(X.shape, lambda t, i: state[t - 1, i] + X[t, i], name="update")
    return te.scan(first, then, state, inputs=[X], name="sums")


SUMS = steps()
AXIS = te.reduce_axis((0, 64), name="k")
MOST = te.compute((64,), lambda i: te.max(A[i, AXIS], axis=AXIS), name="most")
SHIFTED = te.compute(A.shape, lambda i, j: A[i, j] - MOST[i], name="shifted")
MORE = te.compute(SUMS.shape, lambda i, j: SUMS[i, j] + 1.0, name="more")


def of_large() -> te.Schedule:
    first = product(LARGE, LARGE, "first")
    second = product(first, LARGE, "second")
    s: te.Schedule = auto(
        second, "stick128", division={first: HALF, second: HALF}, near=[first])
    return s


def near(
    output: te.Tensor | Sequence[te.Tensor], cut: Collection[te.Tensor], stay: object
) -> Callable[[], object]:
    """Return a function that schedules a program with some values resident in scratchpads."""
    return lambda: auto(
        output, "stick128", division=dict.fromkeys(cut, HALF), near=cast("Any", stay))


@pytest.mark.parametrize(
    ("call", "error", "expected"),
    [
        (lambda: auto(SUMS, "stick128", division={SUMS: HALF}), "ScheduleError",
         Diagnostic("indivisible", output="sums")),
        (lambda: auto(SHIFTED, "stick128", division={SHIFTED: DivisionSpec(cores={1: 2})}), "TargetError",
         Diagnostic("indivisible", output="shifted", axis="j")),
        (lambda: auto([PLUS, TWICE], "stick128", division={PLUS: HALF}), "ScheduleError",
         Diagnostic("indivisible", x="plus", others="twice")),
        (lambda: auto(ALL, "stick128", division={ALL: DivisionSpec(cores={0: 2, 1: 2, 2: 2})}), "TargetError",
         Diagnostic(
             "indivisible", x="all", listed="2 x 2 x 2 x 1 x 1", target="stick128",
             grid="core.x: 32",
         )),
        (near(MORE, [SUMS, MORE], [SUMS]), "ScheduleError",
         Diagnostic("indivisible", output="sums")),
        (near(THIRD, [FIRST, THIRD], [FIRST]), "ScheduleError",
         Diagnostic("indivisible", y="first", output="second")),
        (near(SECOND, [SECOND], [FIRST]), "ScheduleError",
         Diagnostic("indivisible", result="second", x="first")),
        (near(SECOND, [FIRST], [FIRST]), "ScheduleError",
         Diagnostic("indivisible", result="second", x="second")),
        (near(SECOND, [SECOND, THIRD], [THIRD]), "ScheduleError",
         Diagnostic("indivisible", x="third", result="second")),
        (near([FIRST, PLUS], [FIRST, PLUS], [FIRST]), "ScheduleError",
         Diagnostic("indivisible", result_count=2)),
        (near(SECOND, [SECOND], 3), "ScheduleError",
         Diagnostic("invalid-type", suggestion=3)),
        (near(SECOND, [SECOND], "first"), "ScheduleError",
         Diagnostic("invalid-type", suggestion="first")),
        (of_large, "CapacityError",
         Diagnostic(
             "capacity", required_bytes=67108864, scratchpad="lx", head="first", target="stick128",
             capacity_bytes=2031616,
         )),
    ],
)
def test_infeasible_requirements(
    call: Callable[[], object], error: str, expected: Diagnostic
) -> None:
    with pytest.raises(TecompError) as caught:
        call()

    assert (type(caught.value).__name__, diagnostic(caught.value)) == (error, expected)


def first_way(output: te.Tensor, target: Target) -> tuple[te.Schedule, CoreScheduleCandidate]:
    """Return the first schedule candidate of the last group, and the schedule it applies to."""
    where = placement_of(target)
    assert where is not None
    s = by_loops(output)
    p = program_of(s)
    groups = groups_on_cores(p, where)
    return s, core_schedule_candidates(groups[-1], p, materialized_tensors(s, groups), where)[0]


def of_a_formula() -> te.Tensor:
    """Return a convolution of a computed image with zero padding."""
    X, W = te.placeholder((1, 16, 16, 64), "float16", "X"), te.placeholder((3, 3, 64, 64), "float16", "W")
    root = te.compute(X.shape, lambda *i: te.sqrt(X(*i)), name="root")
    image = te.compute(
        (1, 18, 18, 64),
        lambda n, h, w, c: te.if_then_else(
            te.all(h > 0, h < 17, w > 0, w < 17), root[n, h - 1, w - 1, c], 0.0),
        name="image",
    )
    a, b, c = (te.reduce_axis((0, n), name=name) for n, name in ((3, "a"), (3, "b"), (64, "c")))
    return te.compute(
        X.shape,
        lambda n, h, w, o: te.sum(image[n, h + a, w + b, c] * W[a, b, c, o], axis=[a, b, c]),
        name="C",
    )


@pytest.mark.parametrize(
    ("output", "capacity", "expected"),
    [
        (FIRST, 256, Diagnostic("indivisible", output="first")),
        (of_a_formula(), 2**20, Diagnostic("indivisible", output="C", x="root")),
    ],
)
def test_operations_unsupported_by_units(output: te.Tensor, capacity: int, expected: Diagnostic) -> None:
    s, way = first_way(output, with_capacity("stick128", capacity))
    attempts: list[Callable[[], object]] = [lambda: way.walk(s), way.outline]
    for attempt in attempts:
        with pytest.raises(TecompError) as error:
            attempt()

        assert diagnostic(error.value) == expected


def test_reductions_that_cores_do_not_share() -> None:
    X, k = te.placeholder((4, 4096), name="X"), te.reduce_axis((0, 4096), name="k")
    root = te.compute(X.shape, lambda i, j: te.sqrt(X[i, j]), name="root")
    total = te.compute((4,), lambda i: te.sum(root[i, k], axis=k), name="total")
    C = te.compute((4,), lambda i: total[i] + root[i, 0], name="C")
    where = placement_of(Target.load("stick128"))
    assert where is not None
    w = work_of(C, total, [root, total, C], {X})
    with pytest.raises(TecompError) as error:
        schedule_partial(by_loops(C), w, where)

    assert diagnostic(error.value) == Diagnostic("indivisible", output="C")


def test_reductions_that_are_too_small_to_be_shared() -> None:
    X, k = te.placeholder((4, 8), name="X"), te.reduce_axis((0, 8), name="k")
    C = te.compute((4,), lambda i: te.sum(X[i, k], axis=k), name="C")
    where = placement_of(Target.load("stick128"))
    assert where is not None
    w = work_of(C, C, [C], {X})
    attempts: list[Callable[[], object]] = [
        lambda: schedule_partial(by_loops(C), w, where), lambda: outline_partial(w, where)]
    for attempt in attempts:
        with pytest.raises(TecompError) as error:
            attempt()

        assert diagnostic(error.value) == Diagnostic("indivisible", output="C")


def test_reductions_are_shared_along_one_axis() -> None:
    X = te.placeholder((8, 8, 8, 512), "float16", "X")
    q, r = te.reduce_axis((0, 8), "q"), te.reduce_axis((0, 8), "r")
    C = te.compute((8, 512), lambda i, j: te.sum(X[q, r, i, j], axis=[q, r]), name="C")
    with pytest.raises(TecompError) as error:
        auto(C, "stick128", division={C: DivisionSpec(cores={2: 2, 3: 2})})

    assert diagnostic(error.value) == (
        Diagnostic("indivisible", output="C", names="q, r")
    )
