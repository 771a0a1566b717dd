"""Creation functions agree with NumPy."""

from __future__ import annotations

import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp import dist
from tecomp.array import Array
from tecomp.array.statistics import counters
from tecomp.errors import ArrayTypeError, ArrayValueError, DeviceMismatchError
from tecomp.ptensor import ALL, COMPLEX, FLOATING, REAL, Arange, Linspace, numpy_dtype
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

DTYPES = [numpy_dtype(name) for name in ALL]


def same(actual: Array, numpys: Any) -> None:
    expected = np.asarray(numpys)
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(np.asarray(actual), expected)


def refused(error: type[Exception], call: Callable[[], object]) -> Diagnostic:
    with pytest.raises(error) as caught:
        call()
    return diagnostic(caught.value)


@pytest.mark.parametrize("obj", [
    True, 3, 2.5, 1 - 2j, [], [1, 2], [[1, 2.5], [3, 4]], [[True], [False]], (1, (2)), [[], []],
    [1 + 1j, 2], np.float32(3), [np.int8(3), 4], -(2**63), [2**63],
], ids=repr)
def test_numbers_and_sequences(obj: object) -> None:
    same(xp.asarray(obj), np.asarray(obj))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_buffers_of_each_type(dtype: np.dtype[Any]) -> None:
    data = np.array([0, 1, 2, 1, 0, 2]).astype(dtype).reshape(2, 3)
    for view in (data, data.T, data[::-1, ::2], data[:0], data[1, 2], data[None, :, 1]):
        same(xp.asarray(view), view)
        same(xp.asarray(view, copy=True), view)


@pytest.mark.exhaustive(keep=7)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_constants_of_each_type(dtype: np.dtype[Any]) -> None:
    same(xp.zeros((2, 3), dtype=dtype), np.zeros((2, 3), dtype))
    same(xp.ones(4, dtype=dtype), np.ones(4, dtype))
    same(xp.full((), 2, dtype=dtype), np.full((), 2, dtype))
    same(xp.eye(3, dtype=dtype), np.eye(3, dtype=dtype))
    assert xp.empty([2, 0], dtype=dtype).shape == (2, 0)
    x = xp.ones((2, 2), dtype=dtype)
    same(xp.zeros_like(x), np.zeros((2, 2), dtype))
    same(xp.ones_like(x, dtype=np.int8), np.ones((2, 2), "int8"))
    same(xp.full_like(x, 1), np.ones((2, 2), dtype))
    assert xp.empty_like(x).dtype == dtype
    same(xp.tril(x), np.tril(np.ones((2, 2), dtype)))


@pytest.mark.parametrize("arguments", [
    (5,), (0,), (-3,), (1, 10, 3), (10, 1, -4), (2.5,), (0, 1, 0.25), (1, -1, -0.75), (-5, 5),
    (0.1, 0.7, 0.1), (3, 3, 1), (0, 10, 100),
], ids=str)
def test_arange(arguments: tuple[float, ...]) -> None:
    actual, numpys = xp.arange(*arguments), np.arange(*arguments)
    assert (actual.shape, actual.dtype) == (numpys.shape, numpys.dtype)
    assert_close(np.asarray(actual), numpys, rtol=1e-14, atol=1e-15)


def test_arange_of_other_types() -> None:
    for dtype in REAL:
        same(xp.arange(1, 9, 3, dtype=numpy_dtype(dtype)), np.array([1, 4, 7], numpy_dtype(dtype)))
    most = 2**64 - 1
    same(xp.arange(most, most - 3, -1, dtype=np.uint64), np.array([most, most - 1, most - 2], "u8"))
    assert xp.arange(0, 5).dtype == np.int64


@pytest.mark.parametrize(("rows", "columns", "k"), [
    (3, None, 0), (3, 4, 1), (4, 3, -1), (2, 2, 5), (2, 3, -7), (0, 3, 0), (3, 0, 0),
])
def test_eye(rows: int, columns: int | None, k: int) -> None:
    same(xp.eye(rows, columns, k=k), np.eye(rows, columns, k=k))


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize(("start", "stop", "num"), [
    (0, 1, 5), (3, -2, 4), (1, 2, 1), (1, 2, 0), (0, 0, 3), (1j, 2 - 1j, 4), (0.1, 0.7, 7),
    (1e300, -1e300, 3),
])
def test_linspace(start: complex, stop: complex, num: int, endpoint: bool) -> None:
    actual = xp.linspace(start, stop, num, endpoint=endpoint)
    numpys = np.linspace(start, stop, num, endpoint=endpoint)
    assert (actual.shape, actual.dtype) == (numpys.shape, numpys.dtype)
    assert_close(np.asarray(actual), numpys, rtol=1e-14, atol=1e-15)
    for dtype in [*FLOATING] if isinstance(start + stop, int | float) else [*COMPLEX]:
        typed = numpy_dtype(dtype)
        result = np.asarray(xp.linspace(start, stop, num, dtype=typed, endpoint=endpoint))
        assert result.dtype == typed
        if num > 1 and endpoint:
            with np.errstate(over="ignore"):
                assert result[-1] == np.array(stop).astype(typed)


@pytest.mark.parametrize("k", [-4, -1, 0, 1, 4])
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 2), (1, 1), (0, 3)])
def test_triangles(shape: tuple[int, ...], k: int) -> None:
    data = np.arange(1, 1 + np.prod(shape)).reshape(shape)
    same(xp.tril(xp.asarray(data), k=k), np.tril(data, k))
    same(xp.triu(xp.asarray(data + 1j), k=k), np.triu(data + 1j, k))


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_meshgrid(indexing: Any) -> None:
    rows = [np.arange(2.0), np.arange(3), np.arange(4, dtype="int8")]
    for count in range(4):
        actual = xp.meshgrid(*map(xp.asarray, rows[:count]), indexing=indexing)
        numpys = np.meshgrid(*rows[:count], indexing=indexing)
        assert len(actual) == count
        for one, other in zip(actual, numpys, strict=True):
            same(one, other)
    assert xp.meshgrid(xp.asarray(3), xp.asarray([1, 2]))[0].shape == (2, 1)


def test_full_takes_arrays() -> None:
    same(xp.full((2, 3), xp.asarray(2.5)), np.full((2, 3), 2.5))
    same(xp.full((2, 3), xp.asarray([1, 2, 3])), np.full((2, 3), [1, 2, 3]))
    same(xp.full((2,), xp.asarray(3), dtype=np.float32), np.full((2,), 3, "float32"))
    same(xp.full_like(xp.ones((2, 2), dtype=np.int8), xp.asarray(3)), np.full((2, 2), 3, "int8"))


def test_values_are_no_part_of_the_program() -> None:
    full = [xp.full((3, 5), value) for value in (0.0, -0.0, float("nan"), 3.5)]
    np.asarray(full[0])
    before = counters.compiled
    for x, value in zip(full, (0.0, -0.0, float("nan"), 3.5), strict=True):
        same(x, np.full((3, 5), value))
        assert bool(np.signbit(np.asarray(x)).all()) == (str(value) == "-0.0")
    assert counters.compiled == before


def test_numbers_and_lengths_are_no_part_of_kernels() -> None:
    np.asarray(xp.arange(2)), np.asarray(xp.arange(2.5)), np.asarray(xp.eye(2))
    np.asarray(xp.linspace(0, 1, 2))
    before = counters.compiled
    for k in range(3, 9):
        same(xp.arange(k, 2 * k, 2), np.arange(k, 2 * k, 2))
        same(xp.arange(k + 0.5), np.arange(k + 0.5))
        same(xp.eye(k, k + 1, k=1), np.eye(k, k + 1, k=1))
        same(xp.linspace(0, k, k + 1), np.linspace(0, k, k + 1))
        same(xp.ones((k, 2)), np.ones((k, 2)))
    assert counters.compiled == before


def test_constants_on_devices_are_materialized() -> None:
    x = xp.zeros((2, 3))
    assert np.asarray(x).flags.c_contiguous
    x[0] = 1
    same(x, np.array([[1.0, 1, 1], [0, 0, 0]]))
    source = np.broadcast_to(np.frombuffer(bytes(8)), 3000)  # larger than what `np.asarray` copies
    assert np.shares_memory(np.asarray(xp.asarray(source)), source)
    repeated = xp.asarray(np.broadcast_to(np.array([1.0]), (2**20, 2**20)))
    repeated = repeated[:2, :3]
    repeated[0, 0] = 2
    same(repeated, np.array([[2.0, 1, 1], [1, 1, 1]]))


class Exporter:
    """Array of another library that exports its memory by DLPack, versioned or not."""

    def __init__(self, data: np.ndarray[Any, Any], has_versions: bool) -> None:
        self.data, self.has_versions = data, has_versions

    def __dlpack__(self, **source: Any) -> Any:
        if not self.has_versions:
            source["max_version"] = None
        return self.data.__dlpack__(**source)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.data.__dlpack_device__()


class Interface:
    """Array of another library that describes its memory by `__array_interface__`."""

    def __init__(self, data: np.ndarray[Any, Any]) -> None:
        self.data = data

    @property
    def __array_interface__(self) -> Any:
        address = self.data.__array_interface__["data"][0]
        return {**self.data.__array_interface__, "data": (address, True)}


def _read_only(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    view = data.view()
    view.flags.writeable = False
    return view


TEAM = dist.world()
CONVERSIONS: dict[str, Callable[[np.ndarray[Any, Any]], Array]] = {
    "asarray": xp.asarray,
    "asarray dtype": lambda x: xp.asarray(x, dtype="float64"),
    "asarray other dtype": lambda x: xp.asarray(x, dtype="float32"),
    "asarray copy": lambda x: xp.asarray(x, copy=True),
    "asarray device": lambda x: xp.asarray(x, dtype="float32", device="stick128"),
    "asarray team": lambda x: xp.asarray(x, team=TEAM),
    "asarray placements": lambda x: xp.asarray(x, team=TEAM, placements=[dist.Replicate()]),
    "asarray team dtype": lambda x: xp.asarray(x, team=TEAM, dtype="float32"),
    "from_local": lambda x: xp.from_local(x, TEAM),
    "from_dlpack": xp.from_dlpack,
    "from_dlpack device": lambda x: xp.from_dlpack(x.astype("float32"), device="stick128"),
    "read-only view": lambda x: xp.asarray(_read_only(x)),
    "transposed view": lambda x: xp.asarray(_read_only(x[None]).T)[:, 0],
    "every second": lambda x: xp.asarray(np.repeat(x, 2)[::2]),
    "reversed": lambda x: xp.asarray(x[::-1])[::-1],
    "broadcast": lambda x: xp.asarray(np.broadcast_to(x, (3, *x.shape)))[1],
    "windows": lambda x: xp.asarray(np.lib.stride_tricks.sliding_window_view(x, 2)[::-1])[::-1, 0],
    "memoryview": lambda x: xp.asarray(memoryview(x.data).toreadonly()),
    "dlpack": lambda x: xp.asarray(Exporter(x, has_versions=True)),
    "dlpack without version": lambda x: xp.asarray(Exporter(x, has_versions=False)),
    "array interface": lambda x: xp.asarray(Interface(x)),
    "sequence": lambda x: xp.asarray([*x]),
}


@pytest.mark.exhaustive(keep=19)
@pytest.mark.parametrize("way", CONVERSIONS)
def test_owners_can_write_after_conversion(way: str) -> None:
    data = np.arange(5.0)
    x = CONVERSIONS[way](data)
    pending = x + 1
    expected = np.arange(5.0)[: x.shape[0]]
    data[:] = 100
    np.testing.assert_array_equal(np.asarray(pending), expected + 1)
    np.testing.assert_array_equal(np.asarray(x), expected)


def test_a_buffer_that_is_written_in_a_loop() -> None:
    buffer, total = np.zeros(2), xp.zeros(2)
    for value in (1, 2, 3, 4):
        buffer[:] = value
        total = total + xp.asarray(buffer)
    same(total, np.full(2, 10.0))


def shares(array: Array, data: np.ndarray[Any, Any]) -> bool:
    return np.shares_memory(np.asarray(array, copy=False), data)


@pytest.mark.parametrize("data", [
    _read_only(np.frombuffer(bytes(range(8)), "uint8")),
    np.frombuffer(bytes(8))[::-1],
    np.broadcast_to(np.frombuffer(bytes(8)), (2, 3)),
    np.asarray(memoryview(bytes(8))),
], ids=["bytes", "reversed", "broadcast", "memoryview"])
def test_constant_memory_is_borrowed(data: np.ndarray[Any, Any]) -> None:
    assert shares(xp.asarray(data), data)
    assert shares(xp.from_dlpack(data), data)


def test_arrays_that_are_marked_read_only_are_borrowed(tmp_path: Path) -> None:
    data = np.arange(5.0)
    data.flags.writeable = False
    assert shares(xp.asarray(data), data)
    assert shares(xp.asarray(Exporter(data, has_versions=True)), data)
    np.arange(5.0).tofile(tmp_path / "data")
    mapped = np.memmap(tmp_path / "data", mode="r")
    assert shares(xp.asarray(mapped), mapped)
    mapped = np.memmap(tmp_path / "data", mode="r+")
    assert not shares(xp.asarray(mapped), mapped)


def test_borrowed_memory_is_read_when_results_are_computed() -> None:
    data = np.zeros(3)
    x = xp.asarray(data, copy=False)
    computed, pending = x + 1, x + 1
    xp.eval(computed)
    data[:] = 5
    same(computed, np.full(3, 1.0))
    same(pending, np.full(3, 6.0))
    x[0] = 1  # copy on write
    data[:] = 7
    same(x, np.array([1.0, 5, 5]))
    np.testing.assert_array_equal(data, np.full(3, 7.0))


def test_copies() -> None:
    data = np.arange(4)
    shared, copied = xp.asarray(data, copy=False), xp.asarray(data, copy=True)
    copy = xp.asarray(shared, copy=True)
    assert xp.asarray(shared) is shared
    assert xp.asarray(shared, copy=False, dtype=np.int64) is shared
    converted = xp.asarray(data, dtype=np.float32)
    data[0] = 7
    same(shared, np.array([7, 1, 2, 3]))
    same(copied, np.arange(4))
    same(copy, np.arange(4))
    same(converted, np.arange(4, dtype="float32"))
    same(xp.asarray(shared, dtype=np.float64), np.array([7.0, 1, 2, 3]))


def test_memory_of_other_kinds() -> None:
    same(xp.asarray(array.array("i", [1, 2])), np.array([1, 2], "int32"))
    same(xp.asarray(b"abc"), np.array([97, 98, 99], "uint8"))
    same(xp.asarray(np.arange(3, dtype=">i4")), np.arange(3, dtype="int32"))
    packed = np.zeros(3, "i1,f8")["f1"]
    same(xp.asarray(packed), np.zeros(3))
    same(xp.from_dlpack(np.arange(3.0)), np.arange(3.0))
    same(xp.asarray([xp.asarray(1), 2]), np.array([1, 2]))


def test_arrays_stay_on_their_device() -> None:
    x = xp.ones(2, dtype=np.float32, device="stick128")
    assert x.device == "stick128"
    assert xp.zeros_like(x).device == "stick128"
    assert xp.zeros_like(x, device="cpu").device == "cpu"
    assert xp.asarray(x).device == "stick128"
    assert xp.asarray(x, device="cpu").device == "cpu"
    same(xp.asarray(x, device="cpu"), np.ones(2, "float32"))
    assert xp.asarray([x[0], 2.0], dtype=np.float32).device == "stick128"
    assert xp.ones(2).device == "cpu"
    there = "ptensor<float32, device='stick128'>"
    y = xp.full((), 1.0, dtype=np.float32, device="stick128")
    assert refused(DeviceMismatchError, lambda: xp.full_like(xp.ones(3), y)) == (
        Diagnostic(
            "device-mismatch", where="full_like", first="ptensor<3xfloat64, device='cpu'>", k=1,
            other=there, device="cpu",
        )
    )


NAMES = ", ".join(ALL)

REFUSED: list[tuple[str, type[Exception], Callable[[], object], Diagnostic]] = [
    ("ragged", ArrayValueError, lambda: xp.asarray([[1], [1, 2]]),
     Diagnostic("array-shapes", where="asarray")),
    ("text", ArrayTypeError, lambda: xp.asarray("a"),
     Diagnostic("array-type", where="asarray", type="str", dtype="<U1")),
    ("none", ArrayTypeError, lambda: xp.asarray([None]),
     Diagnostic("array-type", where="asarray", type="list", dtype="object")),
    ("huge", ArrayTypeError, lambda: xp.asarray(2**70),
     Diagnostic("array-type", where="asarray", type="int", dtype="object")),
    ("times", ArrayTypeError, lambda: xp.asarray(np.array(["a"])),
     Diagnostic("array-type", where="asarray", name="str32", all=NAMES)),
    ("out of range", ArrayValueError, lambda: xp.asarray([300], dtype=np.int8),
     Diagnostic("array-value", where="asarray", reason="Python integer 300 out of bounds for int8")),
    ("no copy of a list", ArrayValueError, lambda: xp.asarray([1], copy=False),
     Diagnostic("copy-needed", where="asarray", type="list")),
    ("no copy to another type", ArrayValueError,
     lambda: xp.asarray(np.arange(3), dtype=np.float32, copy=False),
     Diagnostic("copy-needed", where="asarray", dtype="int64", strides=(8,), expected_dtype="float32")),
    ("no copy of an array", ArrayValueError,
     lambda: xp.asarray(xp.ones(2), dtype=np.float32, copy=False),
     Diagnostic(
         "copy-needed", where="asarray", type="ptensor<2xfloat64, device='cpu'>", dtype="float32",
         device="cpu",
     )),
    ("complex", ArrayTypeError, lambda: xp.full(2, 1j, dtype=np.float64),
     Diagnostic("array-type", where="full", value="1j", dtype="float64")),
    ("value out of range", ArrayTypeError, lambda: xp.full(2, 300, dtype=np.int8),
     Diagnostic("array-type", where="full", value=300, dtype="int8", min=-128, max=127)),
    ("no value", ArrayTypeError, lambda: xp.full(2, "a", dtype=np.int8),  # type: ignore[arg-type]
     Diagnostic("not-an-array", where="full", class_="str")),
    ("negative", ArrayValueError, lambda: xp.zeros((2, -1)),
     Diagnostic("array-value", where="zeros", extents=(2, -1))),
    ("large", ArrayValueError, lambda: xp.ones((2**40, 2**40)),
     Diagnostic(
         "limit-exceeded", where="ones", extents=(1099511627776, 1099511627776),
         size=9671406556917033397649408, most_bytes=140737488355328,
     )),
    ("shape", ArrayTypeError, lambda: xp.empty(2.5),  # type: ignore[arg-type]
     Diagnostic("array-type", where="empty", subject="shape", value=2.5, type="float")),
    ("dtype", ArrayTypeError, lambda: xp.zeros(2, dtype="M8[s]"),
     Diagnostic("array-type", where="zeros", name="datetime64[s]", all=NAMES)),
    ("no dtype", ArrayTypeError, lambda: xp.zeros(2, dtype="real"),
     Diagnostic("array-type", where="zeros", name="'real'", all=NAMES)),
    ("step", ArrayValueError, lambda: xp.arange(1, 2, 0),
     Diagnostic("array-value")),
    ("endless", ArrayValueError, lambda: xp.arange(0, float("inf")),
     Diagnostic("array-value", start=0, stop="inf", step=1)),
    ("range", ArrayTypeError, lambda: xp.arange(0, 400, 100, dtype=np.uint8),
     Diagnostic("array-type", where="arange", value=300, dtype="uint8", min=0, max=255)),
    ("complex range", ArrayTypeError, lambda: xp.arange(1j),  # type: ignore[arg-type]
     Diagnostic("array-type", where="arange", value="1j", type="complex")),
    ("bool range", ArrayTypeError, lambda: xp.arange(2, dtype=np.bool_),
     Diagnostic(
         "array-type", name="arange", dtype="bool",
         supported="int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64, complex128",
     )),
    ("real linspace", ArrayTypeError, lambda: xp.linspace(0, 1j, 3, dtype=np.float32),
     Diagnostic("array-type", start=0.0, stop="1j", dtype="float32")),
    ("vector", ArrayValueError, lambda: xp.tril(xp.ones(3)),
     Diagnostic("array-shapes", called="tril", shape=(3,))),
    ("indexing", ArrayValueError, lambda: xp.meshgrid(xp.ones(2), indexing="yx"),
     Diagnostic(
         "array-value", where="meshgrid", subject="indexing", value="yx", name="'xy'", other_name="'ij'",
     )),
    ("matrix", ArrayValueError, lambda: xp.meshgrid(xp.ones(2), xp.ones((2, 2))),
     Diagnostic("array-shapes", name="meshgrid", k=1, shape=(2, 2))),
    ("no array", ArrayTypeError, lambda: xp.tril([[1]]),  # type: ignore[arg-type]
     Diagnostic("not-an-array", where="tril", subject="x", type="list")),
    ("no dlpack", ArrayTypeError, lambda: xp.from_dlpack([1]),
     Diagnostic("array-type", where="from_dlpack", type="list")),
]


@pytest.mark.parametrize(
    ("error", "call", "expected"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_bad_arguments(
    error: type[Exception], call: Callable[[], object], expected: Diagnostic
) -> None:
    assert refused(error, call) == expected


def test_unknown_devices_are_refused_with_the_list() -> None:
    known = ", ".join(xp.__array_namespace_info__().devices())
    assert refused(ArrayValueError, lambda: xp.zeros(2, device="gpu")) == (
        Diagnostic("unknown-choice", where="zeros", device="gpu", known=known)
    )


def test_a_sequence_that_is_in_itself_is_refused() -> None:
    inside: list[Any] = []
    inside.append(inside)
    with pytest.raises(ArrayValueError) as caught:
        xp.asarray(inside)
    assert diagnostic(caught.value) == (
        Diagnostic(
            "array-value", where="asarray", extents="(1, 1, 1, 1, ...)", most_axes=64,
            most_numbers=4294967296,
        )
    )


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_the_sign_of_a_zero_counts(zero: float) -> None:
    """Zeros of each sign have separate programs, also if the other sign was compiled before."""
    ones = xp.ones(3)
    for _ in range(2):
        for item in (-zero, zero):
            expected = np.signbit(np.linspace(item, item, 3))
            assert (np.signbit(np.asarray(xp.linspace(item, item, 3))) == expected).all()
            recorded = xp.jit(lambda x, item=item: x * xp.linspace(item, item, 3))
            assert (np.signbit(np.asarray(recorded(ones))) == expected).all()


def test_operations_are_equal_to_the_bit() -> None:
    nan = float("nan")
    one = Linspace(0.0, nan, 3, "float64")
    assert one == Linspace(0.0, nan, 3, "float64")
    assert hash(one) == hash(Linspace(0.0, nan, 3, "float64"))
    assert one != Linspace(-0.0, nan, 3, "float64")
    assert Arange(0, 3, 1, "int64") != Arange(0.0, 3, 1, "int64")
    assert Arange(0, 3, 1, "int64") != Linspace(0, 3, 1, "float64")


@pytest.mark.parametrize("count", [2, 3, 5, 1000])
@pytest.mark.parametrize("endpoint", [False, True])
def test_ranges_that_overflow(count: int, endpoint: bool) -> None:
    for start, stop in ((-1e308, 1e308), (1.7e308, -1.7e308), (-1.7e308, 1e308)):
        found = np.asarray(xp.linspace(start, stop, count, endpoint=endpoint))
        half = np.linspace(start / 2, stop / 2, count, endpoint=endpoint)
        assert_close(found, half * 2, rtol=1e-15, atol=1e292)
    both = np.asarray(xp.linspace(-1e308 - 1j, 1e308 + 1j, 3))
    assert both.tolist() == [-1e308 - 1j, 0j, 1e308 + 1j]


@pytest.mark.parametrize("k", [2**70, -(2**70), 10**13, -(10**13), 4, -3, 5, -4, 0])
def test_eye_with_diagonals_outside_the_matrix(k: int) -> None:
    data = np.arange(1.0, 13).reshape(3, 4)
    near = max(-9, min(k, 9))
    x = xp.asarray(data)

    np.testing.assert_array_equal(np.asarray(xp.tril(x, k=k)), np.tril(data, near))
    np.testing.assert_array_equal(np.asarray(xp.triu(x, k=k)), np.triu(data, near))
    np.testing.assert_array_equal(np.asarray(xp.linalg.trace(x, offset=k)), np.trace(data, near))
    np.testing.assert_array_equal(
        np.asarray(xp.linalg.diagonal(x, offset=k)), np.diagonal(data, near))
    np.testing.assert_array_equal(np.asarray(xp.eye(3, 4, k=k)), np.eye(3, 4, near))
