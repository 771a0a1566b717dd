"""Full error messages of index maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tecomp.errors import DefinitionError, LayoutError
from tecomp.ir import Buffer, BufferLoad, Const, DType, IndexMapNode, Range, Var, cast
from tecomp.poly import AXIS_SEPARATOR, IndexMap, image_box
from tests.messages import Diagnostic, diagnostic

N = Var("n")
TABLE = Buffer("T", (8,), DType("int32"))


def refusal_of(question: Callable[[], object]) -> Diagnostic:
    with pytest.raises(LayoutError) as error:
        question()
    return diagnostic(error.value)


def takes_rest(**rest: Var) -> list[Var]:
    return list(rest.values())


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda m: m.map_shape(None), Diagnostic("invalid-type", subject="extents", value=None)),
        (lambda m: m.map_indices(3), Diagnostic("invalid-type", subject="indices", value=3)),
        (lambda m: m.is_equivalent_to("i"),
         Diagnostic("invalid-type", other="i")),
    ],
)
def test_index_maps_require_lists(
    ask: Callable[[IndexMap], object], expected: Diagnostic
) -> None:
    with pytest.raises(LayoutError) as error:
        ask(IndexMap.from_func(lambda i: [i]))

    assert diagnostic(error.value) == expected


@pytest.mark.parametrize(
    ("function", "ndim", "expected"),
    [
        (
            lambda i, j: [j, i],
            3,
            Diagnostic("invalid-index-map", given_count="2 indices", listed=" (i, j)", ndim="3 axes"),
        ),
        (
            lambda i: [i],
            0,
            Diagnostic("invalid-index-map", given_count="1 index", listed=" (i)", ndim="0 axes"),
        ),
        (
            lambda: [0],
            1,
            Diagnostic("invalid-index-map", given_count="0 indices", listed="", ndim="1 axis"),
        ),
        (
            lambda i, j, *rest: [i, j],
            1,
            Diagnostic("invalid-index-map", detail="2 indices", listed=" (i, j, *rest)", ndim="1 axis"),
        ),
        (
            lambda *i: [*i],
            None,
            Diagnostic("invalid-index-map", listed=" (*i)"),
        ),
        (
            takes_rest,
            None,
            Diagnostic("invalid-index-map", parameter="rest"),
        ),
        (
            min,
            1,
            Diagnostic("invalid-index-map", function="<built-in function min>"),
        ),
        (
            "i // 4",
            None,
            Diagnostic("invalid-index-map", function="i // 4"),
        ),
        (
            lambda i: i // 4,
            None,
            Diagnostic("invalid-index-map", value="`i // 4`"),
        ),
        (
            lambda i: None,
            None,
            Diagnostic("invalid-index-map", value="None"),
        ),
        (
            lambda i: "i",
            None,
            Diagnostic("invalid-index-map", value="'i'"),
        ),
        (
            lambda i: [],
            None,
            Diagnostic("invalid-index-map"),
        ),
        (
            lambda i: [i, 3.5],
            None,
            Diagnostic("invalid-index-map", position=1, result="3.5", dtype="float32"),
        ),
        (
            lambda i: [i, cast("float32", i)],
            None,
            Diagnostic("invalid-index-map", position=1, result='`cast("float32", i)`', dtype="float32"),
        ),
        (
            lambda i: [i < 3],
            None,
            Diagnostic("invalid-index-map", position=0, result="`i < 3`", dtype="bool"),
        ),
        (
            lambda i: [i, None],
            None,
            Diagnostic("invalid-index-map", position=1, result="None"),
        ),
        (
            lambda i: ["i"],
            None,
            Diagnostic("invalid-index-map", position=0, result="'i'"),
        ),
        (
            lambda i, j: [AXIS_SEPARATOR, i, j],
            None,
            Diagnostic(
                "layout",
                reason="axis separators [-1] do not split 2 axes into groups of at least one axis; they must be ascending, each the last axis of its group; write a constant 0 in the map for a group without axes",
            ),
        ),
        (
            lambda i, j: [i, AXIS_SEPARATOR, AXIS_SEPARATOR, j],
            None,
            Diagnostic(
                "layout",
                reason="axis separators [0, 0] do not split 2 axes into groups of at least one axis; they must be ascending, each the last axis of its group; write a constant 0 in the map for a group without axes",
            ),
        ),
        (
            lambda i, j: [i, j, AXIS_SEPARATOR],
            None,
            Diagnostic(
                "layout",
                reason="axis separators [1] do not split 2 axes into groups of at least one axis; they must be ascending, each the last axis of its group; write a constant 0 in the map for a group without axes",
            ),
        ),
    ],
)
def test_functions(function: Any, ndim: int | None, expected: Diagnostic) -> None:
    assert refusal_of(lambda: IndexMap.from_func(function, ndim=ndim)) == expected


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
def test_non_quasi_affine_maps(function: Any, part: str) -> None:
    assert refusal_of(lambda: IndexMap.from_func(function)) == (
        Diagnostic("invalid-index-map", node=part)
    )


@pytest.mark.parametrize(
    ("function", "op", "part"),
    [(lambda i, j: [i // 0, j], "//", "i"), (lambda i, j: [i, (i + j) % 0], "%", "i + j")],
)
def test_divisions_by_0(function: Any, op: str, part: str) -> None:
    with pytest.raises(DefinitionError) as error:
        IndexMap.from_func(function)

    assert diagnostic(error.value) == (
        Diagnostic("division-by-zero", op=op, a=part)
    )


def test_lifted_maps_are_checked_too() -> None:
    i, j = Var("i"), Var("j")

    found = refusal_of(lambda: IndexMap.lift(IndexMapNode((i, j), (i * j,))))

    assert found == Diagnostic("invalid-index-map", node="i * j")


@pytest.mark.parametrize(
    ("function", "shape", "expected"),
    [
        (
            lambda i, j: [j, i - 4],
            (8, 8),
            Diagnostic("negative-address", expr="i - 4", value=-4, index=(0, 0), positive=4),
        ),
        (
            lambda i, j: [3 * i - j],
            (8, 8),
            Diagnostic("negative-address", expr="3 * i - j", value=-1, index=(0, 1), positive=1),
        ),
        (
            lambda i: [1000 - i],
            (100_000,),
            Diagnostic("negative-address", expr="1000 - i", value=-1, index=(1001,), positive=1),
        ),
        (
            lambda i: [7 - i],
            (N,),
            Diagnostic("negative-address", expr="7 - i", value=-1, index=(8,), positive=1),
        ),
        (
            lambda i: [i ^ -1],
            (8,),
            Diagnostic("negative-address", expr="i ^ -1", value=-1, index=(0,), positive=1),
        ),
    ],
)
def test_negative_places(function: Any, shape: Any, expected: Diagnostic) -> None:
    index_map = IndexMap.from_func(function)

    assert refusal_of(lambda: index_map.map_shape(shape)) == expected


@pytest.mark.parametrize(
    ("function", "shape", "expected"),
    [
        (
            lambda i, j: [i % 2, j],
            (4, 4),
            Diagnostic(
                "not-injective", first=(0, 0), second=(2, 0), shape="[4, 4]",
                subject="lambda i, j: [i % 2, j]", so="it has no inverse; ",
            ),
        ),
        (
            lambda i: [i // 4, i % 4],
            (14,),
            Diagnostic(
                "not-invertible", unused="2 of the 16", ends="[4, 4]", shape="[14]",
                subject="lambda i: [i // 4, i % 4]",
            ),
        ),
        (
            lambda i: [i // 4, i % 4],
            (N,),
            Diagnostic(
                "not-invertible", unused="for some sizes,", ends="[(n + 3) // 4, 4]", shape="[n]",
                subject="lambda i: [i // 4, i % 4]",
            ),
        ),
    ],
)
def test_no_inverse(function: Any, shape: Any, expected: Diagnostic) -> None:
    index_map = IndexMap.from_func(function)

    assert refusal_of(lambda: index_map.inverse(shape)) == expected


def test_no_expression_for_the_inverse() -> None:
    """A map may be injective on a shape without an inverse expression bit by bit."""
    mixed = IndexMap.from_func(lambda i, j: [(i ^ 3) + 7 * (i & j) + 16 * j, i // 2])

    assert mixed.is_injective([3, 5])
    assert mixed.inverse_or_none([3, 5]) is None
    assert refusal_of(lambda: mixed.non_surjective_inverse([3, 5])) == (
        Diagnostic(
            "not-invertible", subject="lambda i, j: [(i ^ 3) + 7 * (i & j) + 16 * j, i // 2]",
            shape="[3, 5]",
        )
    )


def test_questions_of_other_rank() -> None:
    index_map = IndexMap.from_func(lambda i, j: [j, i])

    assert refusal_of(lambda: index_map.map_shape([4])) == (
        Diagnostic("layout-shape-mismatch", subject="lambda i, j: [j, i]", count=2, shape="[4]")
    )
    assert refusal_of(lambda: index_map.map_indices([1, 2, 3])) == (
        Diagnostic(
            "layout-shape-mismatch", subject="lambda i, j: [j, i]", count=2, index_count=3,
            indices="[1, 2, 3]",
        )
    )


@pytest.mark.parametrize("extent", [-1, 2.5, "4", None])
def test_invalid_extents(extent: Any) -> None:
    index_map = IndexMap.from_func(lambda i, j: [j, i])

    assert refusal_of(lambda: index_map.map_shape([4, extent])) == (
        Diagnostic("layout-shape-mismatch", extent=extent, shape=f"[4, {extent}]")
    )


def test_extents_of_numpy_and_of_the_ir() -> None:
    index_map = IndexMap.from_func(lambda i, j: [j, i])

    assert index_map.map_shape([np.int32(3), Const(5)]) == (5, 3)  # type: ignore[list-item]


def test_bit_operations_need_few_elements() -> None:
    index_map = IndexMap.from_func(lambda i, j: [i, i & j | 3])
    shifted = IndexMap.from_func(lambda i: [i ^ (N + 1)])

    assert refusal_of(lambda: index_map.collision([2**12, 2**12])) == (
        Diagnostic(
            "limit-exceeded", subject="index map: bit operations are decided by enumerating all elements",
            size=16777216, names="i, j", limit=4194304,
        )
    )
    assert refusal_of(lambda: index_map.collision([N, 4])) == (
        Diagnostic(
            "limit-exceeded", subject="index map: bit operations are decided by enumerating all elements",
            axis="i", extent="n",
        )
    )
    assert refusal_of(lambda: shifted.map_shape([4])) == (
        Diagnostic(
            "limit-exceeded", subject="index map: bit operations are decided by enumerating all elements",
            expr="i ^ n + 1", other="n",
        )
    )


def test_bit_operations_of_quotients_are_not_counted_out() -> None:
    """Bit operations of an axis and its own quotient are not enumerated for large extents."""
    mixed = IndexMap.from_func(lambda i: [i ^ (i // 3)])

    assert refusal_of(lambda: mixed.is_injective([2**40])) == (
        Diagnostic(
            "limit-exceeded", subject="index map: bit operations are decided by enumerating all elements",
            size=1099511627776, names="i", limit=4194304,
        )
    )


def test_padding_of_a_colliding_symbolic_map() -> None:
    index_map = IndexMap.from_func(lambda i: [i % 4])

    assert refusal_of(lambda: index_map.padding_count([N])) == (
        Diagnostic(
            "not-injective", first=(0,), second=(4,), shape="[n]", subject="lambda i: [i % 4]",
            so="the padding depends on the sizes; ",
        )
    )


def test_equality_that_needs_a_shape() -> None:
    one = IndexMap.from_func(lambda i: [i ^ 1])
    other = IndexMap.from_func(lambda i: [i])

    assert refusal_of(lambda: one.is_equivalent_to(other)) == (
        Diagnostic("limit-exceeded", a="i ^ 1", b="i", expr="i ^ 1")
    )


def test_box_without_bounds() -> None:
    io = Var("io")
    index_map = IndexMap.from_func(lambda i: [i ^ 5])

    assert refusal_of(lambda: image_box(index_map, [Range(io, Const(2))], {})) == (
        Diagnostic("limit-exceeded", moved="io + i ^ 5")
    )
