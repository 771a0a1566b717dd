"""Common subexpressions of a statement are bound once, and checked reads are not moved."""

from __future__ import annotations

import sys
from collections.abc import Callable
from textwrap import dedent
from types import FrameType
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.ir import Let, evaluate, parse, walk
from tests.messages import Diagnostic, diagnostic

N = 40
X = te.placeholder((N,), name="X")
K = te.placeholder((N,), "int32", name="K")


def lowered(element: Callable[[Any], Any], stop_after: str | None = None) -> Any:
    C = te.compute((N,), element, name="C")
    args = [*C.op.input_tensors, C]
    return tecomp.lower(te.create_schedule(C), args, stop_after=stop_after)


def body_of(func: Any) -> str:
    lines = str(func).splitlines()
    return "\n".join(lines[2:])


def squares(i: Any) -> Any:
    x = X[i]
    for _ in range(3):
        x = x * x + 1.0
    return x


def on_both_sides(i: Any) -> Any:
    x = X[i] * 2.0
    return te.if_then_else(i > 3, x * 2.0, x + 1.0)


def under_two_conditions(i: Any) -> Any:
    x = X[i - 1] * 2.0
    return te.if_then_else(i > 0, x, 0.0) + te.if_then_else(i > 5, x + 1.0, 1.0)


def under_one_condition(i: Any) -> Any:
    x = X[i - 1] * 2.0
    return te.if_then_else(i > 0, x * x, 0.0)


def under_conditions_on_data(i: Any) -> Any:
    x = X[i - 1] * 2.0
    inside = te.if_then_else(K[i] > 1, x, 0.0) + te.if_then_else(K[i] < 5, x + 1.0, 1.0)
    return te.if_then_else(i > 0, inside, 3.0)


def at_a_checked_index(i: Any) -> Any:
    x = X[K[i]] * 2.0
    return te.if_then_else(K[i] < N, x, 0.0) + te.if_then_else(K[i] < N, x + 1.0, 1.0)


def in_an_index(i: Any) -> Any:
    at = i // 4 * 4
    return X[at] + X[at]


SHOWN: dict[Callable[[Any], Any], str] = {
    squares: """
        t1 = X[i] * X[i] + float32(1.0)
        t2 = t1 * t1 + float32(1.0)
        C[i] = t2 * t2 + float32(1.0)""",
    on_both_sides: """
        t1 = X[i] * float32(2.0)
        C[i] = if_then_else(i > 3, t1 * float32(2.0), t1 + float32(1.0))""",
    under_two_conditions: """
        t1 = if_then_else(i > 0, X[i - 1] * float32(2.0), float32(0.0))
        C[i] = if_then_else(i > 0, t1, float32(0.0)) + """
    """if_then_else(i > 5, t1 + float32(1.0), float32(1.0))""",
    under_one_condition: """
        C[i] = if_then_else(i > 0, X[i - 1] * float32(2.0) * (X[i - 1] * float32(2.0)), """
    """float32(0.0))""",
    under_conditions_on_data: """
        t1 = if_then_else(i > 0, X[i - 1] * float32(2.0), float32(0.0))
        C[i] = if_then_else(i > 0, if_then_else(K[i] > int32(1), t1, float32(0.0)) + """
    """if_then_else(K[i] < int32(5), t1 + float32(1.0), float32(1.0)), float32(3.0))""",
    in_an_index: """
        C[i] = X[i // 4 * 4] + X[i // 4 * 4]""",
}


@pytest.mark.parametrize("element", SHOWN, ids=lambda element: element.__name__)
def test_placement_of_common_subexpressions(element: Callable[[Any], Any]) -> None:
    func = lowered(element)

    assert dedent(body_of(func)) == dedent(SHOWN[element]).strip("\n")
    assert parse(str(func)) == func


def test_index_checks_are_not_moved() -> None:
    func = lowered(at_a_checked_index)
    keys = np.array([0, 3, 100, -7] * 10, "int32")
    x, c = np.arange(N, dtype="float32"), np.zeros(N, "float32")

    assert not any(isinstance(node, Let) for node in walk(func.body))
    with pytest.raises(tecomp.TecompError) as caught:
        evaluate(func, [keys, x, c])
    line = at_a_checked_index.__code__.co_firstlineno + 1
    assert diagnostic(caught.value) == (
        Diagnostic("out-of-bounds", index=-7, site=f"{__file__}:{line}: X[K[i]] (axis 0 of X[40])")
    )


def test_outputs_share_common_subexpressions() -> None:
    def both(i: Any) -> Any:
        x = te.exp(X[i])
        return x + 1.0, x * 2.0

    A, B = te.compute((N,), both, name="C")
    func = tecomp.lower(te.create_schedule(A.op), [X, A, B])

    assert str(func).count("exp(") == 1
    assert dedent(body_of(func)).splitlines()[0] == "t1 = exp(X[i])"


def test_a_reduction_computes_a_shared_part_once_a_step() -> None:
    Y = te.placeholder((N, N), name="Y")
    k = te.reduce_axis((0, N), name="k")

    def squared(i: Any) -> Any:
        x = Y[i, k] - X[i]
        return te.sum(x * x, axis=k)

    C = te.compute((N,), squared, name="C")
    func = tecomp.lower(te.create_schedule(C), [X, Y, C])

    assert dedent(body_of(func)) == dedent("""
        C[i] = float32(0.0)
        for k in range(40):
            t1 = Y[i * 40 + k] - X[i]
            C[i] = C[i] + t1 * t1""").strip("\n")


def chain(i: Any, count: int) -> Any:
    x = X[i]
    for k in range(count):
        x = x * 0.5 + float(k)
    return x


def shared(i: Any, count: int) -> Any:
    x = X[i]
    for _ in range(count):
        x = x * x + 1.0
    return x


def rounds(i: Any, count: int) -> Any:
    x = K[i]
    for _ in range(count // 3):
        x = x ^ (x << 13)
        x = x ^ (x >> 17)
        x = x ^ (x << 5)
    return x


def long_sum(i: Any, count: int) -> Any:
    total = X[i]
    for k in range(count):
        total = total + X[i] * float(k)
    return total


def selects(i: Any, count: int) -> Any:
    x = X[i]
    for k in range(count):
        x = te.select(x > float(k), x * 0.5, x + 1.0)
    return x


def choices(i: Any, count: int) -> Any:
    x = X[i]
    for k in range(count):
        x = te.if_then_else(X[i] > float(k), x * 0.5, x + 1.0)
    return x


def extrema(i: Any, count: int) -> Any:
    x = X[i]
    for k in range(count):
        x = te.max(te.min(x, X[i] + float(k)), -x)
    return x


def index(i: Any, count: int) -> Any:
    at = i
    for _ in range(count):
        at = (at * at + 3) % N
    return X[at]


def calls(action: Callable[[], object]) -> int:
    """Return the number of function calls, a deterministic measure of work."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("is_vector", [False, True])
@pytest.mark.parametrize(
    "element", [chain, shared, rounds, long_sum, selects, choices, extrema, index],
    ids=lambda element: element.__name__)
def test_lowering_takes_twice_the_work_for_twice_the_operations(
    element: Callable[[Any, int], Any], is_vector: bool
) -> None:
    def work(count: int) -> int:
        C = te.compute((N,), lambda i: element(i, count), name="C")
        s = te.create_schedule(C)
        if is_vector:
            s[C].vectorize(s[C].split(C.op.axis[0], factor=8)[1])
        args = [*C.op.input_tensors, C]
        return calls(lambda: str(tecomp.lower(s, args)))

    work(4)
    few, many = work(40), work(160)

    assert many < 4.4 * few
