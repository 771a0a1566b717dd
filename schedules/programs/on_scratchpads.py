"""A schedule for any program on a machine with scratchpads.

Values that several results are made of are in the memory of the device. Each of them is computed
by the cores, part by part: products, convolutions and rows as the library has them, everything
else by what a part of it needs. What only runs one step after another, a scan or statements of the
user, runs there as well, where its values are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tecomp import ScheduleError, accesses, te
from tecomp.schedules.matmul import product_on_cores
from tecomp.schedules.programs.groups import Group, Program, groups_of, is_of_scan, program_of
from tecomp.schedules.scratchpads import on_cores
from tecomp.schedules.scratchpads.division import Cut
from tecomp.schedules.scratchpads.need import Work, work_of
from tecomp.schedules.scratchpads.parts import schedule_partial, schedule_parts
from tecomp.schedules.scratchpads.placement import Placement
from tecomp.schedules.scratchpads.row_blocks import schedule_blocks
from tecomp.schedules.structure.contraction import of_images
from tecomp.schedules.structure.convolutions import Convolution, convolution_of
from tecomp.schedules.structure.products import Product, product_of
from tecomp.schedules.structure.sizes import same_shape
from tecomp.schedules.structure.stages import by_loops, is_same, unconverted
from tecomp.schedules.structure.trials import Walk, first_taken


def on_scratchpads(results: Sequence[te.Tensor], where: Placement) -> te.Schedule:
    """The schedule of a program on the cores of a machine with scratchpads.

    Raises:
        CapacityError: there is no room for what a single element of a value is made of.
        TargetError: an extent is not known before the call, or a result cannot be cut as asked.
        ScheduleError: what is to be cut has no loops of its own.
    """
    s: te.Schedule = by_loops(results)
    where = where.within(s)
    p = program_of(s)
    groups = _groups(p, where)
    _check_cuts(groups, where)
    whole = _whole(s, groups)
    for group in groups:
        s = _scheduled(s, group, p, whole, where)
    where.put_arguments(s)
    return s


def _check_cuts(groups: Sequence[Group], where: Placement) -> None:
    """Refuse to cut what has no loops of its own, or shares a kernel with what is not cut."""
    if not where.cuts:
        return
    outputs = [group.output for group in groups]
    for x, cut in where.cuts.items():
        chain = next((group.chain for group in groups if group.output == x), (x,))
        cut.check(x, len(chain[-1].op.reduce_axis))
        if x not in outputs:
            raise ScheduleError(
                f"auto: {x.name} is computed where it is used, and has no loops to divide; divide "
                "what reads it"
            )
    beside = [x for x in outputs if x not in where.cuts]
    beside += [x for group in groups for x in group.rows if group.output in beside]
    if beside:
        raise _is_beside(next(iter(where.cuts)), beside)


def _is_beside(x: te.Tensor, others: Sequence[te.Tensor]) -> ScheduleError:
    return ScheduleError(
        f"auto: {x.name} is to be divided, and is computed with "
        f"{', '.join(y.name for y in others)}, which have loops of their own; leave the division "
        "out"
    )


def _whole(s: te.Schedule, groups: Sequence[Group]) -> set[te.Tensor]:
    """What is there before those that read it: what the caller gives, the results of groups."""
    given = _every(stage.op.output(0) for stage in s.stages if not stage.op.input_tensors)
    return given | _every(group.output for group in groups)


def _every(tensors: Iterable[te.Tensor]) -> set[te.Tensor]:
    """Tensors, with the other outputs of their operations."""
    return {y for x in tensors for y in x.op.outputs}


def _groups(p: Program, where: Placement) -> list[Group]:
    """Groups of stages; what several of them would compute again is one of its own."""
    groups, inlined = groups_of(p, where.target)
    found = {group.output: group for group in groups}
    home = {x: {group.output} for group in groups for x in (*group.chain, *group.rows)}
    for x in reversed(p.stages):
        if x in home:
            continue
        home[x] = {y for reader in p.readers[x] for y in home[reader]}
        is_local = x in inlined or is_of_scan(p, x) or _is_brought(p, x)
        if not is_local or len(home[x]) > 1 or any(found[y].rows for y in home[x]):
            found[x], home[x] = Group(x, (x,)), {x}
    return [found[x] for x in p.stages if x in found]


def _is_brought(p: Program, x: te.Tensor) -> bool:
    """Whether a factor becomes what its one reader needs while it is brought to a scratchpad."""
    if unconverted(x) is not x:
        return True
    found = [convolution_of(y, [y]) for y in p.readers[x] if y.op.reduce_axis]
    return any(d is not None and d.image == x for d in found)


def _scheduled(
    s: te.Schedule, group: Group, p: Program, whole: set[te.Tensor], where: Placement
) -> te.Schedule:
    """The schedule with the loops of a group, of the first kind that it is."""
    found: te.Schedule | None = first_taken(s, _walks(group, p, whole, where))
    if found is not None:
        return found
    if not group.rows:
        if group.output in where.cuts:
            raise ScheduleError(
                f"auto: {group.output.name} is computed step by step, or by no core, and is not "
                "divided; leave its division out"
            )
        return s
    if group.output in where.cuts:
        raise _is_beside(group.output, group.rows)
    whole |= set(group.rows)
    for x in group.rows:
        s = _scheduled(s, Group(x, (x,)), p, whole, where)
    return _scheduled(s, Group(group.output, group.chain), p, whole, where)


def _walks(
    group: Group, p: Program, whole: Collection[te.Tensor], where: Placement
) -> list[Walk]:
    """What schedules a group, the best first."""
    output, chain = group.output, group.chain
    if group.rows:
        are_plain = _are_plain_rows(group, whole)
        return [lambda s: schedule_blocks(s, output, group.rows, where)] if are_plain else []
    total = chain[-1] if chain[-1].op.reduce_axis else None
    if not accesses(output).reads or not output.shape:
        return [] if output in where.cuts else [lambda s: where.put(s, output)]
    if _is_transfer(output, where):
        return [] if output in where.cuts else [lambda s: _transfer(s, output, where)]
    found: list[Walk] = []
    w = work_of(output, total, p.stages, whole)
    if any(axis >= len(output.shape) for axis in where.cuts.get(output, Cut()).cores):
        return [lambda s: schedule_partial(s, w, where)]
    if total is not None and (product := product_of(output, chain)) is not None:
        found.append(lambda s: _product(s, w, product, where))
    if total is not None and (convolution := convolution_of(output, chain)) is not None:
        found.append(lambda s: _convolution(s, w, convolution, where))
    found.append(lambda s: schedule_partial(s, w, where))
    return [*found, lambda s: schedule_parts(s, w, where)]


def _is_transfer(output: te.Tensor, where: Placement) -> bool:
    """Whether a tensor is brought from the memory of the host to that of the device, or back."""
    found = accesses(output)
    if found.reduce_axis or len(found.factors) != 1 or len(found.reads) != 1:
        return False
    (source,) = found.factors
    memories = {where.memory_of(source.tensor), where.memory_of(output)}
    return len(memories) == 2 and source.tensor.dtype == output.dtype


def _transfer(s: te.Schedule, output: te.Tensor, where: Placement) -> None:
    """A copy that no core takes part in: links of the whole machine lead to the host."""
    where.put(s, output)
    on_cores.walk(s, output, output.op.axis, where)


def _product(s: te.Schedule, w: Work, product: Product, where: Placement) -> None:
    """A product of matrices that are there before, and what is made of it element by element.

    Raises:
        ScheduleError: a factor is computed for it, or there is no room for tiles.
    """
    _need_whole(w, (product.rows.tensor, product.columns.tensor))
    _inline(s, w)
    _need_room(w, product_on_cores(s, product, where, w.whole))


def _convolution(s: te.Schedule, w: Work, d: Convolution, where: Placement) -> None:
    """A convolution, whose image may get its zeros where it is needed.

    Raises:
        ScheduleError: a factor is computed for it in another way, or there is no room for tiles.
    """
    _need_whole(w, (d.weights, *([d.image] if d.image in w.whole else d.image.op.input_tensors)))
    padded = [x for x in (d.image,) if x not in w.whole]
    _inline(s, w, padded)
    _need_room(w, on_cores.schedule(s, d.output, of_images(d, padded), where, w.whole))


def _need_whole(w: Work, factors: Collection[te.Tensor]) -> None:
    """Refuse factors that are neither there before nor conversions of what is."""
    for x in factors:
        source = x if x in w.whole else unconverted(x)
        if source not in w.whole or unconverted(x) is not source:
            raise ScheduleError(f"{w.output.name}: {x.name} is computed for it")


def _need_room(w: Work, p: on_cores.Plan) -> None:
    """Refuse tiles of a unit for which a scratchpad has no room."""
    if not p.fits:
        raise ScheduleError(f"{w.output.name}: there is no room for one tile of each operand")


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
