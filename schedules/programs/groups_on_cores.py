"""Which stages the cores of a machine with scratchpads compute together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tecomp import te
from tecomp.schedules.programs.groups import Group, Program, groups_of, is_of_scan
from tecomp.schedules.scratchpads.placement import Placement
from tecomp.schedules.structure.convolutions import convolution_of
from tecomp.schedules.structure.stages import unconverted


def whole_of(s: te.Schedule, groups: Sequence[Group]) -> set[te.Tensor]:
    """What is there before those that read it: what the caller gives, the results of groups."""
    given = _every(stage.op.output(0) for stage in s.stages if not stage.op.input_tensors)
    return given | _every(group.output for group in groups)


def _every(tensors: Iterable[te.Tensor]) -> set[te.Tensor]:
    """Tensors, with the other outputs of their operations."""
    return {y for x in tensors for y in x.op.outputs}


def groups_on_cores(p: Program, where: Placement) -> list[Group]:
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
