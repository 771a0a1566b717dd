"""Which element type two of them meet in; numbers of Python take the type of the array."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from tecomp.errors import ArrayTypeError
from tecomp.ptensor.types import numpy_dtype

BOOLEAN = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
REAL = (*INTEGERS, *FLOATS)
FLOATING = (*FLOATS, *COMPLEX)
NUMERIC = (*REAL, *COMPLEX)
ALL = (*BOOLEAN, *NUMERIC)

PART = {"complex64": "float32", "complex128": "float64"}
"""The type of the real part, which is stored beside the imaginary part."""

WHOLE = {**dict.fromkeys(("float16", "bfloat16", "float32"), "complex64"), "float64": "complex128"}


@cache
def promoted(first: str, second: str) -> str:
    """The type that arrays of two types meet in: the standard's, and NumPy's where it has none.

    >>> promoted("int8", "uint8"), promoted("float32", "complex128"), promoted("int32", "float32")
    ('int16', 'complex128', 'float64')
    """
    if first == second:
        return first
    if "bfloat16" in (first, second):
        return _with_bfloat16(*({first, second} - {"bfloat16"}))
    return np.result_type(numpy_dtype(first), numpy_dtype(second)).name


def _with_bfloat16(other: str) -> str:
    if other in (*BOOLEAN, *INTEGERS):
        return "bfloat16"
    return promoted("float32", other)


def meet(dtypes: Sequence[str]) -> str:
    """The type that arrays of these types meet in."""
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = promoted(result, dtype)
    return result


def need_dtype(
    dtype: str, taken: Sequence[str], where: str, what: str = "the elements are"
) -> None:
    """Refuse elements that an operation does not take.

    Args:
        dtype: the type of the elements.
        taken: the types that it takes.
        where: the operation, for messages.
        what: how messages begin.

    Raises:
        ArrayTypeError: it is none of them.
    """
    if dtype not in taken:
        raise ArrayTypeError(
            f"{where}: {what} {dtype}, and it takes {', '.join(taken)}; convert them, "
            "xp.astype(x, dtype)"
        )


def of_scalar(value: bool | int | float | complex, dtype: str, where: str) -> str:
    """The type that a number of Python takes beside an array.

    Args:
        value: the number.
        dtype: of the array.
        where: the operation, for messages.

    Raises:
        ArrayTypeError: an int is out of the range of the array's type.

    >>> [of_scalar(value, "float32", "add") for value in (2, 2.5, 1j)]
    ['float32', 'float32', 'complex64']
    """
    if isinstance(value, bool):
        return dtype if dtype == "bool" else "bool"
    if isinstance(value, int):
        dtype = "int64" if dtype == "bool" else dtype
        if dtype in INTEGERS and not _fits(value, dtype):
            least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
            raise ArrayTypeError(
                f"{where}: {value} is no {dtype}, which goes from {least} to {most}; convert the "
                "array with astype, or give an array of the type that you want"
            )
        return dtype
    if isinstance(value, float):
        return dtype if dtype in FLOATING else "float64"
    return dtype if dtype in COMPLEX else WHOLE.get(dtype, "complex128")


def _fits(value: int, dtype: str) -> bool:
    info = np.iinfo(dtype)
    return bool(info.min <= value <= info.max)
