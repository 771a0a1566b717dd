"""Addresses for the functions that machine code calls: C functions, and callbacks into Python.

Code keeps no address, but symbols, each with the callee of its calls; which function it is is
asked anew whenever code is loaded. A Python function is called through a callback, which ctypes
makes: it takes Python's lock for as long as the function runs. The code hands it the address of
words of 64 bits: of an array its address, its extents and its strides in elements, of a number its
bits, a float as a double. It gives 0, or a number under which the exception is kept that the
function raised.
"""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from struct import pack, unpack
from typing import Any

from tecomp.errors import CallError
from tecomp.ir.outside.arrays import array_at
from tecomp.ir.outside.c_function import CFunction
from tecomp.ir.outside.callee import ArrayType, Callee, NumberType, function_of

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
_MOST_RAISED = 256
"""Exceptions that wait for the kernel to end: one for each thread."""


@dataclass(frozen=True, slots=True)
class Outside:
    """Functions that code calls.

    Attributes:
        addresses: by symbol.
        keep: what has to stay as long as the code does.
    """

    addresses: Mapping[str, int] = field(default_factory=dict)
    keep: tuple[Any, ...] = ()


NOTHING = Outside()

Calls = tuple[tuple[str, Callee], ...]
"""Symbols of machine code, each with what its calls pass."""


def bind(calls: Calls) -> Outside:
    """The functions that are registered now for the calls of some code.

    Raises:
        DefinitionError: there is none, or it takes something else.
    """
    addresses: dict[str, int] = {}
    keep: list[Any] = []
    for symbol, callee in calls:
        function = function_of(callee)
        if isinstance(function, CFunction):
            addresses[symbol] = function.address
            keep.append(function)
            continue
        callback = _CALLBACK(_guarded(function, callee))
        addresses[symbol] = ctypes.cast(callback, ctypes.c_void_p).value or 0
        keep.append(callback)
    return Outside(addresses, tuple(keep))


def words_of(callee: Callee) -> int:
    """How many words a call of a Python function hands over."""
    return sum(_size(each) for each in callee.arguments)


def _size(argument: ArrayType | NumberType | str) -> int:
    if isinstance(argument, ArrayType):
        return 1 + 2 * argument.rank
    return 0 if isinstance(argument, str) else 1


class _Raised:
    """The exceptions that functions raised inside of kernels which run yet."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._kept: OrderedDict[int, BaseException] = OrderedDict()

    def keep(self, error: BaseException) -> int:
        """A number under which an exception is found again."""
        number = next(self._numbers)
        self._kept[number] = error
        # Of several threads only one is heard.
        while len(self._kept) > _MOST_RAISED:
            self._kept.popitem(last=False)
        return number

    def take(self, number: int) -> BaseException | None:
        """The exception of a number, which is forgotten."""
        return self._kept.pop(number, None)


RAISED = _Raised()


def _guarded(function: Callable[..., Any], callee: Callee) -> Callable[[int], int]:
    words = ctypes.c_int64 * max(words_of(callee), 1)

    def run(address: int) -> int:
        try:
            function(*_values(list(words.from_address(address)), callee))
        except BaseException as error:
            return RAISED.keep(error)
        return 0

    return run


def _values(words: Sequence[int], callee: Callee) -> list[Any]:
    found: list[Any] = []
    at = 0
    for k, each in enumerate(callee.arguments):
        size = _size(each)
        given = words[at : at + size]
        at += size
        if isinstance(each, ArrayType):
            address, shape, strides = given[0], given[1 : 1 + each.rank], given[1 + each.rank :]
            if any(extent < 0 for extent in shape):
                raise CallError(
                    f"{callee.where}: argument {k} of {callee.function} begins {-min(shape)} "
                    "elements behind the end of its tensor; give access_ptr an offset inside",
                    kind="outside-index",
                )
            found.append(
                array_at(address, each.dtype, shape, strides, is_written=each.is_written))
        elif isinstance(each, NumberType):
            found.append(_number(each, given[0]))
        else:
            found.append(each)
    return found


def _number(kind: NumberType, word: int) -> bool | int | float:
    if kind.dtype.is_bool:
        return bool(word)
    if kind.dtype.is_float:
        return float(unpack("d", pack("q", word))[0])
    return word % 2**64 if kind.dtype.kind == "uint" else word
