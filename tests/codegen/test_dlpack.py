"""Arrays of other libraries, through DLPack: written in place, or rejected with a reason."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tecomp.codegen import Kernel
from tecomp.errors import CallError
from tecomp.ir import parse
from tests.messages import Diagnostic, diagnostic

Array = np.ndarray[Any, Any]


class Modern:
    """Exporter that supports only the protocol of DLPack 1."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None) -> object:
        return self.array.__dlpack__(max_version=max_version)


class Old:
    """Exporter that predates DLPack 1."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack__(self) -> object:
        return self.array.__dlpack__()


class Refusing:
    """Exporter that refuses to share its memory."""

    def __dlpack__(self, **options: object) -> object:
        raise BufferError("it requires a gradient")


class Careless:
    """Exporter that returns or raises an arbitrary object."""

    def __init__(self, result: object) -> None:
        self.made = result

    def __dlpack__(self) -> object:
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


class Tensor(ctypes.Structure):
    """`DLManagedTensor` of dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class Versioned(ctypes.Structure):
    """`DLManagedTensorVersioned` of dlpack.h."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


class Handmade:
    """Exporter of any dtype, device and flags; without flags, it exports an unversioned tensor."""

    def __init__(
        self, array: Array, code: int, bits: int, device: int = 1, lanes: int = 1,
        flags: int | None = None,
    ) -> None:
        self.array = array
        self.flags = flags
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.tensor = Tensor(array.ctypes.data, device, 0, array.ndim, code, bits, lanes,
                             self.shape, None, 0, None, None)
        self.versioned = Versioned(1, 0, None, None, flags or 0, self.tensor)

    def __dlpack__(self) -> object:
        make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p,
                                 ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
        if self.flags is None:
            return make(ctypes.addressof(self.tensor), b"dltensor", None)
        return make(ctypes.addressof(self.versioned), b"dltensor_versioned", None)


class Buffered(bytearray):
    """Writable memory that supports the buffer protocol and unversioned DLPack."""

    def __dlpack__(self) -> object:
        return np.frombuffer(self, np.float32).__dlpack__()


class Immutable(bytes):
    """Read-only memory in the buffer protocol, whose unversioned DLPack export does not say so."""

    def __dlpack__(self) -> object:
        array = np.frombuffer(self, np.float32)
        self.export = Handmade(array, 2, 32)
        return self.export.__dlpack__()


def kernel(name: str) -> Kernel:
    return Kernel(parse(f'''def f(A: Buffer("{name}", (6,)), B: Buffer("{name}", (6,))):
    for i in range(6):
        B[i] = A[5 - i]
'''))


@pytest.mark.parametrize("name", ["float32", "float16", "int8", "uint64", "bool"])
def test_arrays_are_used_in_place(name: str) -> None:
    a, b = np.array([0, 1, 0, 1, 1, 1], name), np.zeros(6, name)

    kernel(name)(Modern(a), Modern(b))
    assert (b == a[::-1]).all()

    b[:] = 0
    kernel(name)(Old(a), b)
    assert (b == a[::-1]).all()


def test_inputs_may_be_read_only() -> None:
    a, b = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)

    for argument in (Handmade(a, 2, 32), Handmade(a, 2, 32, flags=1), Handmade(a, 2, 32, flags=2),
                  Immutable(a.tobytes())):
        b[:] = 0
        kernel("float32")(argument, b)
        assert (b == a[::-1]).all()


def test_arrays_exported_as_writable_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    run, buffered = kernel("float32"), Buffered(24)

    run(a, Handmade(b, 2, 32, flags=0))
    assert (b == a[::-1]).all()

    run(a, buffered)
    assert (np.frombuffer(buffered, np.float32) == a[::-1]).all()

    # All PyTorch tensors are writable, so an unversioned export is accepted as an output.
    b[:] = 0
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(Tensor=Old, is_neg=lambda _: False))
    run(a, Old(b))
    assert (b == a[::-1]).all()


def test_memory_of_other_numbers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(Tensor=Old, is_neg=lambda _: True))

    with pytest.raises(CallError) as error:
        kernel("float32")(Old(a), b)

    assert diagnostic(error.value) == (
        Diagnostic("unsupported-memory", where="argument 0 (A) of f")
    )


def test_bfloat16() -> None:
    a, b = np.arange(6, dtype=np.uint16), np.zeros(6, np.uint16)

    kernel("bfloat16")(Handmade(a, 4, 16), Handmade(b, 4, 16, flags=0))

    assert (b == a[::-1]).all()


def test_memory_is_released() -> None:
    a, b = np.zeros(6, np.float32), np.zeros(6, np.float32)
    run, wrapped = kernel("float32"), Modern(b)

    for _ in range(3):
        run(a, wrapped)
    wrapped.array = a

    b.resize(12)  # raises an error while another object holds the memory
    assert b.shape == (12,)


READ_ONLY = np.zeros(6, np.float32)
READ_ONLY.flags.writeable = False
INSTEAD = (
    "pass np.empty((6,), np.float32) or a PyTorch tensor, and create the other array from it"
)


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        (READ_ONLY, Diagnostic(
            "unsupported-memory", where="argument 1 (B) of f", reason="the array is read-only",
            advice="pass a copy of it",
        )),
        (Modern(READ_ONLY), Diagnostic(
            "unsupported-memory", where="argument 1 (B) of f", reason="the array is read-only",
            advice=INSTEAD,
        )),
        (Handmade(READ_ONLY, 2, 32), Diagnostic(
            "unsupported-memory", where="argument 1 (B) of f",
            reason="its __dlpack__ does not say whether that is allowed", advice=INSTEAD,
        )),
        (Immutable(24), Diagnostic(
            "unsupported-memory", where="argument 1 (B) of f",
            reason="its __dlpack__ does not say whether that is allowed", advice=INSTEAD,
        )),
        (Handmade(READ_ONLY, 2, 32, flags=2), Diagnostic(
            "unsupported-memory", where="argument 1 (B) of f",
            reason="its __dlpack__ shares a copy, in which the result would be lost",
            advice=INSTEAD,
        )),
        (Modern(np.zeros(6)), Diagnostic(
            "argument-mismatch", where="argument 1 (B) of f", parameter="float32[6]",
            shape="float64[6]", scalar="np.float32",
        )),
        (Modern(np.zeros(12, np.float32)[::2]), Diagnostic(
            "unsupported-memory", where="argument 1 (B) of f", parameter="float32[6]", strides=(2,),
            remedy="pass a new array, and copy the result from it",
        )),
        (Handmade(READ_ONLY, 2, 32, device=2), Diagnostic(
            "unsupported-memory", where="argument 1 (B) of f", device_type=2, device_id=0,
        )),
        (Handmade(READ_ONLY, 2, 32, lanes=4), Diagnostic(
            "argument-mismatch", where="argument 1 (B) of f", parameter="float32[6]",
            shape="float32x4[6]", scalar="np.float32",
        )),
        (Handmade(READ_ONLY, 5, 64), Diagnostic(
            "argument-mismatch", where="argument 1 (B) of f", parameter="float32[6]",
            shape="type 5:64[6]", scalar="np.float32",
        )),
        (Refusing(), Diagnostic(
            "unsupported-memory", where="argument 1 (B) of f", reason="it requires a gradient",
        )),
        (Careless(TypeError("no strides")), Diagnostic(
            "unsupported-memory", where="argument 1 (B) of f", reason="no strides",
        )),
        (Careless(3), Diagnostic("unsupported-memory", where="argument 1 (B) of f", type="int")),
    ],
    ids=str.split(
        "read-only modern-read-only silent bytes copy type strides device lanes complex refusing failing no-capsule"
    ),
)
def test_refusals(argument: object, expected: Diagnostic) -> None:
    with pytest.raises(CallError) as error:
        kernel("float32")(np.zeros(6, np.float32), argument)

    assert diagnostic(error.value) == expected
    assert (READ_ONLY == 0).all()
