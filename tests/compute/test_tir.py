"""`tir` offers members of `te` under TVM's names."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import tecomp
from tecomp import te, tir
from tecomp.ir import structural_equal


@pytest.mark.parametrize("name", [name for name in tir.__all__ if hasattr(te, name)])
def test_a_name_means_the_same_as_in_te(name: str) -> None:
    assert getattr(tir, name) is getattr(te, name)


def test_every_public_name_is_listed() -> None:
    public = {
        name
        for name, value in vars(tir).items()
        if not name.startswith("_") and not inspect.ismodule(value) and name != "annotations"
    }

    assert tecomp.tir is tir
    assert public == set(tir.__all__)


x, y = te.var("x"), te.var("y")
p, q = x > 1, y > 2


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (tir.And(p, q), te.all(p, q)),
        (tir.Or(p, q), te.any(p, q)),
        (tir.Not(p), te.logical_not(p)),
        (tir.likely(p), p),
        (tir.EQ(x, 3), x.equal(3)),
        (tir.NE(x, y), x.astype("int32") != y),
        (tir.LT(x, y), x < y),
        (tir.LE(x, 1), x <= 1),
        (tir.GT(1.5, x), te.const(1.5) > x),
        (tir.GE(x, y), x >= y),
        (tir.Add(x, 1), x + 1),
        (tir.Sub(1, x), 1 - x),
        (tir.Mul(x, y), x * y),
        (tir.Div(x, 3), te.truncdiv(x, 3)),
        (tir.Mod(x, 3), te.truncmod(x, 3)),
        (tir.FloorDiv(x, 3), x // 3),
        (tir.FloorMod(x, 3), x % 3),
        (tir.Min(x, y), te.min(x, y)),
        (tir.Max(x, y), te.max(x, y)),
        (tir.Cast("float32", x), x.astype("float32")),
    ],
)
def test_classes_of_expressions_give_them(result: Any, expected: Any) -> None:
    assert structural_equal(result, expected)


@pytest.mark.parametrize(
    "make", [tir.And, tir.Or, tir.EQ, tir.LT, tir.Add, tir.Div, tir.FloorMod, tir.Min]
)
def test_non_numbers_are_rejected(make: Any) -> None:
    with pytest.raises(tecomp.TecompError):
        make(x, "two")
