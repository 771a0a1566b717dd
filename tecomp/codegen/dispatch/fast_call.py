"""Fast path: checked calls without Python frames.

The comparisons are encoded in a plan that is built from the parameters of the kernel. A plan
supports extents and strides that are constants, size variables or integer arithmetic on them; other
kernels and arguments take the slow path.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
    ADD,
    BINDS,
    BOOL,
    CONSTANT,
    DIVIDE,
    EQUALS,
    EXTENT,
    FIELDS,
    FIRST_ARGUMENT_WORD,
    FLOAT32,
    FLOAT64,
    INTEGER,
    MAXIMUM,
    MINIMUM,
    MULTIPLY,
    REMAINDER,
    SAME,
    SUBTRACT,
)
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import Binary, BinOp, Const, Expr, Var, integer_range
from tecomp.ir.nodes.stmt import PrimFunc
from tecomp.layout.formats.layout_tags import row_major_tag

C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
_OPERATIONS = {
    BinOp.ADD: ADD, BinOp.SUB: SUBTRACT, BinOp.MUL: MULTIPLY, BinOp.FLOORDIV: DIVIDE,
    BinOp.MOD: REMAINDER, BinOp.MIN: MINIMUM, BinOp.MAX: MAXIMUM,
}
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
    plan = _plan(func, parameters, scalars)
    bounded = _bounded_words(func)
    if plan is None or not arrays_are_known():
        return None
    words, steps, size = plan
    address = ctypes.cast(entry, ctypes.c_void_p).value or 0
    counts = len(scalars), len(parameters), len(bounded), len(steps)
    values = [address, len(func.params), size, int(is_parallel), *counts, *words]
    values += chain.from_iterable((*bounded, *steps))
    record = (ctypes.c_int64 * len(values))(*values)
    method = _MethodDef(func.name.encode(), process().call, _FASTCALL, None)
    api = ctypes.pythonapi
    capsule = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
    )(("PyCapsule_New", api))
    function = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object
    )(("PyCFunction_NewEx", api))
    # A built-in function keeps its module object alive: here, the objects that it refers to.
    keep = (record, method, entry, [(p.numpy, p.mark) for p in parameters])
    quick: Quick = function(
        ctypes.addressof(method), capsule(ctypes.addressof(record), None, None), keep
    )
    return quick


@dataclass(slots=True)
class _Steps:
    """Checks of extents and strides against constants, sizes and integer expressions of sizes.

    Attributes:
        slots: Words of the size variables.
        bound: Size variables that a previous argument determines.
        size: Number of words that are used so far.
        steps: Operation, target word and operands of each step.
    """

    slots: dict[Var, int]
    bound: set[Var]
    size: int
    steps: list[tuple[int, int, int, int]] = field(default_factory=list)

    def axis(self, extent: int | Expr) -> tuple[int, int] | None:
        """Return the `Axis` record of an extent or a stride; None if it is unsupported."""
        if isinstance(extent, int):
            return EXTENT, extent
        if isinstance(extent, Var) and extent in self.slots:
            kind = EQUALS if extent in self.bound else BINDS
            self.bound.add(extent)
            return kind, self.slots[extent]
        word = None if isinstance(extent, Var) else self._compare(extent)
        return None if word is None else (BINDS, word)

    def _compare(self, extent: Expr) -> int | None:
        """Return the word of an actual extent that must equal an expression; None if unsupported.

        The comparison follows all arrays, because a later array can determine a size.
        """
        value = self._value(extent)
        if value is None:
            return None
        actual = self._word()
        self.steps.append((SAME, 0, actual, value))
        return actual

    def _word(self) -> int:
        self.size += 1
        return self.size - 1

    def _value(self, expr: Expr) -> int | None:
        """Return the word of the value of an expression."""
        if expr.dtype != INT64:
            return None
        if isinstance(expr, Var):
            return self.slots.get(expr)
        if isinstance(expr, Const):
            return self._step(CONSTANT, int(expr.value), 0)
        if not isinstance(expr, Binary) or expr.op not in _OPERATIONS:
            return None
        left, right = self._value(expr.a), self._value(expr.b)
        if left is None or right is None:
            return None
        return self._step(_OPERATIONS[expr.op], left, right)

    def _step(self, operation: int, left: int, right: int) -> int:
        target = self._word()
        self.steps.append((operation, target, left, right))
        return target


def _plan(
    func: PrimFunc, parameters: Sequence[KernelParameter], scalars: Sequence[Scalar]
) -> tuple[list[int], list[tuple[int, int, int, int]], int] | None:
    """Return scalars and arrays of a plan, its steps and the number of words of its block.

    Return None if a plan cannot express the kernel.
    """
    first = FIRST_ARGUMENT_WORD + len(func.params)
    slots = {var: first + k for k, var in enumerate(func.sizes)}
    words: list[int] = []
    for position, logical, var in scalars:
        record = _scalar(logical, var)
        if record is None:
            return None
        words += [position, *record]
        slots[var] = FIRST_ARGUMENT_WORD + position
    steps = _Steps(slots, {var for _, _, var in scalars}, first + len(func.sizes))
    for p in parameters:
        if p.physical.index_count > 1 or p.buffer.has_offset:
            return None
        if p.numpy.itemsize & (p.numpy.itemsize - 1):
            return None
        flags = ALIGNED | (WRITEABLE if p.is_written else 0) | (0 if p.strides else C_CONTIGUOUS)
        mark = 0 if p.mark is None else id(p.mark)
        words += [p.position, id(p.numpy), flags, len(p.shape), p.numpy.itemsize]
        words += [p.is_written, mark, bool(p.strides)]
        axes = [*map(steps.axis, (*p.shape, *p.strides))]
        if None in axes:
            return None
        words += chain.from_iterable([axis for axis in axes if axis is not None])
    if steps.size > _MAX_WORDS or not steps.bound.issuperset(func.sizes):
        return None
    return words, steps.steps, steps.size


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
