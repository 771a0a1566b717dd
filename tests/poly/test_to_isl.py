"""Expressions as isl functions and sets and back: printed forms, errors and budgets."""

from __future__ import annotations

import islpy as isl
import pytest

from tecomp.errors import LayoutError, LowerError
from tecomp.ir import (
    Binary,
    BinOp,
    Buffer,
    BufferLoad,
    Const,
    DType,
    Expr,
    Var,
    binary,
    cast,
    if_then_else,
    logical_and,
    logical_or,
    select,
)
from tecomp.poly import (
    CONTEXT,
    LoopScope,
    NotAffine,
    Space,
    ast_expr,
    bounding_box,
    condition,
    condition_hull,
    first_dims,
    fix,
    image,
    index_relation,
    isl_work,
    preimage,
    pw_aff,
    python_int,
    set_to_condition,
    to_expr,
    within_budget,
)
from tests.messages import Diagnostic, diagnostic

N = Var("n")
x, y = Var("x"), Var("y")
PLAIN = Space((x, y), (N,))


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (x // 4 + 3 * y - N, "3 * y + x // 4 - n"),
        (x % 4, "x % 4"),
        (x - 4 * (x // 4), "x % 4"),
        ((x // 4) % 8, "x // 4 % 8"),
        ((x % 16) // 4, "x // 4 % 4"),
        ((x + 3) % 16, "(x + 3) % 16"),
        ((x % 4) * 16 + (x // 4) % 4, "16 * (x % 4) + x // 4 % 4"),
        ((x + y) % 8, "(x + y) % 8"),
        ((y // 8 + x) % 8, "(x + y // 8) % 8"),
        (15 - x, "15 - x"),
        (x * 0 + 7, "7"),
        (binary(BinOp.MIN, x, y + 1), "min(x, y + 1)"),
        (binary(BinOp.MAX, binary(BinOp.MAX, x, y), N), "max(max(n, x), y)"),
        (if_then_else(x < y, x, y), "min(x, y)"),
        (select(x < 3, y, 7), "select(x >= 3, 7, y)"),
        (select(logical_and(x >= 3, y < N), x, 0), "select(x >= 3 and y < n, x, 0)"),
        (x & 7, "x % 8"),
        (x >> 2, "x // 4"),
    ],
    ids=str,
)
def test_text_of_functions(expr: Expr, text: str) -> None:
    assert str(to_expr(pw_aff(expr, PLAIN), PLAIN.names)) == text


@pytest.mark.parametrize(
    ("points", "text"),
    [
        ("{ [x, y] : 0 <= x < 4 and y < p0 }", "x >= 0 and x < 4 and y < n"),
        ("{ [x, y] : x mod 4 = 3 and x <= y }", "(x + 1) % 4 == 0 and x <= y"),
        ("{ [x, y] : x mod 8 >= 5 }", "x % 8 >= 5"),
        ("{ [x, y] : x = y + 3 }", "x == y + 3"),
        ("{ [x, y] : x >= y + 3 }", "y + 3 <= x"),
        ("{ [x, y] : x = 3; [x, y] : y = 4 }", "y == 4 or x == 3"),
        ("{ [x, y] : false }", "False"),
        ("{ [x, y] }", "True"),
    ],
)
def test_text_of_conditions(points: str, text: str) -> None:
    found = isl.Set.read_from_str(CONTEXT, f"[p0] -> {points}")

    assert str(set_to_condition(found, PLAIN.names)) == text


def test_function_on_its_domain() -> None:
    """Exact division prints as `//`; values outside of the domain are arbitrary."""
    half = isl.PwAff.read_from_str(CONTEXT, "{ [x] -> [(x / 2)] : x mod 2 = 0 }")
    steps = isl.PwAff.read_from_str(CONTEXT, "{ [x] -> [(0)] : x = 0; [x] -> [(5)] : x = 1 }")

    assert str(to_expr(half, {"d0": x})) == "x // 2"
    assert str(to_expr(steps, {"d0": x})) == "select(x == 0, 0, 5)"
    assert str(to_expr(isl.Aff.read_from_str(CONTEXT, "{ [x] -> [(3x)] }"), {"d0": y + 1})) == (
        "3 * (y + 1)"
    )


@pytest.mark.parametrize(
    ("ranges", "text"),
    [
        ([(0, 16), (3, 4)], "[p0] -> { [d0, d1] : 0 <= d0 <= 15 and 3 <= d1 <= 6 }"),
        ([(0, N), (N, 2)], "[p0] -> { [d0, d1] : 0 <= d0 < p0 and p0 <= d1 <= 1 + p0 }"),
        ([(0, 4), (x, 2)], "[p0] -> { [d0, d1] : 0 <= d0 <= 3 and d0 <= d1 <= 1 + d0 }"),
        ([(0, 0), (0, 1)], "[p0] -> { [d0, d1] : false }"),
    ],
)
def test_box(ranges: list[tuple[int | Expr, int | Expr]], text: str) -> None:
    assert PLAIN.box(ranges).is_equal(isl.Set.read_from_str(CONTEXT, text))


def test_relation() -> None:
    affine = index_relation([x // 4, y, x % 4, 7], PLAIN)
    pieces = index_relation([binary(BinOp.MIN, x, y)], PLAIN)

    assert affine.is_equal(isl.Map.read_from_str(
        CONTEXT, "[p0] -> { [x, y] -> [floor(x / 4), y, x mod 4, 7] }"
    ))
    assert pieces.is_equal(isl.Map.read_from_str(
        CONTEXT, "[p0] -> { [x, y] -> [x] : x <= y; [x, y] -> [y] : y < x }"
    ))


def test_constant_conditions_of_the_code_generator() -> None:
    """A condition that always holds is the number 1, also as a subexpression."""
    build = isl.AstBuild.from_context(isl.Set.read_from_str(CONTEXT, "[p0] -> { : }"))
    holds = isl.Set.read_from_str(CONTEXT, "[p0] -> { : p0 > 0 or p0 <= 0 }")

    result = ast_expr(build.expr_from_set(holds), {"p0": N})
    one = isl.AstExpr.from_val(isl.Val.one(CONTEXT))
    positive = build.expr_from_set(isl.Set.read_from_str(CONTEXT, "[p0] -> { : p0 > 0 }"))

    assert str(result) == "n >= 1 or True"
    assert str(ast_expr(one.and_then(positive), {"p0": N})) == "True and n >= 1"


def test_space_without_dimensions() -> None:
    nothing = Space(())

    assert nothing.box([]).is_equal(isl.Set.read_from_str(CONTEXT, "{ [] }"))
    assert str(index_relation([3], nothing)) == "{ [] -> [3] }"


def test_hull_keeps_affine_constraints() -> None:
    table = Buffer("T", (10,), DType("int64"))
    loaded = BufferLoad(table, (x,))

    both = condition_hull(logical_and(x < 3, loaded < y), PLAIN)
    neither = condition_hull(~logical_or(x < 3, loaded < y), PLAIN)
    either = condition_hull(logical_or(x < 3, loaded < y), PLAIN)
    exact = condition_hull(logical_and(x < 3, y < N), PLAIN)

    assert [(str(points), flag) for points, flag in (both, neither, either, exact)] == [
        ("[p0] -> { [d0, d1] : d0 <= 2 }", False),
        ("[p0] -> { [d0, d1] : d0 >= 3 }", False),
        ("[p0] -> { [d0, d1] }", False),
        ("[p0] -> { [d0, d1] : d0 <= 2 and d1 < p0 }", True),
    ]


@pytest.mark.parametrize(
    ("expr", "part"),
    [
        (x * y + 1, "x * y"),
        (x // y, "x // y"),
        (x % N, "x % n"),
        (x + Var("z"), "z"),
        (BufferLoad(Buffer("T", (10,), DType("int64")), (x,)) + 1, "T[x]"),
        (cast("int64", cast("int8", x)), 'cast("int8", x)'),
        (cast("int64", cast("float32", x)), 'cast("float32", x)'),
        (x ^ y, "x ^ y"),
        (x & 5, "x & 5"),
        (x << y, "x << y"),
        (select(x < 4, Const(2), 3) * y, "select(x < 4, 2, 3) * y"),
    ],
    ids=str,
)
def test_non_affine_expressions(expr: Expr, part: str) -> None:
    with pytest.raises(NotAffine) as error:
        pw_aff(expr, PLAIN)

    assert str(error.value.expr) == part


def test_numbers_and_conditions_are_not_mixed_up() -> None:
    with pytest.raises(NotAffine):
        pw_aff(x < y, PLAIN)
    with pytest.raises(NotAffine):
        condition(x, PLAIN)


def test_divisions_by_zero_give_zero() -> None:
    result = (Binary(op, x, Const(0)) for op in (BinOp.FLOORDIV, BinOp.MOD))
    found = [str(pw_aff(expr, Space((x,)))) for expr in result]

    assert found == ["{ [d0] -> [(0)] }"] * 2


def test_deep_expressions() -> None:
    chain: Expr = x
    for _ in range(5000):
        chain = chain + 1

    assert str(to_expr(pw_aff(chain, PLAIN), PLAIN.names)) == "x + 5000"


def test_work_beyond_the_budget() -> None:
    text = "{ [a, b] -> [floor((7a + 13b)/5), (b + 5a) mod 11] : 0 <= a < 999 and 0 <= b < 777 }"
    slow = isl.Map.read_from_str(CONTEXT, text)

    with pytest.raises(LayoutError) as error, isl_work("here", LayoutError, budget=1000):
        slow.apply_range(slow.reverse()).lexmin()

    assert diagnostic(error.value) == (
        Diagnostic("limit-exceeded")
    )
    assert CONTEXT.get_max_operations() == 0


def test_the_outer_block_has_the_budget() -> None:
    with isl_work("outer", budget=10_000_000), isl_work("inner", budget=1):
        assert CONTEXT.get_max_operations() == 10_000_000
        assert not isl.Set.read_from_str(CONTEXT, "{ [i] : 0 <= i < 9 }").is_empty()


def test_other_errors_of_isl() -> None:
    everything = isl.Set.read_from_str(CONTEXT, "{ [i] }")

    with pytest.raises(LowerError) as error, isl_work("there"):
        everything.lexmin()

    assert error.value.message.startswith("there: isl cannot decide this (call to isl_set_lexmin")
    assert error.value.message.endswith("); use simpler index expressions")


def slow_region() -> tuple[isl.Set, LoopScope]:
    """Return a region that compares remainders of loop indices, on which isl is slow."""
    i, j, n, m = (Var(name) for name in ("i", "j", "n", "m"))
    scope = LoopScope.of_sizes([n, m], [n, m])
    space = scope.space([i, j])
    points = space.box([(Const(0), n), (Const(0), n)])
    for holds in (
        (n + 2) // 2 - 1 - i < i + 3,
        n - 1 - i < j * 6,
        binary(BinOp.MAX, i + 1, 0) > (j - 2) // 5 * 5 + j % 5,
    ):
        points = points.intersect(condition(holds, space))
    inside = scope.enter([i], first_dims(points, 1))
    return image(fix(points, [i], inside), [j % 4], inside.space([j])), inside


def test_a_box_that_takes_too_long_is_everything() -> None:
    with isl_work("here"):
        region, scope = slow_region()
    with isl_work("here", budget=3_000_000):
        ((start, extent),) = bounding_box(region, region, scope, [4])

    assert (str(start), extent) == ("0", 4)


def test_a_share_ends_and_the_budget_goes_on() -> None:
    def work(rounds: int) -> int:
        for _ in range(rounds):
            condition(x < 3, PLAIN)
        return rounds

    assert within_budget(lambda: work(100), 10) == 100  # no budget to take a share of
    with isl_work("here", budget=100_000):
        assert within_budget(lambda: work(1000), 1000) is None
        assert within_budget(lambda: work(1), 1000) == 1
        assert work(10) == 10
    with pytest.raises(LowerError), isl_work("here", budget=10_000):
        within_budget(lambda: work(1000), 20_000)


def test_isl_numbers_respect_the_operation_limit() -> None:
    """If the operation limit ends while a number is read, isl's error is raised."""
    value = isl.Aff.read_from_str(CONTEXT, "{ [i] -> [(123456789 + 77 * floor((i) / 3))] }")

    def read() -> int:
        return python_int(value.get_constant_val())

    for operations in (1, 2):
        with pytest.raises(LowerError) as error, isl_work("here", budget=operations):
            read()
        assert diagnostic(error.value) == Diagnostic("limit-exceeded")
    with isl_work("here", budget=10):
        assert read() == 123456789


def test_non_affine_expressions_are_errors_at_the_public_interface_only() -> None:
    i, j = Var("i"), Var("j")
    space = Space((i, j))

    with isl_work("here"), pytest.raises(NotAffine), isl_work("there", LayoutError):
        pw_aff(i * j, space)
    with pytest.raises(LayoutError) as error, isl_work("here", LayoutError):
        pw_aff(i * j + 1, space)

    assert diagnostic(error.value) == (
        Diagnostic("limit-exceeded")
    )


def test_our_errors_pass_through() -> None:
    with pytest.raises(KeyError), isl_work("there"):
        raise KeyError
    assert CONTEXT.get_max_operations() == 0


def test_the_dimensions_themselves_need_no_relation() -> None:
    points = PLAIN.box([(0, 4), (0, N)])

    assert image(points, [x, y + 0], PLAIN) is points
    assert preimage(points, [x, y], PLAIN) is points
    assert not image(points, [y, x], PLAIN).plain_is_equal(points)
    assert Space((x, y), (y,)).box([(0, 3), (1, 2)]) is not Space((x, y)).box([(0, 3), (1, 2)])
