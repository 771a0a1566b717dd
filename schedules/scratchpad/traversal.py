"""Traverse whole tensors: loops over cores, over blocks, and in memory order."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp import te
from tecomp.schedules.scratchpad.placement import Placement, sizes_of
from tecomp.schedules.scratchpad.work_division import Shares


def traverse_parts(
    s: te.Schedule, output: te.Tensor, core: Sequence[int], block: Sequence[int], shares: Shares,
    where: Placement,
) -> te.IterVar:
    """Create loops over cores, over the blocks of a core, and inside a block in memory order.

    A tensor that is resident in scratchpads has no core loops: it is computed inside the core loops
    of another stage.

    Args:
        s: Schedule.
        output: Tensor that is divided.
        core: Extents of the part of one core.
        block: Extents of the block that is simultaneously in the scratchpad.
        shares: Assignment of the parts to cores.
        where: Placement of tensors in the memories of the target.

    Returns:
        The innermost loop over blocks, of those with more than one iteration if there are any.
    """
    stage, is_near = s[output], output in where.resident_tensors
    cores: dict[str, list[te.IterVar]] = {name: [] for name in where.target.grid}
    single: list[te.IterVar] = []
    blocks: list[te.IterVar] = []
    inside: list[te.IterVar] = []
    for k, axis in enumerate(stage.op.axis):
        step, rest = stage.split(axis, factor=core[k])
        part, rest = stage.split(rest, factor=block[k])
        for name, count in () if is_near else shares.get(k, ())[:0:-1]:
            step, inner = stage.split(step, factor=count)
            cores[name].append(inner)
        # An undivided axis has one part; if no axis is divided, the part belongs to one core.
        name = shares[k][0][0] if k in shares else ("" if shares else next(iter(cores)))
        cores.get(name, single).append(step)
        blocks.insert(0 if core[k] <= block[k] else len(blocks), part)
        inside.append(rest)
    stage.reorder(*(loop for loops in cores.values() for loop in loops), *single, *blocks, *inside)
    for name, loops in cores.items():
        if loops and not is_near:
            stage.bind(stage.fuse(*loops), te.thread_axis(name))
    traverse(s, output, inside, where)
    return blocks[-1]


def traverse(
    s: te.Schedule, x: te.Tensor, loops: Sequence[te.IterVar], where: Placement,
    source: te.Tensor | None = None,
) -> None:
    """Order the loops over a tensor as in device memory, and vectorize the innermost loop.

    Args:
        s: Schedule.
        x: Tensor that is copied.
        loops: Loops over its last dimensions, one for each.
        where: Placement, which defines the layout of device memory.
        source: Tensor in device memory. Default: `x`.
    """
    source = x if source is None else source
    shape, layout, blocks = sizes_of(x), where.layout_of_tensor(source), _blocks_of(source, where)

    def step(dim: int, weight: int) -> int:
        index = [0] * len(shape)
        index[dim] = weight
        # A tensor without elements has no addresses.
        return layout.offset(index) if weight < shape[dim] and 0 not in shape else 0

    found: list[tuple[int, te.IterVar]] = []
    for dim, (rest, sizes) in enumerate(zip(loops, blocks[-len(loops):], strict=True)):
        for size in sizes:
            outer, rest = s[x].split(rest, factor=size)
            found.append((step(dim, size), outer))
        found.append((step(dim, 1), rest))
    ordered = [loop for _, loop in sorted(found, key=lambda pair: -pair[0])]
    s[x].reorder(*ordered)
    s[x].vectorize(ordered[-1])


def _blocks_of(x: te.Tensor, where: Placement) -> list[tuple[int, ...]]:
    """Return the block sizes that each dimension of a whole tensor is split into, largest first."""
    lane, units = where.lane_of(x), where.units(x)
    if lane is not None and lane < len(x.shape) - 1:
        return [(unit,) if unit > 1 else () for unit in units]
    return [()] * (len(x.shape) - 2) + list(where.blocks(x.dtype))
