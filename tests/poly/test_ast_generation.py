"""Loop generation from sets: interruption, and incomplete results."""

from __future__ import annotations

import time
from typing import Any

import islpy
import numpy as np
import pytest

from tecomp.errors import InternalError, LowerError
from tecomp.ir import INT32, Buffer, BufferStore, Const, PrimFunc, SeqStmt, Var, evaluate
from tecomp.poly import CONTEXT, Space, Undecided, isl_work, scan, set_to_condition
from tecomp.poly.loops import ast_generation
from tests.messages import Diagnostic, diagnostic


def test_ctrl_c_while_isl_makes_loops_arrives_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """KeyboardInterrupt propagates; as an isl error it would be hidden and leak objects."""
    i, j = Var("i"), Var("j")
    space = Space((i, j))
    triangle = space.box([(0, 4), (0, i)])

    class Interrupted:
        @staticmethod
        def read_from_str(*arguments: object) -> object:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(islpy, "Id", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            scan(triangle, space, lambda point, copy: SeqStmt(()))

    assert str(scan(triangle, space, lambda point, copy: SeqStmt(()))) == (
        "for i in range(1, extent=3):\n    for j in range(i):\n        pass"
    )


@pytest.mark.parametrize("times", [1, 2])
def test_incomplete_loops_are_regenerated_or_refused(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    i, j = Var("i"), Var("j")
    space = Space((i, j))
    triangle, part = space.box([(0, 4), (0, i)]), space.box([(0, 3), (0, 4)])
    result = ast_generation._generate
    calls = []

    def lossy(points: Any, *others: Any) -> Any:
        calls.append(points)
        return result(points.intersect(part) if len(calls) <= times else points, *others)

    monkeypatch.setattr(ast_generation, "_generate", lossy)
    if times == 2:
        with pytest.raises(InternalError) as error:
            scan(triangle, space, lambda point, copy: SeqStmt(()))
        assert diagnostic(error.value) == (
            Diagnostic("internal", points="{ [d0, d1] : d0 <= 3 and 0 <= d1 < d0 }")
        )
        return

    assert str(scan(triangle, space, lambda point, copy: SeqStmt(()))) == (
        "for i in range(1, extent=3):\n    for j in range(i):\n        pass"
    )


LEFT_OUT = (
    "[p0, p1] -> { [d0, d1, d2] : p1 >= 0 and 0 <= d1 <= 4 and 0 <= d2 <= 2 and "
    "2*floor((-d0 + d1 + 3d2)/6) >= -1 - 2d0 + d2 and "
    "6*floor((-d0 + d1 + 3d2)/6) >= -15 + 3p1 - d0 + d1 + 3d2 and "
    "6*floor((-d0 + d1 + 3d2)/6) <= -3 - d0 + d1 + 3d2 and "
    "6*floor((-d0 + d1 + 3d2)/6) <= -4 + p0 - 6d0 + 2d2 }"
)


@pytest.mark.parametrize(("p0", "p1"), [(0, 0), (7, 0), (13, 2), (20, 4)])
def test_points_that_isl_makes_no_loops_for_are_found_in_a_hull(p0: int, p1: int) -> None:
    d0, d1, d2, *sizes = (Var(name) for name in ("d0", "d1", "d2", "p0", "p1"))
    points = islpy.Set.read_from_str(CONTEXT, LEFT_OUT)
    seen = Buffer("seen", (8, 8, 8), INT32)

    loops = scan(
        points, Space((d0, d1, d2), tuple(sizes)),
        lambda at, _: BufferStore(seen, Const(1, INT32), (at[d0] + 1, at[d1], at[d2])),
    )

    func = PrimFunc("main", (*sizes, seen), loops)
    found = np.zeros((8, 8, 8), np.int32)
    evaluate(func, [p0, p1, found])
    expected = np.zeros_like(found)
    for a, b, c in np.ndindex(expected.shape):
        floor = (1 - a + b + 3 * c) // 6
        inside = -1 - 2 * (a - 1) + c <= 2 * floor and b <= 4 and c <= 2
        low, high = 3 * p1 - 15 - (a - 1) + b + 3 * c, min(b + 3 * c - a - 2, p0 - 6 * a + 2 + 2 * c)
        expected[a, b, c] = inside and low <= 6 * floor <= high
    np.testing.assert_array_equal(found, expected)


def test_loops_that_isl_does_not_make_are_tested_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    i, j = Var("i"), Var("j")
    points = islpy.Set.read_from_str(
        CONTEXT, "{ [d0, d1] : 0 <= d0 <= 5 and 0 <= d1 <= d0 and (d0 + 2d1) % 3 = 1 }"
    )
    result = ast_generation._build_ast
    monkeypatch.setattr(
        ast_generation, "_build_ast",
        lambda points, *others: None if points.involves_locals() else result(points, *others),
    )

    loops = scan(points, Space((i, j)), lambda at, _: SeqStmt(()))

    assert str(loops) == (
        "for i in range(6):\n    for j in range(i + 1):\n        if (j - i + 1) % 3 == 0:\n"
        "            pass"
    )


SLOW = (
    "{ [d0, d1] : exists (e0, e1, e2: 0 <= d1 <= 2 and 0 <= e0 <= 16 and -3 <= e1 <= -2 and "
    "d1 - e0 - e1 <= 3e2 <= 4 + d1 - e0 - e1 and -3 + 3d0 + 2924d1 - 3096e0 - 2925e1 <= 8772e2 < "
    "3d0 + 2924d1 - 3096e0 - 2925e1) }"
)


@pytest.mark.exhaustive
def test_conditions_that_take_isl_minutes_are_undecided() -> None:
    points = islpy.Set.read_from_str(CONTEXT, SLOW)
    begin = time.thread_time()

    with pytest.raises(LowerError) as error, isl_work("here"):
        set_to_condition(points, {"d0": Var("d0"), "d1": Var("d1")})

    assert time.thread_time() - begin < 10
    assert isinstance(error.value.__cause__, Undecided)


@pytest.mark.exhaustive
def test_loops_that_take_isl_minutes_are_undecided() -> None:
    """Loops that take isl minutes are undecided: large numbers cost 100 times as much."""
    i, j = Var("i"), Var("j")
    points = islpy.Set.read_from_str(CONTEXT, SLOW)
    begin = time.thread_time()

    with pytest.raises(LowerError) as error, isl_work("here"):
        scan(points, Space((i, j)), lambda at, _: SeqStmt(()))

    assert time.thread_time() - begin < 10
    assert isinstance(error.value.__cause__, Undecided)
    assert diagnostic(error.value) == (
        Diagnostic("limit-exceeded")
    )
