"""`relayout`, `pack` and `unpack`: results, sharing and errors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest

from tecomp import Format, Layout, relayout
from tecomp.errors import CallError, LayoutError
from tecomp.ir import DType
from tecomp.layout import BlockFloat, blocked
from tests.messages import Diagnostic, diagnostic

SHAPE = (70, 100)
ROWS = Layout.row_major(SHAPE, "float32")
STICKS = Layout.of(SHAPE, "float32", lambda i, j: [j // 32, i, j % 32], pad_value=-1)


def test_sticks_and_back() -> None:
    array = np.arange(7000, dtype="float32").reshape(SHAPE)
    wide = np.full((70, 128), -1, "float32")
    wide[:, :100] = array
    expected = wide.reshape(70, 4, 32).transpose(1, 0, 2)

    sticks = relayout(ROWS, STICKS)(array)

    np.testing.assert_array_equal(sticks, expected)
    np.testing.assert_array_equal(relayout(STICKS, ROWS)(sticks), array)


def test_equal_layouts_share_a_kernel_and_keep_their_axis_names() -> None:
    repeated = Layout.of(SHAPE, "float32", lambda a, b: [b // 32, a, b % 32], pad_value=-1)
    first, second = relayout(ROWS, STICKS), relayout(ROWS, repeated)

    assert repeated == STICKS
    assert first.kernel is second.kernel
    assert first.dst is STICKS
    assert second.dst is repeated
    assert "(a, b) -> (b // 32, a, b % 32)" in repr(second)
    assert repr(relayout(STICKS, STICKS)) == (
        "<Relayout of float32[70, 100]: (i, j) -> (j // 32, i, j % 32) to "
        "(i, j) -> (j // 32, i, j % 32)>"
    )
    assert relayout(ROWS, STICKS).kernel.outputs == ("result",)
    assert "def relayout(" in relayout(ROWS, STICKS).source()
    assert "define" in relayout(ROWS, STICKS).source("llvm")


def test_arrays_of_any_strides_are_packed() -> None:
    array = np.arange(7000, dtype="float32").reshape(SHAPE)
    expected = STICKS.pack(array)

    for same in (
        np.asfortranarray(array), array[:, ::-1].copy()[:, ::-1],
        np.repeat(array, 2, axis=1)[:, ::2],
    ):
        np.testing.assert_array_equal(STICKS.pack(same), expected)
    for out in (np.zeros((100, 70), "float32").T, np.zeros((70, 300), "float32")[:, ::3]):
        assert STICKS.unpack(expected, out) is out
        np.testing.assert_array_equal(out, array)


def _python_calls(run: Callable[[], object]) -> int:
    """Count the Python functions that `run` enters."""
    entered = []
    sys.setprofile(lambda frame, event, _: entered.append(frame) if event == "call" else None)
    try:
        run()
    finally:
        sys.setprofile(None)
    return len(entered)


@pytest.mark.parametrize("order", ["C", "F"])
def test_repeated_pack_costs_as_much_as_relayout(order: Literal["C", "F"]) -> None:
    array = np.asarray(np.arange(7000, dtype="float32").reshape(SHAPE), order=order)
    packed, flat = STICKS.pack(array), np.ascontiguousarray(array)
    out = np.empty_like(array)
    STICKS.unpack(packed, out)
    copy = relayout(ROWS, STICKS)
    copy(flat, packed)

    allowed = _python_calls(lambda: copy(flat, packed)) + 30

    # Building and analyzing a layout for the array takes more than 700 calls.
    assert _python_calls(lambda: STICKS.pack(array, packed)) < allowed
    assert _python_calls(lambda: STICKS.unpack(packed, out)) < allowed


def test_a_result_is_written_to_the_output_argument() -> None:
    out = np.zeros(STICKS.physical_shape, "float32")

    assert STICKS.pack(np.ones(SHAPE, "float32"), out) is out
    assert out.sum() == 7000 - STICKS.padding_count


PACKED: dict[str, tuple[tuple[int, ...], str, Any]] = {
    "rows": ((37,), "float32", lambda i: [i]),
    "sticks": ((100, 200), "float16", lambda i, j: [j // 64, i, j % 64]),
    "tiles": ((100, 201), "float32", lambda i, j: [i // 32, j // 32, i % 32, j % 32]),
    "faces": (
        (131, 201), "uint16",
        lambda i, j: [i // 32, j // 32, i // 16 % 2, j // 16 % 2, i % 16, j % 16],
    ),
    "threes": ((50, 40), "int8", lambda i, j: [j // 3, i, j % 3]),
    "channels": ((9, 11, 100), "float32", lambda h, w, k: [k // 16, h, w, k % 16]),
    "swizzle": ((16, 128), "float32", lambda i, j: [i, j // 8 ^ i % 8, j % 8]),
    "backwards": ((30, 40), "float32", lambda i, j: [29 - i, j]),
    "columns": ((70, 90), "float32", lambda i, j: [j, i]),
    "planes": ((2, 60, 7, 9), "float32", lambda n, c, h, w: [n, c // 16, h, w, c % 16]),
    "turned": ((3, 4, 18, 5), "float32", lambda a, b, c, d: [d, a, b, c]),
    "pairs": ((50, 37), "float32", lambda i, j: [i // 2, j, i % 2]),
    "a row of one": ((13, 17, 7), "float32", lambda i, j, k: [i, j, k, j % 1]),
    "one": ((1, 64), "float32", lambda i, j: [j // 64, i, j % 64]),
    "nothing": ((0, 64), "float32", lambda i, j: [j // 32, i, j % 32]),
}


@pytest.mark.parametrize("name", PACKED)
def test_any_places(name: str) -> None:
    shape, dtype, mapping = PACKED[name]
    layout = Layout.of(shape, dtype, mapping)
    array = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)

    packed = layout.pack(array)

    places = tuple(np.broadcast_arrays(*mapping(*np.indices(shape, sparse=True))))
    np.testing.assert_array_equal(packed[places], array)
    np.testing.assert_array_equal(layout.unpack(packed), array)


def test_scalars_and_empty_tensors() -> None:
    scalar = Layout.of((), "float32", lambda: [0])
    empty = Layout.of((0, 3), "float32", lambda i, j: [i, j % 4])

    assert scalar.pack(np.float32(3)).tolist() == [3]
    assert scalar.unpack(np.array([3], "float32")) == np.float32(3)
    assert empty.pack(np.zeros((0, 3), "float32")).shape == (0, 4)
    assert empty.unpack(np.zeros((0, 4), "float32")).shape == (0, 3)


def test_a_tensor_with_many_ends_inside_blocks() -> None:
    shape = (3, 5, 7, 9, 11)
    layout = Layout.of(
        shape, "uint8", lambda *i: [*(n // 2 for n in i), *(n % 2 for n in i)], pad_value=7
    )
    array = np.random.default_rng(0).integers(0, 255, shape, np.uint8)
    expected = np.full(tuple(-(-n // 2) * 2 for n in shape), 7, np.uint8)
    expected[tuple(map(slice, shape))] = array
    halves = [n for extent in expected.shape for n in (extent // 2, 2)]
    expected = expected.reshape(halves).transpose(0, 2, 4, 6, 8, 1, 3, 5, 7, 9)

    packed = layout.pack(array)

    np.testing.assert_array_equal(packed, expected)
    np.testing.assert_array_equal(layout.unpack(packed), array)


def test_elements_that_are_stored_differently_are_converted() -> None:
    tiles = blocked((32, 64), "float32", "AB8a128b")
    halves = Layout(
        tiles.shape, tiles.dtype, tiles.index_map, Format.plain("bfloat16"), pad_value=2
    )
    array = np.random.default_rng(0).standard_normal((32, 64), np.float32)
    rounded = array.astype(DType("bfloat16").numpy)
    expected = np.full((32, 128), 2, rounded.dtype)
    expected[:, :64] = rounded

    packed = halves.pack(array)

    assert packed.dtype == rounded.dtype
    np.testing.assert_array_equal(
        packed.reshape(32, 128).astype("float32"), expected.astype("float32")
    )
    np.testing.assert_array_equal(halves.unpack(packed), rounded.astype("float32"))


def test_blocks_of_elements_are_read_and_stored_again() -> None:
    storage = BlockFloat.of(8)
    shape = (64, 96)

    def faces(i: int, j: int) -> list[int]:
        return [i // 32, j // 32, i // 16 % 2, j // 16 % 2, i % 16, j % 16]

    plain = Layout.of(shape, "float32", faces)
    tiles = Layout(shape, DType("float32"), plain.index_map, storage)
    array = np.random.default_rng(0).standard_normal(shape, np.float32)
    expected = storage.encode_array(plain.pack(array).reshape(-1))

    packed = tiles.pack(array)

    assert packed.shape == tiles.storage_shape
    np.testing.assert_array_equal(packed.reshape(-1), expected)
    values = storage.decode_array(expected, "float32").reshape(plain.physical_shape)
    np.testing.assert_array_equal(tiles.unpack(packed), plain.unpack(values))
    np.testing.assert_array_equal(relayout(tiles, tiles)(packed), packed)


def refusal(call: object, *arguments: object) -> Diagnostic:
    """Return the diagnostic of the error that a call raises."""
    with pytest.raises((CallError, LayoutError)) as caught:
        call(*arguments)  # type: ignore[operator]
    return diagnostic(caught.value)


def test_two_layouts_of_different_tensors_are_refused() -> None:
    other = Layout.row_major((70, 101), "float32")

    assert refusal(relayout, STICKS, other) == (
        Diagnostic(
            "layout-shape-mismatch", dtype="float32", shape=[70, 100], dst_dtype="float32",
            dst_shape=[70, 101],
        )
    )
    assert refusal(relayout, STICKS, Layout.row_major(SHAPE, "int32")) == (
        Diagnostic(
            "layout-shape-mismatch", dtype="float32", shape=[70, 100], dst_dtype="int32",
            dst_shape=[70, 100],
        )
    )


def test_arrays_that_do_not_fit_are_refused() -> None:
    array = np.zeros(SHAPE, "float32")

    assert refusal(STICKS.pack, np.zeros((100, 70), "float32")) == (
        Diagnostic(
            "argument-mismatch", subject="pack: the array", text="float32[100, 70]", dtype="float32",
            shape=[70, 100],
        )
    )
    assert refusal(STICKS.pack, [[1.0]]) == (
        Diagnostic(
            "argument-mismatch", subject="pack: the array", text="float64[1, 1]", dtype="float32",
            shape=[70, 100],
        )
    )
    assert refusal(STICKS.unpack, STICKS.pack(array), array.astype("float64")) == (
        Diagnostic(
            "argument-mismatch", subject="unpack: out", text="float64[70, 100]", dtype="float32",
            shape=[70, 100],
        )
    )
    assert refusal(relayout(ROWS, STICKS), array.T) == (
        Diagnostic(
            "unsupported-memory", where="argument 0 (source) of relayout",
            parameter="float32[70, 100]", strides=(1, 100),
            remedy="pass np.ascontiguousarray(...) of it",
        )
    )
    halves = Layout(SHAPE, STICKS.dtype, STICKS.index_map, Format.plain("float16"))
    assert refusal(relayout(ROWS, halves), array, "here") == (
        Diagnostic(
            "argument-mismatch", subject="relayout: out", text="str", dtype="float16", shape=[4, 70, 32],
        )
    )


@pytest.mark.parametrize("rest", [slice(None), slice(None, None, 2)])
def test_invalid_output_arguments_are_refused(rest: slice) -> None:
    frozen = np.zeros((4, 6), np.float32)[rest].T
    frozen.flags.writeable = False
    rows = Layout.row_major(frozen.shape, "float32")

    with pytest.raises(CallError) as error:
        rows.unpack(np.ones(frozen.shape, np.float32), out=frozen)

    assert diagnostic(error.value) == Diagnostic("unsupported-memory", subject="unpack: out")
    assert (frozen == 0).all()
