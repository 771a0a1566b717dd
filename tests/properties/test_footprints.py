"""Random chains of fused, split and nested stages allocate little more than they use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from hypothesis import given, note, settings
from hypothesis import strategies as st

import tecomp
from tecomp import te
from tecomp.ir import (
    BufferLoad,
    BufferRealize,
    BufferStore,
    Expr,
    For,
    IfThenElse,
    Let,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
    walk,
)
from tecomp.poly import values
from tests.strategies.draws import Draws

_SLACK = 2
"""Maximum ratio of allocated elements to the smallest box, for sets that are not boxes."""


@st.composite
def chains(draw: Any) -> tuple[te.Schedule, list[te.Tensor]]:
    """Draw a chain of stages over one matrix, each computed inside the next one."""
    return chain_of(Draws(draw))


def chain_of(d: Draws) -> tuple[te.Schedule, list[te.Tensor]]:
    """Define stages that read the previous one at one index, at two, or summed over the row."""
    shape = d.number(1, 5), d.number(1, 17)
    kinds = [d.pick(("same", "next", "sum")) for _ in range(d.number(1, 3))]
    A = te.placeholder((shape[0], shape[1] + len(kinds)), dtype="int32", name="A")
    stages: list[te.Tensor] = [A]
    for at, kind in enumerate(kinds):
        stages.append(_stage(kind, at, stages[-1], (shape[0], shape[1] + len(kinds) - 1 - at)))
    s = te.create_schedule(stages[-1])
    loops = {stage: _loops(s, stage, d) for stage in stages[1:]}
    for before, stage in pairwise(stages[1:]):
        s[before].compute_at(s[stage], d.pick(loops[stage]))
    return s, [A, stages[-1]]


def _stage(kind: str, at: int, before: te.Tensor, shape: tuple[int, int]) -> te.Tensor:
    k = te.reduce_axis((0, shape[1]), name="k")

    def value(i: te.IterVar, j: te.IterVar) -> Any:
        if kind == "sum":
            return te.sum(before[i, k] + j, axis=k)
        return before[i, j] * 2 if kind == "same" else before[i, j] - before[i, j + 1] * 3

    result: te.Tensor = te.compute(shape, value, name=f"S{at}")
    return result


def _loops(s: te.Schedule, stage: te.Tensor, d: Draws) -> list[te.IterVar]:
    """Return the data loops of a stage after an optional fusion and splits."""
    loops = list(stage.op.axis)
    if d.chance(70):
        loops = [s[stage].fuse(*loops)]
    for _ in range(d.number(0, 2)):
        at = d.number(0, len(loops) - 1)
        loops[at : at + 1] = s[stage].split(loops[at], factor=d.number(2, 9))
    return loops


@given(chains())
def test_allocations_match_footprints(case: tuple[te.Schedule, list[te.Tensor]]) -> None:
    s, args = case
    note(str(s.trace))
    func = tecomp.lower(s, args, stop_after="nest")
    note(str(func))
    for name, allocated, needed in worst(func):
        assert allocated <= _SLACK * needed, (name, allocated, needed)


def worst(func: PrimFunc) -> list[tuple[str, int, int]]:
    """Return the buffer name, allocated size and largest box in use for each region."""
    used: dict[Var, list[int]] = {}
    for realize, region in _regions(func.body):
        most = used.get(realize.buffer.data, [0] * len(region))
        used[realize.buffer.data] = [max(a, b) for a, b in zip(most, region, strict=True)]
    return [
        (node.buffer.name, prod(int(str(part.extent)) for part in node.bounds),
         max(prod(used.get(node.buffer.data, [0])), 1))
        for node in walk(func.body)
        if isinstance(node, BufferRealize)
    ]


@settings(max_examples=settings().max_examples // 2)
@given(chains())
def test_numbers_match_plain_loops(case: tuple[te.Schedule, list[te.Tensor]]) -> None:
    s, args = case
    note(str(s.trace))
    shapes = [[int(str(n)) for n in tensor.shape] for tensor in args]
    a = np.random.default_rng(0).integers(-9, 9, shapes[0]).astype("int32")
    found, expected = (np.zeros(shapes[1], "int32") for _ in range(2))
    tecomp.build(s, args, check_bounds=True)(a, found)
    tecomp.build(te.create_schedule(args[1]), args)(a, expected)
    np.testing.assert_array_equal(found, expected)


Values = Mapping[Var, Any]


def _regions(statement: Stmt) -> Iterator[tuple[BufferRealize, list[int]]]:
    """Yield each execution of an allocation with the extents of the smallest box in use."""
    for node, known in _executed(statement, {}):
        if isinstance(node, BufferRealize):
            yield node, _box(node, known)


def _box(realize: BufferRealize, known: Values) -> list[int]:
    """Return the extents of the smallest box of elements that are read or written."""
    found = [
        [_value(index, env) for index in access.indices]
        for node, env in _executed(realize.body, known)
        if isinstance(node, BufferStore)
        for access in (node, *walk(node.value))
        if isinstance(access, BufferLoad | BufferStore)
        and access.buffer.data is realize.buffer.data
    ]
    if not found:
        return [0] * len(realize.bounds)
    return [max(column) - min(column) + 1 for column in zip(*found, strict=True)]


def _executed(statement: Stmt, known: Values) -> Iterator[tuple[Stmt, Values]]:
    """Yield every execution of every statement, with the values of the variables."""
    inside: list[tuple[Stmt, Values]] = [(statement, known)]
    while inside:
        node, env = inside.pop()
        yield node, env
        match node:
            case SeqStmt(parts):
                inside += [(part, env) for part in parts]
            case For():
                first, count = _value(node.min, env), _value(node.extent, env)
                inside += [(node.body, {**env, node.loop_var: first + k}) for k in range(count)]
            case Let(var, value, body):
                inside.append((body, {**env, var: _value(value, env)}))
            case IfThenElse(condition, then, otherwise):
                chosen = then if _value(condition, env) else otherwise
                inside += [] if chosen is None else [(chosen, env)]
            case BufferRealize():
                inside.append((node.body, env))


def _value(expr: Expr, known: Values) -> int:
    return int(values(expr, known))
