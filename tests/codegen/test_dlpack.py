"""Arrays of other libraries, through DLPack: written in place, and refused with reasons."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tecomp.codegen import Kernel
from tecomp.errors import CallError
from tecomp.ir.parser import parse

Array = np.ndarray[Any, Any]


class Modern:
    """Exports as DLPack 1 does; knows no other protocol."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None) -> object:
        return self.array.__dlpack__(max_version=max_version)


class Old:
    """Exports as before DLPack 1."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack__(self) -> object:
        return self.array.__dlpack__()


class Refusing:
    """Does not share its memory."""

    def __dlpack__(self, **options: object) -> object:
        raise BufferError("it requires a gradient")


class Careless:
    """Claims to export, and does something else."""

    def __init__(self, made: object) -> None:
        self.made = made

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


class Handmade:
    """Exports memory as any type and on any device."""

    def __init__(self, array: Array, code: int, bits: int, device: int = 1, lanes: int = 1) -> None:
        self.array = array
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.tensor = Tensor(array.ctypes.data, device, 0, array.ndim, code, bits, lanes,
                             self.shape, None, 0, None, None)

    def __dlpack__(self) -> object:
        make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p,
                                 ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
        return make(ctypes.addressof(self.tensor), b"dltensor", None)


def kernel(name: str) -> Kernel:
    return Kernel(parse(f'''def f(A: Buffer("{name}", (6,)), B: Buffer("{name}", (6,))):
    for i in range(6):
        B[i] = A[5 - i]
'''))


@pytest.mark.parametrize("wrap", [Modern, Old])
@pytest.mark.parametrize("name", ["float32", "float16", "int8", "uint64", "bool"])
def test_arrays_are_used_in_place(wrap: Callable[[Array], object], name: str) -> None:
    a, b = np.array([0, 1, 0, 1, 1, 1], name), np.zeros(6, name)

    kernel(name)(wrap(a), wrap(b))

    assert (b == a[::-1]).all()


def test_bfloat16() -> None:
    a, b = np.arange(6, dtype=np.uint16), np.zeros(6, np.uint16)

    kernel("bfloat16")(Handmade(a, 4, 16), Handmade(b, 4, 16))

    assert (b == a[::-1]).all()


def test_memory_is_released() -> None:
    a, b = np.zeros(6, np.float32), np.zeros(6, np.float32)
    run, wrapped = kernel("float32"), Modern(b)

    for _ in range(3):
        run(a, wrapped)
    wrapped.array = a

    b.resize(12)  # refused while anything else holds it
    assert b.shape == (12,)


READ_ONLY = np.zeros(6, np.float32)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (Modern(READ_ONLY), "argument 1 (B) of f: it is written to, but the array is read-only; "
                            "pass a copy of it"),
        (Modern(np.zeros(6)), "argument 1 (B) of f: expected float32[6], got float64[6]; convert "
                              "it with .astype(np.float32)"),
        (Modern(np.zeros(12, np.float32)[::2]), "argument 1 (B) of f: expected float32[6] without "
                                                "gaps in row-major order, got strides of (2,) "
                                                "elements; pass a new array, and copy from it"),
        (Handmade(READ_ONLY, 2, 32, device=2), "argument 1 (B) of f: expected an array in the "
                                               "memory of the processor, got one on device 2:0; "
                                               "copy it to the host first"),
        (Handmade(READ_ONLY, 2, 32, lanes=4), "argument 1 (B) of f: expected float32[6], got "
                                              "float32x4[6]; convert it with .astype(np.float32)"),
        (Handmade(READ_ONLY, 5, 64), "argument 1 (B) of f: expected float32[6], got type 5:64[6]; "
                                     "convert it with .astype(np.float32)"),
        (Refusing(), "argument 1 (B) of f: its memory cannot be shared (it requires a gradient); "
                     "pass it as an array that owns plain memory"),
        (Careless(TypeError("no strides")), "argument 1 (B) of f: its memory cannot be shared (no "
                                            "strides); pass it as an array that owns plain "
                                            "memory"),
        (Careless(3), "argument 1 (B) of f: __dlpack__ gave int, which is no DLPack capsule or a "
                      "used one; pass an array whose __dlpack__ makes a new capsule at each call"),
    ],
    ids=str.split(
        "read-only type strides device lanes complex refusing failing no-capsule"
    ),
)
def test_refusals(argument: object, message: str) -> None:
    with pytest.raises(CallError) as error:
        kernel("float32")(np.zeros(6, np.float32), argument)

    assert error.value.message == message
