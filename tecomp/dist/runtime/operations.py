"""Operations of MPI that mean what NumPy's do, and types of MPI for the elements of arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tecomp.dist.runtime.library import mpi

COMBINED: dict[str, Callable[..., Any]] = {
    "sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum,
    "any": np.logical_or, "all": np.logical_and,
}
# Of truth values as 0 and 1, one that holds is the greatest.
_OF_MPI = {
    "sum": "SUM", "prod": "PROD", "min": "MIN", "max": "MAX", "any": "MAX", "all": "MIN",
}
_NAMED: dict[str, np.dtype[Any]] = {}


@cache
def operation(dtype: np.dtype[Any], op: str, *, is_ordered: bool) -> tuple[Any, Any]:
    """The type of MPI and the operation of MPI that combine elements.

    Args:
        dtype: type of the elements; truth values are 0 and 1 in it.
        op: what combines them.
        is_ordered: whether all of them are numbers. MPI leaves open what the least of numbers is
            of which one is none.
    """
    if not _is_of_mpi(dtype, op, is_ordered=is_ordered):
        return _as_bytes(dtype), _of_numpy(op)
    char = "B" if dtype.kind == "b" else dtype.char
    return mpi().Datatype.fromcode(char), getattr(mpi(), _OF_MPI[op])


def _is_of_mpi(dtype: np.dtype[Any], op: str, *, is_ordered: bool) -> bool:
    if dtype.isbuiltin != 1 or dtype.char == "e":
        return False
    if op in ("sum", "prod"):
        return dtype.kind in "iufc"
    if op in ("any", "all"):
        return dtype.kind in "biuf"
    return dtype.kind in "iu" or (dtype.kind == "f" and is_ordered)


@cache
def _as_bytes(dtype: np.dtype[Any]) -> Any:
    """A type of so many bytes, under the name of the elements."""
    made = mpi().BYTE.Create_contiguous(dtype.itemsize).Commit()
    made.Set_name(dtype.name)
    _NAMED[dtype.name] = dtype
    return made


@cache
def _of_numpy(op: str) -> Any:
    # Few operations can be made, so one is for all types.
    def call(left: Any, right: Any, kind: Any) -> None:
        dtype = _NAMED[kind.Get_name()]
        a, b = np.frombuffer(left, dtype), np.frombuffer(right, dtype)
        b[...] = COMBINED[op](a, b)

    return mpi().Op.Create(call, commute=True)
