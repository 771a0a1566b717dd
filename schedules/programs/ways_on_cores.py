"""How the cores of a machine with scratchpads compute a group, and how that cuts its result."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

from tecomp import ScheduleError, accesses, te
from tecomp.schedules.matmul import contraction_of, product_on_cores
from tecomp.schedules.programs.groups import Group, Program
from tecomp.schedules.scratchpads import blocks, on_cores, parts, row_blocks
from tecomp.schedules.scratchpads.division import Cut, Outline, Uncut
from tecomp.schedules.scratchpads.need import Work, work_of
from tecomp.schedules.scratchpads.parts import outline_partial, schedule_partial, schedule_parts
from tecomp.schedules.scratchpads.placement import Placement
from tecomp.schedules.structure.contraction import of_images
from tecomp.schedules.structure.convolutions import Convolution, convolution_of
from tecomp.schedules.structure.products import Product, product_of
from tecomp.schedules.structure.sizes import same_shape
from tecomp.schedules.structure.stages import is_same, unconverted
from tecomp.schedules.structure.trials import Walk


@dataclass(frozen=True)
class Way:
    """One way to compute a group.

    Attributes:
        walk: gives its stages their loops.
        outline: says how the result is cut; raises what `walk` does.
    """

    walk: Walk
    outline: Callable[[], Outline | Uncut]


def ways(
    group: Group, p: Program, whole: Collection[te.Tensor], where: Placement
) -> list[Way]:
    """What schedules a group, the best first.

    Args:
        group: the group.
        p: the program that it is of.
        whole: what is there before.
        where: the machine.
    """
    output, chain = group.output, group.chain
    if group.rows:
        return [_row_by_row(group, whole, where)] if _are_plain_rows(group, whole) else []
    total = chain[-1] if chain[-1].op.reduce_axis else None
    if not accesses(output).reads or not output.shape:
        return [] if output in where.cuts else [_undivided(partial(_put, output, where))]
    if _is_transfer(output, where):
        walk = partial(_transfer, output, where)
        return [] if output in where.cuts else [_undivided(walk)]
    w = work_of(output, total, p.stages, whole)
    shared = Way(lambda s: schedule_partial(s, w, where), lambda: outline_partial(w, where))
    if any(axis >= len(output.shape) for axis in where.cuts.get(output, Cut()).cores):
        return [shared]
    found: list[Way] = []
    if total is not None and (product := product_of(output, chain)) is not None:
        found.append(_product(w, product, where))
    if total is not None and (convolution := convolution_of(output, chain)) is not None:
        found.append(_convolution(w, convolution, where))
    apart = Way(lambda s: schedule_parts(s, w, where), lambda: parts.outline(w, where))
    return [*found, shared, apart]


def _undivided(walk: Walk) -> Way:
    """What is no work for several cores."""
    return Way(walk, lambda: Uncut("host", "no core computes it"))


def _put(x: te.Tensor, where: Placement, s: te.Schedule) -> None:
    where.put(s, x)


def _row_by_row(group: Group, whole: Collection[te.Tensor], where: Placement) -> Way:
    output, rows = group.output, group.rows
    reads = (x for y in (output, *rows) for x in y.op.input_tensors if x in whole)
    read, cut = list(dict.fromkeys(reads)), where.cuts.get(output, Cut())
    return Way(
        lambda s: row_blocks.schedule_blocks(s, output, rows, where),
        lambda: row_blocks.outline(output, read, cut, where),
    )


def _is_transfer(output: te.Tensor, where: Placement) -> bool:
    """Whether a tensor is brought from the memory of the host to that of the device, or back."""
    found = accesses(output)
    if found.reduce_axis or len(found.factors) != 1 or len(found.reads) != 1:
        return False
    (source,) = found.factors
    if source.tensor in where.near or output in where.near:
        return False
    memories = {where.memory_of(source.tensor), where.memory_of(output)}
    return len(memories) == 2 and source.tensor.dtype == output.dtype


def _transfer(output: te.Tensor, where: Placement, s: te.Schedule) -> None:
    """A copy that no core takes part in: links of the whole machine lead to the host."""
    where.put(s, output)
    on_cores.walk(s, output, output.op.axis, where)


def _product(w: Work, product: Product, where: Placement) -> Way:
    """A product of matrices that are there before, and what is made of it element by element.

    Refused where a factor is computed for it, or there is no room for tiles.
    """

    def check() -> None:
        _need_whole(w, (product.rows.tensor, product.columns.tensor))

    def walk(s: te.Schedule) -> None:
        check()
        _inline(s, w)
        _need_room(w, product_on_cores(s, product, where, w.whole))

    def outline() -> Outline:
        check()
        return blocks.outline(contraction_of(product), w.output, where)

    return Way(walk, outline)


def _convolution(w: Work, d: Convolution, where: Placement) -> Way:
    """A convolution, whose image may get its zeros where it is needed.

    Refused where a factor is computed for it in another way, or there is no room for tiles.
    """
    padded = [x for x in (d.image,) if x not in w.whole]
    images = [d.image] if d.image in w.whole else d.image.op.input_tensors

    def walk(s: te.Schedule) -> None:
        _need_whole(w, (d.weights, *images))
        _inline(s, w, padded)
        _need_room(w, on_cores.schedule(s, d.output, of_images(d, padded), where, w.whole))

    def outline() -> Outline:
        _need_whole(w, (d.weights, *images))
        return blocks.outline(of_images(d, padded), w.output, where)

    return Way(walk, outline)


def _need_whole(w: Work, factors: Collection[te.Tensor]) -> None:
    """Refuse factors that are neither there before nor conversions of what is."""
    for x in factors:
        source = x if x in w.whole else unconverted(x)
        if source not in w.whole or unconverted(x) is not source:
            raise ScheduleError(f"{w.output.name}: {x.name} is computed for it", kind="not-divided")


def _need_room(w: Work, p: on_cores.Plan) -> None:
    """Refuse tiles of a unit for which a scratchpad has no room."""
    if not p.fits:
        raise ScheduleError(
            f"{w.output.name}: there is no room for one tile of each operand", kind="not-divided"
        )


def _inline(s: te.Schedule, w: Work, but: Collection[te.Tensor] = ()) -> None:
    for x in w.inlined:
        if x not in but:
            s[x].compute_inline()


def _are_plain_rows(group: Group, whole: Collection[te.Tensor]) -> bool:
    """Whether rows and values of rows follow from rows and values of columns."""
    lead = len(group.output.shape) - 1
    for y in (group.output, *group.rows):
        if not (same_shape(y.shape, group.output.shape) or len(y.shape) == lead):
            return False
        columns = y.op.axis[lead:] or y.op.reduce_axis
        for read in accesses(y).reads:
            is_row = is_same(read.axes, (*y.op.axis[:lead], *columns))
            if read.tensor in whole and not (is_row or is_same(read.axes, columns)):
                return False
    return True
