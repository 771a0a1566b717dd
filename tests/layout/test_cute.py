"""CuTe shapes and strides, against explicit sums of digits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tecomp.errors import LayoutError
from tecomp.layout import Layout, cute, cute_complement, cute_text
from tests.messages import Diagnostic, diagnostic


def test_nested_modes() -> None:
    layout = cute("((2,2),3):((24,2),8)", "float32")
    i, j = np.indices((4, 3))

    assert layout.shape == (4, 3)
    assert np.array_equal(layout.offsets(), i % 2 * 24 + i // 2 * 2 + j * 8)


def test_the_first_mode_is_the_fastest() -> None:
    """The first mode is the fastest: strides (1, 2) in a mode of (2, 2) give `0 2 1 3`."""
    layout = cute("(4,(2,2)):(4,(2,1))", "float32")

    assert [layout.offset((0, j)) for j in range(4)] == [0, 2, 1, 3]


@pytest.mark.parametrize("text", ["1:0", "(1,1):(1,1)", "(1,(1,1)):(0,(7,1))"])
def test_one_element(text: str) -> None:
    assert cute(text, "float32").offsets().ravel().tolist() == [0]


def test_strides_that_do_not_nest() -> None:
    layout = cute("(4,3):(2,7)", "float32")
    i, j = np.indices((4, 3))

    assert layout.physical_shape == (21,)
    assert np.array_equal(layout.offsets(), 2 * i + 7 * j)


def test_swizzle() -> None:
    layout = cute("Swizzle<3,3,3> o 0 o (64,64):(64,1)", "float16")
    i, j = np.indices((64, 64))
    place = 64 * i + j

    assert cute("Swizzle<3,3,3>o0o4096:1", "float16").offset((64,)) == 72
    assert np.array_equal(layout.offsets(), place ^ ((place >> 3) & 0b111000))


@pytest.mark.parametrize(
    "text",
    [
        "((2,2),3):((24,2),8)",
        "(4,8):(8,1)",
        "(3,5):(8,1)",
        "4:2",
        "(4,3):(2,7)",
        "(128,(64,4)):(64,(1,8192))",
        "Swizzle<3,3,3>o0o(64,64):(64,1)",
        "Swizzle<2,0,3>o0o(8,8):(8,1)",
    ],
)
def test_texts_round_trip(text: str) -> None:
    assert cute_text(cute(text, "float32")) == text


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            lambda: cute("(4,4:(1,4)", "float32"),
            Diagnostic(
                "layout-text", text="(4,4:(1,4)", position=4, subject="expected `)`", rest=":(1,4)",
            ),
        ),
        (
            lambda: cute("(4,x):(1,4)", "float32"),
            Diagnostic(
                "layout-text", text="(4,x):(1,4)", position=3, subject="expected a number or `(`",
                rest="x):(1,4)",
            ),
        ),
        (
            lambda: cute("4:1)", "float32"),
            Diagnostic("layout-text", text="4:1)", position=3, subject="expected the end", rest=")"),
        ),
        (
            lambda: cute("(4,(2,2)):(1,4)", "float32"),
            Diagnostic("layout-text", where="cute", text="(4,(2,2)):(1,4)"),
        ),
        (
            lambda: cute("(4,4):(0,1)", "float32"),
            Diagnostic(
                "not-injective", first=(0, 0), second=(1, 0), dtype="float32", shape=[4, 4],
                index_map="lambda i, j: [i % 4 * 0 + j % 4]",
            ),
        ),
        (
            lambda: cute_text(Layout.of((10,), "float32", lambda i: [i // 4, i % 4])),
            Diagnostic(
                "layout-text", index_map="lambda i: [i // 4, i % 4]", shape=[10],
                reason="the last block of axis 0 is not full",
            ),
        ),
        (
            lambda: cute_text(Layout.of((8, 8), "float32", lambda i, j: [i, i ^ j])),
            Diagnostic(
                "layout-text", index_map="lambda i, j: [i, i ^ j]", shape=[8, 8],
                reason="an address is not a sum of digits times strides",
            ),
        ),
    ],
)
def test_refusals(make: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(LayoutError) as caught:
        make()

    assert diagnostic(caught.value) == expected


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        ("4:2", 24, "(2,3):(1,8)"),  # the published example
        ("4:1", 24, "6:4"),
        ("6:4", 24, "4:1"),
        ("(4,6):(1,4)", 24, "1:0"),
        ("(2,4):(1,6)", 24, "3:2"),
        ("(2,2):(1,6)", 24, "(3,2):(2,12)"),
        ("(2,(2,1)):(6,(1,0))", 24, "(3,2):(2,12)"),
        ("4:2", 17, "(2,3):(1,8)"),
        ("1:0", 5, "5:1"),
    ],
)
def test_complements(text: str, size: int, expected: str) -> None:
    assert cute_complement(text, size) == expected


@pytest.mark.parametrize("seed", range(100))
def test_a_layout_and_its_complement_are_a_bijection(seed: int) -> None:
    random = np.random.default_rng(seed)
    modes, reach = [], 1
    for _ in range(int(random.integers(1, 4))):
        step, n = reach * int(random.integers(1, 4)), int(random.integers(1, 5))
        modes.append((n, step))
        reach = step * n
    random.shuffle(modes)
    text = ":".join(f"({','.join(str(mode[k]) for mode in modes)})" for k in (0, 1))
    size = int(random.integers(1, 200))

    offsets = cute(text, "int8").offsets().ravel()
    found = cute_complement(text, size)
    rest = cute(found, "int8").offsets().ravel()

    places = np.sort(np.add.outer(offsets, rest).ravel())
    np.testing.assert_array_equal(places, np.arange(len(places)))
    assert size <= len(places) < max(size, reach) + reach


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        ("(2,2):(1,0)", 8, Diagnostic("layout-text", text="(2,2):(1,0)", step=0, reach=1)),
        ("(4,2):(1,6)", 24, Diagnostic("layout-text", text="(4,2):(1,6)", step=6, reach=4)),
        ("(4,2):1", 24, Diagnostic("layout-text", where="cute_complement", text="(4,2):1")),
    ],
)
def test_layouts_without_a_complement(text: str, size: int, expected: Diagnostic) -> None:
    with pytest.raises(LayoutError) as error:
        cute_complement(text, size)

    assert diagnostic(error.value) == expected
