"""Stick layouts beyond the documented examples: arrangements, strides, ranks and errors."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import LayoutError
from tecomp.ir import SCALARS
from tecomp.layout import DataFormats, Dense, ElementArrangement, Sparse, StickLayout, name_of_type
from tests.messages import Diagnostic, diagnostic

Golden = Callable[[object], None]
SEN169 = DataFormats.SEN169_FP16


def test_conversion_to_float32_leaves_two_sticks_by_turns() -> None:
    """Host column 64 p + 8 g + 4 s + e is in stick 2 p + s at lane 4 g + e."""
    layout = StickLayout(
        (3, 256), "float32", pad_all_dims=False, arrangement=ElementArrangement.DL16_TO_FP32
    )
    pair, g, s, e = np.indices((4, 8, 2, 4)).reshape(4, -1)
    expected = np.empty(256, np.int64)
    expected[64 * pair + 8 * g + 4 * s + e] = (2 * pair + s) * 3 * 32 + 4 * g + e

    assert np.array_equal(layout.offsets()[0], expected)
    assert str(layout) == (
        "SpyreTensorLayout(device_size=[8, 3, 32], dim_map =[1, 0, 1], num_stick_dims=1, "
        "format=StickFormat.Dense, device_dtype=DataFormats.IEEE_FP32, "
        "element_arrangement=ElementArrangement.DL16_TO_FP32)"
    )


def test_conversion_to_dlfloat16_leaves_halves_by_turns() -> None:
    """Host column 64 k + 32 h + 4 g + e is in stick k at lane 8 g + 4 h + e."""
    layout = StickLayout(
        (3, 128), "float16", pad_all_dims=False, arrangement=ElementArrangement.FP32_TO_DL16
    )
    k, h, g, e = np.indices((2, 2, 8, 4)).reshape(4, -1)
    expected = np.empty(128, np.int64)
    expected[64 * k + 32 * h + 4 * g + e] = k * 3 * 64 + 8 * g + 4 * h + e

    assert np.array_equal(layout.offsets()[0], expected)
    assert layout.element((1, 2, 12)) == (2, 64 + 32 + 4)


def test_dim_order_changes_equality() -> None:
    def layout(arrangement: ElementArrangement) -> StickLayout:
        return StickLayout((3, 128), "float32", arrangement=arrangement)

    assert layout(ElementArrangement.STANDARD) == StickLayout((3, 128), "float32")
    assert layout(ElementArrangement.STANDARD) != layout(ElementArrangement.DL16_TO_FP32)


@pytest.mark.parametrize("rank", range(9))
def test_every_element_has_a_place_at_every_rank(rank: int) -> None:
    size = (2, 3, 1, 2, 3, 1, 2, 5)[8 - rank :]
    layout = StickLayout(size, "float32", pad_all_dims=False)

    offsets = layout.offsets().reshape(-1)

    assert len(set(offsets.tolist())) == layout.num_elements
    assert offsets.max() < layout.num_places
    assert layout.host_dim_order() == list(range(rank))


@pytest.mark.exhaustive(keep=47)
@pytest.mark.parametrize("seed", range(60))
def test_sticks_of_several_dimensions(seed: int) -> None:
    """For random N, k and extents, N + k loops give each offset of the documented rule."""
    random = np.random.default_rng(seed)
    rank = int(random.integers(1, 5))
    count = int(random.integers(1, min(rank, 3) + 1))
    shape = tuple(int(n) for n in random.integers(1, 21, rank))
    outer, inner = random.permutation(rank), random.permutation(rank)[:count]
    lanes = _factors(64, count, random)
    tiled = dict(zip(inner.tolist(), lanes, strict=True))
    device = [-(-shape[dim] // tiled.get(dim, 1)) + int(random.integers(0, 2)) for dim in outer]
    layout = StickLayout(
        [*device, *lanes], [*outer, *inner], count, Dense, SEN169, size=shape)

    strides = np.cumprod([1, *lanes[::-1], *device[::-1]])[-2::-1]
    axes = np.indices(shape)
    parts = [
        *(axes[dim] // tiled.get(dim, 1) for dim in outer), *(axes[dim] % tiled[dim] for dim in inner)
    ]
    expected = sum(part * stride for part, stride in zip(parts, strides, strict=True))
    assert np.array_equal(layout.offsets(), expected)
    assert layout.num_stick_dims == count
    assert layout.nbytes == 128 * int(np.prod(device))
    host = np.arange(np.prod(shape)).reshape(shape)
    found = np.full(int(np.prod(layout.device_size)), -1)
    for nest in layout.dma():
        assert len(nest.ranges) <= rank + count
        at = np.indices(nest.ranges).reshape(len(nest.ranges), -1)
        found[nest.device_offset + nest.device_strides @ at] = (
            host.reshape(-1)[nest.host_offset + nest.host_strides @ at])
    assert np.array_equal(found[layout.offsets()], host)
    assert (found >= 0).sum() == host.size


def _factors(lanes: int, count: int, random: np.random.Generator) -> list[int]:
    """Return `count` random powers of two whose product is the number of lanes."""
    bits = lanes.bit_length() - 1
    cuts = sorted(random.integers(0, bits + 1, count - 1).tolist())
    return [2 ** (b - a) for a, b in zip([0, *cuts], [*cuts, bits], strict=True)]


def test_the_strides_of_blocks() -> None:
    blocks = StickLayout([4, 32, 8, 8], [0, 1, 0, 1], 2, Dense, SEN169, size=(30, 250))

    assert blocks.stride_map() == [2000, 8, 250, 1]
    assert blocks.device_strides == [2048, 64, 8, 1]
    assert str(blocks.dma()[0]) == "((3, 31, 8, 8), (2048, 64, 8, 1), (2000, 8, 250, 1))"
    assert blocks == blocks.with_size((30, 250)) != blocks.with_size((31, 250))
    assert "num_stick_dims=2" in str(blocks)


@pytest.mark.parametrize(
    ("dtype", "count", "block"),
    [("float16", 2, (8, 8)), ("float32", 2, (4, 8)), ("int8", 2, (8, 16)), ("float16", 3, (4, 4, 4))],
)
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_blocks_by_order(order: list[int], dtype: str, count: int, block: tuple[int, ...]) -> None:
    padded = (16, 64, 128)
    layout = StickLayout(padded, dtype, order, num_stick_dims=count, size=(10, 60, 100))
    in_stick = dict(zip(order[-count:], block, strict=True))
    outer = [*order[1:], order[0]]

    assert layout.device_size == [*(padded[d] // in_stick.get(d, 1) for d in outer), *block]
    assert layout.dim_map == [*outer, *order[-count:]]
    assert (layout.num_stick_dims, layout.host_dim_order()) == (count, order)
    for index in ((0, 0, 0), (9, 59, 99), (3, 17, 42)):
        expected = [index[d] // in_stick.get(d, 1) for d in outer]
        assert layout.place(index) == (*expected, *(index[d] % in_stick[d] for d in order[-count:]))


@pytest.mark.parametrize(
    ("pad_all_dims", "device_size"), [(True, [8, 16, 64, 8, 8]), (False, [8, 13, 5, 8, 8])]
)
def test_blocks_by_size(pad_all_dims: bool, device_size: list[int]) -> None:
    layout = StickLayout((5, 60, 100), "float16", pad_all_dims, num_stick_dims=2)

    assert layout.device_size == device_size
    assert layout.padding_count == np.prod(device_size) - 5 * 60 * 100


@pytest.mark.parametrize(
    ("size", "device_size"),
    [((0,), [0, 64]), ((0, 3), [1, 0, 64]), ((3, 0), [0, 64, 64]), ((2, 0, 3), [0, 1, 64, 64])],
)
def test_no_elements(size: tuple[int, ...], device_size: list[int]) -> None:
    layout = StickLayout(size, "float16")

    assert layout.device_size == device_size
    assert layout.nbytes == 0


def test_fields_give_the_layout_back() -> None:
    first = StickLayout((5, 128, 192), "float16", [0, 1, 2])
    repeated = StickLayout(
        device_size=first.device_size,
        dim_map=first.dim_map,
        num_stick_dims=first.num_stick_dims,
        format=first.format,
        device_dtype=first.device_dtype,
    )

    assert repeated == first
    assert hash(repeated) == hash(first)


def test_equality_looks_at_every_field() -> None:
    layouts = [
        StickLayout((64, 64), "float16"),
        StickLayout((64, 64), "bfloat16"),
        StickLayout((64, 64), "bool"),
        StickLayout((64, 64), "float16", [1, 0]),
        StickLayout((64, 64), "float16", [0, 1], Sparse),
        StickLayout((64, 64), "float16", [0, 1], size=(64, 63)),
        StickLayout((64, 64), "float16", stick_bytes=64),
        StickLayout((64, 64), "float16", pad_value=0),
    ]

    assert len(set(layouts)) == len(layouts)
    assert layouts[0] == StickLayout((64, 64), "float16", pad_all_dims=False)


def test_stick_bytes_are_an_argument() -> None:
    layout = StickLayout((5, 100, 150), "float16", False, stick_bytes=256)

    assert layout.elems_in_stick == 128
    assert layout.device_size == [100, 2, 5, 128]
    assert layout.nbytes == 100 * 2 * 5 * 256


def test_strides_of_a_transposed_host() -> None:
    layout = StickLayout((5, 100, 150), "float16")

    assert layout.stride_map() == [150, 64, 15000, 1]
    assert layout.stride_map((1, 5, 500)) == [5, 64 * 500, 1, 500]
    assert StickLayout((), "float16").stride_map() == [-1]
    assert StickLayout((1, 5, 70), "float16").stride_map() == [70, 64, -1, 1]


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (np.float16, "float16"), (np.dtype("int8"), "int8"), ("torch.bfloat16", "bfloat16"),
        (ml_dtypes.bfloat16, "bfloat16"), (bool, "bool"),
        (ml_dtypes.float8_e4m3fn, "float8_e4m3fn"), (te.placeholder((1,)).dtype, "float32"),
        (list, "object"),
    ],
)
def test_names_of_types(dtype: object, name: str) -> None:
    assert name_of_type(dtype) == name


def test_a_schedule_takes_sticks() -> None:
    layout = StickLayout((5, 100), "float32", pad_value=0)
    A = te.placeholder((5, 100), name="A")
    B = te.compute((5, 100), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B)
    s[B].transform_layout(layout)
    a = np.random.default_rng(0).standard_normal((5, 100), np.float32)
    b = np.empty(layout.device_size, np.float32)

    tecomp.build(s, [A, B])(a, b)

    expected = np.zeros((32, 128), np.float32)
    expected[:5, :100] = a + 1
    assert np.array_equal(b, expected.reshape(32, 4, 32).transpose(1, 0, 2))


@pytest.mark.parametrize(
    "layout",
    [
        StickLayout((5, 100, 150), "float16"),
        StickLayout((3, 5), "float32", [0, 1], Sparse, stick_bytes=16),
        StickLayout((3, 8), "int32", [0, 1], size=(3, 7), stick_bytes=16),
    ],
    ids=["document", "sparse", "few"],
)
def test_described(layout: StickLayout, golden: Golden) -> None:
    golden(f"{layout}\n{layout.describe()}")


def test_questions_are_quick() -> None:
    """Layout queries take under 2 ms in the best of several rounds."""
    rounds = []
    for n in range(7):
        start = time.perf_counter()
        layout = StickLayout((5, 100 + n, 150), "float16")
        assert layout.padding_count == 128 * 192 * 64 - 5 * (100 + n) * 150
        assert layout.element((0, 0, 0, 0)) == (0, 0, 0)
        rounds.append(time.perf_counter() - start)

    assert min(rounds) < 0.02


def made(*args: Any, **fields: Any) -> Callable[[], StickLayout]:
    return lambda: StickLayout(*args, **fields)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            made((5, -3, 64), "float16"),
            Diagnostic("invalid-type", extent=-3, shape=[5, -3, 64]),
        ),
        (
            made((5, 3), "float64"),
            Diagnostic(
                "sticks", name="float64",
                of_host="float16, bfloat16, float32, int32, int64, int16, int8, bool, float8_e4m3fn, float8_e5m2fnuz, uint8, quint8",
            ),
        ),
        (
            made((5, 64), "float16", [0, 0]),
            Diagnostic("sticks", order=[0, 0], order_count=2, last=1),
        ),
        (
            made((5, 64), "float16", [0, 2]),
            Diagnostic("sticks", order=[0, 2], order_count=2, last=1),
        ),
        (
            made((5, 64), "float16", [0, 1], size=(5, 65)),
            Diagnostic("sticks", padded=[5, 64], padded_extent=64, dim=1, extent=65, shape=[5, 65]),
        ),
        (
            made((5, 64), "float16", [0, 1], size=(5, 6, 7)),
            Diagnostic("sticks", padded=[5, 64], padded_count=2, shape=[5, 6, 7], rank=3),
        ),
        (
            made((5, 64), "float16", [0, 1], "Dense"),
            Diagnostic("sticks", format="Dense"),
        ),
        (
            made((5, 64), "float16", stick_bytes=127),
            Diagnostic("sticks", stick_bytes=127, device_dtype="DataFormats.SEN169_FP16", bits=16),
        ),
        (
            made([2, 5, 64], [1, 0], 1, Dense, SEN169),
            Diagnostic("sticks", text="device_size=[2, 5, 64], dim_map=[1, 0]"),
        ),
        (
            made([2, 5, 64], [0, 1, 2], 1, Dense, SEN169),
            Diagnostic(
                "sticks", text="device_size=[2, 5, 64], dim_map=[0, 1, 2]",
                times="the last, of which the sticks are, twice",
            ),
        ),
        (
            made([2, 5, 32], [1, 0, 1], 1, Dense, SEN169),
            Diagnostic(
                "sticks", text="device_size=[2, 5, 32], dim_map=[1, 0, 1]",
                last="the last device dimension is", lanes=64,
            ),
        ),
        (
            lambda: StickLayout([2, 5, 64], [1, 0, 1], 2, Dense, SEN169),
            Diagnostic(
                "sticks", text="device_size=[2, 5, 64], dim_map=[1, 0, 1]",
                times="the last 2, of which the sticks are, twice",
            ),
        ),
        (
            lambda: StickLayout([2, 5, 64], [1, 0, 1], 0, Dense, SEN169),
            Diagnostic("sticks", num_stick_dims=0),
        ),
        (
            lambda: StickLayout([2, 5, 8, 8], [0, 1, 0, 0], 2, Dense, SEN169),
            Diagnostic("sticks", text="device_size=[2, 5, 8, 8], dim_map=[0, 1, 0, 0]", count=2),
        ),
        (
            lambda: StickLayout([2, 5, 8, 4], [0, 1, 0, 1], 2, Dense, SEN169),
            Diagnostic(
                "sticks", text="device_size=[2, 5, 8, 4], dim_map=[0, 1, 0, 1]",
                last="the product of the last 2 device dimensions must be", lanes=64,
            ),
        ),
        (
            lambda: StickLayout([2, 5, 8, 8], [0, 1, 0, 1], 2, Sparse, SEN169),
            Diagnostic("sticks", count=2),
        ),
        (
            lambda: StickLayout(
                [2, 5, 8, 8], [0, 1, 0, 1], 2, Dense, SEN169,
                arrangement=ElementArrangement.FP32_TO_DL16,
            ),
            Diagnostic("sticks", arrangement="ElementArrangement.FP32_TO_DL16", count=2),
        ),
        (
            lambda: StickLayout([2, 5, 8, 8], [0, 1, 0, 1], 2, Dense, SEN169).host_dim_order(),
            Diagnostic("sticks", dim_map=[0, 1, 0, 1], order=[1, 0], dim_map_of=[0, 1, 1, 0]),
        ),
        (
            lambda: StickLayout([2, 5, 4, 16], [1, 0, 0, 1], 2, Dense, SEN169).host_dim_order(),
            Diagnostic("sticks", lanes=[4, 16], block=[8, 8]),
        ),
        (
            lambda: StickLayout((8, 64), "float16", num_stick_dims=3),
            Diagnostic("sticks", count=3, rank=2, most=2),
        ),
        (
            lambda: StickLayout((8, 60), "float16", [0, 1], num_stick_dims=2),
            Diagnostic("sticks", last=60, padded=[8, 60], lanes=8, round_up=64),
        ),
        (
            lambda: StickLayout((8, 64), "float16", [0, 1], Sparse, num_stick_dims=2),
            Diagnostic("sticks", count=2),
        ),
        (
            lambda: StickLayout((5, 128), "float16", [0, 1]).with_size((5, 129)),
            Diagnostic("sticks", padded=[5, 128], padded_extent=128, dim=1, extent=129, shape=[5, 129]),
        ),
        (
            made([2, 5, 64], [1, 0, 1], 1, Dense, "SEN169_FP16"),
            Diagnostic("sticks", device_dtype="SEN169_FP16"),
        ),
        (
            made([2, 5, 64], [1, 0, 1], 1, Dense, DataFormats.SENINT24),
            Diagnostic(
                "sticks", subject="DataFormats.SENINT24",
                stored="SEN169_FP16, BFLOAT16, IEEE_FP32, IEEE_INT32, SENINT16, SENINT8, SENUINT32, SEN143_FP8, SEN152_FP8, SENINT4, SENINT2, SENUINT2",
            ),
        ),
        (
            made([2, 5, 64], [1, 0, 1], 1, Dense, SEN169, dtype="float7"),
            Diagnostic(
                "dtype",
                reason="`float7` is not a valid dtype; valid dtypes are " + ", ".join(SCALARS),
            ),
        ),
        (
            made((3, 32), "float32", arrangement=ElementArrangement.DL16_TO_FP32),
            Diagnostic("sticks", arrangement="ElementArrangement.DL16_TO_FP32", tiles=1, limit=64),
        ),
        (
            made((3, 6), "float32", [0, 1], Sparse, arrangement=ElementArrangement.DL16_TO_FP32),
            Diagnostic("sticks", arrangement="ElementArrangement.DL16_TO_FP32", lanes=32),
        ),
        (
            made((3, 4), "float32", stick_bytes=16, arrangement=ElementArrangement.FP32_TO_DL16),
            Diagnostic("sticks", arrangement="ElementArrangement.FP32_TO_DL16", lanes=4),
        ),
        (
            lambda: StickLayout((3, 64), "float16").stride_map((64,)),
            Diagnostic("sticks", strides=[64], stride_count=1, rank=2, shape=[3, 64]),
        ),
        (
            lambda: StickLayout(
                (3, 64), "float16", arrangement=ElementArrangement.FP32_TO_DL16
            ).stride_map(),
            Diagnostic("sticks", arrangement="ElementArrangement.FP32_TO_DL16"),
        ),
        (
            lambda: StickLayout(
                [2, 1, 3, 5, 64], [0, 3, 1, 2, 3], 1, Dense, SEN169
            ).host_dim_order(),
            Diagnostic(
                "sticks", dim_map=[0, 3, 1, 2, 3], order=[2, 0, 3, 1], dim_map_of=[0, 3, 1, 2, 1],
            ),
        ),
    ],
)
def test_invalid_arguments_are_rejected(make: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(LayoutError) as error:
        make()

    assert diagnostic(error.value) == expected
