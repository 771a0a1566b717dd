"""Loops over boxes are generated without isl's AST, in the order that isl would generate."""

from __future__ import annotations

from collections.abc import Mapping

import islpy as isl
import numpy as np
import pytest

from tecomp.ir import INT64, Buffer, BufferLoad, BufferStore, Const, Expr, PrimFunc, Var, evaluate
from tecomp.poly import CONTEXT, Space, ends_of, scan

ROW, COLUMN, N, M = Var("i"), Var("j"), Var("n"), Var("m")
SPACE = Space((ROW, COLUMN), (N, M))
GRID = Buffer("grid", (16, 16), INT64)


def points(text: str) -> isl.Set:
    return isl.Set.read_from_str(CONTEXT, f"[p0, p1] -> {{ [d0, d1] : {text} }}")


def texts(ends: list[tuple[Expr, Expr]] | None) -> list[str] | None:
    return None if ends is None else [f"{low}, {extent}" for low, extent in ends]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 <= d0 < 4 and 2 <= d1 < 9", ["0, 4", "2, 7"]),
        ("0 <= d0 < p0 and 0 <= d1 < 8", ["0, n", "0, 8"]),
        ("0 <= d0 < 4 and 0 <= d1 <= 7 and d1 < p0 - 8p1",
         ["0, 4", "0, min(8, n - 8 * m)"]),
        ("p1 <= d0 < p0 and d1 = p0", ["m, n - m", "n, 1"]),
    ],
    ids=["constant", "parameter", "tail", "ends"],
)
def test_ends(text: str, expected: list[str]) -> None:
    assert texts(ends_of(points(text), SPACE, None)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "0 <= d0 < p0 and 0 <= d1 <= d0",
        "0 <= d0 < p0 and 0 <= d1 < 8 and d1 mod 2 = 0",
        "0 <= 2 d0 < p0 and 0 <= d1 < 8",
        "(0 <= d0 < p0 or 9 <= d0 < 12) and 0 <= d1 < 8",
        "0 <= d0 < p0 and 0 <= d1 < 8 and p0 < p1",
        "0 <= d0 < p0 and d0 < p1 and d0 < 7 and 0 <= d1 < 8",
        "0 <= d0 and 0 <= d1 < p0",
    ],
    ids=["triangle", "steps", "halves", "two", "condition", "ends", "no-end"],
)
def test_non_box_domains(text: str) -> None:
    assert ends_of(points(text), SPACE, None) is None


def test_implied_conditions_are_dropped() -> None:
    context = isl.Set.read_from_str(CONTEXT, "[p0, p1] -> { : p0 >= 8 and p1 = 3 }")

    assert texts(ends_of(points("0 <= d0 < 8 and d0 < p0 and 0 <= d1 < p0 and p1 < p0"),
                         SPACE, context)) == ["0, 8", "0, n"]


@pytest.mark.parametrize(("n", "m"), [(0, 0), (1, 0), (7, 0), (8, 1), (13, 1), (16, 2), (3, 2)])
def test_loops_visit_each_point_of_the_box_once(n: int, m: int) -> None:
    def place(at: Mapping[Var, Expr]) -> tuple[Expr, Expr]:
        return at[ROW], at[COLUMN]

    box = points("p1 <= d0 < p0 and 0 <= d1 <= 7 and d1 < p0 - 8p1")
    loops = scan(
        box, SPACE,
        lambda at, _: BufferStore(
            GRID, BufferLoad(GRID, place(at)) + Const(1), place(at)
        ),
    )
    grid = np.zeros((16, 16), INT64)
    evaluate(PrimFunc("f", (GRID, N, M), loops), [grid, n, m])

    i, j = np.indices((16, 16))
    inside = (m <= i) & (i < n) & (j <= 7) & (j < n - 8 * m)
    np.testing.assert_array_equal(grid, inside)
