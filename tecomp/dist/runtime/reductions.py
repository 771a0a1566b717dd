"""Values of all processes combined: reductions, running ones, and arrays put one after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tecomp.dist.partition.placements import OPS
from tecomp.dist.runtime.library import mpi
from tecomp.dist.runtime.team import AnyTeam, Team, team_of
from tecomp.errors import TeamError

Array = np.ndarray[Any, np.dtype[Any]]

COMBINED: dict[str, Callable[..., Any]] = {
    "sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum,
    "any": np.logical_or, "all": np.logical_and,
}
_OF_MPI = {"sum": "SUM", "prod": "PROD"}


def allreduce(team: AnyTeam, array: Array, op: str = "sum") -> Array:
    """The arrays of all processes combined, element by element, on all of them.

    Args:
        team: the processes.
        array: of one shape and type on all of them.
        op: `sum`, `prod`, `min`, `max` (not a number if one is), `any` or `all`.

    Raises:
        TeamError: there is no such operation.
    """
    found, given = team_of(team), _given(array, op)
    with found.call(f"allreduce {op} {_named(given)}"):
        return combined(found.comm, given, op)


def reduce(team: AnyTeam, array: Array, op: str = "sum", root: int = 0) -> Array | None:
    """The same on one process; None on the others.

    Raises:
        TeamError: there is no such operation.
    """
    found, given = team_of(team), _given(array, op)
    made = np.empty_like(given) if found.rank == root else None
    with found.call(f"reduce {op} {_named(given)} to {root}"):
        kind = _kind(given.dtype, op)
        found.comm.Reduce(_buffer(given, kind), made if made is None else _buffer(made, kind),
                          op=_op(op, given.dtype), root=root)
    return made


def exscan(team: AnyTeam, array: Array, op: str = "sum") -> Array | None:
    """The arrays of the processes before this one combined; None on the first.

    Raises:
        TeamError: there is no such operation.
    """
    found, given = team_of(team), _given(array, op)
    made = np.empty_like(given)
    with found.call(f"exscan {op} {_named(given)}"):
        kind = _kind(given.dtype, op)
        found.comm.Exscan(_buffer(given, kind), _buffer(made, kind), op=_op(op, given.dtype))
    return made if found.rank else None


def allgather(team: AnyTeam, array: Array) -> Array:
    """The arrays of all processes, one after the other along the first axis, on all of them.

    Args:
        team: the processes.
        array: of one type, and of one shape but for the first axis.
    """
    found, given = team_of(team), np.ascontiguousarray(array)
    rest = given.shape[1:]
    with found.call(f"allgather {given.dtype.name}{['any', *rest]}"):
        counts = np.empty(found.size, np.int64)
        found.comm.Allgather(np.array([given.shape[0]]), counts)
        made = np.empty((int(counts.sum()), *rest), given.dtype)
        each = given.dtype.itemsize * int(np.prod(rest, dtype=np.int64))
        found.comm.Allgatherv(_bytes(given), [_bytes(made), (counts * each).tolist()])
    return made


def barrier(team: AnyTeam) -> None:
    """Wait until all processes are here."""
    found = team_of(team)
    with found.call("barrier"):
        found.comm.Barrier()


def combined(comm: Any, array: Array, op: str) -> Array:
    """The arrays of all processes of a communicator, combined."""
    made = np.empty_like(array)
    kind = _kind(array.dtype, op)
    comm.Allreduce(_buffer(array, kind), _buffer(made, kind), op=_op(op, array.dtype))
    return made


def combined_along(team: Team, mesh: Any, axes: tuple[int, ...], array: Array, op: str) -> Array:
    """The arrays of the processes in line along axes of a mesh, combined."""
    made = _operand(array, op)
    for axis in axes:
        made = combined(team.along(mesh, axis), made, op)
    return made


def _given(array: Array, op: str) -> Array:
    if op not in OPS:
        raise TeamError(f"reduce: there is no operation {op!r}; give one of {', '.join(OPS)}")
    return _operand(array, op)


def _operand(array: Array, op: str) -> Array:
    """The elements in one piece; of truth values 0 and 1, which is what one process alone has."""
    if op in ("any", "all"):
        array = np.not_equal(array, 0).astype(array.dtype)
    return np.ascontiguousarray(array).reshape(np.shape(array))


def _named(array: Array) -> str:
    return f"{array.dtype.name}{list(array.shape)}"


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def _buffer(array: Array, kind: Any) -> list[Any]:
    return [_bytes(array), array.size, kind]


@cache
def _kind(dtype: np.dtype[Any], op: str) -> Any:
    """The type of MPI of an element; its bytes, under its name, where MPI does not combine it."""
    if _is_of_mpi(dtype, op):
        return mpi().Datatype.fromcode(dtype.char)
    made = mpi().BYTE.Create_contiguous(dtype.itemsize).Commit()
    made.Set_name(dtype.name)
    _NAMED[dtype.name] = dtype
    return made


_NAMED: dict[str, np.dtype[Any]] = {}


def _op(op: str, dtype: np.dtype[Any]) -> Any:
    """The operation of MPI; one that calls NumPy where MPI has none with the same meaning.

    MPI leaves open what the least of numbers is of which one is none.
    """
    return getattr(mpi(), _OF_MPI[op]) if _is_of_mpi(dtype, op) else _of_numpy(op)


@cache
def _of_numpy(op: str) -> Any:
    # Few operations can be made, so one is for all types.
    def call(left: Any, right: Any, kind: Any) -> None:
        dtype = _NAMED[kind.Get_name()]
        a, b = np.frombuffer(left, dtype), np.frombuffer(right, dtype)
        b[...] = COMBINED[op](a, b)

    return mpi().Op.Create(call, commute=True)


def _is_of_mpi(dtype: np.dtype[Any], op: str) -> bool:
    if op not in _OF_MPI or dtype.kind not in "iufc" or dtype.char == "e":
        return False
    return dtype.isbuiltin == 1
