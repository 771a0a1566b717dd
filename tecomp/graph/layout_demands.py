"""Layouts that the caller prescribes."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeGuard

from tecomp.compute.tensor import Tensor
from tecomp.constraints.user_hints import Hint, relayout_to, requested_layout_of
from tecomp.errors import LayoutError
from tecomp.graph.dag import ProgramGraph, graph_with
from tecomp.graph.layout_candidates import Wanted, candidates, has_layouts, layouts_in
from tecomp.graph.sizes import sizes_of
from tecomp.graph.value_placement import Shards
from tecomp.ir.arith.extents import ceil_div
from tecomp.ir.nodes.expr import Binary, BinOp, Const
from tecomp.ir.traversal.rewrite import walk
from tecomp.layout.core.layout import Layout
from tecomp.layout.sharding.shard_layout import ShardLayout
from tecomp.machine.descriptor import Target
from tecomp.schedules.scratchpad.placement import HOST, device_of, placement_of


@dataclass(frozen=True, slots=True)
class LayoutRequirement:
    """A layout requirement on a value.

    Attributes:
        tensor: Value.
        text: Origin of the requirement, for messages.
        permitted: Permitted layouts.
        axis: Axis required along the lanes, if only that is prescribed.
    """

    tensor: Tensor
    text: str
    permitted: Wanted = "default"
    axis: int | None = None


def demands_of(
    graph: ProgramGraph, target: Target, specs: Mapping[Tensor, Wanted], hints: Sequence[Hint]
) -> list[LayoutRequirement]:
    """Collect the layout requirements of the caller on the values of the program."""
    values = dict.fromkeys((*graph.inputs, *graph.constants, *graph.computed))
    found = []
    for op in graph.operations:
        layout = requested_layout_of(op)
        if is_near(layout, target):
            found.append(LayoutRequirement(op.output(0), f"the copy {op.name}"))
        elif isinstance(layout, Layout) or (layout is not None and has_layouts(target)):
            x, text = op.output(0), f"the copy {op.name}"
            found.append(
                LayoutRequirement(x, text, axis=layout) if isinstance(layout, int)
                else LayoutRequirement(x, text, layout)
            )
    for x, spec in specs.items():
        device_spec = _on_device(x, spec, target)
        found.append(LayoutRequirement(graph.of(x), f"the layout of {x.name}", device_spec))
    for hint in hints:
        x = graph.of(hint.tensor)
        if x not in values:
            raise LayoutError(
                "hints: {tensor} has a hint, but is not a value of the program; its values are "
                "{names}",
                kind="layout-requirement", tensor=hint.tensor.name,
                names=", ".join(x.name for x in values),
            )
        if hint.is_hard:
            found.append(LayoutRequirement(x, str(hint), axis=hint.stick))
    for demand in found:
        if demand.tensor not in values:
            raise LayoutError(
                "layouts: {tensor} has a layout, but is not a value of the program; its values are "
                "{names}",
                kind="layout-requirement", tensor=demand.tensor.name,
                names=", ".join(x.name for x in values),
            )
    return found


def _on_device(x: Tensor, spec: Wanted, target: Target) -> Wanted:
    """Return the requested layout of a value, as far as the value is in device memory.

    Raises:
        LayoutError: If one of several alternatives is in scratchpads.
    """
    if is_near(spec, target):
        return "default"
    resident = [layout for layout in layouts_in(spec) if is_near(layout, target)]
    if resident:
        raise LayoutError(
            "layouts: one of several alternatives for {x} is in `{memory}`; pass that layout "
            "alone, or remove it",
            kind="layout-requirement", x=x.name, memory=resident[0].memory,
        )
    return spec


def is_near(layout: object, target: Target) -> TypeGuard[ShardLayout]:
    """Return whether a layout places shards in the scratchpads of the target."""
    where = placement_of(target)
    return (
        isinstance(layout, ShardLayout) and where is not None
        and where.scratchpad != where.device and layout.memory == where.scratchpad
    )


def copy_resident_inputs(
    graph: ProgramGraph, target: Target, specs: Mapping[Tensor, Wanted], packed: Container[Tensor]
) -> ProgramGraph:
    """Copy inputs whose layout is in the scratchpads of the target to their shards.

    Callers pass inputs in the memory of the device, so the copies are operations of the program.
    Packed inputs are in the shards already.
    """
    copies = {
        x: relayout_to(x, layout, f"{x.name}_shards")
        for x in graph.inputs
        if x not in packed and is_near(layout := specs.get(x), target)
    }
    return graph_with(graph, inputs=copies) if copies else graph


def shards_of(
    graph: ProgramGraph, target: Target, specs: Mapping[Tensor, Wanted], packed: Container[Tensor]
) -> dict[Tensor, Shards]:
    """Return the values that must be in scratchpads, with their shards.

    Inputs that are not packed are in device memory, and have copies in scratchpads.

    Raises:
        LayoutError: If the value is a constant, or if cores cannot compute the shards.
    """
    layouts: dict[Tensor, object] = {op.output(0): requested_layout_of(op) for op
        in graph.operations}
    layouts |= {graph.of(x): layout for x, layout in specs.items() if isinstance(layout, Layout)}
    found: dict[Tensor, Shards] = {}
    for x, layout in layouts.items():
        if not is_near(layout, target) or (x in graph.inputs and x not in packed):
            continue
        if x in graph.constants:
            raise LayoutError(
                "layouts: {x} is a constant, but shards in `{memory}` exist for one call only; "
                "remove its layout",
                kind="layout-requirement", x=x.name, memory=layout.memory,
            )
        check_near(x, layout, target)
        count = parts_along(layout)
        assert count is not None
        found[x] = Shards(layout, count)
    return found


def check_near(tensor: Tensor, layout: ShardLayout, target: Target) -> None:
    """Check that cores can compute the shards of a value.

    Raises:
        LayoutError: If the layout has another shape or dtype than the tensor, other tiles than the
            target, shards that are not boxes of whole tiles, another storage format, too many
            shards, or shards that exceed a scratchpad.
    """
    check_shape(tensor, layout)
    tile = target.tile
    count = parts_along(layout)
    is_whole = tile is None or layout.tile == (tile.rows, tile.columns)
    if count is None or not is_whole:
        raise LayoutError(
            "layouts: the shards of {tensor} in `{memory}` are {linear} with tile={tile}, which is "
            "not supported; use a grid that splits each axis into equal parts, and the tile of "
            "target {target}",
            kind="layout-requirement", tensor=tensor.name, memory=layout.memory,
            linear=layout.linear, tile=layout.tile, target=target.name,
        )
    units = (1, 1) if tile is None else (tile.rows, tile.columns)
    dims = zip(layout.shape[-2:], count[-2:], units[max(2 - len(layout.shape), 0):], strict=True)
    parts = [(ceil_div(extent, parts), unit) for extent, parts, unit in dims if parts > 1]
    if any(part % unit for part, unit in parts):
        raise LayoutError(
            "layouts: the shards of {tensor} in `{memory}` have {scalar_shard_shape} elements, but "
            "cores compute whole tiles of {units}; use a grid whose shards are whole tiles",
            kind="layout-requirement", tensor=tensor.name, memory=layout.memory,
            scalar_shard_shape=" x ".join(map(str, layout.scalar_shard_shape)),
            units=" x ".join(map(str, units)),
        )
    _check_storage(tensor, layout.storage.name, target)
    _check_cores(tensor, layout, prod(count), target)


def _check_cores(tensor: Tensor, layout: ShardLayout, cores: int, target: Target) -> None:
    where = placement_of(target)
    assert where is not None
    if cores > target.cores:
        raise LayoutError(
            "layouts: {tensor} has {cores} shards, but target {target} has {target_cores} cores; "
            "use a smaller grid",
            kind="layout-requirement", tensor=tensor.name, cores=cores, target=target.name,
            target_cores=target.cores,
        )
    if layout.shard_nbytes > where.scratchpad_bytes:
        raise LayoutError(
            "layouts: a shard of {tensor} takes {shard_nbytes:_} bytes of `{memory}`, but each "
            "core of target {target} has {capacity_bytes:_}; use a larger grid, or remove its "
            "layout",
            kind="layout-requirement", tensor=tensor.name, shard_nbytes=layout.shard_nbytes,
            memory=layout.memory, target=target.name, capacity_bytes=where.scratchpad_bytes,
        )


def parts_along(layout: ShardLayout) -> tuple[int, ...] | None:
    """Return the number of parts along each axis of a tensor, if each shard is a box of elements.

    An axis of the grid may cut several axes of the tensor that are collapsed: the outer axes into
    single indices, one of them into parts, and the inner axes not at all. Return None for other
    shards, and for a part that is empty.

    >>> parts_along(ShardLayout((2, 3, 64, 128), "float32", grid=(6, 4)))
    (2, 3, 1, 4)
    >>> parts_along(ShardLayout((2, 3, 64, 128), "float32", grid=(4, 1))) is None
    True
    """
    shape, count = layout.shape, [1] * len(layout.shape)
    zero = _collapse(layout, [0] * len(shape))
    units = [[int(k == axis) for k in range(len(shape))] for axis in range(len(shape))]
    steps = [
        [index - start for index, start in zip(_collapse(layout, unit), zero, strict=True)]
        for unit in units
    ]
    for k, (cores, shard) in enumerate(zip(layout.grid, layout.scalar_shard_shape, strict=True)):
        collapsed = [axis for axis, extent in enumerate(shape) if steps[axis][k] and extent > 1]
        results = walk(layout.linear.final_indices[k])
        is_sum = all(x.op in _LINEAR for x in results if isinstance(x, Binary))
        if not is_sum or any(count[axis] > 1 for axis in collapsed):
            return None
        order = sorted((-steps[axis][k], axis) for axis in collapsed)
        parts = {} if cores == 1 else _parts_of(order, shape, shard)
        if parts is None or prod(parts.values()) != cores:
            return None
        for axis, n_parts in parts.items():
            count[axis] = n_parts
    return tuple(count)


def _parts_of_first(
    collapsed: Sequence[tuple[int, int]], shape: Sequence[int], shard: int
) -> int | None:
    """Return the parts of the outermost axis if shards end between its indices, also in gaps."""
    (step, axis), *inner = collapsed
    span = sum(-other * (shape[k] - 1) for other, k in inner)
    ends = [(-step * i // shard, (-step * i + span) // shard) for i in range(shape[axis])]
    cores = [first for first, last in ends if first == last]
    part = cores.count(0)
    if len(cores) < len(ends) or cores != [i // part for i in range(len(cores))]:
        return None
    return cores[-1] + 1


_LINEAR = (BinOp.ADD, BinOp.MUL)


def _collapse(layout: ShardLayout, index: Sequence[int]) -> list[int]:
    """Return the collapsed index of an element."""
    found = layout.linear.map_indices(index)
    return [int(x.value) for x in found if isinstance(x, Const)]


def _parts_of(
    collapsed: Sequence[tuple[int, int]], shape: Sequence[int], shard: int
) -> dict[int, int] | None:
    """Return the parts along collapsed axes whose parts are `shard` long, the outer axes first.

    Args:
        collapsed: Negated strides and numbers of the axes, outermost first.
        shape: Shape of the tensor.
        shard: Extent of a shard along the collapsed axis.
    """
    if not collapsed:
        return {}
    if (n_parts := _parts_of_first(collapsed, shape, shard)) is not None:
        return {collapsed[0][1]: n_parts}
    for position, (step, axis) in enumerate(collapsed):
        part, remainder = divmod(shard, -step)
        if not part or remainder or part > max(shape[axis], 1):
            continue
        n_parts = ceil_div(shape[axis], part)
        outer = -collapsed[position - 1][0] if position else shard * n_parts
        if outer == shard * n_parts and (position == 0 or shape[axis] % part == 0 or n_parts == 1):
            return {**{a: shape[a] for _, a in collapsed[:position]}, axis: n_parts}
    return None


def check_shape(tensor: Tensor, layout: Layout) -> None:
    """Check the shape and dtype of a layout.

    Raises:
        LayoutError: If the layout has another shape or dtype than the tensor.
    """
    if layout.shape != tensor.shape or layout.dtype != tensor.dtype:
        raise LayoutError(
            "layouts: {tensor} is {dtype}{shape}, but its layout is for "
            "{layout_dtype}{layout_shape}; pass a layout of its shape and dtype",
            kind="layout-shape-mismatch", tensor=tensor.name, dtype=tensor.dtype,
            shape=list(tensor.shape),
            layout_dtype=layout.dtype, layout_shape=list(layout.shape),
        )


def check_demanded_layout(tensor: Tensor, layout: Layout, target: Target) -> None:
    """Check that a value can have a layout.

    Raises:
        LayoutError: If the layout has another shape or dtype, is in a memory in which programs
            keep no values, or uses another storage format.
    """
    if is_near(layout, target):
        check_near(tensor, layout, target)
        return
    check_shape(tensor, layout)
    _check_memory(tensor, layout.memory, target)
    _check_storage(tensor, layout.storage.name, target)


def _check_memory(tensor: Tensor, memory: str, target: Target) -> None:
    device = device_of(target)
    if memory in (device, HOST):
        return  # a layout without an explicit memory has the host memory
    if memory not in target.memories:
        raise LayoutError(
            "layouts: {tensor} has a layout in unknown memory `{memory}`; memories of target "
            "{target} are {memories}, and values of programs are in `{device}`",
            kind="unsupported-by-target", tensor=tensor.name, memory=memory, target=target.name,
            memories=", ".join(target.memories), device=device,
        )
    raise LayoutError(
        "layouts: {tensor} has a layout in memory `{memory}` of target {target}, but values of "
        "programs must be in `{device}`; pass memory={device!r}, or omit it",
        kind="layout-requirement", tensor=tensor.name, memory=memory, target=target.name,
        device=device,
    )


def _check_storage(tensor: Tensor, storage: str, target: Target) -> None:
    dtype = str(tensor.dtype)
    if storage == dtype:
        return
    usual = candidates(target, sizes_of(tensor), tensor.dtype)[0].storage.name
    if storage != usual:
        supported = " or ".join(dict.fromkeys((usual, dtype)))
        raise LayoutError(
            "layouts: {tensor} has a layout that stores {storage}, but programs for target "
            "{target} store {plain} as {target_storage}; pass a layout with that storage",
            kind="layout-requirement", tensor=tensor.name, storage=storage, target=target.name,
            plain=dtype, target_storage=supported,
        )
