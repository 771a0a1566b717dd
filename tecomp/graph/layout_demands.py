"""Layouts that the caller prescribes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from tecomp.compute.tensor import Tensor
from tecomp.constraints.user_hints import Hint, asked_of, relayout_to
from tecomp.errors import LayoutError
from tecomp.graph.dag import Graph, graph_with
from tecomp.graph.layout_candidates import Wanted, candidates, has_layouts
from tecomp.graph.sizes import sizes_of
from tecomp.layout.core.layout import Layout
from tecomp.layout.sharding.shard_layout import ShardLayout
from tecomp.machine.descriptor import Target
from tecomp.schedules.scratchpad.placement import HOST, device_of, placement_of


@dataclass(frozen=True, slots=True)
class Demand:
    """A layout requirement on a value.

    Attributes:
        tensor: Value.
        text: Origin of the requirement, for messages.
        wanted: Permitted layouts.
        axis: Axis required along the lanes, if only that is prescribed.
    """

    tensor: Tensor
    text: str
    wanted: Wanted = "default"
    axis: int | None = None


def demands_of(
    graph: Graph, target: Target, given: Mapping[Tensor, Wanted], hints: Sequence[Hint]
) -> list[Demand]:
    """Collect the layout requirements of the caller on the values of the program."""
    every = dict.fromkeys((*graph.inputs, *graph.constants, *graph.computed))
    found = []
    for op in graph.operations:
        wanted = asked_of(op)
        if is_near(wanted, target):
            found.append(Demand(op.output(0), f"the copy {op.name}"))
        elif isinstance(wanted, Layout) or (wanted is not None and has_layouts(target)):
            said = {"axis": wanted} if isinstance(wanted, int) else {"wanted": wanted}
            found.append(Demand(op.output(0), f"the copy {op.name}", **said))
    for x, asked in given.items():
        own: Wanted = "default" if is_near(asked, target) else asked
        found.append(Demand(graph.of(x), f"the layout of {x.name}", own))
    for each in hints:
        x = graph.of(each.tensor)
        if x not in every:
            raise LayoutError(
                "hints: {tensor} has a hint, and is no value of the program; these are {every}",
                kind="demand", tensor=each.tensor.name, every=", ".join(x.name for x in every),
            )
        if each.is_hard:
            found.append(Demand(x, str(each), axis=each.stick))
    for demand in found:
        if demand.tensor not in every:
            raise LayoutError(
                "layouts: {tensor} is given a layout, and is no value of the program; these are "
                "{every}",
                kind="demand", tensor=demand.tensor.name,
                every=", ".join(x.name for x in every),
            )
    return found


def is_near(layout: object, target: Target) -> TypeGuard[ShardLayout]:
    """Return whether a layout places shards in the scratchpads of the target."""
    where = placement_of(target)
    return (
        isinstance(layout, ShardLayout) and where is not None
        and where.scratchpad != where.device and layout.memory == where.scratchpad
    )


def inputs_near(
    graph: Graph, target: Target, given: Mapping[Tensor, Wanted]
) -> tuple[Graph, Mapping[Tensor, Wanted]]:
    """Copy inputs whose layout is in the scratchpads of the target to their shards.

    Callers pass inputs in the memory of the device, so the copies are operations of the program.

    Returns:
        The program with the copies, and the layouts without those of copied inputs.
    """
    copies = {
        x: relayout_to(x, layout, f"{x.name}_shards")
        for x in graph.inputs if is_near(layout := given.get(x), target)
    }
    if not copies:
        return graph, given
    made = graph_with(graph, inputs=copies)
    return made, {x: layout for x, layout in given.items() if x not in copies}


def shards_of(
    graph: Graph, target: Target, given: Mapping[Tensor, Wanted]
) -> dict[Tensor, tuple[int, ...]]:
    """Return the values that must stay in scratchpads, with the shards along each axis.

    Raises:
        LayoutError: If the value is a constant or an output of the program, or if the shards do not
            divide its axes one by one.
    """
    wanted: dict[Tensor, object] = {op.output(0): asked_of(op) for op in graph.operations}
    wanted |= {graph.of(x): layout for x, layout in given.items() if isinstance(layout, Layout)}
    found: dict[Tensor, tuple[int, ...]] = {}
    for x, layout in wanted.items():
        if not is_near(layout, target):
            continue
        if x in (*graph.constants, *graph.outputs):
            what = "a constant" if x in graph.constants else "an output"
            raise LayoutError(
                "layouts: {x} is {what}, and shards in `{memory}` are for inputs and values "
                "between operations, as they last for one call; leave out its layout",
                kind="demand", x=x.name, what=what, memory=layout.memory,
            )
        check_shape(x, layout)
        axes, tile = layout.linear.initial_indices, target.tile
        is_whole = tile is None or layout.tile == (tile.rows, tile.columns)
        if layout.linear.final_indices != axes or not is_whole:
            raise LayoutError(
                "layouts: the shards of {x} in `{memory}` are {linear} with tile={tile}; give a "
                "grid with one extent per axis, and the tile of target {target}",
                kind="demand", x=x.name, memory=layout.memory, linear=layout.linear,
                tile=layout.tile, target=target.name,
            )
        _check_storage(x, layout.storage.name, target)
        found[x] = layout.grid
    return found


def check_shape(tensor: Tensor, layout: Layout) -> None:
    """Check the shape and dtype of a layout.

    Raises:
        LayoutError: If the layout has another shape or dtype than the tensor.
    """
    if layout.shape != tensor.shape or layout.dtype != tensor.dtype:
        raise LayoutError(
            "layouts: {tensor} is {dtype}{shape}, and its layout is for "
            "{layout_dtype}{layout_shape}; give one of its shape and type",
            kind="other-shape", tensor=tensor.name, dtype=tensor.dtype, shape=list(tensor.shape),
            layout_dtype=layout.dtype, layout_shape=list(layout.shape),
        )


def check_given(tensor: Tensor, layout: Layout, target: Target) -> None:
    """Check that a value can have a layout.

    Raises:
        LayoutError: If the layout has another shape or dtype, lies in a memory in which programs
            keep no values, or uses another storage format.
    """
    check_shape(tensor, layout)
    _check_memory(tensor, layout.memory, target)
    _check_storage(tensor, layout.storage.name, target)


def _check_memory(tensor: Tensor, memory: str, target: Target) -> None:
    device = device_of(target)
    if memory in (device, HOST):
        return  # a layout without an explicit memory has the host memory
    if memory not in target.memories:
        raise LayoutError(
            "layouts: {tensor} is to be in memory `{memory}`, and target {target} has none of "
            "that name; its memories are {memories}, and values of programs are in `{device}`",
            kind="target-lacks", tensor=tensor.name, memory=memory, target=target.name,
            memories=", ".join(target.memories), device=device,
        )
    raise LayoutError(
        "layouts: {tensor} is to be in memory `{memory}` of target {target}, and values of "
        "programs are in `{device}`; give memory={device!r}, or none",
        kind="demand", tensor=tensor.name, memory=memory, target=target.name, device=device,
    )


def _check_storage(tensor: Tensor, storage: str, target: Target) -> None:
    plain = str(tensor.dtype)
    if storage == plain:
        return
    usual = candidates(target, sizes_of(tensor), tensor.dtype)[0].storage.name
    if storage != usual:
        kept = " or ".join(dict.fromkeys((usual, plain)))
        raise LayoutError(
            "layouts: {tensor} is to be stored as {storage}, and programs for target {target} "
            "keep {plain} as {kept}; give a layout that stores it so",
            kind="demand", tensor=tensor.name, storage=storage, target=target.name, plain=plain,
            kept=kept,
        )
