"""Schedule row-wise operators on cores in blocks of rows.

A core brings a block of rows to its scratchpad, computes there all that belongs to it, and writes
the result back. Of rows that are longer than the scratchpad it brings pieces, once for each walk
through them; what is computed for each element is in the device's memory in the meantime.
"""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from tecomp import CapacityError, TargetError, te
from tecomp.schedules.common import ceil_div, round_up
from tecomp.schedules.scratchpad.contraction import walk_parts
from tecomp.schedules.scratchpad.placement import Placement, sizes_of
from tecomp.schedules.scratchpad.work_division import (
    Cut,
    Division,
    Outline,
    blocks_as,
    divide,
    divide_as,
)
from tecomp.schedules.tiling.register_blocking import balanced, width_of


def schedule_blocks(
    s: te.Schedule, output: te.Tensor, made: Collection[te.Tensor], where: Placement
) -> None:
    """Schedule an operator that makes rows from rows, and values for each row on the way.

    Its tensors are told apart by their shape: those of the result's are rows, those without its
    last axis are values of rows, and what else it is given has a value for each column.

    Args:
        s: the schedule, in which what is given has its place.
        output: the rows.
        made: the stages that are computed for them alone.
        where: the machine.
    """
    _Rows(s, output, made, where).schedule()


def outline(
    output: te.Tensor, read: Collection[te.Tensor], cut: Cut, where: Placement
) -> Outline:
    """How rows are shared out.

    Args:
        output: the rows.
        read: what there is before of which they are made.
        cut: how they are to be.
        where: the machine.

    Raises:
        TargetError: rows would be cut, or the machine has no such cores.
    """
    division, core = _rows_of_cores(output, cut.along(len(output.shape)), where)
    far = [x for x in read if x not in where.near]
    size = sum(prod(sizes_of(x)) * width_of(x) for x in far)
    return Outline(division.count, core, size)


def _rows_of_cores(
    output: te.Tensor, cut: Cut, where: Placement
) -> tuple[Division, tuple[int, ...]]:
    """Which rows each core has, and the extents of that.

    Raises:
        TargetError: rows would be cut, or the machine has no such cores.
    """
    shape, units = sizes_of(output), where.units(output)
    last = len(shape) - 1
    if max(cut.cores.get(last, 1), cut.tiles.get(last, 1)) > 1:
        raise TargetError(
            f"{output.name}: one core computes all of a row, in one block; leave its axis "
            f"{output.op.axis[last].name} out",
            kind="not-divided",
        )
    pieces = [ceil_div(max(n, 1), unit) for n, unit in zip(shape, units, strict=True)]
    division = divide((*pieces[:-1], 1), where.target.grid)
    if cut.cores:
        division = divide_as(output, cut, units, where.target)
    core = [n * unit for n, unit in zip(division.part[:-1], units, strict=False)]
    return division, (*core, round_up(max(shape[-1], 1), units[-1]))


class _Rows:
    """The schedule as it is made.

    Attributes:
        made: the stages that are computed for the result alone.
        readers: of each tensor that those read, or the result, what of them does.
        rows: in a block.
        columns: in a piece of its rows; None if there is room for whole rows.
        step: the loop of the result over the blocks of a core.
        sites: for each reader of rows the stage that does the work, and where what it reads is
            brought: inside a loop of some stage.
    """

    def __init__(
        self, s: te.Schedule, output: te.Tensor, made: Collection[te.Tensor], where: Placement
    ) -> None:
        self.s, self.output, self.made, self.where = s, output, made, where
        self.readers: dict[te.Tensor, list[te.Tensor]] = {}
        for reader in (stage.op.output(0) for stage in s.stages):
            for x in reader.op.input_tensors if reader in made or reader == output else ():
                self.readers.setdefault(x, []).append(reader)
        self.rows, self.columns = self._part()
        self.sites: dict[te.Tensor, tuple[te.Tensor, te.Tensor, te.IterVar]] = {}
        self.step = self._share_rows()

    def schedule(self) -> None:
        """All stages."""
        for x in self.readers:
            if x in self.made and self._has_columns(x):
                self._keep_row(x)
            elif x in self.made:
                self._keep_value(x)
        for x in self.readers:
            is_there = x in self.where.near or (x in self.made and self.columns is None)
            if self._has_columns(x) and not is_there:
                self._bring(x)

    def _part(self) -> tuple[int, int | None]:
        """Whole rows if one fits, and else as much of one as does."""
        where = self.where
        sizes: tuple[int, ...] = (1, *sizes_of(self.output))
        *lead, rows, columns = sizes
        unit = (1, *where.units(self.output))[-2]
        fit = where.largest(rows, unit, lambda part: self._need(part, columns))
        if self._need(fit, columns) > where.room:
            lanes = max(where.unit(x.dtype)[1] for x in (self.output, *self.readers))
            piece = where.largest(columns, lanes, lambda part: self._need(unit, part))
            return unit, balanced(columns, piece, lanes)
        return self._even(prod(lead), rows, fit, unit), None

    def _even(self, lead: int, rows: int, fit: int, unit: int) -> int:
        """Rows of blocks of which no core has many more than others; as long ones as there can be.

        Args:
            lead: how often there are rows.
            rows: so many.
            fit: for which there is room.
            unit: what blocks are a multiple of.
        """
        cores: int = self.where.target.cores
        least = ceil_div(rows, fit)
        sizes = {
            round_up(max(ceil_div(rows, n), 1), unit)
            for n in range(max(least, 1), max(least, 1) + 4 * cores)
        }

        def of_a_core(size: int) -> int:
            each: int = ceil_div(lead * ceil_div(rows, size), cores)
            return each * size

        found: int = min(sizes, key=lambda size: (of_a_core(size), -size))
        return found

    def _need(self, rows: int, columns: int) -> int:
        """Bytes of the scratchpad for a block of rows, or for a piece of it."""
        total = 0
        for x in (self.output, *(x for x in self.readers if x not in self.where.near)):
            height = rows if x in self.made or self._is_of_rows(x) else 1
            width = columns if self._has_columns(x) else 1
            total += self.where.bytes((height, width), x.dtype)
        return total

    def _is_of_rows(self, x: te.Tensor) -> bool:
        return len(x.shape) == len(self.output.shape)

    def _has_columns(self, x: te.Tensor) -> bool:
        return self._is_of_rows(x) or x not in self.made

    def _share_rows(self) -> te.IterVar:
        """The loops of the result: blocks of rows, of which each core has some."""
        s, output, where = self.s, self.output, self.where
        if output in where.cuts:
            return self._share_as_asked(where.cuts[output])
        where.put(s, output)
        result = s.cache_write(output, where.scratchpad)
        *lead, column = s[output].op.axis
        row = []
        if lead:
            block, inner = s[output].split(lead[-1], factor=self.rows)
            lead, row = [*lead[:-1], block], [inner]
        step: te.IterVar = where.share(s, output, s[output].fuse(*lead))
        place = self._cut(output, step, row, column)
        where.keep(s, result, output, place)
        self.sites[output] = result, output, place
        return step

    def _share_as_asked(self, asked: Cut) -> te.IterVar:
        """The same where somebody says which cores have which rows, and in how many blocks.

        Raises:
            TargetError: rows would be cut, or the machine has no such cores.
            CapacityError: there is no room for a block.
        """
        s, output, where = self.s, self.output, self.where
        shape = sizes_of(output)
        last, cut = len(shape) - 1, asked.along(len(shape))
        division, core = _rows_of_cores(output, cut, where)
        blocks = blocks_as(output, cut, core, where.units(output))
        rows = [*[1] * (last - 1), min(self.rows, core[-2])] if last else []
        block = [*(blocks.get(axis, n) for axis, n in enumerate(rows)), core[-1]]
        need = self._need(prod(block[:-1]), shape[-1])
        if need > where.room:
            raise CapacityError(
                f"{output.name}: a block of {' x '.join(map(str, block))} takes {need} bytes of "
                f"memory `{where.scratchpad}`, of which each core of target {where.target.name} "
                f"has {where.room}; ask for more tiles"
            )
        where.put(s, output)
        result = s.cache_write(output, where.scratchpad)
        step: te.IterVar = walk_parts(s, output, core, block, division.shares, where)
        where.keep(s, result, output, step)
        self.sites[output] = result, output, step
        return step

    def _cut(
        self, x: te.Tensor, step: te.IterVar | None, rows: list[te.IterVar], column: te.IterVar
    ) -> te.IterVar:
        """Write `x` piece by piece, in the order of memory; returns the loop over the pieces."""
        s = self.s
        place = step
        if self.columns is not None:
            place, column = s[x].split(column, factor=self.columns)
            s[x].reorder(place, *rows, column)
        self.where.walk(s, x, rows, column)
        assert place is not None
        return place

    def _keep_value(self, x: te.Tensor) -> None:
        """One value for each row of the block."""
        s, where = self.s, self.where
        s[x].set_scope(where.scratchpad)
        s[x].transform_layout(where.lone(x.dtype))
        s[x].compute_at(s[self.output], self.step)
        place = self.output, self.step
        if self.columns is not None and s[x].op.reduce_axis:
            piece, inner = s[x].split(s[x].op.reduce_axis[-1], factor=self.columns)
            others = [axis for axis in s[x].leaf_iter_vars if axis not in (piece, inner)]
            s[x].reorder(piece, *others, inner)
            place = x, piece
        self.sites[x] = x, *place

    def _keep_row(self, x: te.Tensor) -> None:
        """The rows of the block, which stay in the scratchpad if there is room for whole ones.

        Where sticks of its type have other lanes than those of the result, such a row would have to
        be rearranged; it is computed again where it is used.
        """
        s, where = self.s, self.where
        if self.columns is None:
            self.sites[x] = x, self.output, self.step
            if where.lanes(x.dtype) == where.lanes(self.output.dtype):
                where.keep(s, x, self.output, self.step)
            else:
                s[x].compute_inline()
            return
        where.put(s, x)
        s[x].compute_at(s[self.output], self.step)
        result = s.cache_write(x, where.scratchpad)
        *rows, column = s[x].op.axis
        place = self._cut(x, None, rows, column)
        where.keep(s, result, x, place)
        self.sites[x] = result, x, place

    def _bring(self, x: te.Tensor) -> None:
        """Copy what is needed of a tensor: once for the block, or for each that reads pieces."""
        sites = [self.sites[reader] for reader in self.readers[x]]
        if self.columns is None:
            _, stage, loop = sites[0]
            copy = self.s.cache_read(x, self.where.scratchpad, [reader for reader, *_ in sites])
            self.where.keep(self.s, copy, stage, loop)
            return
        for reader, stage, loop in sites:
            copy = self.s.cache_read(x, self.where.scratchpad, [reader])
            self.where.keep(self.s, copy, stage, loop)
