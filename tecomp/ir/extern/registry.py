"""Registry of external functions and call signatures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import signature
from typing import Any, TypeVar, overload

import numpy as np

from tecomp.errors import DefinitionError, TypeMismatchError, safe_repr
from tecomp.ir.extern.c_function import ANY_POINTER, CArgument, CFunction, math_function
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Expr
from tecomp.ir.nodes.stmt import ArrayArgument, CallingConvention, ExternCall

F = TypeVar("F", bound=Callable[..., Any])

_REGISTERED: dict[str, Any] = {}


@overload
def register_func(func_name: str, f: F, override: bool = False) -> F: ...
@overload
def register_func(
    func_name: str, f: None = None, override: bool = False
) -> Callable[[F], F]: ...
@overload
def register_func(func_name: F, f: None = None, override: bool = False) -> F: ...
def register_func(func_name: Any, f: Any = None, override: bool = False) -> Any:
    """Register a function by name, for calls by `te.call_packed` and `te.call_extern`.

    Kernels look up the name when they are built or loaded and then keep the function. Another
    process that loads the kernel must register a function with the same name.

    Args:
        func_name: Name; or a Python function, which is registered by its own name.
        f: Python function of arrays and numbers, or a `tecomp.CFunction`. Default: return a
            decorator.
        override: If True, replace a function with the same name. Default: False.

    Returns:
        The function, or a decorator if `f` is None.

    Raises:
        DefinitionError: If the name is already registered and `override` is False.
        TypeMismatchError: If an argument has the wrong type.

    Example:
        >>> @register_func("example.twice", override=True)
        ... def twice(x, y):
        ...     y[...] = 2 * x
        >>> get_global_func("example.twice") is twice
        True
    """
    if callable(func_name) and f is None:
        return register_func(str(getattr(func_name, "__name__", "")), func_name, override)
    _check_name(func_name, "register_func")
    check_kind(override, bool | np.bool_, f"register_func {func_name}: override",
               "pass True or False", TypeMismatchError)
    if f is None:
        name = func_name
        return lambda function: register_func(name, function, override)
    if not callable(f):
        raise TypeMismatchError(
            "register_func {func_name}: function is {f!r}; pass a Python function or a "
            "tecomp.CFunction",
            kind="external-function", func_name=func_name, f=f,
        )
    if not override and func_name in _REGISTERED and _REGISTERED[func_name] is not f:
        raise DefinitionError(
            "register_func: {func_name} is already registered; use another name, or pass "
            "override=True",
            kind="external-function", func_name=func_name,
        )
    _REGISTERED[func_name] = f
    return f


def get_global_func(name: str, allow_missing: bool = False) -> Any:
    """Return the function that is registered as `name`.

    Args:
        name: Registered name.
        allow_missing: If True, return None for an unknown name. Default: False.

    Raises:
        DefinitionError: If the name is not registered and `allow_missing` is False.
        TypeMismatchError: If `name` is not a nonempty string.

    >>> get_global_func("example.nothing", allow_missing=True) is None
    True
    """
    _check_name(name, "get_global_func")
    if name not in _REGISTERED and not allow_missing:
        raise DefinitionError(
            "get_global_func: {remedy}",
            kind="external-function", remedy=unknown_function_message(name),
        )
    return _REGISTERED.get(name)


def remove_global_func(name: str) -> None:
    """Remove a name from the registry; kernels that are bound to the function keep it.

    Raises:
        DefinitionError: If the name is not registered.
        TypeMismatchError: If `name` is not a nonempty string.

    >>> _ = register_func("example.once", max)
    >>> remove_global_func("example.once")
    >>> "example.once" in list_global_func_names()
    False
    """
    _check_name(name, "remove_global_func")
    if _REGISTERED.pop(name, None) is None:
        raise DefinitionError(
            "remove_global_func: {remedy}",
            kind="external-function", remedy=unknown_function_message(name),
        )


def list_global_func_names() -> list[str]:
    """Return the sorted names of all registered functions.

    >>> _ = register_func("example.least", min, override=True)
    >>> "example.least" in list_global_func_names()
    True
    """
    return sorted(_REGISTERED)


def _check_name(name: object, where: str) -> None:
    if not isinstance(name, str) or not name:
        raise TypeMismatchError(
            "{where}: name must be a string, got {name!r}",
            kind="external-function", where=where, name=name,
        )


def unknown_function_message(name: str) -> str:
    """Return the message for an unregistered name: the nearest match and the remedy."""
    matches = get_close_matches(str(name), list(_REGISTERED), n=1)
    suggestion = f"write {safe_repr(matches[0])} if that is meant, or " if matches else ""
    return (
        f"no function is registered as {safe_repr(name)}; {suggestion}call "
        f"tecomp.register_func({safe_repr(name)}, f) "
        "first"
    )


def python_function(name: str, where: str, count: int | None = None) -> Callable[..., Any]:
    """Return the registered Python function of a name, checked to accept `count` arguments.

    Raises:
        DefinitionError: If no Python function has the name, or it does not accept `count`
            arguments.
    """
    found = _REGISTERED.get(name)
    if found is None:
        raise DefinitionError(
            "{where}: {remedy}",
            kind="external-function", where=where, remedy=unknown_function_message(name),
        )
    if isinstance(found, CFunction):
        raise DefinitionError(
            "{where}: {name} is a C function; call it with te.call_extern",
            kind="external-function", where=where, name=name,
        )
    if count is not None:
        _check_count(found, name, where, count)
    function: Callable[..., Any] = found
    return function


def _check_count(function: Any, name: str, where: str, count: int) -> None:
    try:
        accepted = signature(function)
    except (TypeError, ValueError):
        return  # built-in functions may lack a signature
    try:
        accepted.bind(*range(count))
    except TypeError:
        named = [p.replace(annotation=p.empty) for p in accepted.parameters.values()]
        unannotated = accepted.replace(parameters=named, return_annotation=accepted.empty)
        raise DefinitionError(
            "{where}: {name}{plain} is called with {count} argument{plural}; pass the expected "
            "number",
            kind="external-function", where=where, name=name, plain=unannotated, count=count,
            plural="s" * (count != 1),
        ) from None


def c_function(name: str, where: str) -> CFunction:
    """Return the C function of a name; functions of the C math library need not be registered.

    Raises:
        DefinitionError: If no C function has the name.
    """
    found = _REGISTERED.get(name) or math_function(name)
    if found is None:
        raise DefinitionError(
            "{where}: {remedy}",
            kind="external-function", where=where, remedy=unknown_function_message(name),
        )
    if not isinstance(found, CFunction):
        raise DefinitionError(
            "{where}: {name} is a Python function; call it with te.call_packed",
            kind="external-function", where=where, name=name,
        )
    return found


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Type of an array argument.

    Attributes:
        dtype: Dtype of the elements.
        rank: Number of axes.
        is_written: Whether the function may write the array.
    """

    dtype: DType
    rank: int
    is_written: bool


@dataclass(frozen=True, slots=True)
class NumberType:
    """Type of a scalar argument."""

    dtype: DType


@dataclass(frozen=True, slots=True)
class CallSignature:
    """Signature of an external call.

    Attributes:
        function: Registered name of the function.
        convention: Calling convention.
        arguments: Argument types in order; a string is passed as is.
        where: Name of the caller, for messages.
        result: Dtype of the used result; None if the call has no result.
    """

    function: str
    convention: CallingConvention
    arguments: tuple[ArrayType | NumberType | str, ...]
    where: str
    result: DType | None = None


def callee_of(call: ExternCall, where: str) -> CallSignature:
    """Return the signature of an external call statement."""
    arguments = tuple(map(_kind, call.arguments))
    return CallSignature(call.function, call.convention, arguments, where)


def _kind(argument: Any) -> ArrayType | NumberType | str:
    if isinstance(argument, ArrayArgument):
        dtype = argument.element.buffer.dtype
        return ArrayType(dtype, len(argument.shape), argument.is_written)
    return NumberType(argument.dtype) if isinstance(argument, Expr) else str(argument)


def function_of(callee: CallSignature) -> Any:
    """Return the currently registered function of a call after checking its signature.

    Raises:
        DefinitionError: If the function is not registered or has another signature.
    """
    name, where = callee.function, callee.where
    if callee.convention is CallingConvention.PACKED:
        return python_function(name, where, len(callee.arguments))
    found = c_function(name, where)
    _check_types(found.arguments, callee)
    if callee.result is not None and found.result != str(callee.result):
        text = f"gives a {found.result}" if found.result else "does not declare a result type"
        raise DefinitionError(
            "{where}: {name} {description}, but a {result} is expected; pass result= to its "
            "tecomp.CFunction",
            kind="external-function", where=where, name=name, description=text,
            result=callee.result,
        )
    return found


def _check_types(declared: Sequence[CArgument], callee: CallSignature) -> None:
    args, where = callee.arguments, callee.where
    name = callee.function
    takes = f"{name}({', '.join(map(str, declared))})"
    if len(args) != len(declared):
        raise DefinitionError(
            "{where}: {takes} is called with {given_count} argument{plural}; pass the expected "
            "number",
            kind="external-function", where=where, takes=takes, given_count=len(args),
            plural="s" * (len(args) != 1),
        )
    for number, (kind, arg) in enumerate(zip(declared, args, strict=True)):
        if (problem := _mismatch(kind, arg)) is not None:
            raise DefinitionError(
                "{where}: argument {number} of {takes} is {problem}",
                kind="external-function", where=where, number=number, takes=takes, problem=problem,
            )


def _mismatch(kind: CArgument, arg: ArrayType | NumberType | str) -> str | None:
    if isinstance(arg, str):
        return f"the text {safe_repr(arg)}; texts are passed to Python functions only"
    if isinstance(arg, NumberType):
        if kind.is_pointer:
            return f"a {arg.dtype}; pass an array, such as ins[0].access_ptr(\"r\")"
        if str(arg.dtype) != kind.dtype:
            return f'a {arg.dtype}; convert it with .astype("{kind.dtype}")'
        return None
    if not kind.is_pointer:
        return f"an array of {arg.dtype}; pass a number"
    if kind.dtype not in (ANY_POINTER, str(arg.dtype), str(arg.dtype.scalar)):
        return f"an array of {arg.dtype}; pass one of {kind.dtype}"
    if kind.is_const and arg.is_written:
        return 'an array that is written to; pass access_ptr("r"), or declare it without const'
    return None
