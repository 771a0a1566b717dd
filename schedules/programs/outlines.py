"""How the result of a program is cut that becomes one kernel, and what each core reads for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import gcd, lcm

from tecomp import ScheduleError, te
from tecomp.schedules.programs.groups import Group, Program, program_of
from tecomp.schedules.programs.groups_on_cores import groups_on_cores, whole_of
from tecomp.schedules.programs.ways_on_cores import ways
from tecomp.schedules.scratchpads.division import Cut, Outline, Uncut
from tecomp.schedules.scratchpads.need import Box, Span, work_of
from tecomp.schedules.scratchpads.placement import Placement
from tecomp.schedules.structure.sizes import ceil_div
from tecomp.schedules.structure.stages import by_loops


@dataclass(frozen=True)
class Outlined:
    """How a result is cut, and what a core reads for its part.

    Attributes:
        outline: how it is cut.
        axes: of the result.
        needs: the part of a core of what its loops read, and nothing that is made for them.
        far: what of that is read where data says.
    """

    outline: Outline
    axes: tuple[te.IterVar, ...]
    needs: Mapping[te.Tensor, Box]
    far: frozenset[te.Tensor]

    @property
    def cut(self) -> Cut:
        """What asks for the same."""
        return Cut(dict(enumerate(self.outline.count)))

    def least_for(self, x: te.Tensor, units: Sequence[int]) -> dict[int, int]:
        """What is not to be cut of the result for something that it is made of to be cut alike.

        Args:
            x: what it is made of.
            units: what is not cut of that, along its axes.

        Returns:
            Extents along axes of the result, where they are more than 1: all of one on which it
            does not depend what is read.
        """
        spans = [*zip(self.needs[x], units, strict=True)]
        least = {}
        for number, axis in enumerate(self.axes):
            found = [
                unit // gcd(unit, factor) for span, unit in spans
                for other, factor in span.terms or () if other is axis
            ]
            least[number] = lcm(*found) if found else int(axis.extent)
        return {number: extent for number, extent in least.items() if extent > 1}

    def along(self, x: te.Tensor) -> tuple[int | None, ...] | None:
        """How something has to be divided of which no two cores read the same element.

        Returns:
            For each of its axes the one of the result whose parts it has, by number, or None where
            it is not divided. None where cores read the same, or nobody reads some of it.
        """
        axes: list[int | None] = []
        for span, extent in zip(self.needs[x], x.shape, strict=True):
            found = self._divided(span)
            if found is None or len(found) > 1:
                return None
            # What is not divided is read whole, wherever that begins.
            part = sum(factor * self.outline.core[axis] for axis, factor in found)
            count = self.outline.count[found[0][0]] if found else 1
            is_even = not span.start and part == span.extent and ceil_div(extent, part) == count
            if not (is_even if found else span.extent == extent):
                return None
            axes.append(found[0][0] if found else None)
        divided = [axis for axis, count in enumerate(self.outline.count) if count > 1]
        return tuple(axes) if sorted(axis for axis in axes if axis is not None) == divided else None

    def _divided(self, span: Span) -> list[tuple[int, int]] | None:
        """The divided axes of the result, by number, that a part begins at multiples of.

        None where it is not known where it begins.
        """
        if span.terms is None:
            return [] if span.extent == span.most else None
        return [
            (axis, factor)
            for axis, count in enumerate(self.outline.count) if count > 1
            for other, factor in span.terms if other is self.axes[axis]
        ]


def outlined(result: te.Tensor, where: Placement) -> Outlined | Uncut:
    """How the result of a program is cut, or why it is not.

    Raises:
        CapacityError: there is no room for a part.
        TargetError: it cannot be cut as somebody asks.
    """
    s: te.Schedule = by_loops([result])
    where = where.within(s)
    p = program_of(s)
    groups = groups_on_cores(p, where)
    whole = whole_of(s, groups)
    # What reads nothing is in no group.
    for way in ways(groups[-1], p, whole, where) if groups and groups[-1].output.shape else ():
        # What one refuses is another kind of program, as when it is scheduled.
        with suppress(ScheduleError):
            found = way.outline()
            return found if isinstance(found, Uncut) else _with_needs(found, groups, p, whole)
    return Uncut("steps", "it is computed step by step")


def _with_needs(
    found: Outline, groups: Sequence[Group], p: Program, whole: set[te.Tensor]
) -> Outlined:
    output = groups[-1].output
    work = work_of(output, None, p.stages, whole)
    boxes = work.boxes(found.core, {})
    before = {
        read.tensor
        for group in groups[:-1]
        for reads in work_of(group.output, None, p.stages, whole).reads.values() for read in reads
    }
    needs = {x: box for x, box in boxes.items() if x in whole and x not in (*before, output)}
    far = frozenset(needs).difference(work.copied())
    return Outlined(found, tuple(output.op.axis), needs, far)
