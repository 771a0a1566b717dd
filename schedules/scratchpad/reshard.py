"""Copy a tensor between two divisions among scratchpads, from core to core.

Each core first copies its shard to a buffer of the kernel. In a second loop over cores, each core
reads the elements of its new shard from the buffers of other cores. The links between cores carry
them, and device memory is not accessed.
"""

from __future__ import annotations

from tecomp import Layout, accesses, te
from tecomp.schedules.analysis.stages import is_same
from tecomp.schedules.scratchpad.placement import Placement, sizes_of
from tecomp.schedules.scratchpad.traversal import traverse_parts
from tecomp.schedules.scratchpad.work_division import DivisionSpec, divide_as


def resharded_tensor(output: te.Tensor, where: Placement) -> te.Tensor | None:
    """Return the tensor in scratchpads that `output` has in another division; None for others.

    Args:
        output: Tensor.
        where: Placement of tensors in the memories of the target.
    """
    found = accesses(output)
    if found.reduce_axis or len(found.factors) != 1 or len(found.reads) != 1:
        return None
    (read,) = found.reads
    source = read.tensor
    is_copy = is_same(read.axes, found.axis) and not source.op.input_tensors
    has_scratchpad = where.scratchpad != where.device
    is_divided = has_scratchpad and not where.resident_tensors and output in where.cuts
    if not (is_copy and is_divided) or source.dtype != output.dtype:
        return None
    if {where.memory_of(source), where.memory_of(output)} != {where.scratchpad}:
        return None
    requested = where.cuts[output].cores
    count = parts_of(source, where)
    is_other = any(requested.get(axis, 1) != n for axis, n in enumerate(count))
    return source if is_other else None


def parts_of(x: te.Tensor, where: Placement) -> tuple[int, ...]:
    """Return the number of parts along each axis of a tensor whose shards are boxes."""
    layout = where.layout_of_tensor(x)
    units, shape = where.units(x), sizes_of(x)
    count = []
    for axis, (extent, unit) in enumerate(zip(shape, units, strict=True)):
        steps = range(0, max(extent, 1), unit)
        count.append(len({_core(layout, axis, position) for position in steps}))
    return tuple(count)


def _core(layout: Layout, axis: int, position: int) -> tuple[str, ...]:
    """Return the grid coordinates of the element at position `position` of an axis."""
    index = [position if k == axis else 0 for k in range(len(layout.shape))]
    address = layout.index_map.map_indices(index)
    return tuple(str(address[k]) for k in layout.grid_axes)


def schedule_reshard(
    s: te.Schedule, output: te.Tensor, source: te.Tensor, where: Placement
) -> None:
    """Schedule a copy between two divisions among scratchpads.

    Args:
        s: Schedule, in which the tensors in memory have been placed.
        output: Copy.
        source: Tensor that is copied.
        where: Placement of tensors in the memories of the target.

    Raises:
        TargetError: If the parts cannot be mapped to cores.
    """
    where.put(s, output)
    staged = s.cache_read(source, where.scratchpad, [output])
    s[staged].set_scope(where.scratchpad)
    layout = where.layout_of(source)
    assert layout is not None
    s[staged].transform_layout(layout, loops="logical")
    _on_own_cores(s, staged, parts_of(source, where), source, where)
    cut = where.cuts[output].cores
    _on_own_cores(s, output, [cut.get(k, 1) for k in range(len(output.shape))], output, where)


def _on_own_cores(
    s: te.Schedule, x: te.Tensor, count: tuple[int, ...] | list[int], source: te.Tensor,
    where: Placement,
) -> None:
    """Divide the loops of a tensor among the cores that have its parts."""
    units = where.units(source)
    division = divide_as(x, DivisionSpec(dict(enumerate(count))), units, where.target)
    core = tuple(n * unit for n, unit in zip(division.part, units, strict=True))
    # The loops of `x` follow the addresses of the tensor whose layout it has.
    where = Placement(
        where.target, where.device, where.scratchpad, where.scratchpad_bytes,
        {**where.tensor_layouts, x: where.tensor_layouts[source]},
    )
    traverse_parts(s, x, core, core, division.shares, where)
