"""Vectors of odd lengths become masked longer vectors; partial accumulators stay in registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen import (
    Kernel,
    active_prefix,
    emit_assembly,
    host,
    legalize_vectors,
    promote_accumulators,
)
from tecomp.ir import (
    BufferLoad,
    BufferStore,
    Expr,
    Let,
    PrimFunc,
    Var,
    bottom_up,
    evaluate,
    map_body,
    parse,
    verify,
    walk,
)
from tecomp.lowering import unroll_loops
from tecomp.scheduling.schedule import Schedule

Program = tuple[Schedule, list[Any]]


def means_the_same(func: PrimFunc, other: PrimFunc) -> None:
    random = np.random.default_rng(3)
    shapes = [(p.dtype.numpy, int(str(p.shape[0]))) for p in func.params if hasattr(p, "shape")]
    before = [(random.standard_normal(size) * 9).astype(kind) for kind, size in shapes]
    after = [array.copy() for array in before]
    evaluate(func, before)
    evaluate(other, after)
    for x, y in zip(before, after, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.exhaustive(keep=28)
@pytest.mark.parametrize("lanes", [3, 7, 9, 15, 17, 23, 31, 33, 40, 48, 63])
@pytest.mark.parametrize("kind", ["float32", "float64", "int8"])
def test_no_vector_has_an_odd_length(lanes: int, kind: str) -> None:
    size = 4 * lanes
    spread = f"ramp(i * {lanes}, 1, {lanes})"
    func = parse(f"""
def f(A: Buffer("{kind}", ({2 * size},)), B: Buffer("{kind}", ({size},)), C: Buffer("int16", ({size},))):
    for i in range(4):
        with Let({spread} % broadcast(3, {lanes}) == broadcast(0, {lanes})) as third:
            B[{spread}] = A[ramp(i, 2, {lanes})] + A[{spread}] * broadcast(A[i], {lanes})
            store(B[{spread}], B[{spread}] + A.load(ramp(i + {lanes - 1}, -1, {lanes}), where=third), where=third)
            C[{spread}] = cast("int16x{lanes}", A[{spread}])
""")
    rewritten = legalize_vectors(func)
    sizes = {node.dtype.lanes for node in walk(rewritten.body) if isinstance(node, Expr)}
    assert all(size & (size - 1) == 0 for size in sizes)
    means_the_same(func, rewritten)
    means_the_same(func, promote_accumulators(rewritten))


def test_empty_registers_are_left_out() -> None:
    text = """
def f(A: Buffer("float32", (40,)), B: Buffer("float32", (40,))):
    B[ramp(0, 1, {0})] = A[ramp(0, 1, {0})]
"""
    lanes = {
        count: [
            (node.indices[-1].dtype.lanes, active_prefix(node.predicate))
            for node in walk(legalize_vectors(parse(text.format(count))).body)
            if isinstance(node, BufferStore)
        ]
        for count in (15, 17, 23, 31, 32, 40)
    }
    assert lanes == {
        15: [(16, 15)],
        17: [(16, None), (1, None)],
        23: [(16, None), (8, 7)],
        31: [(32, 31)],
        32: [(32, None)],
        40: [(32, None), (8, None)],
    }


def test_lanes_that_read_stores_of_other_lanes_are_not_split() -> None:
    func = parse("""
def f(A: Buffer("float64", (40,))):
    A[ramp(0, 1, 17)] = A[ramp(1, 1, 17)] + A[ramp(16, -1, 17)]
""")
    rewritten = legalize_vectors(func)
    assert sum(isinstance(node, BufferStore) for node in walk(rewritten.body)) == 1
    means_the_same(func, rewritten)


SUMS = """
def f(A: Buffer("float32", (300,)), C: Buffer("float32", (40,))):
    for i in range(2):
        for k in range({rounds}):
            C[ramp(i * 20, 1, 7)] = C[ramp(i * 20, 1, 7)] + A[ramp(k * 7, 1, 7)]
            {more}
"""


@pytest.mark.parametrize(("more", "is_kept"), [
    ("C[ramp(i * 20 + 7, 1, 7)] = C[ramp(i * 20 + 7, 1, 7)] * A[ramp(k, 1, 7)]", True),
    ("C[ramp(i * 20 + 7, 1, 8)] = A[ramp(k, 1, 8)]", True),
    ("C[ramp(i * 20 + 6, 1, 7)] = A[ramp(k, 1, 7)]", False),
    ("C[i * 20 + 6] = A[k]", False),
    ("C[k] = A[k]", False),
    ("C[ramp(i * 20 + 12, -1, 7)] = A[ramp(k, 1, 7)]", False),
])
def test_sums_stay_where_nothing_overlaps(more: str, *, is_kept: bool) -> None:
    func = parse(SUMS.format(rounds=5, more=more))
    whole = legalize_vectors(func)
    rewritten = promote_accumulators(whole)
    assert ("C_part" in str(rewritten)) == is_kept
    means_the_same(func, rewritten)


@pytest.mark.parametrize(("more", "is_promoted"), [
    ("T[ramp(0, 1, 3)] = T[ramp(0, 1, 3)] * broadcast(float32(2.0), 3)", True),
    ("T[ramp(2, 1, 3)] = T[ramp(2, 1, 3)] * broadcast(float32(2.0), 3)", False),
    ("T[k] = T[k] * float32(2.0)", False),
])
def test_conditional_sums_in_local_memory_are_promoted(more: str, *, is_promoted: bool) -> None:
    """Each of two rows of three lanes becomes a vector of its own, without masks."""
    func = parse(f"""
def f(A: Buffer("float32", (60,)), C: Buffer("float32", (60,))):
    for i in range(10):
        with Allocate(Buffer("float32", (6,), scope="local")) as T:
            T[ramp(0, 1, 3)] = broadcast(float32(0.0), 3)
            if i > 4:
                T[ramp(3, 1, 3)] = broadcast(float32(1.0), 3)
            for k in range(2):
                T[ramp(0, 1, 3)] = T[ramp(0, 1, 3)] + A[ramp(i * 6 + k, 1, 3)]
                if i > 4:
                    T[ramp(3, 1, 3)] = T[ramp(3, 1, 3)] + A[ramp(i * 6 + k + 1, 1, 3)]
                    {more}
            C[ramp(i * 6, 1, 3)] = T[ramp(0, 1, 3)]
            if i > 4:
                C[ramp(i * 6 + 3, 1, 3)] = T[ramp(3, 1, 3)]
""")
    made = promote_accumulators(legalize_vectors(func))
    accesses = [node for node in walk(made.body) if isinstance(node, BufferLoad | BufferStore)]
    assert any(node.buffer.name == "T" for node in accesses) != is_promoted, str(made)
    means_the_same(func, made)


@pytest.mark.exhaustive(keep=33)
@pytest.mark.parametrize("lanes", [*range(1, 16), 24, 31])
@pytest.mark.parametrize("kind", ["float32", "float64", "int8"])
def test_known_active_lanes_need_no_remainder(lanes: int, kind: str) -> None:
    width = 32 if lanes > 16 else 16
    func = parse(f"""
def f(A: Buffer("{kind}", (80,)), B: Buffer("{kind}", (80,))):
    for i in range(2):
        with Allocate(Buffer("{kind}", ({lanes + 8},), scope="local")) as own:
            own[ramp(0, 1, 8)] = A[ramp(i, 1, 8)]
            with Let(ramp(0, 1, {width}) < broadcast({lanes}, {width})) as mask:
                store(own[ramp(8, 1, {width})], A.load(ramp(i * {lanes}, 1, {width}), where=mask), where=mask)
            with Let(ramp(0, 1, {width}) < broadcast({lanes}, {width})) as mask:
                store(own[ramp(8, 1, {width})], own.load(ramp(8, 1, {width}), where=mask) + A[ramp(i, 1, {width})], where=mask)
            with Let(ramp(0, 1, {width}) < broadcast({lanes}, {width})) as mask:
                store(B[ramp(i * {lanes}, 1, {width})], own.load(ramp(8, 1, {width}), where=mask), where=mask)
            B[ramp(72, 1, 8)] = own[ramp(0, 1, 8)]
""")
    whole = legalize_vectors(func)
    rewritten = promote_accumulators(whole)
    means_the_same(func, whole)
    means_the_same(func, rewritten)
    # Accesses to memory that is allocated in the function have no mask.
    assert not [
        node for node in walk(rewritten.body)
        if isinstance(node, BufferLoad | BufferStore) and node.predicate is not None
        and node.buffer.name not in ("A", "B")
    ]


def test_one_variable_is_bound_to_masks_that_differ() -> None:
    loop = parse("""
def f(A: Buffer("float32", (40,)), B: Buffer("float32", (40,))):
    for u in unrolled(3):
        with Let(ramp(0, 1, 8) < broadcast(u * 2 + 3, 8)) as mask:
            store(B[ramp(u * 8, 1, 8)], A.load(ramp(u * 8, 1, 8), where=mask), where=mask)
""")
    func = unroll_loops(loop)
    means_the_same(loop, legalize_vectors(func))
    counts = [_lanes(node) for node in walk(legalize_vectors(func).body) if isinstance(node, BufferStore)]
    assert counts == [3, 5, 7]


def _lanes(store: BufferStore) -> int:
    return active_prefix(store.predicate) or store.indices[-1].dtype.lanes


@pytest.mark.parametrize(("more", "is_kept"), [
    ("own[ramp(5, 1, 5)] = A[ramp(5, 1, 5)]", True),
    ("own[ramp(4, 1, 5)] = A[ramp(5, 1, 5)]", False),
    ("own[2] = A[5]", False),
])
def test_memory_of_first_lanes_alone_becomes_vectors(more: str, *, is_kept: bool) -> None:
    func = parse(f"""
def f(A: Buffer("float32", (40,)), B: Buffer("float32", (40,))):
    for i in range(4):
        with Allocate(Buffer("float32", (10,), scope="local")) as own:
            own[ramp(0, 1, 5)] = A[ramp(i * 5, 1, 5)]
            {more}
            own[ramp(0, 1, 5)] = own[ramp(0, 1, 5)] * A[ramp(i, 1, 5)]
            B[ramp(i * 5, 1, 5)] = own[ramp(0, 1, 5)]
""")
    rewritten = promote_accumulators(legalize_vectors(func))
    assert ("own_part" in str(rewritten)) == is_kept
    means_the_same(func, rewritten)


def test_loops_without_a_round_touch_nothing() -> None:
    func = parse("""
def f(A: Buffer("float32", (8,)), n: "int64"):
    for k in range(n):
        A[ramp(n, 1, 7)] = A[ramp(n, 1, 7)] + broadcast(float32(1.0), 7)
""")
    rewritten = promote_accumulators(legalize_vectors(func))
    assert "if n > 0:" in str(rewritten)
    for n in (0, 1):
        expected, actual = np.ones(8, np.float32), np.ones(8, np.float32)
        evaluate(func, [expected, n])
        evaluate(rewritten, [actual, n])
        np.testing.assert_array_equal(actual, expected)


def product(n: int, dtype: str, *, is_unrolled: bool) -> Program:
    A = te.placeholder((16, 24), dtype, name="A")
    B = te.placeholder((24, n), dtype, name="B")
    k = te.reduce_axis((0, 24), name="k")
    C = te.compute((16, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    i, j = s[C].op.axis
    io, jo, ii, ji = s[C].tile(i, j, 8, 32)
    if is_unrolled:
        s[C].reorder(io, jo, k, ii, ji)
        s[C].unroll(ii)
    s[C].vectorize(ji)
    return s, [A, B, C]


def cached(n: int, dtype: str) -> Program:
    s, args = product(n, dtype, is_unrolled=False)
    s = te.create_schedule(args[2].op)
    cache = s.cache_write(args[2], "local")
    i, j = s[args[2]].op.axis
    _, jo, _, ji = s[args[2]].tile(i, j, 8, 32)
    s[cache].compute_at(s[args[2]], jo)
    i, j = s[cache].op.axis
    s[cache].reorder(s[cache].op.reduce_axis[0], i, j)
    s[cache].vectorize(j)
    s[cache].unroll(i)
    s[args[2]].vectorize(ji)
    return s, args


def elementwise(n: int, dtype: str) -> Program:
    A = te.placeholder((16, n), dtype, name="A")
    B = te.compute((16, n), lambda i, j: A[i, j] * A[i, j] + A[i, j], name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(B.op.axis[1], 32)
    s[B].vectorize(inner)
    return s, [A, B]


def sums(n: int, dtype: str) -> Program:
    A = te.placeholder((16, n), dtype, name="A")
    k = te.reduce_axis((0, 16), name="k")
    B = te.compute((n,), lambda j: te.sum(A[k, j], axis=k), name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 32)
    s[B].reorder(outer, k, inner)
    s[B].vectorize(inner)
    return s, [A, B]


PROGRAMS: dict[str, Callable[[int, str], Program]] = {
    "tile": lambda n, dtype: product(n, dtype, is_unrolled=False),
    "unrolled": lambda n, dtype: product(n, dtype, is_unrolled=True),
    "cached": cached,
    "elementwise": elementwise,
    "sums": sums,
}


@pytest.mark.exhaustive(keep=1, most=8)
@pytest.mark.parametrize("cpu", ["", "haswell"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_code_of_a_tail_is_about_that_of_a_whole_tile(program: str, dtype: str, cpu: str) -> None:
    triple = host().triple if cpu else ""
    if cpu and not triple.startswith("x86_64"):
        pytest.skip("no processor of this family")

    def size(n: int) -> int:
        text = emit_assembly(tecomp.lower(*PROGRAMS[program](n, dtype)), triple=triple, cpu=cpu)
        return sum(line.startswith("\t") and line[1] != "." for line in text.splitlines())

    # The limit allows a full tile and one or two tail pieces; scalar code is 5 to 15 times as long.
    most = 2.5 * size(64)
    assert {n: size(n) for n in (49, 51, 56, 57, 63) if size(n) > most} == {}


def test_unrolled_copies_share_statements_and_each_binds_its_variables(
    both: Callable[..., Kernel]
) -> None:
    func = unroll_loops(parse('''def f(A: Buffer("float32", (15,)), B: Buffer("float32", (5,))):
    for k in unrolled(3):
        with Let(A[ramp(k * 5, 1, 5)]) as y:
            B[ramp(0, 1, 5)] = max(B[ramp(0, 1, 5)], y)
'''))
    assert len({id(node.body) for node in walk(func.body) if isinstance(node, Let)}) == 1

    both(func, np.random.default_rng(0).random(15, np.float32), np.zeros(5, np.float32))


def test_each_statement_binds_the_lanes_that_it_uses() -> None:
    # An unrolled loop has two copies with one variable, of whole vectors and of a remainder.
    func = unroll_loops(parse("""
def f(A: Buffer("float32", (20,)), B: Buffer("float32", (5,))):
    for u in unrolled(2):
        with Let(A[ramp(u * 8, 1, 4)]) as y:
            B[ramp(0, 1, 4)] = B[ramp(0, 1, 4)] + y * y
        with Let(ramp(0, 1, 4) < broadcast(1, 4)) as mask:
            y = A.load(ramp(u * 8 + 4, 1, 4), where=mask)
            store(B[ramp(4, 1, 4)], B.load(ramp(4, 1, 4), where=mask) + y * y, where=mask)
"""))
    shared = _with_one_variable(func)
    rewritten = legalize_vectors(shared)

    verify(rewritten, flat=True)
    means_the_same(shared, rewritten)


def _with_one_variable(func: PrimFunc) -> PrimFunc:
    """Return the function with one variable in place of all variables named `y`."""
    first = next(n.var for n in walk(func.body) if isinstance(n, Let) and n.var.name == "y")

    def rule(node: Any) -> Any:
        if isinstance(node, Let) and node.var.name == "y":
            return Let(first, node.value, node.body)
        return first if isinstance(node, Var) and node.name == "y" else None

    return map_body(func, lambda body: bottom_up(body, rule))
