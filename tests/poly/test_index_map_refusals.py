"""What index maps refuse, in full."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tecomp.errors import DefinitionError, LayoutError
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import BufferLoad, Const, Var, cast
from tecomp.ir.nodes.stmt import Buffer, Range
from tecomp.ir.nodes.stmt import IndexMap as PlainIndexMap
from tecomp.poly.maps.index_map import AXIS_SEPARATOR, IndexMap, image_box

N = Var("n")
TABLE = Buffer("T", (8,), DType("int32"))


def message_of(question: Callable[[], object]) -> str:
    with pytest.raises(LayoutError) as error:
        question()
    return error.value.message


def takes_rest(**rest: Var) -> list[Var]:
    return list(rest.values())


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m: m.map_shape(None), "index map: expected a list of extents, got None"),
        (lambda m: m.map_indices(3), "index map: expected a list of indices, got 3"),
        (lambda m: m.is_equivalent_to("i"),
         "index map: expected an index map to compare with, got 'i'"),
    ],
)
def test_what_is_no_list_or_map_is_refused(
    ask: Callable[[IndexMap], object], message: str
) -> None:
    with pytest.raises(LayoutError) as error:
        ask(IndexMap.from_func(lambda i: [i]))

    assert error.value.message == message


@pytest.mark.parametrize(
    ("function", "ndim", "message"),
    [
        (
            lambda i, j: [j, i],
            3,
            "index map: the function takes 2 indices (i, j), but the tensor has 3 axes; name one "
            "parameter for each axis, or take them all as *i",
        ),
        (
            lambda i: [i],
            0,
            "index map: the function takes 1 index (i), but the tensor has 0 axes; name one "
            "parameter for each axis, or take them all as *i",
        ),
        (
            lambda: [0],
            1,
            "index map: the function takes 0 indices, but the tensor has 1 axis; name one "
            "parameter for each axis, or take them all as *i",
        ),
        (
            lambda i, j, *rest: [i, j],
            1,
            "index map: the function takes at least 2 indices (i, j, *rest), but the tensor has "
            "1 axis; name at most one parameter for each axis",
        ),
        (
            lambda *i: [*i],
            None,
            "index map: the function takes any number of indices (*i); say how many with ndim=",
        ),
        (
            takes_rest,
            None,
            "index map: the function takes **rest, which is no index; name one parameter for each "
            "axis, or take them all as *i",
        ),
        (
            min,
            1,
            "index map: Python does not tell which indices <built-in function min> "
            "takes; wrap it in a lambda with a parameter for each axis",
        ),
        (
            "i // 4",
            None,
            "index map: expected a function of the indices, got 'i // 4'; write e.g. "
            "lambda i, j: [j, i]",
        ),
        (
            lambda i: i // 4,
            None,
            "index map: the function returned `i // 4`, not a list of indices; return e.g. "
            "[i // 4, i % 4], or [i] for one axis",
        ),
        (
            lambda i: None,
            None,
            "index map: the function returned None, not a list of indices; return e.g. "
            "[i // 4, i % 4], or [i] for one axis",
        ),
        (
            lambda i: "i",
            None,
            "index map: the function returned 'i', not a list of indices; return e.g. "
            "[i // 4, i % 4], or [i] for one axis",
        ),
        (
            lambda i: [],
            None,
            "index map: the function returned no index; return at least one, e.g. a constant 0",
        ),
        (
            lambda i: [i, 3.5],
            None,
            "index map: result 1, 3.5, is a float32; an index is an integer, so use // to divide "
            "and .astype('int64') to convert",
        ),
        (
            lambda i: [i, cast("float32", i)],
            None,
            'index map: result 1, `cast("float32", i)`, is a float32; an index is an integer, so '
            "use // to divide and .astype('int64') to convert",
        ),
        (
            lambda i: [i < 3],
            None,
            "index map: result 0, `i < 3`, is a bool; an index is an integer, so use // to divide "
            "and .astype('int64') to convert",
        ),
        (
            lambda i: [i, None],
            None,
            "index map: result 1 is None, not an index; return index expressions, integers and "
            "AXIS_SEPARATOR only",
        ),
        (
            lambda i: ["i"],
            None,
            "index map: result 0 is 'i', not an index; return index expressions, integers and "
            "AXIS_SEPARATOR only",
        ),
        (
            lambda i, j: [AXIS_SEPARATOR, i, j],
            None,
            "index map: axis separators [-1] do not cut 2 axes into groups of at least one axis; "
            "they are ascending, each the last axis of its group; write a constant 0 in the map "
            "for a group that has no axis",
        ),
        (
            lambda i, j: [i, AXIS_SEPARATOR, AXIS_SEPARATOR, j],
            None,
            "index map: axis separators [0, 0] do not cut 2 axes into groups of at least one "
            "axis; they are ascending, each the last axis of its group; write a constant 0 in the "
            "map for a group that has no axis",
        ),
        (
            lambda i, j: [i, j, AXIS_SEPARATOR],
            None,
            "index map: axis separators [1] do not cut 2 axes into groups of at least one axis; "
            "they are ascending, each the last axis of its group; write a constant 0 in the map "
            "for a group that has no axis",
        ),
    ],
)
def test_functions(function: Any, ndim: int | None, message: str) -> None:
    assert message_of(lambda: IndexMap.from_func(function, ndim=ndim)) == message


NOT_QUASI_AFFINE = (
    " is not quasi-affine; an index map may add indices, multiply, divide or take remainders by "
    "constants, take min and max, and combine bits with ^ & | << >>"
)


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (lambda i, j: [i * j, j], "i * j"),
        (lambda i, j: [i // j, j], "i // j"),
        (lambda i, j: [i % j + 1, j], "i % j"),
        (lambda i, j: [i * N + j], "i * n"),
        (lambda i, j: [BufferLoad(TABLE, (i,)), j], "T[i]"),
        (lambda i, j: [cast("int64", cast("float32", i)), j], 'cast("float32", i)'),
    ],
)
def test_what_is_not_quasi_affine(function: Any, part: str) -> None:
    assert message_of(lambda: IndexMap.from_func(function)) == f"`{part}`{NOT_QUASI_AFFINE}"


@pytest.mark.parametrize(
    ("function", "op", "part"),
    [(lambda i, j: [i // 0, j], "//", "i"), (lambda i, j: [i, (i + j) % 0], "%", "i + j")],
)
def test_divisions_by_0(function: Any, op: str, part: str) -> None:
    with pytest.raises(DefinitionError) as error:
        IndexMap.from_func(function)

    assert error.value.message == (
        f"`{op}`: `{part}` is divided by 0; divide by another number, or by a variable, which "
        "gives 0 where it is 0"
    )


def test_lifted_maps_are_checked_too() -> None:
    i, j = Var("i"), Var("j")

    found = message_of(lambda: IndexMap.lift(PlainIndexMap((i, j), (i * j,))))

    assert found == f"`i * j`{NOT_QUASI_AFFINE}"


@pytest.mark.parametrize(
    ("function", "shape", "message"),
    [
        (
            lambda i, j: [j, i - 4],
            (8, 8),
            "index map: `i - 4` is -4 at index (0, 0); places count from 0, so add 4 or more",
        ),
        (
            lambda i, j: [3 * i - j],
            (8, 8),
            "index map: `3 * i - j` is -1 at index (0, 1); places count from 0, so add 1 or more",
        ),
        (
            lambda i: [1000 - i],
            (100_000,),
            "index map: `1000 - i` is -1 at index (1001,); places count from 0, so add 1 or more",
        ),
        (
            lambda i: [7 - i],
            (N,),
            "index map: `7 - i` is -1 at index (8,); places count from 0, so add 1 or more",
        ),
        (
            lambda i: [i ^ -1],
            (8,),
            "index map: `i ^ -1` is -1 at index (0,); places count from 0, so add 1 or more",
        ),
    ],
)
def test_negative_places(function: Any, shape: Any, message: str) -> None:
    index_map = IndexMap.from_func(function)

    assert message_of(lambda: index_map.map_shape(shape)) == message


@pytest.mark.parametrize(
    ("function", "shape", "message"),
    [
        (
            lambda i, j: [i % 2, j],
            (4, 4),
            "index map: elements (0, 0) and (2, 0) of [4, 4] share one place under lambda i, j: "
            "[i % 2, j], so it has no inverse; keep every index in the map, e.g. both i // 4 and "
            "i % 4",
        ),
        (
            lambda i: [i // 4, i % 4],
            (14,),
            "index map: 2 of the 16 places of [4, 4] hold no element of [14] under lambda i: "
            "[i // 4, i % 4], so it has no inverse; non_surjective_inverse also gives where they "
            "are",
        ),
        (
            lambda i: [i // 4, i % 4],
            (N,),
            "index map: for some sizes, places of [(n + 3) // 4, 4] hold no element of [n] under "
            "lambda i: [i // 4, i % 4], so it has no inverse; non_surjective_inverse also gives "
            "where they are",
        ),
    ],
)
def test_no_inverse(function: Any, shape: Any, message: str) -> None:
    index_map = IndexMap.from_func(function)

    assert message_of(lambda: index_map.inverse(shape)) == message


def test_no_expression_for_the_inverse() -> None:
    """Injective on this shape, though not bit by bit."""
    mixed = IndexMap.from_func(lambda i, j: [(i ^ 3) + 7 * (i & j) + 16 * j, i // 2])

    assert mixed.is_injective([3, 5])
    assert mixed.inverse_or_none([3, 5]) is None
    assert message_of(lambda: mixed.non_surjective_inverse([3, 5])) == (
        "index map: lambda i, j: [(i ^ 3) + 7 * (i & j) + 16 * j, i // 2] loses no element of "
        "[3, 5], but no expression for its inverse was found; keep the bit operations to + "
        "without carry, ^, shifts and masks by constants, each index with at least one result"
    )


def test_questions_of_other_rank() -> None:
    index_map = IndexMap.from_func(lambda i, j: [j, i])

    assert message_of(lambda: index_map.map_shape([4])) == (
        "index map: lambda i, j: [j, i] is for 2 axes, but the shape is [4]"
    )
    assert message_of(lambda: index_map.map_indices([1, 2, 3])) == (
        "index map: lambda i, j: [j, i] is for 2 axes, got 3 indices, [1, 2, 3]"
    )


@pytest.mark.parametrize("extent", [-1, 2.5, "4", None])
def test_what_is_no_extent(extent: Any) -> None:
    index_map = IndexMap.from_func(lambda i, j: [j, i])

    assert message_of(lambda: index_map.map_shape([4, extent])) == (
        f"index map: {extent!r} in the shape [4, {extent}] is no extent; extents are integers "
        "from 0 on, or expressions of sizes"
    )


def test_extents_of_numpy_and_of_the_ir() -> None:
    index_map = IndexMap.from_func(lambda i, j: [j, i])

    assert index_map.map_shape([np.int32(3), Const(5)]) == (5, 3)  # type: ignore[list-item]


def test_bit_operations_need_few_elements() -> None:
    index_map = IndexMap.from_func(lambda i, j: [i, i & j | 3])
    shifted = IndexMap.from_func(lambda i: [i ^ (N + 1)])

    assert message_of(lambda: index_map.collision([2**12, 2**12])) == (
        "index map: bit operations are decided by looking at every element, but there are "
        "16777216 of them for i, j, more than 4194304; let fewer or smaller axes meet, e.g. "
        "i ^ j % 8 for i ^ j"
    )
    assert message_of(lambda: index_map.collision([N, 4])) == (
        "index map: bit operations are decided by looking at every element, but `i` has the "
        "extent n; give it a constant extent, or use // and % only"
    )
    assert message_of(lambda: shifted.map_shape([4])) == (
        "index map: bit operations are decided by looking at every element, but `i ^ n + 1` "
        "depends on the variable n; use a number instead, or // and % only"
    )


def test_bit_operations_of_quotients_are_not_counted_out() -> None:
    """The same of an axis with itself, whose values nobody could list in time."""
    mixed = IndexMap.from_func(lambda i: [i ^ (i // 3)])

    assert message_of(lambda: mixed.is_injective([2**40])) == (
        "index map: bit operations are decided by looking at every element, but there are "
        "1099511627776 of them for i, more than 4194304; let fewer or smaller axes meet, e.g. "
        "i ^ j % 8 for i ^ j"
    )


def test_padding_of_a_colliding_symbolic_map() -> None:
    index_map = IndexMap.from_func(lambda i: [i % 4])

    assert message_of(lambda: index_map.padding_count([N])) == (
        "index map: elements (0,) and (4,) of [n] share one place under lambda i: [i % 4], so the "
        "padding depends on the sizes; keep every index in the map, e.g. both i // 4 and i % 4"
    )


def test_equality_that_needs_a_shape() -> None:
    one = IndexMap.from_func(lambda i: [i ^ 1])
    other = IndexMap.from_func(lambda i: [i])

    assert message_of(lambda: one.is_equivalent_to(other)) == (
        "index map: whether `i ^ 1` and `i` are equal for all integers cannot be decided, because "
        "of `i ^ 1`; give the shape of the tensor"
    )


def test_box_without_bounds() -> None:
    io = Var("io")
    index_map = IndexMap.from_func(lambda i: [i ^ 5])

    assert message_of(lambda: image_box(index_map, [Range(io, Const(2))], {})) == (
        "index map: no bounds of `io + i ^ 5` are known; use constant extents, or + // % by "
        "constants only"
    )
