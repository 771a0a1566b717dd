"""Each simplification rule on an example, and random expressions evaluated before and after."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tecomp.ir import (
    FLOAT32,
    INT32,
    INT64,
    Allocate,
    Binary,
    BinOp,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Cast,
    CmpOp,
    Compare,
    Const,
    Expr,
    For,
    ForKind,
    IfThenElse,
    Let,
    Not,
    PrimFunc,
    Ramp,
    Select,
    SeqStmt,
    Stmt,
    Var,
    binary,
    bounds,
    cast,
    compare,
    const,
    constant_upper_bound,
    evaluate,
    if_then_else,
    index_value,
    join_branches,
    logical_and,
    logical_or,
    parse,
    select,
    seq,
    simplify,
    walk,
)

i, j, k, n, m = (Var(name) for name in "ijknm")
A = Buffer("A", (64,))
RANGES = {i: (0, 15), j: (0, 3), k: (0, 7), n: (0, None), m: (0, None)}


def least(a: Expr | int, b: Expr | int) -> Expr:
    return binary(BinOp.MIN, a, b)


def most(a: Expr | int, b: Expr | int) -> Expr:
    return binary(BinOp.MAX, a, b)


RULES: list[tuple[Expr, str]] = [
    ((i * 4 + j) // 4, "i"),
    ((i * 4 + j) % 4, "j"),
    ((i * 8 + k) // 4, "i * 2 + k // 4"),
    ((i * 8 + j * 2) // 16, "i // 2"),
    ((i * 8 + j) % 16, "i % 2 * 8 + j"),
    ((i * 6) // 4, "i * 3 // 2"),
    ((i // 3) // 5, "i // 15"),
    ((n // 3 + 1) // 2, "(n + 3) // 6"),
    (n % 12 % 4, "n % 4"),
    (n % 12 // 4, "n // 4 % 3"),
    (n // 4 * 4 + n % 4, "n"),
    (n // 8 * 8 + n // 4 % 2 * 4 + n % 4, "n"),
    (n - n // 8 * 8, "n % 8"),
    (n + 3 - (n + 3) // 8 * 8, "(n + 3) % 8"),
    ((n - 1) // 8 + 1, "(n + 7) // 8"),
    (i * 0 + j * 1 + 0, "j"),
    (3 + i - 2 + i - i, "i + 1"),
    ((i + 2) * 4 - i, "i * 3 + 8"),
    (0 - i, "0 - i"),
    (5 - i * 2, "5 - i * 2"),
    ((i * 2) * (n * 3), "i * n * 6"),
    (i * n - n * i, "0"),
    ((i ^ n) ^ n, "i"),
    ((n ^ i) ^ n, "i"),
    (if_then_else(m > 0, i // m * m + i % m, 0), "if_then_else(m > 0, i, 0)"),
    (i // m * m + i % m, "i // m * m + i % m"),
    (if_then_else(m > 0, i // (m * 2) * (m * 2) + i % (m * 2), 0), "if_then_else(m > 0, i, 0)"),
    (if_then_else(m > 0, i // (m * 2) * m + i % (m * 2), 0),
     "if_then_else(m > 0, i // (m * 2) * m + i % (m * 2), 0)"),
    (if_then_else(m > 0, i // (m * 2) * m * 6 + i % (m * 2) * 3, 0),
     "if_then_else(m > 0, i * 3, 0)"),
    (if_then_else(m > 0, n // m * (m * k) + n % m * k, 0), "if_then_else(m > 0, n * k, 0)"),
    (if_then_else(m > 0, n // m * (m * k) * 2 + n % m * k, 0),
     "if_then_else(m > 0, n // m * (m * k) * 2 + n % m * k, 0)"),
    (if_then_else(m > 0, n // m * (m * k) + n % m * n, 0),
     "if_then_else(m > 0, n // m * (m * k) + n % m * n, 0)"),
    (if_then_else(logical_and(m > 0, n > 0), i // n // m * (m * n) + i // n % m * n + i % n, 0),
     "if_then_else(m > 0 and n > 0, i, 0)"),
    (n // 3 // 4 * (4 * k) * 3 + n // 3 % 4 * k * 3 + n % 3 * k, "n * k"),
    (i * n * 2 + n * i * k - k * (i * n), "i * n * 2"),
    (least(i, 15), "i"),
    (most(i, 0), "i"),
    (least(i, 7), "min(i, 7)"),
    (least(least(8, n - i * 8), 8), "min(8, n - i * 8)"),
    (least(n + 4, n), "n"),
    (i // 16, "0"),
    (i % 16, "i"),
    (n // 1, "n"),
    (n % 1, "0"),
    (i < 16, "True"),
    (i > 15, "False"),
    (i * 8 < 64, "i < 8"),
    (i * 8 + 3 < 64, "i < 8"),
    (i * 8 + k < n * 8, "i < n"),
    (i * 8 <= 63, "i <= 7"),
    (i * 8 > 63, "i > 7"),
    (i * 8 >= n * 8, "i >= n"),
    (n + 1 < i + 3, "n < i + 2"),
    ((i * 2).equal(7), "False"),
    ((i * 2).equal(8), "i == 4"),
    (i.equal(16), "False"),
    (n - i < n, "i > 0"),
    (logical_and(i < 16, n > 3), "n > 3"),
    (logical_or(i < 16, n > 3), "True"),
    (logical_and(n > 3, n > 3), "n > 3"),
    (logical_and(n > 3, n > 2), "n > 3"),
    (logical_or(n < 3, n >= 3), "True"),
    (Not(n < 3), "n >= 3"),
    (Not(Not(Var("p").equal(1))), "p == 1"),
    (if_then_else(n < 4, least(n, 4), 0), "if_then_else(n < 4, n, 0)"),
    (
        if_then_else(n % 8 > 0, (n + 7) // 8 * 8 - 8, (n + 7) // 8),
        "if_then_else(n % 8 > 0, n // 8 * 8, n // 8)",
    ),
    (if_then_else(n % 8 < 5, (n + 3) % 8, m), "if_then_else(n % 8 < 5, n % 8 + 3, m)"),
    (if_then_else(i < 16, n, m), "n"),
    (if_then_else(n < 4, m, m), "m"),
    (select(i < 16, n, m), "n"),
    (cast("int64", cast("int32", i)), "i"),
    (cast("float32", index_value(3)), "float32(3.0)"),
]


@pytest.mark.parametrize(("before", "after"), RULES, ids=[after for _, after in RULES])
def test_rule(before: Expr, after: str) -> None:
    assert str(simplify(before, RANGES)) == after


x = Var("x", FLOAT32)
w = Var("w", INT32)
KEPT = [
    x * 0.0,
    x + 0.0,
    (x + 1.0) - 1.0,
    (w + 1) - 1,
    (w * 4) // 4,
    w < w + 1,
    Not(x < 1.0),
    cast("int64", cast("int8", i * 64)),
    # The elements can be so large that the product wraps around.
    BufferLoad(Buffer("D", (4,), INT64), (j,)) * 4 // 4,
    select(n < 4, BufferLoad(A, (least(n, 4),)), const(0.0)),
    logical_and(n < 4, BufferLoad(A, (least(n, 4),)) > 0.0),
    Call("check_index", (n, index_value(10), index_value(0)), (n < 4).dtype),
]


@pytest.mark.parametrize("expr", KEPT, ids=[str(expr) for expr in KEPT])
def test_unchanged_expressions(expr: Expr) -> None:
    """Arithmetic on data and conditions that guard reads are not changed."""
    assert str(simplify(expr, RANGES)) == str(expr)


def loop(var: Var, extent: Expr | int, *body: Stmt, kind: ForKind = ForKind.SERIAL) -> For:
    return For(var, index_value(0), index_value(extent), kind, seq(*body))


def put(index: Expr | int, value: float = 1.0) -> BufferStore:
    return BufferStore(A, const(value), (index_value(index),))


def test_symbolic_bounds_of_loops_decide_guards() -> None:
    """`8*io + ii < n` is true if io and ii have the loop bounds that isl generates."""
    tail = least(8, n - i * 8)
    inside = IfThenElse(i * 8 + j < n, put(i * 8 + j))

    nest = loop(i, (n + 7) // 8, loop(j, tail, inside))

    assert simplify(nest) == loop(i, (n + 7) // 8, loop(j, tail, put(i * 8 + j)))


def test_loops_of_no_and_of_one_turn_go() -> None:
    assert simplify(loop(i, 0, put(i))) == SeqStmt(())
    assert simplify(loop(i, least(j - 3, 0), put(i)), RANGES) == SeqStmt(())
    assert simplify(loop(i, 1, loop(j, 4, put(i * 4 + j)))) == loop(j, 4, put(j))


def test_a_condition_decides_those_inside() -> None:
    inner = IfThenElse(n < 7, put(0), put(1))

    assert simplify(IfThenElse(n < 5, inner, IfThenElse(n < 5, put(2)))) == IfThenElse(
        n < 5, put(0))
    assert simplify(IfThenElse(n < 5, SeqStmt(()), put(1))) == IfThenElse(n >= 5, put(1))
    assert simplify(IfThenElse(n < 5, SeqStmt(()), SeqStmt(()))) == SeqStmt(())


def test_memory_and_values_that_nothing_uses_go() -> None:
    t, unused = Var("t"), Buffer("unused", (4,))

    assert simplify(Allocate(unused, put(0))) == put(0)
    assert simplify(Let(t, n + 1, put(0))) == put(0)
    assert simplify(Let(t, n, put(t))) == put(n)
    assert simplify(Let(t, n + 1, IfThenElse(t > n, put(t)))) == Let(t, n + 1, put(t))


def test_extents_of_memory_follow_their_variables() -> None:
    """The variable of a one-iteration loop is also substituted in buffer shapes inside the loop."""
    local = Buffer("local", (least(8, n - i * 8),))
    fill = loop(j, least(8, n - i * 8), BufferStore(local, const(0.0), (j,)))

    result = simplify(loop(i, 1, Allocate(local, fill)))

    shaped = Buffer("local", (least(8, n),))
    expected = Allocate(shaped, loop(j, least(8, n), BufferStore(shaped, const(0.0), (j,))))
    assert result == expected


def test_products_of_loads_use_simplified_extents() -> None:
    """Conditions inspect products before simplification; loads still get the simplified shape."""
    table = Buffer("table", ((n + 3) * 4,), INT64)
    product = BufferLoad(table, (j,)) * n + i
    inside = logical_and(i >= 1, product < n * n)
    body = IfThenElse(inside, BufferStore(A, const(0.0), (product,)))

    result = simplify(Allocate(table, seq(BufferStore(table, n, (j,)), body)))

    shapes = {str(node.buffer.shape) for node in walk(result) if isinstance(node, BufferLoad)}
    assert shapes == {"(n * 4 + 12,)"}


def test_predicates_that_always_or_never_hold() -> None:
    lanes = Ramp(i * 4, index_value(1), 4)
    inside = Compare(CmpOp.LT, lanes, Broadcast(index_value(64), 4))
    outside = Compare(CmpOp.GE, lanes, Broadcast(index_value(64), 4))
    value = Broadcast(const(1.0), 4)

    assert simplify(BufferStore(A, value, (lanes,), inside), RANGES) == BufferStore(
        A, value, (lanes,))
    assert simplify(BufferStore(A, value, (lanes,), outside), RANGES) == SeqStmt(())
    assert str(simplify(BufferLoad(A, (lanes,), outside), RANGES)) == "broadcast(float32(0.0), 4)"


def test_sizes_of_a_function_are_not_negative() -> None:
    func = PrimFunc("f", (Buffer("A", (n,)),), IfThenElse(n >= 0, put(0)), (n,))

    assert simplify(func).body == put(0)


def test_bounds() -> None:
    assert bounds(i * 8 - j, RANGES) == (-3, 120)
    assert bounds(n - 1, RANGES) == (-1, None)
    assert bounds(least(n, i + 8) - i, RANGES) == (-15, 8)
    assert constant_upper_bound(least(8, n - i * 8), RANGES) == 8
    assert constant_upper_bound(n, RANGES) is None


def test_bounds_of_quotients_follow_from_those_of_dividends() -> None:
    """The tail of a strided window: `n // 2 - 8 * i` lanes remain if `16 * i + 16 > n`."""
    is_full = i * 16 + 16 <= n

    def in_tail(condition: Expr) -> Stmt:
        return IfThenElse(is_full, put(0), IfThenElse(condition, put(1), put(2)))

    assert simplify(in_tail(n // 2 - i * 8 <= 7), RANGES) == IfThenElse(is_full, put(0), put(1))
    assert simplify(in_tail(n // 2 * 6 - i * 48 > 45), RANGES) == IfThenElse(
        is_full, put(0), put(2))
    assert simplify(in_tail(n // 2 - i * 8 <= 6), RANGES) == in_tail(n // 2 - i * 8 <= 6)


def test_a_sum_that_doubles_at_every_step_takes_no_time() -> None:
    total: Expr = i
    for _ in range(40):
        total = total + total

    assert str(simplify(total)) == f"i * {2**40}"


@pytest.mark.exhaustive
def test_deep_trees_do_not_exhaust_the_stack() -> None:
    total: Expr = n
    for step in range(3000):
        total = binary(BinOp.MAX, total // 2, step)

    assert sum(1 for _ in walk(simplify(total, RANGES))) > 3000


VALUES = {i: range(-5, 6, 3), j: range(4), n: (0, 1, 13)}
OPERATORS: dict[BinOp | CmpOp, Callable[[int, int], int]] = {
    BinOp.ADD: operator.add, BinOp.SUB: operator.sub, BinOp.MUL: operator.mul,
    BinOp.FLOORDIV: lambda a, b: a // b if b else 0, BinOp.MOD: lambda a, b: a % b if b else 0,
    BinOp.MIN: min, BinOp.MAX: max,
    BinOp.AND: lambda a, b: a and b, BinOp.OR: lambda a, b: a or b,
    CmpOp.EQ: operator.eq, CmpOp.NE: operator.ne, CmpOp.LT: operator.lt, CmpOp.LE: operator.le,
    CmpOp.GT: operator.gt, CmpOp.GE: operator.ge,
}


def value(expr: Expr, at: Mapping[Var, int]) -> int:
    match expr:
        case Var():
            return at[expr]
        case Const(number):
            return int(number)
        case Binary(op, a, b) | Compare(op, a, b):
            return int(OPERATORS[op](value(a, at), value(b, at)))
        case Not(a):
            return not value(a, at)
        case Select(c, a, b) | Call(_, (c, a, b)):
            return value(a if value(c, at) else b, at)
        case Cast(_, a):
            return value(a, at)
    raise AssertionError(expr)


ATOMS = st.sampled_from([i, j, n]) | st.integers(-9, 20).map(index_value)
DIVISORS = st.sampled_from([1, 2, 3, 4, 6, 8, 12, 16, 64])


def grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    pairs = st.tuples(inner, inner)
    ops = st.sampled_from([BinOp.ADD, BinOp.SUB, BinOp.MIN, BinOp.MAX, BinOp.ADD, BinOp.MUL])
    compared = st.builds(lambda op, ab: compare(op, *ab), st.sampled_from(list(CmpOp)), pairs)
    joined = st.builds(
        lambda op, a, b: binary(op, a, b), st.sampled_from([BinOp.AND, BinOp.OR]), compared,
        compared)
    conditions = compared | joined | compared.map(Not)
    return st.one_of(
        st.builds(lambda op, ab: binary(op, *ab), ops, pairs),
        st.builds(lambda a, d: a // d, inner, DIVISORS),
        st.builds(lambda a, d: a % d, inner, DIVISORS),
        st.builds(lambda a, d: a * d, inner, DIVISORS),
        st.builds(lambda ab: binary(BinOp.FLOORDIV, *ab), pairs),
        st.builds(lambda c, ab: if_then_else(c, *ab), conditions, pairs),
        st.builds(lambda c, ab: select(c, *ab), conditions, pairs),
        conditions.map(lambda c: cast("int64", c)),
    )


EXPRESSIONS = st.recursive(ATOMS, grow, max_leaves=12)


def test_buffer_attributes_are_preserved() -> None:
    """Removing an empty loop removes the layout map and pad value of the stage that it computes."""
    func = parse("""
@layout_transform_map(A=[lambda i: [i // 4, i % 4]], T=[lambda i: [i // 4, i % 4]])
@pad_value(T=lambda i, j: float32(0.0))
def f(A: Buffer("float32", (64,))):
    for i in range(0):
        with BufferRealize(Buffer("float32", (64,)), bounds=((0, 64),)) as T:
            T[i] = A[i]
            A[i] = T[i]
""")

    assert str(simplify(func)) == """\
@layout_transform_map(A=[lambda i: [i // 4, i % 4]])
def f(A: Buffer("float32", (64,))):
    pass"""


@pytest.mark.exhaustive
@settings(max_examples=400, deadline=None)
@given(EXPRESSIONS)
def test_random_expressions_keep_their_value(expr: Expr) -> None:
    """Simplification is idempotent and preserves the value, and the bounds contain the value."""
    ranges = {var: (min(values), max(values)) for var, values in VALUES.items()}

    simple = simplify(expr, ranges)
    low, high = bounds(expr, ranges)

    assert str(simplify(simple, ranges)) == str(simple)
    for point in product(*VALUES.values()):
        at = dict(zip(VALUES, point, strict=True))
        result = value(expr, at)
        assert value(simple, at) == result
        assert low is None or low <= result
        assert high is None or result <= high


@pytest.mark.exhaustive
@settings(max_examples=200, deadline=None)
@given(st.lists(EXPRESSIONS, min_size=3, max_size=3), st.sampled_from(list(CmpOp)))
def test_random_programs_keep_their_stores(parts: list[Expr], op: CmpOp) -> None:
    """With symbolic loop bounds and conditions, the same indices are stored in the same order."""
    extent, bound, index = parts
    guarded = IfThenElse(compare(op, i * 4 + j, bound), put(index), put(index + 1))
    nest = For(i, index_value(-2), least(n, 5), ForKind.SERIAL,
               loop(j, least(6, n - i), loop(k, least(extent, 2), guarded)))

    simple = simplify(nest, {n: (0, 9)})

    for size in (0, 1, 5, 9):
        assert trace(simple, {n: size}) == trace(nest, {n: size})


def trace(stmt: Stmt, at: dict[Var, int]) -> list[int]:
    """Return the stored indices in execution order."""
    match stmt:
        case For(var, start, extent, _, body):
            first = value(start, at)
            return [place for turn in range(first, first + value(extent, at))
                    for place in trace(body, {**at, var: turn})]
        case IfThenElse(condition, then_case, else_case):
            chosen = then_case if value(condition, at) else else_case
            return trace(chosen, at) if chosen is not None else []
        case SeqStmt(stmts):
            return [place for part in stmts for place in trace(part, at)]
        case BufferStore(_, _, (index,)):
            return [value(index, at)]
    raise AssertionError(stmt)


BRANCHES = """def f(A: Buffer("int64", (8,)), n: "int64"):
    for i in range(4):
        if i < n:
            A[i] = A[i] + 1
            if i == 2:
                A[7] = 5
        else:
            A[i] = 3
        if i < n:
            if i == 2:
                A[6] = A[7]
            A[i] = A[i] * 2
        if A[i] > 4:
            A[i] = 0
        if A[i] > 4:
            A[5] = 1
"""
JOINED = """def f(A: Buffer("int64", (8,)), n: "int64"):
    for i in range(4):
        if i < n:
            A[i] = A[i] + 1
            if i == 2:
                A[7] = 5
                A[6] = A[7]
            A[i] = A[i] * 2
        else:
            A[i] = 3
        if A[i] > 4:
            A[i] = 0
        if A[i] > 4:
            A[5] = 1
"""


def test_branches_under_equal_conditions_are_joined() -> None:
    """Conditions that read memory may change between two branches, and stay apart."""
    before, after = parse(BRANCHES), join_branches(parse(BRANCHES))
    assert str(after) == JOINED.rstrip()
    for n in range(5):
        a, b = np.arange(8), np.arange(8)
        evaluate(before, [a, n])
        evaluate(after, [b, n])
        np.testing.assert_array_equal(a, b)
