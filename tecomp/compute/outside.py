"""Calls of functions that were registered, as statements: `te.call_packed`, `te.call_extern`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tecomp.compute.arithmetic import Value, value_of
from tecomp.compute.builder import Operand, integer
from tecomp.compute.ir_builder import BufferVar
from tecomp.compute.shape import dtype_of
from tecomp.errors import TypeMismatchError
from tecomp.ir.language.dtype import INT64, DType
from tecomp.ir.language.expr import Call, Expr, const
from tecomp.ir.language.given import is_one_of
from tecomp.ir.language.intrinsics import outside_call
from tecomp.ir.language.outside_call import ArrayArgument, Convention, OutsideCall, Passed
from tecomp.ir.language.stmt import Stmt
from tecomp.ir.outside.c_function import Argument
from tecomp.ir.outside.callee import Callee, NumberType, callee_of, function_of
from tecomp.ir.outside.functions import c_function, get_global_func

_FLOAT64 = DType("float64")
_NO_VALUE = ("", "void", "handle")


def call_packed(name: str, *args: Any, multiply_adds: Value | None = None) -> Stmt:
    """A statement that calls a Python function, which was registered or will be.

    The function gets NumPy arrays, which are views of the memory that the schedule gives the
    operands: those of inputs are read-only, and none may be kept after the call. It runs under
    Python's lock, wherever the call is. What it raises, the caller of the kernel gets.

    Args:
        name: under which `tecomp.register_func` has it when the kernel is built or loaded.
        args: operands, as a whole; `operand.access_ptr(...)`; numbers; texts.
        multiply_adds: how many it does, for `kernel.report()`, which says that it does not know
            if None.

    Raises:
        DefinitionError: the function is registered already and takes another number of arguments.
        TypeMismatchError: an argument is of another kind.

    Example:
        >>> import tecomp
        >>> from tecomp import te
        >>> @tecomp.register_func("example.sorted", override=True)
        ... def sorted_rows(x, y):
        ...     y[...] = x
        ...     y.sort()
        >>> A = te.placeholder((4, 16), name="A")
        >>> te.extern((4, 16), [A], lambda ins, outs: te.call_packed(
        ...     "example.sorted", ins[0], outs[0]), name="B")
        Tensor(B, shape=(4, 16), dtype=float32)
    """
    where = "te.call_packed"
    _check_name(name, where)
    call = OutsideCall(name, Convention.PACKED, tuple(
        _passed(each, f"{where} {name}: argument {k}") for k, each in enumerate(args)
    ), _work(multiply_adds, f"{where} {name}"))
    if get_global_func(name, allow_missing=True) is not None:
        function_of(callee_of(call, where))
    return call


def call_extern(
    dtype: str, name: str, *args: Any, multiply_adds: Value | None = None
) -> Stmt:
    """A statement that calls a C function, which was registered as a `tecomp.CFunction`.

    The function gets addresses and numbers, runs on the thread that comes to the call, and does
    without Python. What it returns is not looked at.

    Args:
        dtype: the type that it returns; `void` or `handle` as well.
        name: under which `tecomp.register_func` has it.
        args: `operand.access_ptr("r")` or `("w")`, which gives the address of elements in
            row-major order without gaps; operands; numbers.
        multiply_adds: how many it does, for `kernel.report()`, which says that it does not know
            if None.

    Raises:
        DefinitionError: no such function is registered, or it takes something else.
        TypeMismatchError: an argument is of another kind.

    >>> import ctypes
    >>> from tecomp import CFunction, register_func, te
    >>> copy = CFunction(ctypes.CDLL(None), "memcpy", ["handle", "const handle", "uint64"])
    >>> _ = register_func("example.memcpy", copy, override=True)
    >>> def copied(ins, outs):
    ...     to, given = outs[0].access_ptr("w"), ins[0].access_ptr("r")
    ...     return te.call_extern("handle", "example.memcpy", to, given, 32)
    >>> te.extern((8,), te.placeholder((8,), name="A"), copied, name="C")
    Tensor(C, shape=(8,), dtype=float32)
    """
    where = "te.call_extern"
    _check_name(name, where)
    if not is_one_of(dtype, _NO_VALUE):
        dtype_of(dtype, f"{where} {name}")
    declared = c_function(name, where).arguments
    given = [
        _number_as(each, declared[k]) if k < len(declared) else each for k, each in enumerate(args)
    ]
    call = OutsideCall(name, Convention.C, tuple(
        _passed(each, f"{where} {name}: argument {k}") for k, each in enumerate(given)
    ), _work(multiply_adds, f"{where} {name}"))
    function_of(callee_of(call, where))
    return call


def call_pure_extern(dtype: str, name: str, *args: Any) -> Expr:
    """The number that a C function gives for numbers, and for nothing else: it has no effect.

    It may be called for any element any number of times. A vectorized loop calls it lane by lane.

    Args:
        dtype: the type that it gives.
        name: under which `tecomp.register_func` has it, as a `tecomp.CFunction` with `result=`; or
            that of a function of the C math library, such as `expf` or `pow`.
        args: numbers; those of Python are taken in the type that the function takes.

    Raises:
        DefinitionError: no such function is registered, or it takes or gives something else.

    Example:
        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> te.compute((8,), lambda i: te.call_pure_extern("float32", "cbrtf", A[i]))
        Tensor(compute, shape=(8,), dtype=float32)
    """
    where = "te.call_pure_extern"
    _check_name(name, where)
    result = dtype_of(dtype, f"{where} {name}")
    declared = c_function(name, where).arguments
    values = tuple(
        value_of(_number_as(each, declared[k]) if k < len(declared) else each)
        for k, each in enumerate(args)
    )
    kinds = tuple(NumberType(value.dtype) for value in values)
    function_of(Callee(name, Convention.C, kinds, where, result))
    return Call(outside_call(name), values, result)


def _check_name(name: object, where: str) -> None:
    if not isinstance(name, str) or not name:
        raise TypeMismatchError(
            f"{where}: the name of the function is {name!r}; give the text that it is "
            "registered as",
            kind="outside-function",
        )


def _work(multiply_adds: Value | None, where: str) -> Expr | None:
    return None if multiply_adds is None else integer(multiply_adds, f"{where}: multiply_adds")


def _passed(given: Any, where: str) -> Passed:
    if isinstance(given, BufferVar):
        given = given.operand
    if isinstance(given, Operand):
        return given.array(is_written=not given.is_input)
    if isinstance(given, ArrayArgument | str):
        return given
    if isinstance(given, Stmt | Sequence):
        raise TypeMismatchError(
            f"{where} is {given!r} ({type(given).__name__}); give operands, "
            "operand.access_ptr(...), numbers and texts one by one",
            kind="outside-function",
        )
    number = _literal(given)
    return value_of(given) if number is None else number


def _literal(given: Any) -> Expr | None:
    """A number of Python's, which says no type of its own."""
    if isinstance(given, bool | np.generic):
        return None
    if isinstance(given, int):
        return const(given, INT64)
    return const(given, _FLOAT64) if isinstance(given, float) else None


def _number_as(given: Any, declared: Argument) -> Any:
    """A number of Python's in the type that a C function takes."""
    is_number = isinstance(given, bool | int | float)
    if not is_number or declared.is_pointer:
        return given
    kind = DType(declared.dtype)
    if isinstance(given, float) and kind.is_integer:
        return given
    return const(given, kind)
