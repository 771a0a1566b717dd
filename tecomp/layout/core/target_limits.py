"""Layout limits and defaults of a target."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tecomp.errors import CapacityError, LayoutError
from tecomp.ir.nodes.argument_checks import check_kind, is_one_of
from tecomp.ir.nodes.dtype import DType
from tecomp.layout.core.layout import Layout
from tecomp.layout.formats.arguments import positive_numbers
from tecomp.machine.descriptor import Target, Tile


def check_target(target: Target, where: str) -> None:
    """Check that an argument is a target.

    Raises:
        LayoutError: If `target` is not a target.
    """
    check_kind(
        target, Target, f"{where}: the target", "load one with Target.load(name)", LayoutError
    )


def tile_of(target: Target) -> Tile:
    """Return the tile of a target.

    Raises:
        LayoutError: If the target has no tiles.
    """
    if target.tile is None:
        raise LayoutError(
            "shard layout: target {target} does not support tiles; pass tiled=False",
            kind="unsupported-by-target", target=target.name,
        )
    return target.tile


def element_of(target: Target, dtype: str, element: str | None) -> str:
    """Return the storage format of a dtype on a target: `element`, or the default format.

    Raises:
        LayoutError: If the target does not store the dtype in such a format.
    """
    known = target.formats.get(DType(dtype), ())
    if not known:
        raise LayoutError(
            "layout: target {target} does not support dtype {dtype}; convert to a supported dtype: "
            "{formats}",
            kind="unsupported-by-target", target=target.name, dtype=dtype,
            formats=", ".join(target.formats) or "none",
        )
    if element is not None and not is_one_of(element, known):
        raise LayoutError(
            "layout: target {target} does not support storing {dtype} as {element}; supported "
            "formats: {known}",
            kind="unsupported-by-target", target=target.name, dtype=dtype, element=element,
            known=", ".join(known),
        )
    return known[0] if element is None else element


def grid_of(target: Target, grid: Sequence[int] | None) -> tuple[int, ...]:
    """Return the core grid to use on a target; all cores if `grid` is None.

    Raises:
        LayoutError: If the target has fewer cores.
    """
    cores = (
        tuple(target.grid.values())
        if grid is None
        else positive_numbers(grid, "layout: the grid")
    )
    if prod(cores) > target.cores:
        grid_text = "x".join(map(str, cores))
        raise LayoutError(
            "layout: the grid <{grid}> has {size} cores, but target {target} has only {cores}; "
            "use a smaller grid",
            kind="unsupported-by-target", grid=grid_text, size=prod(cores), target=target.name,
            cores=target.cores,
        )
    return cores


def check_room(layout: Layout, target: Target) -> None:
    """Check that a layout fits its memory: a shard per core, or the whole tensor in shared memory.

    Raises:
        TargetError: If the target has no such memory.
        CapacityError: If the layout is larger than the memory.
    """
    memory = target.memory(layout.memory)
    is_shared = memory.scope != "core"
    size = layout.nbytes if is_shared else layout.shard_nbytes
    if memory.usable_bytes is not None and size > memory.usable_bytes:
        where = "" if is_shared else " of a core"
        raise CapacityError(
            "layout: {dtype}{shape} as {storage} takes {size:,} B of `{memory}`{where}, but target "
            "{target} has {usable_bytes:,} B; split it into smaller parts, or use another memory",
            dtype=DType(layout.dtype), shape=list(layout.shape), storage=layout.storage.name,
            size=size, memory=memory.name, where=where, target=target.name,
            usable_bytes=memory.usable_bytes,
        )
