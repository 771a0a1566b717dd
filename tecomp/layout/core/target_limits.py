"""Layout limits and defaults of a target."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tecomp.errors import CapacityError, LayoutError, safe_str
from tecomp.ir.nodes.argument_checks import check_kind, is_one_of
from tecomp.ir.nodes.dtype import DType
from tecomp.layout.addressing.arguments import positive_numbers
from tecomp.layout.core.layout import Layout
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
            f"shard layout: target {target.name} has no tiles; pass tiled=False",
            kind="target-lacks",
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
            f"layout: target {target.name} stores no {dtype}; convert to one of its types, "
            f"{', '.join(target.formats) or 'none'}",
            kind="target-lacks",
        )
    if element is not None and not is_one_of(element, known):
        raise LayoutError(
            f"layout: target {target.name} does not store {dtype} as {safe_str(element)}; its "
            f"formats for it are {', '.join(known)}",
            kind="target-lacks",
        )
    return known[0] if element is None else element


def grid_of(target: Target, grid: Sequence[int] | None) -> tuple[int, ...]:
    """Return the core grid to use on a target. Default: all cores.

    Raises:
        LayoutError: If the target has fewer cores.
    """
    cores = (
        tuple(target.grid.values())
        if grid is None
        else positive_numbers(grid, "layout: the grid")
    )
    if prod(cores) > target.cores:
        by = "x".join(map(str, cores))
        raise LayoutError(
            f"layout: the grid <{by}> has {prod(cores)} cores, target {target.name} has "
            f"{target.cores}; take a smaller grid",
            kind="target-lacks",
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
            f"layout: {DType(layout.dtype)}{list(layout.shape)} as {layout.storage.name} takes "
            f"{size:,} B of `{memory.name}`{where}, target {target.name} has "
            f"{memory.usable_bytes:,} B; cut it into smaller parts, or take another memory"
        )
