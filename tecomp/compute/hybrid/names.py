"""What hybrid functions may call: in a definition, and when Python runs them on arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from tecomp.compute import intrinsics, reduce
from tecomp.compute.arithmetic import value_of
from tecomp.compute.intrinsics import cast
from tecomp.compute.shape import dtype_of
from tecomp.ir.language.dtype import DType

LOOPS: Mapping[str, str] = MappingProxyType({
    "range": "serial", "serial": "serial", "parallel": "parallel", "vectorize": "vectorize",
    "unroll": "unroll", "bind": "serial", "const_range": "const",
})
"""How loops run; those bound to threads run one iteration after the other."""

_TYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64",
)  # fmt: skip
_MATH = (
    "exp exp2 log log2 log10 sqrt rsqrt tanh sigmoid sin cos tan atan floor ceil trunc round "
    "fabs erf popcount power fmod isnan isinf abs"
)
_NUMPY = (
    "exp exp2 log log2 log10 sqrt tanh sin cos tan floor ceil trunc fabs power fmod isnan isinf"
)


def ceil_div(a: Any, b: Any) -> Any:
    """`a / b`, rounded up."""
    return (a + b - 1) // b


def likely(condition: Any) -> Any:
    """The condition, which mostly holds."""
    return condition


def _conversion(name: str) -> Callable[[Any], Any]:
    return lambda value: cast(value_of(value), DType(name))


FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    **{name: getattr(intrinsics, name) for name in _MATH.split()},
    **{name: _conversion(name) for name in _TYPES},
    "min": lambda a, b: reduce.min(a, b), "max": lambda a, b: reduce.max(a, b),
    "ceil_div": ceil_div, "likely": likely,
    "max_num_threads": lambda allow_none=True: 1,
})
"""What gives a value in a definition."""


def _zeros(shape: Any, dtype: object = "float32", scope: str = "global") -> np.ndarray[Any, Any]:
    return np.zeros(shape, dtype_of(dtype, "te.hybrid").numpy)


def _threads(tag: str, extent: int) -> range:
    return range(extent)


def _popcount(value: Any) -> int:
    return int(value).bit_count()


PYTHON: Mapping[str, Any] = MappingProxyType({
    **dict.fromkeys(("serial", "parallel", "vectorize", "unroll", "const_range"), range),
    **{name: getattr(np, name) for name in _TYPES if name != "bool"},
    **{name: getattr(np, name) for name in _NUMPY.split()},
    "atan": np.arctan,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": math.erf,
    "popcount": _popcount,
    "bind": _threads,
    "output_tensor": _zeros,
    "allocate": _zeros,
    "ceil_div": ceil_div,
    "likely": likely,
    "max_num_threads": lambda allow_none=True: 1,
})
"""What these names mean to Python, besides its own `range`, `len`, `min` and `max`."""
