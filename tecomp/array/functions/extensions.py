"""Functions outside the standard: eval, explain, relayout, gather, redistribute."""

from __future__ import annotations

import typing
from importlib import import_module
from typing import Any

import numpy as np

from tecomp.array.array_object import Array, made, node_of, on_teams
from tecomp.array.functions.conversion import asarray
from tecomp.array.graph.evaluate import computable, evaluate
from tecomp.array.graph.node import Node, Shared, leaf, memory, parts_of, teams
from tecomp.array.interop.device_transfer import empty_in, in_layout, storage
from tecomp.array.validation import Extents, dtype_at, integers, shape_of
from tecomp.errors import ArrayValueError
from tecomp.ptensor.devices import device_name, is_apart
from tecomp.ptensor.types import PTensorType, Shape, axis_of, check_together, numpy_dtype

if typing.TYPE_CHECKING:
    from tecomp.array.kernels.explanation import Explanation


def explain(*arrays: Array) -> Explanation:
    """What would run to compute arrays; nothing does.

    Of arrays of a team it is what this process would compute of its part. What that waits for is
    sent, so that all processes have to call it. A function of a library, such as a sort, is called
    when it is written; of its results `function` and `lowered` show that call.

    Args:
        arrays: Arrays that are not computed yet, or results of library functions.

    Returns:
        What prints as the operations, what they are lowered to, and schedule, loops and cost of
        each kernel; the parts of it are its attributes.

    Raises:
        ArrayTypeError: something is no array, or an argument of a function that `jit` records.
        DeviceMismatchError: If the arrays are on different devices.
        TeamMismatchError: arrays belong to different teams.

    >>> import tecomp.array as xp
    >>> x = xp.arange(6, dtype="float32")
    >>> explain(x * x).function.body[-1].op
    ElementwiseBinaryOp(kind='multiply')
    """
    nodes = [node_of(array, "explain") for array in arrays]
    if nodes:
        check_together([node.type for node in nodes], "explain")
    shared = [node for node in nodes if isinstance(node, Shared)]
    messages = teams().explain(shared) if shared else ()
    work = computable(parts_of(nodes))
    # Loaded now: who computes arrays does not wait for what explains them.
    explained = import_module("tecomp.array.kernels.explanation")
    found: Explanation = explained.explanation_of(work, messages, nodes)
    return found


def from_local(part: Any, team: Any, /, *, axis: int = 0, partition: Any = None) -> Array:
    """The array that the parts of the processes of a team make up.

    All processes of the team have to call it.

    Args:
        part: what this process has: an array without a team, or what `asarray` takes.
        team: the processes, a `dist.Team` or its number.
        axis: along which the parts lie one after the other.
        partition: who has what, a `dist.Partition`, in place of `axis`; partial values are
            combined.

    Raises:
        ArrayValueError: `part` is of a team itself, or the partition is that of a view.
        TeamError: there is no such team, or the parts do not fit each other or the partition.

    >>> import tecomp.array as xp
    >>> from tecomp import dist
    >>> from_local([1, 2, 3], dist.world()).team
    1
    """
    node = node_of(asarray(part), "from_local", "part")
    if node.type.team is not None:
        raise ArrayValueError(
            f"from_local: part is {node.type}, an array of a team; give what this process has, "
            "x.to_local()"
        )
    return made(on_teams().of_parts(node, team, axis, partition))


def gather(x: Array, /) -> Array:
    """The whole of an array on every process, as an array without a team.

    All processes of the team have to call it.

    Args:
        x: an array; one without a team is given back.

    >>> import tecomp.array as xp
    >>> from tecomp import dist
    >>> gather(xp.arange(3, team=dist.world()))
    Array([0, 1, 2], dtype=int64)
    """
    node = node_of(x, "gather")
    return x if node.type.team is None else made(on_teams().alone(node))


def redistribute(x: Array, placements: Any, /) -> Array:
    """An array of a team by another partition.

    All processes of the team have to call it.

    Args:
        x: Input array.
        placements: what the processes in a row have, `[dist.Shard(1)]`; or a `dist.Partition`.

    Raises:
        ArrayValueError: `x` is of no team, or the partition is that of another array.
        LayoutError: the placements do not fit.

    >>> import tecomp.array as xp
    >>> from tecomp import dist
    >>> x = redistribute(xp.ones((4, 6), team=dist.world()), [dist.Shard(1)])
    >>> x.partition.placements
    (Shard(1),)
    """
    node = node_of(x, "redistribute")
    if node.type.team is None:
        raise ArrayValueError(
            f"redistribute: x is {node.type}, an array of this process alone; give it a team "
            "first: xp.asarray(x, team=dist.world())"
        )
    return made(on_teams().kept(node, node.type.team, placements, "redistribute"))


def eval(*arrays: Array) -> None:
    """Compute arrays that are not computed yet, all of them in as few kernels as possible.

    Args:
        arrays: the arrays; what is computed already stays as it is.

    Raises:
        ArrayTypeError: something is no array.

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
        device: Device of the array. Default: the processor.
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
    place = device_name(device, where)
    name = dtype_at(dtype, "float64", place, where)
    type = PTensorType(shape_of(shape, where, name), name, place)
    steps = integers(strides, where, "strides")
    last = _check_strides(type.shape, steps, where)
    if layout is not None:
        return made(empty_in(type, layout, where))
    if is_apart(place):
        axis = min(range(type.rank), key=lambda k: (steps[k], -k), default=None)
        own = storage().default_layout(type) if axis is None else storage().along_axis(type, axis)
        return made(empty_in(type, own, where))
    flat = memory((last + 1,), numpy_dtype(name))
    byte_steps = [step * flat.itemsize for step in steps]
    return made(leaf(np.ndarray(type.shape, flat.dtype, flat, strides=byte_steps), type))


def _check_strides(shape: Shape, strides: tuple[int, ...], where: str) -> int:
    """Return the offset of the last element, after a check that no two elements share memory."""
    if len(strides) != len(shape) or min(strides, default=1) < 1:
        raise ArrayValueError(
            f"{where}: strides {strides} for shape {shape}; give a number of elements, 1 or more, "
            "for each axis"
        )
    last = 0
    for step, extent in sorted(zip(strides, shape, strict=True)):
        if extent > 1 and step <= last:
            raise ArrayValueError(
                f"{where}: elements of shape {shape} share memory with strides {strides}; give "
                f"strides of {last + 1} or more where axes are not the innermost"
            )
        last += max(extent - 1, 0) * step
    return last


def restickify(x: Array, axis: int, /) -> Array:
    """An array with another axis along the sticks, or the rows of tiles, of its device.

    Args:
        x: an array on a device that has sticks or tiles.
        axis: whose elements are to lie side by side.

    Returns:
        The same elements in another layout.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: the array is where there are no layouts.

    >>> import tecomp.array as xp
    >>> x = xp.zeros((100, 200), dtype="float32", device="stick128")
    >>> x.layout.physical_shape, restickify(x, 0).layout.physical_shape
    ((7, 128, 32), (4, 224, 32))
    """
    where = "restickify"
    node = node_of(x, where)
    _check_place(node, where)
    layout = storage().along_axis(node.type, axis_of(axis, node.type.rank, where))
    return made(in_layout(node, layout))


def relayout_to(x: Array, layout: Any, /) -> Array:
    """An array in another layout on its device.

    Args:
        x: an array on a device that has layouts.
        layout: of an array of its shape and type, a `tecomp.Layout`. A `tecomp.StickLayout` without
            a size of its own takes the size of the array.

    Returns:
        The same elements in that layout.

    Raises:
        ArrayTypeError: this is no layout.
        ArrayValueError: the array is where there are no layouts, or it is none of such an array.

    >>> import tecomp.array as xp
    >>> x, y = [xp.ones((100, n), dtype="float32", device="stick128") for n in (200, 200)]
    >>> relayout_to(x, xp.restickify(y, 0).layout).layout.physical_shape
    (4, 224, 32)
    """
    where = "relayout_to"
    node = node_of(x, where)
    _check_place(node, where)
    return made(in_layout(node, storage().layout_of(node.type, layout, where)))


def _check_place(node: Node, where: str) -> None:
    if not is_apart(node.type.device):
        raise ArrayValueError(
            f"{where}: x is {node.type}, and arrays on {node.type.device!r} have the order of "
            "NumPy; bring it to a device that has layouts, x.to_device('stick128')"
        )
    if node.type.team is not None:
        raise ArrayValueError(
            f"{where}: x is {node.type}, and each process has a part in a layout of its own; give "
            "the part, x.to_local(), and make an array of the results: xp.from_local(part, team)"
        )

