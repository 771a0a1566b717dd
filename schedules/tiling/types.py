"""Types that sums are formed in."""

from __future__ import annotations


def wide_type(dtype: str) -> str:
    """The type in which values of a type are added up: at least float32, for floats.

    >>> wide_type("float16"), wide_type("float64"), wide_type("int8")
    ('float32', 'float64', 'int8')
    """
    return "float32" if str(dtype) in ("float16", "bfloat16") else str(dtype)
