"""Functions of the C math library, which need not be registered: their types are known."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module

from tecomp.ir.outside.c_function import CFunction

_UNARY = (
    "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor lgamma "
    "log log10 log1p log2 nearbyint rint round sin sinh sqrt tan tanh tgamma trunc"
)
_BINARY = "atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder"
_COUNTS = {**dict.fromkeys(_UNARY.split(), 1), **dict.fromkeys(_BINARY.split(), 2)}


@cache
def math_function(name: str) -> CFunction | None:
    """The function of float64, or with an `f` after its name of float32; None if there is none.

    >>> math_function("tgammaf"), math_function("tgama")
    (CFunction(tgammaf(float32)), None)
    """
    kind, stem = ("float64", name) if name in _COUNTS else ("float32", name.removesuffix("f"))
    if stem not in _COUNTS or stem + "f" * (kind == "float32") != name:
        return None
    # What looks for libraries loads what starts processes, packs files and draws random numbers.
    find = import_module("ctypes.util").find_library
    path = find("m") or find("c")
    library = None if path is None else ctypes.CDLL(path)
    if library is None or not hasattr(library, name):
        return None
    return CFunction(library, name, [kind] * _COUNTS[stem], kind)
