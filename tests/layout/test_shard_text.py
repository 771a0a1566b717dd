"""Textual form of shard layouts: parsing, printing and error positions."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tecomp import GridMap, IndexMap, LayoutError, ShardLayout, Target
from tecomp.layout import Scanner, map_text, parse_affine_map
from tecomp.poly.maps import brute_force
from tests.messages import Diagnostic, diagnostic

GOOD = (
    "tensor<8x300xf32, #tt.layout<(d0, d1) -> (d0, d1), undef, <1x2>, "
    "memref<8x150xf32, #tt.memory_space<l1>>>>"
)


def read(text: str) -> IndexMap:
    return parse_affine_map(Scanner(text, "map"))


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("(d0, d1)->(d1,d0)", None),
        ("(d0) -> (0, d0)", None),
        ("() -> (0, 0)", None),
        ("(a, b) -> (a * 4 + b)", "(d0, d1) -> (d0 * 4 + d1)"),
        ("(d0) -> (4 * d0)", "(d0) -> (d0 * 4)"),
        ("(d0) -> ((d0 floordiv 8) * 4 + d0 mod 8)", None),
        ("(d0) -> (d0 floordiv 8 * 4)", "(d0) -> ((d0 floordiv 8) * 4)"),
        ("(d0) -> (d0 ceildiv 8)", "(d0) -> ((d0 + 7) floordiv 8)"),
        ("(d0, d1) -> (d0 - (d1 - 3))", None),
        ("(d0, d1) -> (d0 - d1 - 3)", None),
        ("(d0) -> (-d0 + 7)", "(d0) -> (d0 * -1 + 7)"),
        ("(d0) -> (d0 + -1)", "(d0) -> (d0 - 1)"),
        ("(d0) -> (d0 - -1)", "(d0) -> (d0 + 1)"),
        ("(d0) -> (--d0)", "(d0) -> (d0)"),
        ("(d0) -> (((d0 + 1)) mod 3)", "(d0) -> ((d0 + 1) mod 3)"),
        ("(d0, d1) -> (2 * (d0 + 3 * (d1 + 1)))", "(d0, d1) -> ((d0 + (d1 + 1) * 3) * 2)"),
    ],
)
def test_maps(text: str, printed: str | None) -> None:
    expected = printed or text.replace("->", " -> ").replace("  ", " ").replace(",d", ", d")

    assert map_text(read(text)) == expected
    assert map_text(read(expected)) == expected


def operations(parts: st.SearchStrategy[tuple[str, str]]) -> st.SearchStrategy[tuple[str, str]]:
    return st.tuples(parts, parts, st.integers(1, 9), st.integers(0, 6)).map(
        lambda drawn: written(*drawn)
    )


def written(
    first: tuple[str, str], second: tuple[str, str], number: int, kind: int
) -> tuple[str, str]:
    (a, x), (b, y) = first, second
    return [
        (f"{a} + {b}", f"{x} + {y}"),
        (f"{a} - ({b})", f"{x} - ({y})"),
        (f"({a}) * {number}", f"({x}) * {number}"),
        (f"-({a})", f"-({x})"),
        (f"({a}) mod {number}", f"({x}) % {number}"),
        (f"({a}) floordiv {number} - ({b})", f"({x}) // {number} - ({y})"),
        (f"({a}) ceildiv {number}", f"-(-({x}) // {number})"),
    ][kind]


FORMULAS = st.recursive(
    st.sampled_from([(word, word) for word in ("d0", "d1", "3", "12")]), operations, max_leaves=6
)
"""Strategy for formulas in MLIR syntax with their Python equivalents."""


@given(FORMULAS)
def test_formulas_match_index_maps(formula: tuple[str, str]) -> None:
    text, python = formula
    d0, d1 = np.ogrid[-5:40:3, 0:30:4]
    expected = np.broadcast_to(eval(python, {}, {"d0": d0, "d1": d1}), (15, 8))

    for repeated in (text, map_text(read(f"(d0, d1) -> ({text})")).partition("-> (")[2][:-1]):
        index_map = read(f"(d0, d1) -> ({repeated})")
        at = dict(zip(index_map.initial_indices, (d0, d1), strict=True))
        found = brute_force.values(index_map.final_indices[0], at)
        assert np.array_equal(np.broadcast_to(found, (15, 8)), expected)


@pytest.mark.parametrize(
    ("text", "dtype"),
    [("f64", "float64"), ("bf16", "bfloat16"), ("f16", "float16"), ("i32", "int32"),
     ("ui8", "uint8"), ("i1", "bool")],
)
def test_element_types(text: str, dtype: str) -> None:
    layout = ShardLayout.parse(GOOD.replace("f32", text))

    assert layout.dtype == layout.storage.name == dtype
    assert str(layout) == GOOD.replace("f32", text)


def test_other_spellings() -> None:
    """The parser accepts any whitespace and line breaks, signed integers and u32."""
    text = (
        "tensor< 64 x64xsi32,\n#tt.layout<(i,j)->(i,j),undef,< 1x2 >,memref<2x1x!tt.tile<32x32,u32>"
        ",#tt.memory_space<dram> > > >\n"
    )

    assert str(ShardLayout.parse(text.replace(" x64", "x64"))) == (
        "tensor<64x64xi32, #tt.layout<(d0, d1) -> (d0, d1), undef, <1x2>, "
        "memref<2x1x!tt.tile<32 x 32, ui32>, #tt.memory_space<dram>>>>"
    )


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("tensor<2x3x64x128xf32>",
         "tensor<2x3x64x128xf32, #tt.layout<(d0, d1, d2, d3) -> (d0 * 192 + d1 * 64 + d2, d3), "
         "undef, <1x1>, memref<384x128xf32, #tt.memory_space<system>>>>"),
        ("tensor<4xbf16>",
         "tensor<4xbf16, #tt.layout<(d0) -> (d0), undef, <1>, memref<4xbf16, "
         "#tt.memory_space<system>>>>"),
        ("tensor<f32>",
         "tensor<f32, #tt.layout<() -> (0), undef, <1>, memref<1xf32, "
         "#tt.memory_space<system>>>>"),
    ],
)
def test_a_tensor_without_a_layout_is_on_the_host(text: str, printed: str) -> None:
    layout = ShardLayout.parse(text)

    assert str(layout) == printed
    assert ShardLayout.parse(printed) == layout
    assert np.array_equal(layout.offsets().reshape(-1), np.arange(layout.num_elements))


def test_a_tile_without_a_type_has_the_elements_of_the_tensor() -> None:
    short = GOOD.replace("8x150xf32", "1x5x!tt.tile<32x32>")

    assert str(ShardLayout.parse(short)) == GOOD.replace("8x150xf32", "1x5x!tt.tile<32 x 32, f32>")


@pytest.mark.parametrize(
    "layout",
    [
        ShardLayout((53, 61), "float32", grid=(3, 2), alignment_bytes=16),
        ShardLayout((53, 64), "float32", grid=(3, 2), alignment_bytes=64),
        ShardLayout((64, 64), "float32", grid=(2, 2), tile=(32, 32), alignment_bytes=32),
        ShardLayout((3, 43, 7), "float32", grid=(6, 1), dim_alignments=(1, 32, 32), alignment_bytes=64),
        ShardLayout(
            (3, 43, 7), "float32", grid=(6, 1), dim_alignments=(1, 32, 32), tile=(32, 32),
            device=GridMap.on_device((6, 1), (2, 3))),
        ShardLayout((64, 2), "float16", grid=(8, 1), alignment_bytes=32, device=GridMap.on_device((8, 1), (2, 4))),
        ShardLayout.for_target(Target.load("tensix_wh"), (512, 1000), "float32", tiled=False),
    ],
)
def test_texts_keep_the_alignment_of_rows(layout: ShardLayout) -> None:
    parsed = ShardLayout.parse(str(layout))

    assert (parsed, parsed.alignment_bytes) == (layout, layout.alignment_bytes)
    assert parsed.device == layout.device
    assert str(parsed) == str(layout)
    # Rows of another grid are padded to the same multiple.
    grid = tuple(max(cores // 2, 1) for cores in layout.grid)
    changes: dict[str, Any] = {"grid": grid, "tile": None, "device": None}
    shards = parsed.replace(**changes)
    assert shards == layout.replace(**changes)
    if layout.dim_alignments is None:
        columns = -(-layout.collapsed_shape[-1] // grid[-1])
        unit = (layout.alignment_bytes or 1) // (layout.storage.stored.bits // 8)
        assert shards.memref_shape[-1] == -(-columns // unit) * unit


def test_aligned_rows_are_read_from_the_memref() -> None:
    layout = ShardLayout((53, 61), "float32", grid=(3, 2), alignment_bytes=32)
    text = str(layout).replace(", alignment_bytes = 32", "")

    assert "memref<18x32xf32" in text
    assert ShardLayout.parse(text) == layout
    assert ShardLayout.parse(text).alignment_bytes == 128
    assert layout.replace(alignment_bytes=None).memref_shape == (18, 31)
    for wrong in ("19x32", "18x30"):
        with pytest.raises(LayoutError) as error:
            ShardLayout.parse(text.replace("memref<18x32xf32", f"memref<{wrong}xf32"))
        assert diagnostic(error.value) == (
            Diagnostic("shards", memref=wrong, shape="53x61", grid="3x2", memref_shape="18x31")
        )


def at(text: str, expected: str, rest: str) -> tuple[str, Diagnostic]:
    """Return a text and its error message, whose position is the start of `rest`."""
    place = text.index(rest) if rest else len(text)
    line = text[:place].count("\n") + 1
    column = len(text[:place].rpartition("\n")[2]) + 1
    dots = "..." if not text.endswith(rest) else ""
    found = f"found `{rest}{dots}`" if rest else "the text ends"
    return text, (
        Diagnostic(
            "layout-text", caller="shard layout", expected=expected, position=place, line=line,
            column=column, found=found,
        )
    )


TYPE = "an element type such as f32"
WRONG = {
    "empty": at("", "'tensor'", ""),
    "other": at("memref<8xf32>", "'tensor'", "memref<8xf32>"),
    "type": at(
        GOOD.replace("xf32, #tt.l", "xf33, #tt.l"), TYPE, "f33, #tt.layout<(d0,"),
    "no-x": at(
        GOOD.replace("8x300xf32, ", "8x300,"), "x and then an extent or the element type",
        ",#tt.layout<(d0, d1)"),
    "unknown-dim": at(
        GOOD.replace("(d0, d1), undef", "(d0, d2), undef"),
        "one of the dimensions d0, d1", "d2), undef, <1x2>, m"),
    "dim-twice": at(
        GOOD.replace("(d0, d1) ->", "(d0, d0) ->"), "a dimension that is not d0 again",
        "d0) -> (d0, d1), und"),
    "no-result": at(
        GOOD.replace("-> (d0, d1)", "-> ()"), "at least one result",
        ", undef, <1x2>, memr"),
    "product": at(
        GOOD.replace("(d0, d1), undef", "(d0 * d1, d1), undef"),
        "a number, as one side of * is", "d1, d1), undef, <1x2"),
    "division": at(
        GOOD.replace("(d0, d1), undef", "(d0 mod 0, d1), undef"),
        "a positive number after mod", "0, d1), undef, <1x2>"),
    "operand": at(
        GOOD.replace("(d0, d1), undef", "(d0 + , d1), undef"), "a dimension, a number or (",
        ", d1), undef, <1x2>,"),
    "bracket": at(
        GOOD.replace("(d0, d1), undef", "((d0, d1), undef"), "')'",
        ", d1), undef, <1x2>,"),
    "value": at(
        GOOD.replace("undef", "null"), "one of undef, zero, one, inf, neginf",
        "null, <1x2>, memref<"),
    "grid": at(
        GOOD.replace("<1x2>", "<>"), "a number", ">, memref<8x150xf32,"),
    "memory": at(
        GOOD.replace("<l1>", "<l2>"), "one of system, mmio, dram, l1", "l2>>>>"),
    "tile-type": at(
        GOOD.replace("8x150xf32", "1x5x!tt.tile<32 x 32, bfp9>"),
        f"{TYPE} or bfp_bf8", "bfp9>, #tt.memory_sp"),
    "tile-x": at(
        GOOD.replace("8x150xf32", "1x5x!tt.tile<32, f32>"),
        "x between the rows and the columns of a tile", ", f32>, #tt.memory_s"),
    "ends": at(GOOD[:-1], "'>'", ""),
    "more": at(f"{GOOD} more", "the end", "more"),
    "second-line": at(
        GOOD.replace(", undef", ",\n  undefined"), "one of undef, zero, one, inf, neginf",
        "undefined, <1x2>, me"),
}


@pytest.mark.parametrize(("text", "expected"), WRONG.values(), ids=WRONG)
def test_errors_say_where(text: str, expected: Diagnostic) -> None:
    with pytest.raises(LayoutError) as caught:
        ShardLayout.parse(text)

    assert diagnostic(caught.value) == expected


def test_ranks_are_checked_after_reading() -> None:
    with pytest.raises(LayoutError) as caught:
        ShardLayout.parse(GOOD.replace("8x300xf32", "2x8x300xf32"))

    assert diagnostic(caught.value) == (
        Diagnostic("layout-shape-mismatch", subject="lambda d0, d1: [d0, d1]", count=2, shape="[2, 8, 300]")
    )


METAL = (
    "tensor<6x1x1x1x!ttcore.tile<32x32, f32>, #ttcore.metal_layout<logical_shape = 3x43x7, "
    "dim_alignments = 1x32x32, collapsed_intervals = dense<[[0, 2], [2, 3]]> : tensor<2x2xi64>, "
    "l1, sharded>>"
)


def test_a_layout_with_aligned_dimensions() -> None:
    layout = ShardLayout.parse(METAL)

    assert str(layout) == METAL
    assert layout == ShardLayout(
        (3, 43, 7), "float32", collapse_intervals=[(0, -1)], grid=(6, 1), tile=(32, 32),
        dim_alignments=(1, 32, 32))
    assert layout != layout.replace(dim_alignments=(3, 32, 32))
    assert layout.place((2, 40, 5)) == (5, 0, 0, 0, 8, 5)  # row 2 * 64 + 40 of 192
    older = METAL.replace("l1, sharded", "undef, l1")
    assert ShardLayout.parse(older) == layout


@pytest.mark.parametrize(
    ("shape", "alignments", "positions"),
    [
        ((2, 3, 5, 193), (1, 1, 32, 32), (192, 224)),
        ((9, 43, 7), (256, 32, 32), (768, 32)),
        ((3, 43, 7), (1, 32, 32), (192, 32)),
    ],
)
def test_positions_of_aligned_dimensions(
    shape: tuple[int, ...], alignments: tuple[int, ...], positions: tuple[int, int]
) -> None:
    layout = ShardLayout(shape, "float32", dim_alignments=alignments, grid=(1, 1))

    assert layout.memref_shape == positions


@pytest.mark.exhaustive(keep=15)
@pytest.mark.parametrize("seed", range(60))
def test_texts_of_aligned_layouts_can_be_read(seed: int) -> None:
    dice = Random(seed)
    rank = dice.randint(2, 4)
    shape = tuple(dice.choice([1, 2, 3, 5, 7, 33]) for _ in range(rank))
    cuts = sorted({0, rank, *(dice.randint(1, rank - 1) for _ in range(dice.choice([1, 1, 2])))})
    intervals = [*pairwise(cuts)]
    tile = dice.choice([None, (32, 32), (16, 32)])
    alignments = [dice.choice([1, 2, 3, 4]) for _ in shape]
    ends = [stop - 1 for _, stop in intervals]
    grid = [dice.choice([1, 2, 3]) for _ in intervals]
    units = [1] * (len(ends) - 2) + [*(tile or (1, 1))]
    for (start, _), cores, unit in zip(intervals, grid, units, strict=True):
        alignments[start] = cores * unit * dice.choice([1, 2])
    layout = ShardLayout(
        shape, "float32", collapse_intervals=intervals, grid=grid, tile=tile,
        dim_alignments=alignments, oob_val=dice.choice(["undef", "zero"]),
        memory_space=dice.choice(["l1", "dram"]),
        element=dice.choice([None, "bfp_bf8"]) if tile == (32, 32) else None,
    )

    assert ShardLayout.parse(str(layout)) == layout
    indices = {tuple(dice.randrange(n) for n in shape) for _ in range(40)}
    places = set()
    for index in indices:
        box = []
        for start, stop in intervals:
            position, count = 0, 1
            for k in reversed(range(start, stop)):
                position += index[k] * count
                count = -(-shape[k] * count // alignments[k]) * alignments[k]
            box.append((position, count))
        shards = [count // cores for (_, count), cores in zip(box, grid, strict=True)]
        core = tuple(at // size for (at, _), size in zip(box, shards, strict=True))
        assert layout.core(index) == core
        places.add(layout.place(index))
    assert len(places) == len(indices)


METAL_ERRORS: dict[str, tuple[str, str, Diagnostic]] = {
    "interleaved": ("sharded", "interleaved", Diagnostic(
        "layout-text", caller="shard layout", expected="'sharded'", position=181, line=1, column=182,
        found="found `interleaved>>`",
    )),
    "odd": ("6x1x1x1x", "6x1x1x", Diagnostic(
        "layout-text", caller="shard layout", expected="as many shard extents as grid extents", position=13,
        line=1, column=14, found="found `!ttcore.tile<32x32, ...`",
    )),
    "shards": ("6x1x1x1x", "6x1x2x1x", Diagnostic(
        "shards", memref="2x1", shape="3x43x7", grid="6x1", memref_shape="1x1",
    )),
    "grid": ("6x1x1x1x", "5x1x1x1x", Diagnostic(
        "shards", axis=0, extent=192, cores=5, unit=32, detail=160,
    )),
    "alignments": ("1x32x32", "32x32", Diagnostic(
        "invalid-type", where="shard layout: dim_alignments", values=(32, 32), many="3 ",
    )),
    "count": ("2x2xi64", "3x2xi64", Diagnostic(
        "layout-text", caller="shard layout", expected="2x2x", position=167, line=1, column=168,
        found="found `3x2xi64>, l1, sharde...`",
    )),
}


@pytest.mark.parametrize("name", METAL_ERRORS)
def test_aligned_layouts_that_cannot_be_read(name: str) -> None:
    old, new, expected = METAL_ERRORS[name]
    with pytest.raises(LayoutError) as error:
        ShardLayout.parse(METAL.replace(old, new, 1))

    assert diagnostic(error.value) == expected


def test_a_map_and_alignments_exclude_each_other() -> None:
    with pytest.raises(LayoutError) as error:
        ShardLayout((4, 4), "float32", lambda i, j: [i, j], dim_alignments=(32, 32))

    assert diagnostic(error.value) == (
        Diagnostic("shards")
    )
