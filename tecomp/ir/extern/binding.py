"""Bind external functions to addresses, callbacks and arguments."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from struct import pack, unpack
from typing import Any

import numpy as np

from tecomp.errors import CallError
from tecomp.ir.extern.c_function import CFunction
from tecomp.ir.extern.registry import ArrayType, CallSignature, NumberType, function_of
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.stmt import CallingConvention

Array = np.ndarray[Any, np.dtype[Any]]


class ArgumentArray(np.ndarray[Any, np.dtype[Any]]):
    """NumPy view of program memory during a call, with the methods of TVM's `NDArray`."""

    def numpy(self) -> Array:
        """Return a copy, which remains valid after the call."""
        return np.array(self)

    asnumpy = numpy

    def copyto(self, target: Any) -> Any:
        """Copy the elements to `target` and return `target`."""
        np.copyto(target, self)
        return target

    def copyfrom(self, source: Any) -> ArgumentArray:
        """Copy the elements of `source` into this array and return this array."""
        np.copyto(self, source)
        return self


def as_call_argument(array: Array, *, is_written: bool) -> ArgumentArray:
    """Return `array` as a function argument; it is writable only if the function may write it."""
    found = array.view(ArgumentArray)
    found.flags.writeable = is_written
    return found


def array_at(
    address: int, dtype: DType, shape: Sequence[int], strides: Sequence[int], *, is_written: bool
) -> ArgumentArray:
    """Return an array over existing memory.

    Args:
        address: Address of the first element.
        dtype: Dtype of the elements; a vector dtype gives an extra last axis.
        shape: Extents.
        strides: Distance in elements between consecutive indices of each axis.
        is_written: Whether the function may write the array.
    """
    kind, lanes = dtype.numpy, dtype.lanes
    steps = [step * dtype.bytes for step in strides]
    full = tuple(shape)
    if lanes > 1:
        full, steps = (*full, lanes), [*steps, kind.itemsize]
    if 0 in full:
        return as_call_argument(np.empty(full, kind), is_written=is_written)
    spans = [(extent - 1) * step for extent, step in zip(full, steps, strict=True)]
    before, after = -sum(min(n, 0) for n in spans), sum(max(n, 0) for n in spans)
    memory: Any = (ctypes.c_uint8 * (before + after + kind.itemsize)).from_address(address - before)
    found = ArgumentArray(full, kind, memory, before, steps)
    if not is_written:
        found.flags.writeable = False
    return found


_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
_MAX_EXCEPTIONS = 256
"""Maximum number of pending exceptions, of which each thread has at most one."""


@dataclass(frozen=True, slots=True)
class ExternBindings:
    """External functions bound to compiled code.

    Attributes:
        addresses: Address of each symbol.
        references: Objects that must outlive the code.
    """

    addresses: Mapping[str, int] = field(default_factory=dict)
    references: tuple[Any, ...] = ()


NOTHING = ExternBindings()

Calls = tuple[tuple[str, CallSignature], ...]
"""Symbols of machine code, each with the signature of its calls."""


def bind(calls: Calls) -> ExternBindings:
    """Bind the external calls of some code to the currently registered functions.

    Raises:
        DefinitionError: If a function is not registered or has another signature.
    """
    addresses: dict[str, int] = {}
    keep: list[Any] = []
    for symbol, callee in calls:
        function = function_of(callee)
        if isinstance(function, CFunction):
            addresses[symbol] = function.address
            keep.append(function)
            continue
        callback = _CALLBACK(_guard(function, callee))
        addresses[symbol] = ctypes.cast(callback, ctypes.c_void_p).value or 0
        keep.append(callback)
    return ExternBindings(addresses, tuple(keep))


def words_of(callee: CallSignature) -> int:
    """Return the number of 64-bit words that a call of a Python function passes."""
    return sum(_size(arg) for arg in callee.arguments)


def _size(argument: ArrayType | NumberType | str) -> int:
    if isinstance(argument, ArrayType):
        return 1 + 2 * argument.rank
    return 0 if isinstance(argument, str) else 1


class _Raised:
    """Exceptions that external functions raised in kernels that are still running."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._exceptions: OrderedDict[int, BaseException] = OrderedDict()

    def keep(self, error: BaseException) -> int:
        """Store an exception and return the number under which `take` finds it."""
        number = next(self._numbers)
        self._exceptions[number] = error
        # If several threads raise, only one exception is taken, so the oldest are evicted.
        while len(self._exceptions) > _MAX_EXCEPTIONS:
            self._exceptions.popitem(last=False)
        return number

    def take(self, number: int) -> BaseException | None:
        """Remove and return the exception with a number, or None."""
        return self._exceptions.pop(number, None)


RAISED = _Raised()


def _guard(function: Callable[..., Any], callee: CallSignature) -> Callable[[int], int]:
    words = ctypes.c_int64 * max(words_of(callee), 1)

    def run(address: int) -> int:
        try:
            function(*_values(list(words.from_address(address)), callee))
        except BaseException as error:
            return RAISED.keep(error)
        return 0

    return run


def _values(words: Sequence[int], callee: CallSignature) -> list[Any]:
    found: list[Any] = []
    offset = 0
    for k, arg in enumerate(callee.arguments):
        size = _size(arg)
        chunk = words[offset : offset + size]
        offset += size
        if isinstance(arg, ArrayType):
            address, shape, strides = chunk[0], chunk[1 : 1 + arg.rank], chunk[1 + arg.rank :]
            if any(extent < 0 for extent in shape):
                raise CallError(
                    "{where}: argument {k} of {function} begins {size} elements past the end of "
                    "its tensor; pass an offset in bounds to access_ptr",
                    kind="index-out-of-bounds", where=callee.where, k=k, function=callee.function,
                    size=-min(shape),
                )
            found.append(
                array_at(address, arg.dtype, shape, strides, is_written=arg.is_written))
        elif isinstance(arg, NumberType):
            found.append(_number(arg, chunk[0]))
        else:
            found.append(arg)
    return found


def _number(kind: NumberType, word: int) -> bool | int | float:
    if kind.dtype.is_bool:
        return bool(word)
    if kind.dtype.is_float:
        return float(unpack("d", pack("q", word))[0])
    return word % 2**64 if kind.dtype.kind == "uint" else word


def invoker(callee: CallSignature) -> Callable[[Sequence[Any]], None]:
    """Return the function that calls an external function with arrays, numbers and strings.

    Raises:
        DefinitionError: If the function is not registered or has another signature.
    """
    function = function_of(callee)
    kinds = callee.arguments
    if callee.convention is CallingConvention.C:
        return lambda values: function(*(
            value.ctypes.data if isinstance(value, np.ndarray) else value for value in values
        ))

    def call(values: Sequence[Any]) -> None:
        function(*map(_check_value, kinds, values))

    return call


def _check_value(kind: ArrayType | NumberType | str, value: Any) -> Any:
    if isinstance(kind, ArrayType):
        return as_call_argument(value, is_written=kind.is_written)
    if isinstance(kind, str):
        return kind
    return number(value, kind)


def number(value: Any, kind: NumberType) -> bool | int | float:
    """Convert a value to the Python number that an external function receives."""
    if kind.dtype.is_bool:
        return bool(value)
    return float(value) if kind.dtype.is_float else int(value)
