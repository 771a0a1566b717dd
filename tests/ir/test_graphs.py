"""Passes over expression graphs visit, compare, print and parse each shared node once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tecomp.errors import ParseError
from tecomp.ir import (
    INT64,
    Binary,
    BinOp,
    Buffer,
    BufferLoad,
    BufferStore,
    Const,
    DType,
    Expr,
    For,
    ForKind,
    PrimFunc,
    ValueNumbering,
    Var,
    bottom_up,
    children,
    encode,
    evaluate,
    free_variables,
    if_then_else,
    parse,
    post_order,
    seq,
    simplify,
    structural_equal,
    substitute,
    top_down,
    verify,
)
from tecomp.ir.nodes import fold, preorder
from tests.messages import Diagnostic, diagnostic

FLOAT32 = DType("float32")
i, j = Var("i"), Var("j")
X, Y = Buffer("X", (4,), FLOAT32), Buffer("Y", (4,), FLOAT32)


def squared(x: Expr, times: int) -> Expr:
    """Apply `x * x + 1` repeatedly, which doubles the nodes of the tree but not of the graph."""
    for _ in range(times):
        x = x * x + 1
    return x


def operands(node: Any) -> list[Any]:
    return [node.a, node.b] if isinstance(node, Binary) else []


class Counted:
    """Child function that counts its calls per node."""

    def __init__(self) -> None:
        self.visits: dict[str, int] = {}

    def __call__(self, name: str) -> list[str]:
        self.visits[name] = self.visits.get(name, 0) + 1
        number = int(name)
        return [str(number - 1)] * 2 if number else []


@pytest.mark.parametrize("order", [preorder, post_order])
def test_a_node_is_visited_once(order: Any) -> None:
    counts = Counted()

    nodes = list(order("1000", parts=counts, key=str))

    assert sorted(map(int, nodes)) == list(range(1001))
    # The traversal reads the children before it descends and again when it combines the results.
    assert max(counts.visits.values()) <= 2


def test_results_are_computed_once() -> None:
    nodes: list[Any] = []

    def depth(node: Any, inside: list[int]) -> int:
        nodes.append(node)
        return 1 + max(inside, default=0)

    assert fold(squared(i, 1000), depth, operands) == 2001
    assert len({id(node) for node in nodes}) == len(nodes) == 3001


def test_rewriting_preserves_sharing() -> None:
    big = squared(i, 1000)
    requested: list[Any] = []

    def rule(node: Any) -> Expr | None:
        requested.append(node)
        return j if node is i else None

    for rewritten in (bottom_up(big, rule), top_down(big, rule), substitute(big, {i: j})):
        assert structural_equal(rewritten, squared(j, 1000))
        assert not structural_equal(rewritten, big)
    assert len(requested) == 2 * 3001
    assert free_variables(big) == {i: None}


def test_the_same_trees_have_one_number() -> None:
    numbers = ValueNumbering()

    assert numbers.of(squared(i, 1000)) == numbers.of(squared(i, 1000))
    assert numbers.of(squared(i, 1000)) != numbers.of(squared(j, 1000))
    assert numbers.of(Const(1)) != numbers.of(Const(1, DType("int32")))
    assert numbers.of(Const(0.0, FLOAT32)) != numbers.of(Const(-0.0, FLOAT32))
    assert numbers.of(BufferLoad(X, (i,))) != numbers.of(BufferLoad(Y, (i,)))


def test_words_of_a_value() -> None:
    assert len(encode(squared(i, 1000))) < 20_000


def statement(value: Expr) -> PrimFunc:
    body = For(i, Const(0), Const(4), ForKind.SERIAL, seq(
        BufferStore(Y, value, (i,)), BufferStore(X, value, (i,))))
    return PrimFunc("f", (X, Y), body)


@pytest.mark.parametrize("times", [2, 5, 40])
def test_a_long_part_is_printed_once_and_read_back(times: int) -> None:
    func = statement(squared(BufferLoad(X, (i,)), times))

    text = str(func)

    assert parse(text) == func
    assert str(parse(text)) == text
    assert len(text) < 1000 + 250 * times
    verify(parse(text))


def test_long_subexpressions_are_abbreviated() -> None:
    value = squared(BufferLoad(X, (i,)), 4)

    assert str(value) == (
        "(part := ((X[i] * X[i] + float32(1.0)) * (X[i] * X[i] + float32(1.0)) + float32(1.0)) * "
        "((X[i] * X[i] + float32(1.0)) * (X[i] * X[i] + float32(1.0)) + float32(1.0)) + "
        "float32(1.0)) * part + float32(1.0)"
    )


def test_the_text_of_a_large_graph_is_short() -> None:
    assert len(str(squared(i, 2000))) < 200_000


def test_bindings_are_local_to_a_statement() -> None:
    head = 'def f(X: Buffer("float32", (4,))):\n    '

    assert parse(head + "X[0] = (a := X[1] + X[2]) * a") == parse(
        head + "X[0] = (X[1] + X[2]) * (X[1] + X[2])")
    with pytest.raises(ParseError) as caught:
        parse(head + "X[0] = (a := X[1] + X[2]) * a\n    X[1] = a")
    assert diagnostic(caught.value) == Diagnostic("text", line=3, column=12, source="a")
    with pytest.raises(ParseError) as caught:
        parse(head + "X[0] = (X := X[1] + X[2])")
    assert diagnostic(caught.value) == (
        Diagnostic("text", line=2, column=13, source="X := X[1] + X[2]"))


def test_shared_parts_are_simplified_and_computed_once() -> None:
    index: Expr = i
    for _ in range(200):
        index = (index * index + 3) % 4
    simple = simplify(index, {i: (0, 3)})
    assert sum(1 for _ in preorder(simple, parts=operands)) < 2000

    func = statement(squared(BufferLoad(X, (i,)), 60) * 0.0)
    x, y = np.full(4, 0.5, "float32"), np.zeros(4, "float32")
    evaluate(simplify(func), [x, y])
    assert np.isnan(y).all()


def test_long_minima_and_conditions() -> None:
    least: Expr = i
    for k in range(500):
        least = Binary(BinOp.MIN, least, j + k)
    assert sum(1 for _ in preorder(simplify(least), parts=operands)) < 20


def test_conditions_that_share_parts_are_simplified_in_linear_time() -> None:
    """Each level uses its operand three times, so the tree grows by a factor of 3 per level."""
    i = Var("i")
    x: Expr = i
    for k in range(40):
        x = if_then_else(x % (k + 2) > k // 2, x // 2 + k, x + 1)

    out = Buffer("out", (64,), INT64)
    func = PrimFunc("f", (out,), For(i, Const(0), Const(64), ForKind.SERIAL,
                                     BufferStore(out, x, (i,))))
    simple = simplify(func)

    assert len(list(post_order(simple.body, parts=children))) < 2000
    expected, found = np.zeros(64, "int64"), np.zeros(64, "int64")
    evaluate(func, [expected])
    evaluate(simple, [found])
    np.testing.assert_array_equal(found, expected)
    assert len(set(found)) > 1
