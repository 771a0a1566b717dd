"""What a call in a program passes to which function: all that is known of it before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tecomp.errors import DefinitionError
from tecomp.ir.language.dtype import DType
from tecomp.ir.language.expr import Expr
from tecomp.ir.language.outside_call import ArrayArgument, Convention, OutsideCall
from tecomp.ir.outside.c_function import ANY_POINTER, Argument
from tecomp.ir.outside.functions import c_function, python_function


@dataclass(frozen=True, slots=True)
class ArrayType:
    """An array that is passed.

    Attributes:
        dtype: of its elements.
        rank: how many axes it has.
        is_written: whether the function may write to it.
    """

    dtype: DType
    rank: int
    is_written: bool


@dataclass(frozen=True, slots=True)
class NumberType:
    """A number that is passed."""

    dtype: DType


@dataclass(frozen=True, slots=True)
class Callee:
    """What a call passes.

    Attributes:
        function: the name of what is called.
        convention: how.
        arguments: in order; a text is passed as it is.
        where: who calls, for messages.
        result: the type of the value that is used; None for none.
    """

    function: str
    convention: Convention
    arguments: tuple[ArrayType | NumberType | str, ...]
    where: str
    result: DType | None = None


def callee_of(call: OutsideCall, where: str) -> Callee:
    """What a call passes."""
    arguments = tuple(map(_kind, call.arguments))
    return Callee(call.function, call.convention, arguments, where)


def _kind(argument: Any) -> ArrayType | NumberType | str:
    if isinstance(argument, ArrayArgument):
        dtype = argument.place.buffer.dtype
        return ArrayType(dtype, len(argument.shape), argument.is_written)
    return NumberType(argument.dtype) if isinstance(argument, Expr) else str(argument)


def function_of(callee: Callee) -> Any:
    """The function that is registered now, if it takes what a call passes.

    Raises:
        DefinitionError: there is none, or it takes something else.
    """
    name, where = callee.function, callee.where
    if callee.convention is Convention.PACKED:
        return python_function(name, where, len(callee.arguments))
    found = c_function(name, where)
    _check_types(found.arguments, callee)
    if callee.result is not None and found.result != str(callee.result):
        said = f"gives a {found.result}" if found.result else "does not say what it gives"
        raise DefinitionError(
            f"{where}: {name} {said}, and a {callee.result} is asked for; say result= of its "
            "tecomp.CFunction",
            kind="outside-function",
        )
    return found


def _check_types(declared: Sequence[Argument], callee: Callee) -> None:
    given, where = callee.arguments, callee.where
    name = callee.function
    takes = f"{name}({', '.join(map(str, declared))})"
    if len(given) != len(declared):
        raise DefinitionError(
            f"{where}: {takes} is called with {len(given)} argument{'s' * (len(given) != 1)}; pass "
            "as many as it takes",
            kind="outside-function",
        )
    for number, (kind, each) in enumerate(zip(declared, given, strict=True)):
        if (problem := _mismatch(kind, each)) is not None:
            raise DefinitionError(
                f"{where}: argument {number} of {takes} is {problem}", kind="outside-function"
            )


def _mismatch(kind: Argument, given: ArrayType | NumberType | str) -> str | None:
    if isinstance(given, str):
        return f"the text {given!r}; texts are passed to Python functions only"
    if isinstance(given, NumberType):
        if kind.is_pointer:
            return f"a {given.dtype}; pass an array, such as ins[0].access_ptr(\"r\")"
        if str(given.dtype) != kind.dtype:
            return f'a {given.dtype}; convert it with .astype("{kind.dtype}")'
        return None
    if not kind.is_pointer:
        return f"an array of {given.dtype}; pass a number"
    if kind.dtype not in (ANY_POINTER, str(given.dtype), str(given.dtype.scalar)):
        return f"an array of {given.dtype}; pass one of {kind.dtype}"
    if kind.is_const and given.is_written:
        return 'an array that is written to; pass access_ptr("r"), or declare it without const'
    return None
