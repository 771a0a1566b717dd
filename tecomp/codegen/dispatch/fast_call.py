"""Fast path: checked calls without Python frames.

The comparisons are encoded in a plan that is built from the parameters of the kernel. A plan
supports extents and strides that are constants or size variables; other kernels and arguments take
the slow path.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from math import prod
from sys import implementation
from typing import Any

import numpy as np

from tecomp.codegen.dispatch.array_interop import SLOT, PackedArray, empty
from tecomp.codegen.dispatch.parameter import KernelParameter
from tecomp.codegen.dispatch.process_runtime import HEAD, process
from tecomp.codegen.runtime.runtime_structs import (
    BINDS,
    BOOL,
    EQUALS,
    EXTENT,
    FIELDS,
    FIRST_ARGUMENT_WORD,
    FLOAT32,
    FLOAT64,
    INTEGER,
)
from tecomp.ir.nodes.expr import Var, integer_range
from tecomp.ir.nodes.stmt import PrimFunc
from tecomp.layout.addressing.layout_tags import row_major_tag

C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
_MAX_WORDS = 4096
"""Maximum number of words of the argument block, which is on the stack."""
_FASTCALL = 0x80
_INT64 = (-(2**63), 2**63 - 1)

Scalar = tuple[int, Var, Var]
Quick = Callable[..., bytes | bool | None]


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("body", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def quick_call(
    func: PrimFunc, parameters: Sequence[KernelParameter], scalars: Sequence[Scalar], entry: Any, *,
    is_parallel: bool,
) -> Quick | None:
    """Return the built-in fast call function of a kernel, or None if unsupported.

    The function takes the arguments of the kernel. It returns None on success, the failure record
    as bytes on failure, and False without running the kernel if an argument is not supported.
    """
    words = _plan(func, parameters, scalars)
    bounded = _bounded_words(func)
    if words is None or not arrays_are_known():
        return None
    address = ctypes.cast(entry, ctypes.c_void_p).value or 0
    size = FIRST_ARGUMENT_WORD + len(func.params) + len(func.sizes)
    counts = len(scalars), len(parameters), len(bounded)
    values = [address, len(func.params), size, int(is_parallel), *counts, *words]
    values += chain.from_iterable(bounded)
    plan = (ctypes.c_int64 * len(values))(*values)
    method = _MethodDef(func.name.encode(), process().call, _FASTCALL, None)
    api = ctypes.pythonapi
    capsule = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
    )(("PyCapsule_New", api))
    function = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object
    )(("PyCFunction_NewEx", api))
    # A built-in function keeps its module object alive: here, the objects that it refers to.
    keep = (plan, method, entry, [(p.numpy, p.mark) for p in parameters])
    quick: Quick = function(
        ctypes.addressof(method), capsule(ctypes.addressof(plan), None, None), keep
    )
    return quick


def _plan(
    func: PrimFunc, parameters: Sequence[KernelParameter], scalars: Sequence[Scalar]
) -> list[int] | None:
    """Return the words after the head of a plan; None if a plan cannot express the kernel."""
    slots = {var: FIRST_ARGUMENT_WORD + len(func.params) + k for k, var in enumerate(func.sizes)}
    words: list[int] = []
    for position, logical, var in scalars:
        record = _scalar(logical, var)
        if record is None:
            return None
        words += [position, *record]
        slots[var] = FIRST_ARGUMENT_WORD + position
    bound = {var for _, _, var in scalars}
    for p in parameters:
        if p.physical.index_count > 1 or p.buffer.has_offset:
            return None
        if p.numpy.itemsize & (p.numpy.itemsize - 1):
            return None
        flags = ALIGNED | (WRITEABLE if p.is_written else 0) | (0 if p.strides else C_CONTIGUOUS)
        mark = 0 if p.mark is None else id(p.mark)
        words += [p.position, id(p.numpy), flags, len(p.shape), p.numpy.itemsize]
        words += [p.is_written, mark, bool(p.strides)]
        for extent in (*p.shape, *p.strides):
            if isinstance(extent, int):
                words += [EXTENT, extent]
            elif isinstance(extent, Var) and extent in slots:
                words += [EQUALS if extent in bound else BINDS, slots[extent]]
                bound.add(extent)
            else:
                return None
    size = FIRST_ARGUMENT_WORD + len(func.params) + len(func.sizes)
    return words if size <= _MAX_WORDS and bound.issuperset(func.sizes) else None


def _bounded_words(func: PrimFunc) -> list[tuple[int, int, int, int]]:
    """Return word, minimum, maximum and divisor of each size or scalar with declared bounds."""
    words = [
        (FIRST_ARGUMENT_WORD + k, var.bounds) for k, var in enumerate((*func.params, *func.sizes))
        if isinstance(var, Var)
    ]
    return [
        (word, bounds.minimum, _INT64[1] if bounds.maximum is None else bounds.maximum,
         bounds.multiple)
        for word, bounds in words if bounds is not None
    ]


def _scalar(logical: Var, var: Var) -> tuple[int, int, int] | None:
    """Return kind and range of a scalar parameter, or None if unsupported."""
    if logical.dtype.is_bool:
        return (BOOL, 0, 0)
    if logical.dtype in ("float32", "float64"):
        return (FLOAT32 if logical.dtype == "float32" else FLOAT64, 0, 0)
    if not logical.dtype.is_integer:
        return None
    ranges = [integer_range(logical.dtype), integer_range(var.dtype), _INT64]
    return (INTEGER, max(low for low, _ in ranges), min(high for _, high in ranges))


@cache
def arrays_are_known() -> bool:
    """Return whether NumPy arrays have the memory layout that the native checks assume."""
    if implementation.name != "cpython" or np.ndarray.__basicsize__ < HEAD + FIELDS.bytes:
        return False
    frozen = np.zeros((2, 3, 5), np.float32)
    frozen.flags.writeable = False
    gaps = np.zeros((4, 6), np.int64)[::2, 1:].T
    return (
        _is_known(frozen) and _is_known(gaps) and _is_known(np.array(True)) and _is_mark_known()
    )


def _is_mark_known() -> bool:
    """Return whether the layout tag is at offset `SLOT`, and is 0 for untagged arrays."""
    array = empty((2,), np.float32, mark := row_major_tag(1))
    marks = [
        ctypes.c_void_p.from_address(id(item) + SLOT).value or 0 for item in (array, array + 1)
    ]
    return PackedArray.__basicsize__ >= SLOT + 8 and marks == [id(mark), 0]


def _is_known(array: np.ndarray[Any, Any]) -> bool:
    def word(kind: Any, field: str) -> int:
        return int(kind.from_address(id(array) + HEAD + FIELDS.offset(field)).value or 0)

    rank, byte = array.ndim, ctypes.c_int64
    if (
        ctypes.c_void_p.from_address(id(array) + HEAD - 8).value != id(np.ndarray)
        or word(ctypes.c_void_p, "data") != array.ctypes.data
        or word(ctypes.c_int, "axes") != rank
        or word(ctypes.c_void_p, "dtype") != id(array.dtype)
    ):
        return False
    flags = word(ctypes.c_int, "flags")
    stated = array.flags
    pairs = ((C_CONTIGUOUS, stated.c_contiguous), (ALIGNED, stated.aligned),
             (WRITEABLE, stated.writeable))
    shape, strides = word(ctypes.c_void_p, "shape"), word(ctypes.c_void_p, "strides")
    return (
        all(bool(flags & bit) == is_set for bit, is_set in pairs)
        and (not rank or tuple((byte * rank).from_address(shape)) == array.shape)
        and (not rank or tuple((byte * rank).from_address(strides)) == array.strides)
        and prod(array.shape) == array.size
    )
