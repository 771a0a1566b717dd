"""Reductions, gathers, all-to-all and broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tecomp.dist.partition.placements import Mesh
from tecomp.dist.partition.placements import OPS
from tecomp.dist.runtime.mpi import mpi
from tecomp.dist.runtime.mpi import operation
from tecomp.dist.runtime.team import AnyTeam, Team, team_of
from tecomp.errors import TeamError

Array = np.ndarray[Any, np.dtype[Any]]

_FEW = 1024
"""Elements that NumPy combines faster than it is found out whether all of them are numbers."""


def allreduce(team: AnyTeam, array: npt.ArrayLike, op: str = "sum") -> Array:
    """The arrays of all processes combined, element by element, on all of them.

    Args:
        team: the processes; all of them have to call it.
        array: of one shape and type on all of them.
        op: `sum`, `prod`, `min`, `max` (not a number if one is), `any` or `all`.

    Returns:
        A new array, of the same shape and type.

    Raises:
        TeamError: there is no such operation, or the processes make different calls.

    One process alone has its own array back:

    >>> allreduce(1, [1.0, 2.0])
    array([1., 2.])
    """
    found, given = team_of(team), _given(array, op)
    with found.call(f"allreduce {op} {_named(given)}"):
        return combined(found.comm, given, op)


def allreduce_all(
    team: AnyTeam, arrays: Sequence[npt.ArrayLike], op: str = "sum"
) -> list[Array]:
    """Several arrays combined as by `allreduce`, with one message for all of the same type.

    Args:
        team: the processes; all of them have to call it.
        arrays: each of one shape and type on all of them.
        op: `sum`, `prod`, `min`, `max` (not a number if one is), `any` or `all`.

    Returns:
        A new array for each.

    Raises:
        TeamError: there is no such operation, or the processes make different calls.

    >>> allreduce_all(1, [np.ones(2), np.zeros((1, 1))], "max")
    [array([1., 1.]), array([[0.]])]
    """
    found, given = team_of(team), [_given(array, op) for array in arrays]
    made = list(given)
    for dtype in dict.fromkeys(array.dtype for array in given):
        chosen = [k for k, array in enumerate(given) if array.dtype == dtype]
        flat = np.concatenate([given[k].reshape(-1) for k in chosen])
        shapes = " and ".join(_named(given[k]) for k in chosen)
        with found.call(f"allreduce {op} {shapes}"):
            parts = combined(found.comm, flat, op)
        ends = np.cumsum([given[k].size for k in chosen])[:-1]
        for k, part in zip(chosen, np.split(parts, ends), strict=True):
            made[k] = part.reshape(given[k].shape)
    return made


def reduce(
    team: AnyTeam, array: npt.ArrayLike, op: str = "sum", root: int = 0
) -> Array | None:
    """The arrays of all processes combined as by `allreduce`, on one of them.

    Args:
        team: the processes; all of them have to call it.
        array: of one shape and type on all of them.
        op: `sum`, `prod`, `min`, `max` (not a number if one is), `any` or `all`.
        root: the rank that has the result.

    Returns:
        A new array on `root`; None on the others.

    Raises:
        TeamError: there is no such operation, or the processes make different calls.

    >>> reduce(1, [1.0, 2.0], root=0)
    array([1., 2.])
    """
    found, given = team_of(team), _given(array, op)
    made = np.empty_like(given) if found.rank == root else None
    with found.call(f"reduce {op} {_named(given)} to {root}"):
        kind, combine = operation(given.dtype, op, is_ordered=False)
        into = None if made is None else _buffer(made, kind)
        found.comm.Reduce(_buffer(given, kind), into, op=combine, root=root)
    return made


def exscan(team: AnyTeam, array: npt.ArrayLike, op: str = "sum") -> Array | None:
    """The arrays of the processes before this one combined, as by `allreduce`.

    Args:
        team: the processes; all of them have to call it.
        array: of one shape and type on all of them.
        op: `sum`, `prod`, `min`, `max` (not a number if one is), `any` or `all`.

    Returns:
        A new array; None on the first process, which has none before it.

    Raises:
        TeamError: there is no such operation, or the processes make different calls.

    >>> print(exscan(1, [1.0, 2.0]))
    None
    """
    found, given = team_of(team), _given(array, op)
    made = np.empty_like(given)
    with found.call(f"exscan {op} {_named(given)}"):
        kind, combine = operation(given.dtype, op, is_ordered=False)
        found.comm.Exscan(_buffer(given, kind), _buffer(made, kind), op=combine)
    return made if found.rank else None


def allgather(team: AnyTeam, array: npt.ArrayLike) -> Array:
    """The arrays of all processes, one after the other along the first axis, on all of them.

    Args:
        team: the processes; all of them have to call it.
        array: of one type, and of one shape but for the first axis.

    Returns:
        A new array; its first extent is the sum of theirs.

    Raises:
        TeamError: the processes make different calls.

    >>> allgather(1, [[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    found, given = team_of(team), np.ascontiguousarray(array)
    rest = given.shape[1:]
    with found.call(f"allgather {_name(given.dtype)}{['any', *rest]}"):
        counts = np.empty(found.size, np.int64)
        found.comm.Allgather(np.array([given.shape[0]]), counts)
        made = np.empty((int(counts.sum()), *rest), given.dtype)
        each = given.dtype.itemsize * int(np.prod(rest, dtype=np.int64))
        found.comm.Allgatherv(_bytes(given), [_bytes(made), (counts * each).tolist()])
    return made


def alltoall(team: AnyTeam, parts: Sequence[npt.ArrayLike]) -> list[Array]:
    """What each process has for this one, in the order of ranks.

    Args:
        team: the processes; all of them have to call it.
        parts: for each process an array, all of one type and of one shape but for the first axis.

    Returns:
        An array from each process.

    Raises:
        TeamError: there are more or fewer parts than processes, or these make different calls.

    >>> alltoall(1, [np.arange(3)])
    [array([0, 1, 2])]
    """
    found, given = team_of(team), [np.ascontiguousarray(part) for part in parts]
    if len(given) != found.size:
        raise TeamError(
            f"alltoall: {len(given)} parts for the {found.size} processes of team {found.id}; give "
            "one for each, of no elements if there is nothing to send"
        )
    rest, dtype = given[0].shape[1:], given[0].dtype
    with found.call(f"alltoall {_name(dtype)}{['any', *rest]}"):
        counts = np.empty(found.size, np.int64)
        found.comm.Alltoall(np.array([len(part) for part in given]), counts)
        each = dtype.itemsize * int(np.prod(rest, dtype=np.int64))
        made = np.empty((int(counts.sum()), *rest), dtype)
        sent = [len(part) * each for part in given]
        found.comm.Alltoallv(
            [_bytes(np.concatenate(given)), sent], [_bytes(made), (counts * each).tolist()]
        )
    return np.split(made, np.cumsum(counts)[:-1])


def bcast(team: AnyTeam, value: Any, root: int = 0) -> Any:
    """What one process has, on all: any value that can be pickled.

    Args:
        team: the processes; all of them have to call it.
        value: the value, on the process `root`; others may give anything.
        root: the rank that has it.

    Returns:
        The value.

    Raises:
        TeamError: the processes make different calls.

    >>> bcast(1, {"steps": 3})
    {'steps': 3}
    """
    found = team_of(team)
    with found.call(f"bcast from {root}"):
        return found.comm.bcast(value, root)


def barrier(team: AnyTeam) -> None:
    """Wait until all processes are here.

    Args:
        team: the processes; all of them have to call it.

    Raises:
        TeamError: the processes make different calls.

    >>> barrier(1)
    """
    found = team_of(team)
    with found.call("barrier"):
        found.comm.Barrier()


def combined(comm: Any, array: Array, op: str, out: Array | None = None) -> Array:
    """The arrays of all processes of a communicator, combined; truth values are 0 and 1.

    Args:
        comm: the communicator.
        array: in one piece.
        op: what combines them.
        out: where the result goes, in one piece too; a new array if not given.
    """
    made = np.empty_like(array) if out is None else out
    is_ordered = op in ("min", "max") and array.dtype.kind == "f" and _are_numbers(comm, array)
    kind, combine = operation(array.dtype, op, is_ordered=is_ordered)
    comm.Allreduce(_buffer(array, kind), _buffer(made, kind), op=combine)
    return made


def combined_along(
    team: Team, mesh: Mesh, axes: tuple[int, ...], array: Array, op: str, out: Array | None = None
) -> Array:
    """The arrays of the processes in line along axes of a mesh, combined; as `combined`."""
    made = _operand(array, op)
    for axis in axes:
        is_last = axis == axes[-1] and out is not None and out.flags.c_contiguous
        made = combined(team.along(mesh, axis), made, op, out if is_last else None)
    return made


def _are_numbers(comm: Any, array: Array) -> bool:
    """Whether all elements of all processes are numbers; no if that is not worth the question."""
    if array.size <= _FEW:
        return False
    has_other = np.array([np.isnan(array.max())])
    comm.Allreduce(mpi().IN_PLACE, has_other, op=mpi().LOR)
    return not has_other[0]


def _given(array: npt.ArrayLike, op: str) -> Array:
    if op not in OPS:
        raise TeamError(
            f"reduce: there is no operation {op!r}; give one of {', '.join(OPS)}",
            kind="unknown-choice",
        )
    return _operand(np.asarray(array), op)


def _operand(array: Array, op: str) -> Array:
    """The elements in one piece; of truth values 0 and 1, which is what one process alone has."""
    if op in ("any", "all"):
        array = np.not_equal(array, 0).astype(array.dtype)
    return np.ascontiguousarray(array).reshape(np.shape(array))


def _named(array: Array) -> str:
    return f"{_name(array.dtype)}{list(array.shape)}"


@cache
def _name(dtype: np.dtype[Any]) -> str:
    return dtype.name


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def _buffer(array: Array, kind: Any) -> list[Any]:
    return [_bytes(array), array.size, kind]
