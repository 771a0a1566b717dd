"""Conversion of arrays to other libraries, and their text."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array import Array
from tecomp.errors import ArrayBufferError, ArrayTypeError, ArrayValueError, TecompError
from tecomp.ptensor import ALL, numpy_dtype
from tests.messages import Diagnostic, diagnostic

DTYPES = [numpy_dtype(name) for name in ALL if name != "bfloat16"]


def refused(error: type[TecompError], call: Callable[[], object]) -> Diagnostic:
    with pytest.raises(error) as caught:
        call()
    return diagnostic(caught.value)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dlpack_there_and_back(dtype: np.dtype[Any]) -> None:
    data = np.arange(6).astype(dtype).reshape(2, 3)[:, ::-1]
    x = xp.from_dlpack(data)
    for there in (np.from_dlpack(x), np.from_dlpack(x, copy=True), np.asarray(xp.from_dlpack(x))):
        assert there.dtype == dtype
        np.testing.assert_array_equal(there, data)
    assert not np.shares_memory(np.from_dlpack(x), data)
    x = xp.from_dlpack(data, copy=False)
    assert np.shares_memory(np.from_dlpack(x), data)
    assert not np.shares_memory(np.from_dlpack(x, copy=True), data)


def test_exported_memory_is_read_only() -> None:
    x = xp.ones(3000) + 0
    assert not np.from_dlpack(x).flags.writeable
    assert not np.asarray(x).flags.writeable
    assert not np.shares_memory(np.from_dlpack(_Old(x)), np.asarray(x))
    copied = np.from_dlpack(x, copy=True)
    copied[0] = 8
    assert float(x[0]) == 1.0


class _Old:
    """Array of a library that does not support read-only memory."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack__(self, **_: object) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_imported_read_only_memory_stays_read_only() -> None:
    data = np.arange(3.0)
    data.flags.writeable = False
    x = xp.from_dlpack(data)
    with pytest.raises(ArrayValueError):
        x[0] = 1
    xp.from_dlpack(data, copy=True)[0] = 1


def test_unsupported_dlpack_requests_are_refused() -> None:
    x = xp.asarray([1, 2])
    assert refused(ArrayBufferError, lambda: x.__dlpack__(stream=1)) == (
        Diagnostic("array-memory", where="__dlpack__", stream=1)
    )
    assert refused(ArrayBufferError, lambda: x.__dlpack__(dl_device=(2, 0))) == (
        Diagnostic("array-memory", where="__dlpack__", device=(2, 0), cpu=(1, 0))
    )
    assert refused(ArrayBufferError, lambda: x.__dlpack__(copy=False)) == (
        Diagnostic("copy-needed", where="__dlpack__")
    )
    bits = xp.asarray(np.zeros(2, numpy_dtype("bfloat16")))
    found = refused(ArrayBufferError, lambda: bits.__dlpack__(max_version=(1, 0)))
    of_numpy = found.parameters["reason"]
    assert found == Diagnostic(
        "array-memory", where="__dlpack__", dtype="bfloat16", reason=of_numpy)
    assert "dtypes" in of_numpy
    assert isinstance(ArrayBufferError(""), BufferError)
    assert x.__dlpack_device__() == (1, 0)


def test_memory_of_a_described_machine_has_no_number_in_dlpack() -> None:
    x = xp.asarray([1.0, 2.0], dtype=xp.float32, device="stick128")
    no_number = Diagnostic("array-memory", device="stick128")
    assert refused(ArrayBufferError, x.__dlpack_device__) == no_number
    assert refused(ArrayBufferError, x.__dlpack__) == no_number
    assert refused(ArrayBufferError, lambda: x.__dlpack__(dl_device=(1, 0), copy=False)) == (
        Diagnostic("copy-needed", where="__dlpack__", device="stick128")
    )
    np.testing.assert_array_equal(np.from_dlpack(x, device="cpu"), [1.0, 2.0])
    assert xp.from_dlpack(x).device == "stick128"


class _Elsewhere:
    """Array that is not in host memory."""

    def __dlpack__(self, **_: object) -> Any:
        raise BufferError("on a device")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def test_unreadable_objects_are_rejected() -> None:
    for function in (xp.asarray, xp.from_dlpack):
        assert refused(ArrayValueError, partial(function, _Elsewhere())) == (
            Diagnostic(
                "array-value", where=function.__name__, subject="DLPack", type="_Elsewhere",
                reason="on a device",
            )
        )


def test_the_namespace_of_an_array() -> None:
    x = xp.asarray(1)
    assert x.__array_namespace__() is xp
    for version in ("2021.12", "2022.12", "2023.12", "2024.12"):
        assert x.__array_namespace__(api_version=version) is xp
    assert x.__array_namespace__(api_version="2025.12").__array_api_version__ == "2025.12"
    assert refused(ArrayValueError, lambda: x.__array_namespace__(api_version="2020.01")) == (
        Diagnostic(
            "array-value", version="2020.01",
            versions="2021.12, 2022.12, 2023.12, 2024.12, 2025.12",
        )
    )


def test_numpys_arrays_do_not_mix_with_ours() -> None:
    x, data = xp.asarray([1.0, 2.0]), np.ones(2)
    calls: list[tuple[str, Callable[[], object]]] = [
        ("add", lambda: x + data), ("add", lambda: data + x), ("matmul", lambda: x @ data), ("equal", lambda: x == data),
        ("equal", lambda: data == x), ("less", lambda: data < x), ("divide", lambda: data / x),
    ]
    for name, call in calls:
        assert refused(ArrayTypeError, call) == (
            Diagnostic("not-an-array", where=name, dtype="float64", shape=(2,))
        )
    numbers = np.float64(2) * x, x * np.float64(2), np.int64(2) * x
    for result in numbers:
        assert isinstance(result, Array)
        np.testing.assert_array_equal(np.asarray(result), [2.0, 4.0])


def test_elements_for_numpy() -> None:
    x = xp.asarray([[1, 2], [3, 4]]) + 0
    np.testing.assert_array_equal(np.asarray(x, dtype=np.float32), np.array([[1, 2], [3, 4]], "f4"))
    copied = np.array(x)
    copied[0, 0] = 9
    assert int(x[0, 0]) == 1
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype=np.float32, copy=False)


@pytest.mark.parametrize("device", ["cpu", "stick128"])
def test_numbers_and_lists_of_python(device: str) -> None:
    for data in (np.float32(2.5), np.arange(6, dtype="int32").reshape(2, 3), np.ones((0, 2), "?")):
        x = xp.asarray(data, device=device)
        assert x.tolist() == data.tolist()
        assert (x.nbytes, x.itemsize) == (data.nbytes, data.itemsize)
    assert xp.asarray([[2.5]], device=device).item() == 2.5
    assert type(xp.asarray([True], device=device).item()) is bool
    assert refused(ArrayTypeError, xp.ones((2, 3), device=device).item) == (
        Diagnostic("array-type", shape=(2, 3), size=6)
    )


def test_devices() -> None:
    x = xp.asarray([1, 2], dtype=np.float32)
    there = x.to_device("stick128")
    assert (there.device, x.device) == ("stick128", "cpu")
    assert x.to_device("cpu") is x
    np.testing.assert_array_equal(np.asarray(there.to_device("cpu")), np.asarray(x))
    there[0] = 5
    assert int(x[0]) == 1
    assert refused(ArrayValueError, lambda: x.to_device("cpu", stream=1)) == (
        Diagnostic("array-value", stream=1)
    )
    known = ", ".join(xp.__array_namespace_info__().devices())
    assert refused(ArrayValueError, lambda: x.to_device("gpu")) == (
        Diagnostic("unknown-choice", where="to_device", device="gpu", known=known)
    )


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))],
                         ids=["copy", "deepcopy", "pickle"])
def test_copies_are_values_of_their_own(way: Callable[[Array], Array]) -> None:
    data = np.arange(6.0).reshape(2, 3)
    pending = xp.asarray(data)
    for _ in range(3000):  # a deep chain, which must not exhaust the stack
        pending = pending + 0
    for x in (xp.asarray(data), pending, xp.asarray(data, dtype=xp.float32).to_device("stick128")):
        other = way(x)
        assert (other.device, other.dtype) == (x.device, x.dtype)
        other[0] = 9
        np.testing.assert_array_equal(np.asarray(x), data)
        np.testing.assert_array_equal(np.asarray(other), [[9.0, 9, 9], [3, 4, 5]])


def test_lengths_and_elements() -> None:
    x = xp.asarray([[1, 2], [3, 4], [5, 6]])
    assert len(x) == 3
    assert [int(row[1]) for row in x] == [2, 4, 6]
    assert refused(ArrayTypeError, lambda: len(xp.asarray(1))) == Diagnostic("array-type")
    assert refused(ArrayTypeError, lambda: iter(xp.asarray(1))) == Diagnostic("array-type")


@pytest.mark.parametrize(("obj", "text"), [
    (1.5, "Array(1.5, dtype=float64)"),
    ([True, False], "Array([ True, False], dtype=bool)"),
    ([[1, 2], [3, 4]], "Array([[1, 2],\n       [3, 4]], dtype=int64)"),
    ([], "Array([], dtype=float64)"),
    ([[], []], "Array([], shape=(2, 0), dtype=float64)"),
    ([1 + 2j], "Array([1.+2.j], dtype=complex128)"),
])
def test_texts(obj: object, text: str) -> None:
    assert repr(xp.asarray(obj)) == text
    assert str(xp.asarray(obj)) == f"{xp.asarray(obj)}" == str(np.asarray(obj))


def test_texts_name_the_device() -> None:
    x = xp.asarray(np.ones(2, "float32"), device="stick128")
    assert repr(x) == "Array([1., 1.], dtype=float32, device='stick128')"
    assert x._repr_html_() == "<div><b>Array</b> 2, float32, stick128<pre>[1., 1.]</pre></div>"
    assert xp.asarray(True)._repr_html_() == "<div><b>Array</b> no axes, bool, cpu<pre>True</pre></div>"


def test_inspection() -> None:
    info = xp.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64,
    }
    assert info.default_device() == "cpu"
    assert info.default_dtypes(device="cpu") == {
        "real floating": np.dtype("float64"), "complex floating": np.dtype("complex128"),
        "integral": np.dtype("int64"), "indexing": np.dtype("int64"),
    }
    assert {"cpu", "stick128"} <= set(info.devices())
    assert [*info.dtypes()] == [name for name in ALL if name not in ("float16", "bfloat16")]
    assert [*info.dtypes(kind=("bool", "complex floating"))] == ["bool", "complex64", "complex128"]
    assert [*info.dtypes(device="stick128", kind="real floating")] == ["float32"]
    assert refused(ArrayValueError, lambda: info.dtypes(kind="real")) == (
        Diagnostic(
            "array-value", name="real",
            kinds="bool, signed integer, unsigned integer, integral, real floating, complex floating, numeric",
        )
    )
