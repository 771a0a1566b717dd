"""Reductions, gathers, all-to-all and broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tecomp.dist.partition.placements import OPS, Mesh
from tecomp.dist.runtime.mpi import mpi, operation
from tecomp.dist.runtime.team import AnyTeam, Team, team_of
from tecomp.errors import TeamError
from tecomp.operations.reductions import COMBINERS

Array = np.ndarray[Any, np.dtype[Any]]

_MAX_NUMPY_ELEMENTS = 1024
"""Number of elements up to which a reduction in NumPy is faster than a collective NaN check."""


def allreduce(team: AnyTeam, array: npt.ArrayLike, op: str = "sum") -> Array:
    """Combine the arrays of all ranks element-wise, with the result on all ranks.

    Args:
        team: Team, or its number. Collective call: every rank must make it.
        array: Array with equal shape and dtype on all ranks.
        op: Reduction: `sum`, `prod`, `min`, `max` (NaN propagates), `any` or `all`.

    Returns:
        A new array with the same shape and dtype.

    Raises:
        TeamError: If `op` is unknown, or the ranks make different calls.

    On a single rank, the result equals the array:

    >>> allreduce(1, [1.0, 2.0])
    array([1., 2.])
    """
    found, data = team_of(team), _check_array(array, op, "allreduce")
    with found.call(f"allreduce {op} {_describe_array(data)}"):
        return combine_over_communicator(found.comm, data, op)


def allreduce_all(
    team: AnyTeam, arrays: Sequence[npt.ArrayLike], op: str = "sum"
) -> list[Array]:
    """Combine several arrays as `allreduce` does, with one message for all arrays of a dtype.

    Args:
        team: Team, or its number. Collective call: every rank must make it.
        arrays: Arrays, each with equal shape and dtype on all ranks.
        op: Reduction: `sum`, `prod`, `min`, `max` (NaN propagates), `any` or `all`.

    Returns:
        A new array for each array.

    Raises:
        TeamError: If `op` is unknown, or the ranks make different calls.

    >>> allreduce_all(1, [np.ones(2), np.zeros((1, 1))], "max")
    [array([1., 1.]), array([[0.]])]
    """
    found, inputs = team_of(team), [_check_array(x, op, "allreduce_all") for x in arrays]
    results = list(inputs)
    for dtype in dict.fromkeys(array.dtype for array in inputs):
        chosen = [k for k, array in enumerate(inputs) if array.dtype == dtype]
        flat = np.concatenate([inputs[k].reshape(-1) for k in chosen])
        shapes = " and ".join(_describe_array(inputs[k]) for k in chosen)
        with found.call(f"allreduce {op} {shapes}"):
            parts = combine_over_communicator(found.comm, flat, op)
        ends = np.cumsum([inputs[k].size for k in chosen])[:-1]
        for k, part in zip(chosen, np.split(parts, ends), strict=True):
            results[k] = part.reshape(inputs[k].shape)
    return results


def reduce(
    team: AnyTeam, array: npt.ArrayLike, op: str = "sum", root: int = 0
) -> Array | None:
    """Combine the arrays of all ranks as `allreduce` does, with the result on one rank.

    Args:
        team: Team, or its number. Collective call: every rank must make it.
        array: Array with equal shape and dtype on all ranks.
        op: Reduction: `sum`, `prod`, `min`, `max` (NaN propagates), `any` or `all`.
        root: Rank that receives the result. Default: 0.

    Returns:
        A new array on `root`; None on the other ranks.

    Raises:
        TeamError: If `op` is unknown, or the ranks make different calls.

    >>> reduce(1, [1.0, 2.0], root=0)
    array([1., 2.])
    """
    found, data = team_of(team), _check_array(array, op, "reduce")
    result = np.empty_like(data) if found.rank == root else None
    with found.call(f"reduce {op} {_describe_array(data)} to {root}"):
        kind, combine = operation(data.dtype, op, is_ordered=False)
        dest = None if result is None else _buffer(result, kind)
        found.comm.Reduce(_buffer(data, kind), dest, op=combine, root=root)
    return result


def exscan(team: AnyTeam, array: npt.ArrayLike, op: str = "sum") -> Array | None:
    """Combine the arrays of all lower ranks (exclusive scan).

    Args:
        team: Team, or its number. Collective call: every rank must make it.
        array: Array with equal shape and dtype on all ranks.
        op: Reduction: `sum`, `prod`, `min`, `max` (NaN propagates), `any` or `all`.

    Returns:
        A new array; None on rank 0, which has no lower ranks.

    Raises:
        TeamError: If `op` is unknown, or the ranks make different calls.

    >>> print(exscan(1, [1.0, 2.0]))
    None
    """
    found, data = team_of(team), _check_array(array, op, "exscan")
    result = np.empty_like(data)
    with found.call(f"exscan {op} {_describe_array(data)}"):
        kind, combine = operation(data.dtype, op, is_ordered=False)
        found.comm.Exscan(_buffer(data, kind), _buffer(result, kind), op=combine)
    return result if found.rank else None


def allgather(team: AnyTeam, array: npt.ArrayLike) -> Array:
    """Concatenate the arrays of all ranks along the first axis, with the result on all ranks.

    Args:
        team: Team, or its number. Collective call: every rank must make it.
        array: Array with equal dtype and, except for the first axis, equal shape on all ranks.

    Returns:
        A new array whose first size is the sum of the first sizes of all ranks.

    Raises:
        TeamError: If the ranks make different calls.

    >>> allgather(1, [[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    found, data = team_of(team), np.ascontiguousarray(array)
    row_shape = data.shape[1:]
    with found.call(f"allgather {_name(data.dtype)}{['any', *row_shape]}"):
        counts = np.empty(found.size, np.int64)
        found.comm.Allgather(np.array([data.shape[0]]), counts)
        result = np.empty((int(counts.sum()), *row_shape), data.dtype)
        row_size = data.dtype.itemsize * int(np.prod(row_shape, dtype=np.int64))
        found.comm.Allgatherv(_bytes(data), [_bytes(result), (counts * row_size).tolist()])
    return result


def alltoall(team: AnyTeam, parts: Sequence[npt.ArrayLike]) -> list[Array]:
    """Send one array to each rank and return the arrays received, in the order of ranks.

    Args:
        team: Team, or its number. Collective call: every rank must make it.
        parts: Array for each rank, all with equal dtype and, except for the first axis, shape.

    Returns:
        An array from each rank.

    Raises:
        TeamError: If the number of parts differs from the number of ranks, or the ranks make
            different calls.

    >>> alltoall(1, [np.arange(3)])
    [array([0, 1, 2])]
    """
    found, inputs = team_of(team), [np.ascontiguousarray(part) for part in parts]
    if len(inputs) != found.size:
        raise TeamError(
            "alltoall: got {given_count} parts for the {size} processes of team {id}; pass one "
            "part per process, an empty array if there is nothing to send",
            given_count=len(inputs), size=found.size, id=found.id,
        )
    row_shape, dtype = inputs[0].shape[1:], inputs[0].dtype
    with found.call(f"alltoall {_name(dtype)}{['any', *row_shape]}"):
        counts = np.empty(found.size, np.int64)
        found.comm.Alltoall(np.array([len(part) for part in inputs]), counts)
        row_size = dtype.itemsize * int(np.prod(row_shape, dtype=np.int64))
        result = np.empty((int(counts.sum()), *row_shape), dtype)
        nbytes = [len(part) * row_size for part in inputs]
        found.comm.Alltoallv(
            [_bytes(np.concatenate(inputs)), nbytes], [_bytes(result), (counts * row_size).tolist()]
        )
    return np.split(result, np.cumsum(counts)[:-1])


def bcast(team: AnyTeam, value: Any, root: int = 0) -> Any:
    """Broadcast a value from one rank to all ranks; the value must be picklable.

    Args:
        team: Team, or its number. Collective call: every rank must make it.
        value: Value on rank `root`; ignored on the other ranks.
        root: Rank that sends the value. Default: 0.

    Returns:
        The value of rank `root`.

    Raises:
        TeamError: If the ranks make different calls.

    >>> bcast(1, {"steps": 3})
    {'steps': 3}
    """
    found = team_of(team)
    with found.call(f"bcast from {root}"):
        return found.comm.bcast(value, root)


def barrier(team: AnyTeam) -> None:
    """Wait until all ranks have made this call.

    Args:
        team: Team, or its number. Collective call: every rank must make it.

    Raises:
        TeamError: If the ranks make different calls.

    >>> barrier(1)
    """
    found = team_of(team)
    with found.call("barrier"):
        found.comm.Barrier()


def combine_over_communicator(comm: Any, array: Array, op: str, out: Array | None = None) -> Array:
    """Combine the arrays of all ranks of a communicator; booleans are treated as 0 and 1.

    Args:
        comm: MPI communicator.
        array: C-contiguous array.
        op: Name of the reduction.
        out: C-contiguous array for the result. Default: a new array.
    """
    result = np.empty_like(array) if out is None else out
    is_ordered = op in ("min", "max") and array.dtype.kind == "f" and _are_numbers(comm, array)
    kind, combine = operation(array.dtype, op, is_ordered=is_ordered)
    comm.Allreduce(_buffer(array, kind), _buffer(result, kind), op=combine)
    return result


def combine_along_mesh(
    team: Team, mesh: Mesh, axes: tuple[int, ...], array: Array, op: str, out: Array | None = None
) -> Array:
    """Combine the arrays of the ranks along axes of a mesh, as `combine_over_communicator` does."""
    data = _operand(array, op)
    for axis in axes:
        is_last = axis == axes[-1] and out is not None and out.flags.c_contiguous
        data = combine_over_communicator(team.along(mesh, axis), data, op, out if is_last else None)
    return data


def _are_numbers(comm: Any, array: Array) -> bool:
    """Return whether no rank has a NaN; False without communication for small arrays."""
    if array.size <= _MAX_NUMPY_ELEMENTS:
        return False
    has_other = np.array([np.isnan(array.max())])
    comm.Allreduce(mpi().IN_PLACE, has_other, op=mpi().LOR)
    return not has_other[0]


def _check_array(array: npt.ArrayLike, op: str, where: str) -> Array:
    if op not in OPS:
        raise TeamError(
            "{where}: unknown operation {op!r}; pass one of {ops}",
            kind="unknown-choice", where=where, op=op, ops=", ".join(OPS),
        )
    return _operand(np.asarray(array), op)


def _operand(array: Array, op: str) -> Array:
    """Return a C-contiguous operand; for logical operators, values are converted to 0 and 1."""
    if COMBINERS[op].is_logical:
        array = np.not_equal(array, 0).astype(array.dtype)
    return np.ascontiguousarray(array).reshape(np.shape(array))


def _describe_array(array: Array) -> str:
    return f"{_name(array.dtype)}{list(array.shape)}"


@cache
def _name(dtype: np.dtype[Any]) -> str:
    return dtype.name


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def _buffer(array: Array, kind: Any) -> list[Any]:
    return [_bytes(array), array.size, kind]
