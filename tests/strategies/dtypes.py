"""Dtypes by kind, from the tables of the compiler and of the array namespace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp.ir import SCALARS, DType
from tecomp.operations import element_type

SIGNED = tuple(name for name in SCALARS if DType(name).kind == "int")
UNSIGNED = tuple(name for name in SCALARS if DType(name).kind == "uint")
INTEGERS = SIGNED + UNSIGNED
FLOATS = tuple(name for name in SCALARS if DType(name).is_float)
FLOATS_WITH_ZERO = tuple(name for name in FLOATS if "0" in element_type(name).special_values)
WITH_ZERO = tuple(name for name in SCALARS if name not in FLOATS or name in FLOATS_WITH_ZERO)
"""All dtypes of the compiler but powers of two, in which sums and most literals do not exist."""
NUMPY_SCALARS = tuple(name for name in SCALARS if hasattr(np, name))
"""All dtypes of the compiler but those that NumPy has from ml_dtypes."""
NUMPY_FLOATS = tuple(name for name in FLOATS if name in NUMPY_SCALARS)


def in_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a NumPy function whose result wraps to integers of less than 8 bits.

    ml_dtypes computes most functions of such integers in int8, or has none.
    """

    def call(*arrays: Any) -> Any:
        kind = arrays[0].dtype
        if kind.kind != "V" or DType(kind.name).is_float:
            return function(*arrays)
        result = function(*(x.astype("int64") for x in arrays))
        return result if result.dtype == bool else result.astype(kind)

    return call


def standard(*kinds: str) -> tuple[str, ...]:
    """Return the dtypes of the array API standard that arrays have, of the given kinds or all."""
    info = xp.__array_namespace_info__()
    return tuple(name for kind in kinds or (None,) for name in info.dtypes(kind=kind))
