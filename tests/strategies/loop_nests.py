"""Random loops and conditions around a statement, and the iterations that execute it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hypothesis import strategies as st

from tecomp.cost_model import Frame, GuardCondition, Loop
from tecomp.ir import (
    INT64,
    CmpOp,
    Compare,
    Const,
    Expr,
    Not,
    SlotScope,
    Var,
    compile_expr,
    logical_and,
    logical_or,
)
from tests.strategies.draws import Draw


def value(expr: Expr, at: Mapping[Var, int]) -> int:
    scope = SlotScope(())
    slots = {var: scope.declare(var) for var in at}
    run = compile_expr(scope, expr)
    env: list[object] = [True] * (scope.slots + 1)
    for var, slot in slots.items():
        env[slot] = at[var]
    return int(run(env))


def visited(
    frames: Sequence[Frame], core: Mapping[str, int], at: Mapping[Var, int]
) -> Iterator[dict[Var, int]]:
    """Yield the values of the variables for each execution of the innermost statement."""
    if not frames:
        yield dict(at)
        return
    first, *rest = frames
    if isinstance(first, GuardCondition):
        if value(first.condition, at):
            yield from visited(rest, core, at)
        return
    low = value(first.min, at)
    for k in range(low, low + value(first.extent, at)):
        if not first.thread or core[first.thread] == k:
            yield from visited(rest, core, {**at, first.var: k})


@st.composite
def sums(draw: Draw, variables: Sequence[Var]) -> Expr:
    total: Expr = Const(draw(st.integers(-4, 8)), INT64)
    for var in variables:
        if factor := draw(st.integers(-2, 3)):
            total = total + var * factor
    kind = draw(st.integers(0, 5))
    return total // 3 if kind == 0 else total % 4 if kind == 1 else total


@st.composite
def conditions(draw: Draw, variables: Sequence[Var]) -> Expr:
    a, b = draw(sums(variables)), draw(sums(variables))
    simple = Compare(draw(st.sampled_from(CmpOp)), a, b)
    choice: int = draw(st.integers(0, 8))
    if choice < 6:
        return simple
    other: Expr = draw(conditions(variables))
    results: list[Expr] = [logical_and(simple, other), logical_or(simple, other), Not(other)]
    return results[choice - 6]


@st.composite
def nests(draw: Draw) -> tuple[list[Frame], Expr]:
    """Draw loops and conditions, and an index expression."""
    frames: list[Frame] = []
    variables: list[Var] = []
    for k in range(draw(st.integers(1, 4))):
        var = Var("ijkl"[k])
        thread = "core.x" if draw(st.integers(0, 5)) == 0 and not any(
            isinstance(f, Loop) and f.thread for f in frames) else ""
        low: Expr = draw(sums(variables)) if draw(st.booleans()) else Const(0, INT64)
        extent = draw(sums(variables)) if draw(st.booleans()) else Const(
            draw(st.integers(0, 6)), INT64)
        frames.append(Loop(var, low, extent, thread))
        variables.append(var)
        if draw(st.booleans()):
            frames.append(GuardCondition(draw(conditions(variables))))
    return frames, draw(sums(variables)) + draw(st.sampled_from(variables))
