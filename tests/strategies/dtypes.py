"""Dtypes by kind, from the tables of the compiler and of the array namespace."""

from __future__ import annotations

import numpy as np

import tecomp.array as xp
from tecomp.ir import SCALARS, DType

SIGNED = tuple(name for name in SCALARS if DType(name).kind == "int")
UNSIGNED = tuple(name for name in SCALARS if DType(name).kind == "uint")
INTEGERS = SIGNED + UNSIGNED
FLOATS = tuple(name for name in SCALARS if DType(name).is_float)
NUMPY_SCALARS = tuple(name for name in SCALARS if hasattr(np, name))
"""All dtypes of the compiler but `bfloat16`, which NumPy has from ml_dtypes."""
NUMPY_FLOATS = tuple(name for name in FLOATS if name in NUMPY_SCALARS)


def standard(*kinds: str) -> tuple[str, ...]:
    """Return the dtypes of the array API standard that arrays have, of the given kinds or all."""
    info = xp.__array_namespace_info__()
    return tuple(name for kind in kinds or (None,) for name in info.dtypes(kind=kind))
