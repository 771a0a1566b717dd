"""Functions outside the standard: eval, explain, relayout, gather, redistribute."""

from __future__ import annotations

import typing
from typing import Any

import numpy as np

from tecomp.array.array_object import Array, from_node, node_of, on_teams
from tecomp.array.functions.data_types import asarray
from tecomp.array.graph.evaluate import computable, evaluate
from tecomp.array.graph.node import (
    Node,
    ShardedNode,
    distributed_hooks,
    materialized_node,
    memory,
    parts_of,
)
from tecomp.array.interop.exports import empty_in, in_layout, storage
from tecomp.array.validation import Extents, dtype_at, integers, shape_of
from tecomp.errors import ArrayValueError
from tecomp.ptensor.devices import device_name, is_apart
from tecomp.ptensor.types import (
    PTensorType,
    Shape,
    axis_of,
    check_same_device_and_team,
    numpy_dtype,
)

if typing.TYPE_CHECKING:
    from tecomp.array.kernels.explanation import ExecutionExplanation


def explain(*arrays: Array) -> ExecutionExplanation:
    """Describe the kernels that would evaluate the arrays, without running them.

    For distributed arrays, the description covers the part of this process. The messages that this
    part needs are sent, so every rank of the team must make this call. A library function, such as
    a sort, runs when it is recorded; for its results `function` and `lowered` show that call.

    Args:
        arrays: Lazy arrays, or results of library functions.

    Returns:
        Description that prints as the operations, their lowered form, and schedule, loops and cost
        of each kernel; its attributes give the parts.

    Raises:
        ArrayTypeError: If an argument is not an array, or is an argument of a function that `jit`
            records.
        DeviceMismatchError: If the arrays are on different devices.
        TeamMismatchError: If the arrays belong to different teams.

    >>> import tecomp.array as xp
    >>> x = xp.arange(6, dtype="float32")
    >>> explain(x * x).function.body[-1].op
    ElementwiseBinaryOp(kind='multiply')
    """
    nodes = [node_of(array, "explain") for array in arrays]
    if nodes:
        check_same_device_and_team([node.type for node in nodes], "explain")
    shared = [node for node in nodes if isinstance(node, ShardedNode)]
    messages = distributed_hooks().explain(shared) if shared else ()
    work = computable(parts_of(nodes))
    # Import lazily: evaluating arrays does not need the explanation module.
    import tecomp.array.kernels.explanation as explained
    found: ExecutionExplanation = explained.explain_execution(work, messages, nodes)
    return found


def from_local(part: Any, team: Any, /, *, axis: int = 0, partition: Any = None) -> Array:
    """Assemble a distributed array from the local shards of all ranks.

    This is a collective call: every rank of the team must make it.

    Args:
        part: Shard of this process: an array without a team, or input of `asarray`.
        team: Team of processes, a `dist.Team` or its number.
        axis: Axis along which the shards are concatenated in rank order. Default: 0.
        partition: `dist.Partition` that gives the owner of each element, used instead of `axis`;
            partial values are reduced.

    Raises:
        ArrayValueError: If `part` is a distributed array, or `partition` is the partition of a
            view.
        TeamError: If the team is unknown, or the shards do not match each other or the partition.

    >>> import tecomp.array as xp
    >>> from tecomp import dist
    >>> from_local([1, 2, 3], dist.world()).team
    1
    """
    node = node_of(asarray(part), "from_local", "part")
    if node.type.team is not None:
        raise ArrayValueError(
            "from_local: part must be a local array, got {type}, which belongs to a team; pass "
            "the local part, x.to_local()",
            type=node.type,
        )
    return from_node(on_teams().assemble(node, team, axis, partition))


def gather(x: Array, /) -> Array:
    """Return a replicated copy of a distributed array on every rank, as an array without a team.

    This is a collective call: every rank of the team must make it.

    Args:
        x: Input array; an array without a team is returned unchanged.

    >>> import tecomp.array as xp
    >>> from tecomp import dist
    >>> gather(xp.arange(3, team=dist.world()))
    Array([0, 1, 2], dtype=int64)
    """
    node = node_of(x, "gather")
    return x if node.type.team is None else from_node(on_teams().gather_replicated(node))


def redistribute(x: Array, placements: Any, /) -> Array:
    """Reshard a distributed array to another partition.

    This is a collective call: every rank of the team must make it.

    Args:
        x: Distributed array.
        placements: Placements of the shards, such as `[dist.Shard(1)]`, or a `dist.Partition`.

    Raises:
        ArrayValueError: If `x` has no team, or the partition is for another array.
        LayoutError: If the placements do not match the array or the team.

    >>> import tecomp.array as xp
    >>> from tecomp import dist
    >>> x = redistribute(xp.ones((4, 6), team=dist.world()), [dist.Shard(1)])
    >>> x.partition.placements
    (Shard(1),)
    """
    node = node_of(x, "redistribute")
    if node.type.team is None:
        raise ArrayValueError(
            "redistribute: x must belong to a team, got {type}; assign a team first: "
            "xp.asarray(x, team=dist.world())",
            type=node.type,
        )
    return from_node(on_teams().shard_or_reshard(node, node.type.team, placements, "redistribute"))


def eval(*arrays: Array) -> None:
    """Evaluate lazy arrays, with as few kernels as possible.

    Args:
        arrays: Arrays to evaluate; evaluated arrays are left unchanged.

    Raises:
        ArrayTypeError: If an argument is not an array.

    >>> import tecomp.array as xp
    >>> x = xp.arange(4)
    >>> y, z = x + 1, x * x
    >>> xp.eval(y, z)
    """
    evaluate([node_of(array, "eval") for array in arrays])


def empty_strided(
    shape: Extents, strides: Extents, *, dtype: Any = None, device: Any = None, layout: Any = None
) -> Array:
    """Return an uninitialized array with the given strides.

    On a device that has layouts, the axis of the smallest stride runs along the sticks, or the rows
    of tiles; `layout` takes the place of that.

    Args:
        shape: Shape of the array.
        strides: Number of elements from one index to the next along each axis, 1 or more. Elements
            must not share memory.
        dtype: dtype of the array. Default: float64, or the default of the device.
        device: Device of the array. Default: the CPU.
        layout: Layout in the memory of the device, a `tecomp.Layout`.

    Raises:
        ArrayTypeError: If the device has no such dtype, or `layout` is not a layout.
        ArrayValueError: If `strides` does not have a stride for each axis, a stride is below 1,
            elements share memory, or the device has no layouts or not this layout.

    >>> import numpy as np
    >>> columns = empty_strided((2, 3), (1, 2))
    >>> columns.shape, np.asarray(columns + 0).strides
    ((2, 3), (8, 16))
    """
    where = "empty_strided"
    target_device = device_name(device, where)
    name = dtype_at(dtype, "float64", target_device, where)
    type = PTensorType(shape_of(shape, where, name), name, target_device)
    steps = integers(strides, where, "strides")
    last = _check_strides(type.shape, steps, where)
    if layout is not None:
        return from_node(empty_in(type, layout, where))
    if is_apart(target_device):
        axis = min(range(type.rank), key=lambda k: (steps[k], -k), default=None)
        device_layout = (
            storage().default_layout(type)
            if axis is None
            else storage().layout_along_axis(type, axis)
        )
        return from_node(empty_in(type, device_layout, where))
    flat = memory((last + 1,), numpy_dtype(name))
    byte_steps = [step * flat.itemsize for step in steps]
    return from_node(
        materialized_node(np.ndarray(type.shape, flat.dtype, flat, strides=byte_steps), type))


def _check_strides(shape: Shape, strides: tuple[int, ...], where: str) -> int:
    """Return the offset of the last element, after a check that no two elements share memory."""
    if len(strides) != len(shape) or min(strides, default=1) < 1:
        raise ArrayValueError(
            "{where}: strides {strides} are invalid for shape {shape}; specify one positive "
            "stride per axis, in elements",
            where=where, strides=strides, shape=shape,
        )
    last = 0
    for step, extent in sorted(zip(strides, shape, strict=True)):
        if extent > 1 and step <= last:
            raise ArrayValueError(
                "{where}: strides {strides} map several elements of shape {shape} to the same "
                "address; use strides of at least {limit} for outer axes",
                where=where, shape=shape, strides=strides, limit=last + 1,
            )
        last += max(extent - 1, 0) * step
    return last


def restickify(x: Array, axis: int, /) -> Array:
    """Relayout an array so that another axis runs along the sticks or tile rows of its device.

    Args:
        x: Array on a device that has sticks or tiles.
        axis: Axis whose elements become contiguous within a stick or tile row.

    Returns:
        Array with the same elements in another layout.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If the device of the array has no layouts.

    >>> import tecomp.array as xp
    >>> x = xp.zeros((100, 200), dtype="float32", device="stick128")
    >>> x.layout.physical_shape, restickify(x, 0).layout.physical_shape
    ((7, 128, 32), (4, 224, 32))
    """
    where = "restickify"
    node = node_of(x, where)
    _check_place(node, where)
    layout = storage().layout_along_axis(node.type, axis_of(axis, node.type.rank, where))
    return from_node(in_layout(node, layout))


def relayout_to(x: Array, layout: Any, /) -> Array:
    """Copy an array to another layout on its device.

    Args:
        x: Array on a device that has layouts.
        layout: `tecomp.Layout` for the shape and dtype of `x`. A `tecomp.StickLayout` without a
            size takes the size of the array.

    Returns:
        Array with the same elements in that layout.

    Raises:
        ArrayTypeError: If `layout` is not a layout.
        ArrayValueError: If the device of the array has no layouts, or the layout does not match the
            array.

    >>> import tecomp.array as xp
    >>> x, y = [xp.ones((100, n), dtype="float32", device="stick128") for n in (200, 200)]
    >>> relayout_to(x, xp.restickify(y, 0).layout).layout.physical_shape
    (4, 224, 32)
    """
    where = "relayout_to"
    node = node_of(x, where)
    _check_place(node, where)
    return from_node(in_layout(node, storage().layout_of(node.type, layout, where)))


def _check_place(node: Node, where: str) -> None:
    if not is_apart(node.type.device):
        raise ArrayValueError(
            "{where}: x is {type}, but device {device!r} stores arrays in row-major order without "
            "layouts; transfer x to a device with layouts, x.to_device('stick128')",
            where=where, type=node.type, device=node.type.device,
        )
    if node.type.team is not None:
        raise ArrayValueError(
            "{where}: x is {type}, but each process stores its shard in its own layout; "
            "apply the function to the local part, x.to_local(), and reassemble the array with "
            "xp.from_local(part, team)",
            where=where, type=node.type,
        )

