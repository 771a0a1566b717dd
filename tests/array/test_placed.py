"""Arrays on devices agree with NumPy and use the layouts of the device."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
import tecomp.array as xp
from tecomp import dist, te
from tecomp.array.array_object import Array
from tecomp.array.kernels import device_buffer_of
from tecomp.errors import ArrayTypeError, ArrayValueError, DeviceMismatchError
from tecomp.layout import Layout
from tecomp.machine import find_description
from tecomp.ptensor import devices
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

DEVICES = ("stick128", "tensix_wh")
TOLERANCE = {"float32": 1e-4, "float16": 2e-2}


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def data(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def close(found: Array, expected: Any, dtype: str) -> None:
    assert found.dtype == np.dtype(dtype)
    limit = TOLERANCE[dtype]
    assert_close(np.asarray(found).astype("float64"), expected, limit, limit)


# --- rows of several sticks, or tiles ------------------------------------------------------------


@pytest.mark.exhaustive(most=1)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(3, 300), (2, 65, 3)])
def test_concat_along_rows_on_devices(device: str, shape: tuple[int, ...]) -> None:
    numbers = np.arange(np.prod(shape), dtype="int32").reshape(shape)
    x = xp.asarray(numbers, device=device)

    for axis in range(len(shape)):
        expected = np.diff(numbers**2, axis=axis)
        np.testing.assert_array_equal(np.asarray(xp.diff(x * x, axis=axis)), expected)
        both = xp.stack([x, x + 1], axis=axis)
        np.testing.assert_array_equal(
            np.asarray(both), np.stack([numbers, numbers + 1], axis=axis))


# --- chains -------------------------------------------------------------------------------------


def _gelu(np: Any, x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def _standardised(np: Any, x: Any) -> Any:
    mean = np.mean(x, axis=1, keepdims=True)
    return (x - mean) / np.std(x, axis=1, keepdims=True)


def _softmax(np: Any, x: Any) -> Any:
    powers = np.exp(x - np.max(x, axis=1, keepdims=True))
    return powers / np.sum(powers, axis=1, keepdims=True)


def _dense(np: Any, x: Any) -> Any:
    return (x @ x[:24, :].T) / 8 + x[0, :24]


def _stencil(np: Any, x: Any) -> Any:
    neighbors = x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]
    return x[1:-1, 1:-1] * 0.5 + 0.125 * neighbors


@pytest.mark.exhaustive(keep=1, most=3)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("chain", [_gelu, _standardised, _softmax, _dense, _stencil])
def test_chains_give_the_numbers_of_numpy(
    chain: Callable[[Any, Any], Any], dtype: str, device: str
) -> None:
    a = data((35, 70), dtype)
    found = chain(xp, xp.asarray(a, device=device))
    assert found.device == device
    close(found, chain(np, a.astype("float64")), dtype)
    assert isinstance(found.layout, Layout)
    assert found.layout.shape == found.shape


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("device", DEVICES)
def test_complex_numbers_are_pairs(device: str) -> None:
    start = (data((10, 12), "float32") + 1j * data((10, 12), "float32", 1)).astype("complex64") / 2
    c = z = xp.asarray(start, device=device)
    expected = start.astype("complex128")
    for _ in range(4):
        z = z * z + c
        expected = expected * expected + start
    assert z.dtype == xp.complex64
    assert_close(np.asarray(z), expected, 1e-3, 1e-4)
    assert z.layout.shape == (10, 12, 2)
    np.testing.assert_array_equal(np.asarray(c), start)


@pytest.mark.exhaustive(most=1)
@pytest.mark.parametrize("device", DEVICES)
def test_a_step_of_k_means(device: str) -> None:
    a = data((40, 3), "float32")
    points, centres = xp.asarray(a, device=device), xp.asarray(a[:4], device=device)
    far = xp.sum((points[:, None, :] - centres[None, :, :]) ** 2, axis=2)
    nearest = xp.argmin(far, axis=1)
    expected = ((a[:, None] - a[None, :4]) ** 2).sum(2).argmin(1)
    assert nearest.dtype == xp.int32
    np.testing.assert_array_equal(np.asarray(nearest), expected)
    membership = xp.astype(nearest[:, None] == xp.arange(4, device=device)[None, :], xp.float32)
    moved = (membership.T @ points) / xp.sum(membership, axis=0)[:, None]
    close(moved, np.stack([a[expected == k].mean(0) for k in range(4)]), "float32")


# --- memory -------------------------------------------------------------------------------------

SHAPES: list[tuple[int, ...]] = [
    (), (0,), (0, 5), (4, 0, 3), (1,), (3,), (130,), (1, 1), (2, 3, 5), (33, 65), (2, 1, 40, 3),
]


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", SHAPES)
def test_to_device_round_trip(shape: tuple[int, ...], device: str) -> None:
    every = xp.__array_namespace_info__().dtypes(device=device)
    for dtype in every if shape in ((), (33, 65)) else ("float32", "complex64"):
        a = (data(shape, "float32") * 9).astype("int32").astype(dtype)
        x = xp.asarray(a, device=device)
        layout = x.layout
        pairs = a[..., None].view(a.real.dtype) if a.dtype.kind == "c" else a
        assert layout.shape == pairs.shape
        memory = device_buffer_of(x._node).data
        assert memory.shape == layout.physical_shape
        np.testing.assert_array_equal(memory.reshape(-1)[layout.offsets()], pairs)
        back = x.to_device("cpu")
        assert (back.device, back.dtype, back.layout) == ("cpu", a.dtype, None)
        np.testing.assert_array_equal(np.asarray(back), a)
        np.testing.assert_array_equal(np.asarray(back.to_device(device)), a)


def test_results_stay_on_the_device() -> None:
    x = xp.asarray(data((33, 65), "float32"), device="stick128")
    xp.eval(x)
    xp.reset()
    y = x * x
    xp.eval(y)
    z = y + x
    xp.eval(z)
    found = xp.report().devices["stick128"]
    assert (found.programs, found.kernels, found.relayouts) == (2, 2, 0)
    assert (found.copies_from_host, found.copies_to_host) == (0, 0)
    assert found.cycles > 0
    assert found.bytes_moved == 5 * z.layout.nbytes


def test_elements_are_read_without_a_program() -> None:
    a = data((5, 7), "float32")
    x = xp.asarray(a, device="stick128")
    xp.reset()
    assert float(x[3, 4]) == float(a[3, 4])
    np.testing.assert_array_equal(np.asarray(x.T[1:, ::2]), a.T[1:, ::2])
    found = xp.report().devices["stick128"]
    assert (found.programs, found.copies_to_host) == (0, 1)


def test_assignment_goes_by_way_of_the_host() -> None:
    a = data((5, 7), "float32")
    x = xp.asarray(a, device="stick128")
    y = x + 0
    y[1:3, ::2] = 7.0
    y[0] = x[4]
    y[y > 6] = -1.0
    expected = a.copy()
    expected[1:3, ::2] = -1
    expected[0] = a[4]
    np.testing.assert_array_equal(np.asarray(y), expected)
    np.testing.assert_array_equal(np.asarray(x), a)
    np.testing.assert_array_equal(np.asarray(y + y), expected + expected)
    assert y.layout.shape == (5, 7)


def test_libraries_run_on_the_host_and_are_counted() -> None:
    a = data((4, 9), "float32")
    x = xp.asarray(a, device="tensix_wh")
    xp.reset()
    found = xp.sort(x, axis=1) + 1
    close(found, np.sort(a, 1) + 1, "float32")
    order = xp.argsort(x, axis=1)
    assert (order.device, order.dtype) == ("tensix_wh", xp.int32)
    report = xp.report().devices["tensix_wh"]
    assert report.libraries == (("numpy.argsort", 1), ("numpy.sort", 1))
    assert report.copies_from_host == 2  # the sorted array and the number
    assert str(report).splitlines()[-1] == "  1 host calls of numpy.sort"


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("device", DEVICES)
def test_elements_are_chosen_on_the_device(device: str) -> None:
    a = data((6, 9), "float32")
    x = xp.asarray(a, device=device)
    index = xp.asarray([3, 1, -1], device=device)
    assert index.dtype == xp.int32
    np.testing.assert_array_equal(np.asarray(x[index]), a[[3, 1, -1]])
    np.testing.assert_array_equal(np.asarray(x[x > 0]), a[a > 0])
    np.testing.assert_array_equal(np.asarray(xp.take(x, index, axis=1)), a[:, [3, 1, -1]])
    for one, other in zip(xp.nonzero(x > 0), np.nonzero(a > 0), strict=True):
        np.testing.assert_array_equal(np.asarray(one), other)


def test_functions_are_recorded_for_devices_too() -> None:
    a = data((6, 9), "float32")
    x, here = xp.asarray(a, device="stick128"), xp.asarray(a)
    step = xp.jit(lambda x, y: (x * 2 + 1, y - 1))
    for _ in range(2):
        one, other = step(x, here)
        assert (one.device, other.device) == ("stick128", "cpu")
        assert_close(np.asarray(one), a * 2 + 1, 1e-6)
        assert_close(np.asarray(other), a - 1, 1e-6)
    y, z = x + 1, here + 1
    xp.eval(y, z)
    np.testing.assert_array_equal(np.asarray(y), np.asarray(z))


# --- layouts ------------------------------------------------------------------------------------


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("device", DEVICES)
def test_layouts_are_chosen_and_changed(device: str) -> None:
    a = data((40, 70), "float32")
    x = xp.asarray(a, device=device)
    other = xp.restickify(x, 0)
    assert other.layout != x.layout
    np.testing.assert_array_equal(np.asarray(other), a)
    for result in (
        xp.relayout_to(x, other.layout), xp.asarray(a, device=device, layout=other.layout),
        xp.asarray(x, layout=other.layout),
        xp.empty((40, 70), dtype="float32", device=device, layout=other.layout) * 0 + x,
    ):
        np.testing.assert_array_equal(np.asarray(result), a)
    assert xp.relayout_to(x, other.layout).layout == other.layout
    assert xp.asarray(a, device=device, layout=other.layout).layout == other.layout
    assert xp.relayout_to(other, x.layout).layout == x.layout
    close(other * 2, a * 2.0, "float32")


def test_the_metadata_of_an_array_in_sticks() -> None:
    """The first program of the document on Spyre tensors, with the layout text of the document."""
    x = xp.asarray(data((5, 100, 150), "float16"), device="stick128")
    layout = x.device_tensor_layout()
    assert str(layout) == (
        "SpyreTensorLayout(device_size=[128, 3, 64, 64], dim_map =[1, 2, 0, 2], num_stick_dims=1, "
        "format=StickFormat.Dense, device_dtype=DataFormats.SEN169_FP16)"
    )
    stl = tecomp.StickLayout((5, 100, 150), "float16")
    assert x.layout == layout == stl
    assert xp.asarray(x, layout=stl).layout == stl
    assert (layout.nbytes, layout.num_elements * 2) == (3 * 2**20, 150_000)
    assert xp.ones(3).device_tensor_layout() is None

    X = te.placeholder((5, 100, 150), "float16", name="X")
    Y = te.compute(X.shape, lambda i, j, k: X[i, j, k] * 2, name="Y")
    program = tecomp.compile(Y, [X], "stick128", layouts={X: x.layout})
    assert str(program.layouts[X]) == (
        f"FixedTiledLayout(size=[5, 100, 150], stride=[15000, 150, 1], device_layout={stl})"
    )


@pytest.mark.exhaustive
def test_operations_derive_layouts_in_sticks() -> None:
    x = xp.asarray(data((5, 100, 150), "float16"), device="stick128")
    derived = [
        (xp.exp(x), [128, 3, 64, 64], [1, 2, 0, 2], "Dense", "SEN169_FP16"),
        (xp.sum(x, axis=0), [3, 128, 64], [1, 0, 1], "Dense", "SEN169_FP16"),
        (xp.sum(x, axis=2), [100, 5, 64], [1, 0, 1], "Sparse", "SEN169_FP16"),
        (xp.astype(x, xp.float32), [128, 5, 32, 32], [1, 2, 0, 2], "Dense", "IEEE_FP32"),
    ]
    for result, device_size, dim_map, form, device_dtype in derived:
        layout = result.device_tensor_layout()
        assert isinstance(layout, tecomp.StickLayout)
        assert (layout.shape, layout.device_size) == (result.shape, device_size)
        assert (layout.dim_map, layout.format.name) == (dim_map, form)
        assert layout.device_dtype.name == device_dtype


PRINTED = "SpyreTensorLayout(device_size={}, dim_map ={}, num_stick_dims=1, " + (
    "format=StickFormat.Dense, device_dtype=DataFormats.SEN169_FP16)"
)


@pytest.mark.exhaustive(most=1)
@pytest.mark.parametrize(
    ("arguments", "device_size", "dim_map"),
    [
        (((5, 100, 150), "float16"), [128, 3, 64, 64], [1, 2, 0, 2]),
        (((5, 100, 150), "float16", False), [100, 3, 5, 64], [1, 2, 0, 2]),
        (((5, 128, 192), "float16", [0, 1, 2]), [128, 3, 5, 64], [1, 2, 0, 2]),
        (((5, 100, 192), "float16", [1, 0, 2]), [5, 3, 100, 64], [0, 2, 1, 2]),
    ],
)
def test_programs_of_the_document_on_spyre_tensors(
    arguments: Any, device_size: list[int], dim_map: list[int]
) -> None:
    a = data((5, 100, 150), "float16")
    stl = tecomp.SpyreTensorLayout(*arguments)
    moved = xp.asarray(a).to_device("stick128", layout=stl)
    x = xp.asarray(a, device="stick128", layout=stl)
    for item in (moved, x, xp.relayout_to(xp.asarray(a, device="stick128"), stl)):
        assert str(item.device_tensor_layout()) == PRINTED.format(device_size, dim_map)
        assert item.layout == stl.with_size(a.shape)
        np.testing.assert_array_equal(np.asarray(item), a)

    new: dict[str, Any] = {"dtype": "float16", "device": "stick128", "layout": stl}
    results = [
        (xp.zeros(a.shape, **new), np.zeros_like(a)), (xp.ones(a.shape, **new), np.ones_like(a)),
        (xp.full(a.shape, 7, **new), np.full_like(a, 7)),
        (xp.full(a.shape, x, **new), a),
        (xp.zeros_like(x), np.zeros_like(a)), (xp.ones_like(x), np.ones_like(a)),
        (xp.full_like(x, 3), np.full_like(a, 3)), (xp.zeros_like(-x), np.zeros_like(a)),
        (xp.full_like(xp.asarray(a), 2, device="stick128", layout=stl), np.full_like(a, 2)),
        (x + 1, a + 1), (2 - x, 2 - a), (xp.abs(x * x - x), abs(a * a - a)),
        (xp.where(x > 0, x, 0), np.where(a > 0, a, 0).astype("float16")),
    ]
    for found, expected in results:
        assert found.layout == x.layout
        np.testing.assert_array_equal(np.asarray(found), expected)
    for empty in (
        xp.empty(a.shape, **new), xp.empty_like(x), xp.empty_strided(a.shape, (1, 5, 500), **new)
    ):
        assert (empty.shape, empty.layout) == (a.shape, x.layout)
    assert xp.zeros_like(x, dtype="float32").layout == tecomp.StickLayout(a.shape, "float32")


@pytest.mark.exhaustive(keep=1, most=3)
@pytest.mark.parametrize("seed", range(12))
def test_elementwise_results_keep_layouts(seed: int) -> None:
    """Padding and dimension order are random; the results agree with NumPy."""
    random = np.random.default_rng(seed)
    rank = int(random.integers(1, 4))
    shape = tuple(int(n) for n in random.integers(1, 80, rank))
    order = [int(k) for k in random.permutation(rank)]
    padded = [n + int(random.integers(0, 4)) for n in shape]
    padded[order[-1]] = -(-padded[order[-1]] // 32) * 32
    layout = tecomp.StickLayout(padded, "int32", order)
    a = random.integers(-9, 9, shape).astype("int32")
    x = xp.asarray(a, device="stick128", layout=layout)
    beside = xp.asarray(a, device="stick128", layout=layout)
    for found, expected in ((x * 2 + beside, a * 2 + a), (xp.maximum(x, -3), np.maximum(a, -3)), (-x, -a)):
        assert found.layout == layout.with_size(shape)
        np.testing.assert_array_equal(np.asarray(found), expected)
    row = xp.asarray(a[:1], device="stick128")  # possibly along another axis in its sticks
    np.testing.assert_array_equal(np.asarray(xp.maximum(x, row)), np.maximum(a, a[:1]))


def test_an_assignment_keeps_the_layout() -> None:
    a = data((9, 50), "float32")
    layout = tecomp.StickLayout((9, 64), "float32", [0, 1])
    x = xp.asarray(a, device="stick128", layout=layout)
    own, part = x.layout, x[2:4]
    assert own != xp.asarray(a, device="stick128").layout
    x[0, 3:7] = 2.0
    x[xp.asarray([5, 6], device="stick128")] = -1.0
    part[0] = 5.0
    a[0, 3:7], a[[5, 6]], a[2] = 2, -1, 5
    assert (x + 0).layout == own
    assert xp.zeros_like(x).layout == own
    assert x.layout == own
    x *= 2
    x[x > 0] = 1.0
    assert x.layout == own
    np.testing.assert_array_equal(np.asarray(x), np.where(2 * a > 0, 1, 2 * a).astype("float32"))


def test_creation_in_a_layout_rejects_other_layouts() -> None:
    x = xp.asarray(data((6, 50), "float32"), device="stick128")
    other = tecomp.StickLayout((6, 64), "float32", [0, 1], size=(6, 51))
    wrong = Diagnostic(
        "layout-shape-mismatch", reason="layouts: x is float32[6, 50], but its layout is for float32[6, 51]; pass a layout of its shape and dtype",
    )
    calls: list[tuple[str, Callable[[], Array], Diagnostic]] = [
        ("zeros", lambda: xp.zeros((6, 50), dtype="float32", device="stick128", layout=other), wrong),
        ("ones_like", lambda: xp.ones_like(x, layout=other), wrong),
        ("to_device", lambda: x.to_device("stick128", layout=other), wrong),
        ("empty_strided", lambda: xp.empty_strided(
            (6, 50), (50, 1), dtype="float32", device="stick128", layout=other), wrong),
        ("to_device", lambda: x.to_device("cpu", layout=x.layout),
         Diagnostic("array-value", device="cpu")),
        ("empty_strided", lambda: xp.empty_strided((6, 50), (50,)),
         Diagnostic("array-value", strides=(50,), shape=(6, 50))),
        ("empty_strided", lambda: xp.empty_strided((6, 50), (49, 1)),
         Diagnostic("array-value", shape=(6, 50), strides=(49, 1), limit=50)),
    ]
    for where, call, expected in calls:
        with pytest.raises(ArrayValueError) as caught:
            call()
        assert diagnostic(caught.value) == (
            Diagnostic(expected.kind, where=where, **expected.parameters)
        )


@pytest.mark.parametrize("strides", [(1, 2, 8), (12, 4, 1), (3, 1, 40), (100, 1, 7)])
def test_arrays_with_explicit_strides(strides: tuple[int, ...]) -> None:
    x = xp.empty_strided((2, 3, 4), strides, dtype="float64")
    a = data((2, 3, 4), "float64")
    x[...] = xp.asarray(a)
    assert np.array(x, copy=None).shape == (2, 3, 4)
    np.testing.assert_array_equal(np.asarray(x * 2), a * 2)


def test_explicit_strides_select_the_stick_axis() -> None:
    new: dict[str, Any] = {"dtype": "float32", "device": "stick128"}
    rows, columns = xp.empty_strided((40, 50), (50, 1), **new), xp.empty_strided((40, 50), (1, 40), **new)
    assert (rows.layout.dim_map, columns.layout.dim_map) == ([1, 0, 1], [0, 1, 0])
    assert xp.empty_strided((), (), **new).layout.device_size == [32]


def test_a_layout_of_ones_own() -> None:
    a = data((6, 50), "float32")
    layout = Layout.of((6, 50), "float32", lambda i, j: [i, j // 32, j % 32])
    x = xp.asarray(a, device="stick128", layout=layout)
    np.testing.assert_array_equal(np.asarray(x), a)
    assert x.layout.physical_shape == (6, 2, 32)
    close(x + x, a * 2.0, "float32")


# --- devices and types --------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_element_types_of_devices() -> None:
    info = xp.__array_namespace_info__()
    for device in DEVICES:
        assert {kind: str(dtype) for kind, dtype in info.default_dtypes(device=device).items()} == {
            "real floating": "float32", "complex floating": "complex64", "integral": "int32",
            "indexing": "int32",
        }
        assert not {"float64", "int64", "complex128"} & info.dtypes(device=device).keys()
        results = [
            xp.zeros(2, device=device), xp.arange(3, device=device), xp.eye(2, device=device),
            xp.linspace(0, 1, 3, device=device), xp.full(2, 7, device=device),
            xp.asarray([1.5, 2], device=device), xp.asarray(3, device=device),
            xp.asarray([1j], device=device), xp.fft.fftfreq(4, device=device),
        ]
        assert [str(x.dtype) for x in results] == [
            "float32", "int32", "float32", "float32", "int32", "float32", "int32", "complex64",
            "float32",
        ]
        for x in results:
            assert x.device == device
            np.testing.assert_array_equal(np.asarray(x + 0), np.asarray(x))
    assert str(info.default_dtypes()["real floating"]) == "float64"


def test_a_target_is_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_given", {})
    target = tecomp.Target.load("stick128")
    assert xp.zeros(2, device=target).device == "stick128"
    text = find_description("stick128").read_text().replace("stick128", "stick_of_my_own", 1)
    (tmp_path / "own.toml").write_text(text)
    own = tecomp.Target.load(tmp_path / "own.toml")
    x = xp.asarray([1.0, 2.0], device=own)
    assert x.device == "stick_of_my_own"
    np.testing.assert_array_equal(np.asarray(x + x), [2, 4])
    assert xp.ones(2, device="stick_of_my_own").device == "stick_of_my_own"
    with pytest.raises(DeviceMismatchError):
        x + xp.ones(2, device="stick128")


REFUSALS: list[tuple[type[Exception], Callable[[], object], Diagnostic]] = [
    (
        ArrayTypeError, lambda: xp.asarray(np.zeros(2), device="stick128"),
        Diagnostic(
            "array-type", where="asarray", subject="the array is", dtype="float64",
            device="stick128",
            known="bool, int8, int16, int32, uint8, float16, bfloat16, float32, complex64",
            remedy="xp.astype(x, xp.float32) or dtype=xp.float32",
        ),
    ),
    (
        ArrayTypeError, lambda: xp.zeros(2, dtype="int64").to_device("tensix_wh"),
        Diagnostic(
            "array-type", where="to_device", subject="the array is", dtype="int64",
            device="tensix_wh",
            known="bool, int32, uint8, uint16, uint32, float16, bfloat16, float32, complex64",
            remedy="xp.astype(x, xp.int32) or dtype=xp.int32",
        ),
    ),
    (
        ArrayTypeError, lambda: xp.ones(2, dtype="float64", device="stick128"),
        Diagnostic(
            "array-type", where="ones", subject="the array is", dtype="float64", device="stick128",
            known="bool, int8, int16, int32, uint8, float16, bfloat16, float32, complex64",
            remedy="xp.astype(x, xp.float32) or dtype=xp.float32",
        ),
    ),
    (
        ArrayTypeError,
        lambda: xp.arange(2, device="stick128") + xp.ones(2, device="stick128"),
        Diagnostic(
            "array-type", where="add", subject="the result is", dtype="float64", device="stick128",
            known="bool, int8, int16, int32, uint8, float16, bfloat16, float32, complex64",
            remedy="xp.astype(x, xp.float32) or dtype=xp.float32",
        ),
    ),
    (
        ArrayValueError, lambda: xp.zeros(2, device="stick129"),
        Diagnostic(
            "unknown-choice", where="zeros", device="stick129",
            known=", ".join(tecomp.list_targets()),
        ),
    ),
    (
        ArrayValueError, lambda: xp.asarray([1.0], device="stick128", copy=False),
        Diagnostic("copy-needed", where="asarray", device="stick128"),
    ),
    (
        ArrayValueError, lambda: xp.asarray([2**40], device="stick128"),
        Diagnostic(
            "array-value", where="asarray",
            reason="Python integer 1099511627776 out of bounds for int32",
        ),
    ),
    (
        ArrayTypeError, lambda: xp.asarray([1.0], device="stick128", layout="rows"),
        Diagnostic("array-type", where="asarray", class_="str"),
    ),
    (
        ArrayValueError,
        lambda: xp.asarray([1.0], device="stick128", layout=Layout.row_major((2,), "float32")),
        Diagnostic(
            "layout-shape-mismatch", where="asarray",
            reason="layouts: x is float32[1], but its layout is for float32[2]; pass a layout of its shape and dtype",
        ),
    ),
    (
        ArrayValueError, lambda: xp.empty(2, layout=Layout.row_major((2,), "float64")),
        Diagnostic("array-value", where="empty", device="cpu"),
    ),
    (
        ArrayValueError, lambda: xp.restickify(xp.ones((2, 2)), 0),
        Diagnostic(
            "array-value", where="restickify", type="ptensor<2x2xfloat64, device='cpu'>",
            device="cpu",
        ),
    ),
]


@pytest.mark.parametrize(("kind", "call", "expected"), REFUSALS)
def test_refusals(kind: Any, call: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(kind) as error:
        call()
    assert diagnostic(error.value) == expected


def test_explain_describes_device_kernels() -> None:
    x = xp.asarray(data((33, 65), "float32"), device="stick128")
    explanation = xp.explain(xp.sum(x * x, axis=1))
    assert "device_region('stick128')" in str(explanation.lowered)
    assert "cycles" in explanation.report
    assert len(explanation.loops) == len(explanation.schedules) > 0
    y = x + x
    found = xp.report(y).devices["stick128"]
    assert (found.programs, found.kernels, found.copies_from_host) == (1, 1, 0)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))],
                         ids=["copy", "deepcopy", "pickle"])
@pytest.mark.parametrize("device", DEVICES)
def test_copies_keep_the_layout(device: str, way: Callable[[Array], Array]) -> None:
    x = xp.asarray(data((70, 100), "float32"), device=device)
    turned = xp.restickify(x, 0)
    assert turned.layout != x.layout

    for item in (x, turned):
        result = way(item)
        assert (result.layout, result.device) == (item.layout, device)
        np.testing.assert_array_equal(np.asarray(result), np.asarray(x))


def test_distributed_layouts_describe_shards() -> None:
    source, team = data((6, 100), "float32"), dist.world()
    x = xp.asarray(source, device="stick128", team=team)

    assert x.layout == x.to_local().layout
    np.testing.assert_array_equal(np.asarray(pickle.loads(pickle.dumps(x))), source)
    np.testing.assert_array_equal(np.asarray(x[1:] + x[:-1]), source[1:] + source[:-1])
    calls: list[tuple[Callable[[], Array], str]] = [
        (lambda: xp.asarray(source, device="stick128", layout=x.layout, team=team), "asarray"),
        (lambda: xp.empty((6, 100), dtype="float32", device="stick128", layout=x.layout, team=team),
         "empty"),
    ]
    for call, where in calls:
        with pytest.raises(ArrayValueError) as caught:
            call()
        assert diagnostic(caught.value) == (
            Diagnostic("array-value", where=where)
        )
    with pytest.raises(ArrayValueError) as caught:
        xp.restickify(x, 0)
    assert diagnostic(caught.value) == (
        Diagnostic("array-value", where="restickify", type=str(x._node.type))
    )


@pytest.mark.exhaustive
def test_arrays_in_shards() -> None:
    """Arrays in scratchpads keep their core layout, and relayouts change it."""
    a = data((256, 256), "float32")
    near = tecomp.ShardLayout(a.shape, "float32", grid=(8, 8), tile=(32, 32))
    other = near.replace(grid=(4, 2))
    x = xp.asarray(a, device="tensix_wh", layout=near)
    d = xp.asarray(a, device="tensix_wh")

    y = xp.exp(x * 0.5) + x

    assert x.layout == x.device_tensor_layout() == near
    assert y.layout == xp.zeros_like(x).layout == near
    assert_close(y.to_device("cpu"), np.exp(a * 0.5) + a, rtol=1e-4, atol=1e-4)
    for result, layout, want in (
        (xp.relayout_to(y, other), other, np.exp(a * 0.5) + a),
        (xp.relayout_to(d, near), near, a), (xp.relayout_to(x, d.layout), d.layout, a),
        (d.to_device("tensix_wh", layout=other), other, a),
        (xp.asarray(x, layout=other), other, a),
        (x @ d, d.layout, a @ a), (x.T + d, d.layout, a.T + a),
    ):
        assert result.layout == layout
        assert_close(result.to_device("cpu"), want, rtol=1e-3, atol=1e-3)


def test_element_wise_operations_on_shards_stay_in_scratchpads() -> None:
    a = data((256, 256), "float32")
    near = tecomp.ShardLayout(a.shape, "float32", grid=(8, 8), tile=(32, 32))
    x = xp.asarray(a, device="tensix_wh", layout=near)

    y = x + x
    xp.eval(y)

    program = device_buffer_of(y._node).program
    scopes = {param.scope for param in program.kernels[0].kernel.lowered.final.params}
    assert (len(program.kernels), scopes) == (1, {"l1"})
    assert program.report().kernels[0].bound_by == "l1 read"


@pytest.mark.parametrize(("grid", "message"), [
    ((9, 8),
     Diagnostic(
         "layout-requirement", where="asarray",
         reason="layouts: the shards of x in `l1` have 29 x 32 elements, but cores compute whole tiles of 32 x 32; use a grid whose shards are whole tiles",
     )),
    ((128, 1),
     Diagnostic(
         "layout-requirement", where="asarray",
         reason="layouts: the shards of x in `l1` have 2 x 256 elements, but cores compute whole tiles of 32 x 32; use a grid whose shards are whole tiles",
     )),
])
def test_shards_of_arrays_that_cannot_be(grid: tuple[int, int], message: Diagnostic) -> None:
    a = data((256, 256), "float32")
    near = tecomp.ShardLayout(a.shape, "float32", grid=grid, tile=(32, 32))

    with pytest.raises(ArrayValueError) as caught:
        xp.asarray(a, device="tensix_wh", layout=near)

    assert diagnostic(caught.value) == message
