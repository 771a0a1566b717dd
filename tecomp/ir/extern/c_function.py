"""Functions of C libraries."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir.nodes.argument_checks import check_kind, check_list, is_one_of
from tecomp.ir.nodes.dtype import DType

ANY_POINTER = "handle"

_OF_CTYPES: Mapping[Any, str] = MappingProxyType({
    ctypes.c_int8: "int8", ctypes.c_int16: "int16", ctypes.c_int32: "int32",
    ctypes.c_int64: "int64", ctypes.c_uint8: "uint8", ctypes.c_uint16: "uint16",
    ctypes.c_uint32: "uint32", ctypes.c_uint64: "uint64", ctypes.c_float: "float32",
    ctypes.c_double: "float64", ctypes.c_bool: "bool",
})

_SCALARS = tuple(_OF_CTYPES.values())


_FUNCTION: type = ctypes.CFUNCTYPE(None).__mro__[1]
"""Common base class of all `ctypes` functions."""


@dataclass(frozen=True, slots=True)
class CArgument:
    """C type of a parameter.

    Attributes:
        dtype: Dtype of the number or of the pointer target; `handle` for an untyped pointer.
        is_pointer: Whether the parameter is a pointer.
        is_const: Whether the function only reads the target.
    """

    dtype: str
    is_pointer: bool = False
    is_const: bool = False

    def __str__(self) -> str:
        if self.dtype == ANY_POINTER:
            return ANY_POINTER
        return f"{'const ' if self.is_const else ''}{self.dtype}{'*' if self.is_pointer else ''}"


class CFunction:
    """Function of a shared library that compiled code calls directly, without Python.

    The function runs on the calling thread of the kernel and without the GIL.

    Args:
        function: Path of a shared library or a `ctypes.CDLL`, together with `symbol`; or a `ctypes`
            function.
        symbol: Name of the function in the library.
        arguments: Parameter types: numbers such as `int32` or `float64`, pointers such as
            `float32*`, `const float32*` (read only) or `handle` (untyped). Default: the `argtypes`
            of a `ctypes` function.
        result: Dtype of the returned number, which `te.call_pure_extern` requires. Default: the
            `restype` of the `ctypes` function if `arguments` is None too, otherwise unknown.

    Attributes:
        name: Name of the function.
        address: Memory address of the function.
        arguments: Parameter types.
        result: Dtype of the returned number; None if unknown.

    Raises:
        DefinitionError: If the library or function is not found, or parameter types are missing.
        TypeMismatchError: If an argument has the wrong type, or a type name is unknown.

    >>> import ctypes
    >>> absolute = CFunction(ctypes.CDLL(None), "abs", ["int32"], "int32")
    >>> absolute, absolute(-3)
    (CFunction(abs(int32)), 3)
    >>> absolute.name, [str(argument) for argument in absolute.arguments], absolute.result
    ('abs', ['int32'], 'int32')
    >>> absolute.address > 0
    True
    """

    __slots__ = ("_keep", "address", "arguments", "name", "result")

    def __init__(
        self,
        function: Any,
        symbol: str | None = None,
        arguments: Sequence[str] | None = None,
        result: str | None = None,
    ) -> None:
        found = _find(function, symbol)
        self.name = symbol or str(getattr(found, "__name__", "function"))
        self.address: int = ctypes.cast(found, ctypes.c_void_p).value or 0
        self.arguments = _arguments(self.name, found, arguments)
        if result is None and arguments is None:
            result = _OF_CTYPES.get(getattr(found, "restype", None))
        self.result = None if result is None else _number(result, f"CFunction {self.name}: result")
        # Keep the library loaded while its address is in use.
        self._keep = (function, found)

    def __repr__(self) -> str:
        return f"CFunction({self.name}({', '.join(map(str, self.arguments))}))"

    def __call__(self, *values: Any) -> Any:
        """Call the function with numbers and addresses; return a number if `result` is known."""
        kinds = [_ctype(arg) for arg in self.arguments]
        result = None if self.result is None else _ctype(CArgument(self.result))
        return ctypes.CFUNCTYPE(result, *kinds)(self.address)(*values)


def _find(function: Any, symbol: str | None) -> Any:
    """Return the `ctypes` function."""
    if symbol is None:
        if not isinstance(function, _FUNCTION):
            raise TypeMismatchError(
                "CFunction: function is {function!r}; pass a ctypes function, or a library or its "
                "path, and the symbol",
                kind="external-function", function=function,
            )
        return function
    check_kind(symbol, str, "CFunction: symbol", "give a name", TypeMismatchError)
    library = function
    if isinstance(function, str | os.PathLike):
        try:
            library = ctypes.CDLL(os.fspath(function))
        except (OSError, ValueError) as error:  # ValueError: the string is not a valid path
            raise DefinitionError(
                "CFunction {symbol}: cannot load the library {path} ({reason}); pass the path of a "
                "shared library",
                kind="external-function", symbol=symbol, path=os.fspath(function), reason=error,
            ) from None
    if not isinstance(library, ctypes.CDLL):
        raise TypeMismatchError(
            "CFunction {symbol}: library is {library!r}; pass a path or a ctypes.CDLL",
            kind="external-function", symbol=symbol, library=library,
        )
    try:
        return library[symbol]
    except (AttributeError, ValueError):
        raise DefinitionError(
            "CFunction {symbol}: symbol not found in the library {name}; check its symbols, and "
            'declare C++ functions as extern "C"',
            kind="external-function", symbol=symbol, name=library._name or "of this process",
        ) from None


def _arguments(name: str, found: Any, types: Sequence[str] | None) -> tuple[CArgument, ...]:
    where = f"CFunction {name}: arguments"
    if types is None:
        declared = getattr(found, "argtypes", None)
        if declared is None:
            raise DefinitionError(
                "CFunction {name}: argument types are not declared; pass arguments=, such as "
                '["const float32*", "float32*", "int64"], or set its argtypes',
                kind="external-function", name=name,
            )
        return tuple(_of_ctypes(kind, where) for kind in declared)
    check_list(types, str, where, "pass a list of types", TypeMismatchError)
    return tuple(_argument(text, where) for text in types)


def _argument(text: str, where: str) -> CArgument:
    words = text.split()
    is_const = words[:1] == ["const"]
    type_name = "".join(words[1:] if is_const else words)
    is_pointer = type_name.endswith("*")
    kind = type_name.removesuffix("*")
    if kind == ANY_POINTER and not is_pointer:
        return CArgument(ANY_POINTER, is_pointer=True, is_const=is_const)
    if is_pointer and kind not in _SCALARS:
        # A pointer target may have any dtype of arrays.
        return CArgument(str(DType(kind)), is_pointer=True, is_const=is_const)
    if kind not in _SCALARS or (is_const and not is_pointer):
        raise TypeMismatchError(
            '{where}: unknown type {text!r}; use {scalars}, a pointer such as "float32*" or "const '
            'float32*", or "{any_pointer}"',
            kind="external-function", where=where, text=text, scalars=", ".join(_SCALARS),
            any_pointer=ANY_POINTER,
        )
    return CArgument(kind, is_pointer, is_const)


def _number(text: Any, where: str) -> str:
    if not is_one_of(text, _SCALARS):
        raise TypeMismatchError(
            "{where}: unknown number type {text!r}; use {scalars}",
            kind="external-function", where=where, text=text, scalars=", ".join(_SCALARS),
        )
    return str(text)


def _of_ctypes(kind: Any, where: str) -> CArgument:
    if kind in _OF_CTYPES:
        return CArgument(_OF_CTYPES[kind])
    if kind is ctypes.c_void_p:
        return CArgument(ANY_POINTER, is_pointer=True)
    target = getattr(kind, "_type_", None)
    if isinstance(kind, type) and issubclass(kind, ctypes._Pointer) and target in _OF_CTYPES:
        return CArgument(_OF_CTYPES[target], is_pointer=True)
    raise TypeMismatchError(
        "{where}: ctypes type {type_name} is neither a number nor a pointer to numbers; pass "
        "arguments=",
        kind="external-function", where=where, type_name=getattr(kind, "__name__", kind),
    )


def _ctype(argument: CArgument) -> Any:
    if argument.is_pointer:
        return ctypes.c_void_p
    return next(kind for kind, name in _OF_CTYPES.items() if name == argument.dtype)


_UNARY = (
    "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor lgamma "
    "log log10 log1p log2 nearbyint rint round sin sinh sqrt tan tanh tgamma trunc"
)
_BINARY = "atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder"
_COUNTS = {**dict.fromkeys(_UNARY.split(), 1), **dict.fromkeys(_BINARY.split(), 2)}


@cache
def math_function(name: str) -> CFunction | None:
    """Return a function of the C math library, or None if it has none of this name.

    Names follow C: float64 functions have no suffix, float32 functions the suffix `f`.

    >>> math_function("tgammaf"), math_function("tgama")
    (CFunction(tgammaf(float32)), None)
    """
    kind, stem = ("float64", name) if name in _COUNTS else ("float32", name.removesuffix("f"))
    if stem not in _COUNTS or stem + "f" * (kind == "float32") != name:
        return None
    # Import lazily: `ctypes.util` imports subprocess, shutil and further modules.
    from ctypes.util import find_library

    path = find_library("m") or find_library("c")
    library = None if path is None else ctypes.CDLL(path)
    if library is None or not hasattr(library, name):
        return None
    return CFunction(library, name, [kind] * _COUNTS[stem], kind)
