"""Arithmetic per element of a statement, by the path conditions of subexpressions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tecomp import te
from tecomp.cost_model import Frame, GuardCondition, contains_load, is_copy, operations
from tecomp.ir import FLOAT32, INT64, Buffer, BufferLoad, Const, Expr, Ramp, Select, Var
from tests.strategies.draws import Draw
from tests.strategies.reference import number

X, Y = Var("i"), Var("j")
A = Buffer("A", (64,), FLOAT32)
POINTS = [{X: i, Y: j} for i in range(3) for j in range(3)]
Counts = Counter[tuple[str, str]]
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "max": te.max, "min": te.min,
}


class Value:
    """Expression with the number of operations that it takes at a point."""

    def __init__(self, expr: Expr, parts: Sequence[Value] = (), own: str = "") -> None:
        self.expr = expr
        self.parts = parts
        self.own = own
        self.condition: Expr | None = None

    def count(self, at: Mapping[Var, int]) -> Counts:
        if self.condition is not None:
            chosen = self.parts[0 if number(self.condition, at) else 1]
            return chosen.count(at)
        actual: Counts = Counter([(self.own, "float32")] if self.own else [])
        return reduce(lambda total, part: total + part.count(at), self.parts, actual)


def load(index: Expr) -> Expr:
    return BufferLoad(A, (index,))


@st.composite
def values(draw: Draw, depth: int = 3) -> Value:
    kind = draw(st.integers(0, 6)) if depth else 0
    if kind <= 1:
        return draw(st.sampled_from((  # type: ignore[no-any-return]
            Value(load(X * 4 + Y)), Value(load(X + 1)), Value(te.const(2.5, "float32")))))
    a = draw(values(depth - 1))
    if kind == 2:
        name = draw(st.sampled_from(("exp", "sqrt", "tanh")))
        result: Any = getattr(te, name)(a.expr)
        return Value(result, (a,), name)
    b = draw(values(depth - 1))
    if kind == 3:
        condition = draw(st.sampled_from((X < Y, X + Y == 2, Y >= 1)))
        chosen = Value(te.if_then_else(condition, a.expr, b.expr), (a, b))
        chosen.condition = condition
        return chosen
    if kind == 4:  # both operands are computed
        return Value(Select(X < Y, a.expr, b.expr), (a, b))
    name = draw(st.sampled_from(sorted(BINARY)))
    return Value(BINARY[name](a.expr, b.expr), (a, b), name)


def holds(frames: Sequence[Frame], at: Mapping[Var, int]) -> bool:
    return all(number(frame.condition, at) for frame in frames if isinstance(frame, GuardCondition))


@given(values())
def test_operations_at_each_point(made: Value) -> None:
    groups = list(operations(made.expr, (), lambda condition: (GuardCondition(condition),)))

    for at in POINTS:
        found: Counts = Counter()
        for frames, counts in groups:
            if holds(frames, at):
                found += counts
        assert found == made.count(at)


def test_conditions_on_data_are_computed() -> None:
    value = te.if_then_else(load(X) * 2.0 > 1.0, te.exp(load(Y)), 0.0)

    found = list(operations(value, (), lambda condition: ()))

    assert sorted(found, key=str) == sorted(
        [((), Counter({("mul", "float32"): 1})), ((), Counter({("exp", "float32"): 1}))], key=str)


def test_logic_is_no_operation_on_elements() -> None:
    inside = te.all(load(X) > 0.0, te.any(load(X) < 1.0, load(Y) * 2.0 < 3.0))
    value = te.if_then_else(inside, load(X), 0.0)

    assert list(operations(value, (), lambda condition: ())) == [
        ((), Counter({("mul", "float32"): 1}))]


def test_lanes_count_each() -> None:
    lanes = Ramp(X * 8, Const(1, INT64), 8)
    wide = load(lanes) * load(lanes)

    assert list(operations(wide, (), lambda condition: ())) == [
        ((), Counter({("mul", "float32"): 8}))]


@pytest.mark.parametrize(
    ("value", "copies"),
    [
        (load(X), True),
        (te.const(1.0, "float32"), True),
        (te.if_then_else(X < 3, load(X), 0.0), True),
        (Select(X < 3, load(X), load(Y)), True),
        (load(X) + 0.0, False),
        (te.exp(load(X)), False),
        (te.if_then_else(load(X) > 0.0, load(Y), 0.0), False),
        (te.if_then_else(X < 3, load(X), load(Y) * 2.0), False),
        (load(load(X).astype("int64")), False),
    ],
)
def test_copies(value: Expr, copies: bool) -> None:
    assert is_copy(value) == copies


def test_data_dependent_values() -> None:
    assert contains_load(X + load(Y).astype("int64"))
    assert not contains_load(X + Y)
