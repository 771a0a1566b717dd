"""Random expressions as isl functions and sets and back, against Python integers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import islpy as isl
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tecomp.ir import (
    BinOp,
    Call,
    CmpOp,
    Const,
    Expr,
    Var,
    as_expr,
    binary,
    cast,
    compare,
    if_then_else,
    logical_and,
    logical_or,
    select,
)
from tecomp.poly import (
    Space,
    ast_expr,
    condition,
    condition_hull,
    pw_aff,
    set_to_condition,
    to_expr,
    values,
)

ROW, COLUMN, N = Var("mod"), Var("max"), Var("n")  # isl parses `mod` and `max` as operators
SPACE = Space((ROW, COLUMN), (N,))
PARAMETERS = Space((), (ROW, COLUMN, N))
SIDE = np.arange(-9, 10)
MESH = np.meshgrid(SIDE, SIDE, np.array([-3, 0, 5]), indexing="ij")
GRID = dict(zip((ROW, COLUMN, N), MESH, strict=True))
FLAT = [tuple(int(n) for n in at) for at in zip(*(m.ravel() for m in MESH), strict=True)]
POINTS = FLAT[::97]

Tree = Any  # a leaf, or (operation, operand, ...)


def _magnitude(a: Expr) -> Expr:
    return Call("abs", (a,), a.dtype)


# For each operation: the constructor of the expression, and the Python equivalent.
OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "+": (operator.add, operator.add),
    "-": (operator.sub, operator.sub),
    "*": (operator.mul, operator.mul),
    "//": (operator.floordiv, operator.floordiv),
    "%": (operator.mod, operator.mod),
    "&": (operator.and_, operator.and_),
    "<<": (operator.lshift, operator.lshift),
    ">>": (operator.rshift, operator.rshift),
    "~": (operator.invert, operator.invert),
    "min": (lambda a, b: binary(BinOp.MIN, a, b), min),
    "max": (lambda a, b: binary(BinOp.MAX, a, b), max),
    "abs": (_magnitude, abs),
    "truth": (lambda a: cast("int64", cast("bool", a)), lambda a: int(a != 0)),
    "int32": (lambda a: cast("int64", cast("int32", a)), lambda a: a),
    "select": (select, lambda c, a, b: a if c else b),
    "if": (if_then_else, lambda c, a, b: a if c else b),
    "and": (logical_and, lambda a, b: a and b),
    "or": (logical_or, lambda a, b: a or b),
    "not": (operator.invert, operator.not_),
    "is": (lambda a, b: compare(CmpOp.EQ, a, b), operator.eq),
    "xor": (operator.xor, operator.ne),
    "<": (lambda a, b: compare(CmpOp.LT, a, b), operator.lt),
    "<=": (lambda a, b: compare(CmpOp.LE, a, b), operator.le),
    ">": (lambda a, b: compare(CmpOp.GT, a, b), operator.gt),
    ">=": (lambda a, b: compare(CmpOp.GE, a, b), operator.ge),
    "==": (lambda a, b: compare(CmpOp.EQ, a, b), operator.eq),
    "!=": (lambda a, b: compare(CmpOp.NE, a, b), operator.ne),
}


def _op(names: str, *operands: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.tuples(st.sampled_from(names.split()), *operands)


def _comparison(number: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return _op("< <= > >= == !=", number, number)


def _larger(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.one_of(
        _op("+ - min max", inner, inner),
        _op("* // %", inner, st.integers(-9, 9).filter(bool)),
        _op("&", inner, st.sampled_from([0, 1, 7, -1, -4])),
        _op("<< >>", inner, st.integers(0, 3)),
        _op("select if", _comparison(inner), inner, inner),
        _op("~ abs truth int32", inner),
    )


def _conditions(number: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.recursive(
        _comparison(number),
        lambda inner: _op("and or is xor", inner, inner) | _op("not", inner),
        max_leaves=3,
    )


LEAVES = st.sampled_from(["i", "j", "n"]) | st.integers(-20, 20)
NUMBERS = st.recursive(LEAVES, _larger, max_leaves=5)
CONDITIONS = _conditions(NUMBERS)


def expression(tree: Tree) -> Expr:
    """Return the tree as an expression."""
    if isinstance(tree, str):
        return {"i": ROW, "j": COLUMN, "n": N}[tree]
    if isinstance(tree, int):
        return Const(tree)
    return as_expr(OPERATIONS[tree[0]][0](*map(expression, tree[1:])))


def number(tree: Tree, i: int, j: int, n: int) -> Any:
    """Return the value of the tree, computed by Python."""
    if isinstance(tree, str):
        return {"i": i, "j": j, "n": n}[tree]
    if isinstance(tree, int):
        return tree
    return OPERATIONS[tree[0]][1](*(number(branch, i, j, n) for branch in tree[1:]))


def everywhere(tree: Tree) -> Any:
    """Return the values of the tree on the grid, computed by Python."""
    return np.array([number(tree, *point) for point in FLAT]).reshape(MESH[0].shape)


def on_grid(expr: Expr) -> Any:
    """Return the values of an expression on the grid."""
    return np.broadcast_to(values(expr, GRID), MESH[0].shape)


def point_of(i: int, j: int, n: int) -> isl.Point:
    point = isl.Point.zero(SPACE.isl)
    point = point.set_coordinate_val(isl.dim_type.set, 0, i)
    point = point.set_coordinate_val(isl.dim_type.set, 1, j)
    return point.set_coordinate_val(isl.dim_type.param, 0, n)


@given(NUMBERS)
def test_function_has_the_values_of_the_expression(tree: Tree) -> None:
    function = pw_aff(expression(tree), SPACE)

    found = [function.eval(point_of(*point)).to_python() for point in POINTS]

    assert found == [number(tree, *point) for point in POINTS]


@given(NUMBERS)
def test_values_of_expressions(tree: Tree) -> None:
    assert np.array_equal(on_grid(expression(tree)), everywhere(tree))


@given(NUMBERS)
def test_written_back(tree: Tree) -> None:
    written = to_expr(pw_aff(expression(tree), SPACE), SPACE.names)

    assert written.dtype == "int64"
    assert np.array_equal(on_grid(written), everywhere(tree))


@given(CONDITIONS)
def test_set_of_a_condition(tree: Tree) -> None:
    points = condition(expression(tree), SPACE)

    found = [points.intersect(isl.Set.from_point(point_of(*p))).is_empty() for p in POINTS]

    assert found == [not number(tree, *point) for point in POINTS]


@given(CONDITIONS)
def test_condition_written_back(tree: Tree) -> None:
    written = set_to_condition(condition(expression(tree), SPACE), SPACE.names)

    assert written.dtype == "bool"
    assert np.array_equal(on_grid(written), everywhere(tree))


@given(_conditions(NUMBERS | st.just(("*", "i", "j"))))
def test_hull_holds_all_points(tree: Tree) -> None:
    hull, exact = condition_hull(expression(tree), SPACE)
    inside = on_grid(set_to_condition(hull, SPACE.names))

    expected = everywhere(tree)

    assert not (expected & ~inside).any()
    assert not exact or np.array_equal(inside, expected)


@given(NUMBERS)
def test_expressions_of_the_code_generator(tree: Tree) -> None:
    function = pw_aff(expression(tree), PARAMETERS)
    build = isl.AstBuild.from_context(isl.Set.universe(function.domain().get_space()))

    result = ast_expr(build.expr_from_pw_aff(function), PARAMETERS.names)

    assert result.dtype == "int64"
    assert np.array_equal(on_grid(result), everywhere(tree))


@given(CONDITIONS)
def test_conditions_of_the_code_generator(tree: Tree) -> None:
    points = condition(expression(tree), PARAMETERS).params()
    build = isl.AstBuild.from_context(isl.Set.universe(points.get_space()))

    result = ast_expr(build.expr_from_set(points), PARAMETERS.names)

    assert np.array_equal(on_grid(result) != 0, everywhere(tree))
