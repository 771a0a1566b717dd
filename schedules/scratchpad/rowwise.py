"""Schedule row-wise operators on cores in blocks of rows.

A core copies a block of rows to its scratchpad, computes all stages of the block there, and writes
the result back. If rows exceed the scratchpad, it copies pieces of a row, once for each traversal;
element-wise intermediate results are in device memory in the meantime.
"""

from __future__ import annotations

from collections.abc import Collection
from math import isqrt, lcm, prod

from tecomp import CapacityError, TargetError, accesses, te
from tecomp.schedules.analysis.stages import is_same, is_value_of_row
from tecomp.schedules.common import ceil_div, round_up, same_shape
from tecomp.schedules.scratchpad.placement import Placement, sizes_of
from tecomp.schedules.scratchpad.traversal import traverse_parts
from tecomp.schedules.scratchpad.work_division import (
    DivisionPlan,
    DivisionSpec,
    WorkDivision,
    blocks_as,
    divide,
    divide_as,
)
from tecomp.schedules.tiling.register_blocking import balanced_block_size, width_of


def schedule_blocks(
    s: te.Schedule, output: te.Tensor, stages: Collection[te.Tensor], where: Placement
) -> None:
    """Schedule a row-wise operator with intermediate rows and values per row.

    Tensors are classified by shape: tensors of the shape of the result are rows, stages without
    its last axis, or of extent 1 along it, are values per row, and other inputs have one value per
    column.

    Args:
        s: Schedule, in which the inputs have been placed.
        output: Rows of the result.
        stages: Stages that are computed for the result only.
        where: Placement of tensors in the memories of the target.
    """
    _Rows(s, output, stages, where).schedule()


def outline(
    output: te.Tensor, read: Collection[te.Tensor], cut: DivisionSpec, where: Placement
) -> DivisionPlan:
    """Return how rows are divided among cores.

    Args:
        output: Rows of the result.
        read: Inputs that are already in memory.
        cut: Requested work division.
        where: Placement of tensors in the memories of the target.

    Raises:
        TargetError: If rows would be split, or the target does not have the requested cores.
    """
    division, core = _rows_of_cores(output, cut.for_result_axes(len(output.shape)), where)
    copied = [x for x in read if x not in where.resident_tensors]
    size = sum(prod(sizes_of(x)) * width_of(x) for x in copied)
    return DivisionPlan(division.count, core, size)


def _rows_of_cores(
    output: te.Tensor, cut: DivisionSpec, where: Placement
) -> tuple[WorkDivision, tuple[int, ...]]:
    """Return the division of the rows among cores, and the extents of a core's part.

    Raises:
        TargetError: If rows would be split, or the target does not have the requested cores.
    """
    shape, units = sizes_of(output), where.units(output)
    last = len(shape) - 1
    if max(cut.cores.get(last, 1), cut.tiles.get(last, 1)) > 1:
        raise TargetError(
            "{output}: axis {axis} cannot be divided: one core computes each row in one block; "
            "omit axis {axis}",
            kind="indivisible", output=output.name, axis=output.op.axis[last].name,
        )
    pieces = [ceil_div(max(n, 1), unit) for n, unit in zip(shape, units, strict=True)]
    division = divide((*pieces[:-1], 1), where.target.grid)
    if cut.cores:
        division = divide_as(output, cut, units, where.target)
    core = [n * unit for n, unit in zip(division.part[:-1], units, strict=False)]
    return division, (*core, round_up(max(shape[-1], 1), units[-1]))


class _Rows:
    """State of a row-wise schedule under construction.

    Attributes:
        private_stages: Stages that are computed for the result only.
        readers: For each tensor that `private_stages` or the result reads, the stages among these
            that read it.
        rows: Rows of a block.
        columns: Columns of a piece of a row; None if whole rows fit the scratchpad.
        step: Loop of the result over the blocks of a core.
        sites: For each reader of rows, the stage that computes it, and the stage and loop at which
            its inputs are copied.
    """

    def __init__(
        self, s: te.Schedule, output: te.Tensor, stages: Collection[te.Tensor], where: Placement
    ) -> None:
        self.s, self.output, self.private_stages, self.where = s, output, stages, where
        self.readers: dict[te.Tensor, list[te.Tensor]] = {}
        for reader in (stage.op.output(0) for stage in s.stages):
            for x in reader.op.input_tensors if reader in stages or reader == output else ():
                self.readers.setdefault(x, []).append(reader)
        self.rows, self.columns = self._part()
        self.sites: dict[te.Tensor, tuple[te.Tensor, te.Tensor, te.IterVar]] = {}
        self.step = self._share_rows()

    def schedule(self) -> None:
        """Schedule all stages."""
        for x in self.readers:
            if x in self.private_stages and self._has_columns(x):
                self._keep_row(x)
            elif x in self.private_stages:
                self._keep_value(x)
        for x in self.readers:
            is_there = x in self.where.resident_tensors or (
                x in self.private_stages and self.columns is None
            )
            if self._has_columns(x) and not is_there:
                self._bring(x)

    def _part(self) -> tuple[int, int | None]:
        """Return the rows of a block if a row fits, else one unit and the columns of a piece."""
        where = self.where
        sizes: tuple[int, ...] = (1, *sizes_of(self.output))
        *outer, rows, columns = sizes
        unit = (1, *where.units(self.output))[-2]
        fit = where.largest(rows, unit, lambda part: self._need(part, columns))
        blocks = self._blocks_in_place(rows, columns, unit)
        if self._need(fit, columns) <= where.scratchpad_bytes:
            min_blocks = max(ceil_div(rows, fit), 1)
            blocks |= {
                round_up(max(ceil_div(rows, n), 1), unit)
                for n in range(min_blocks, min_blocks + 4 * where.target.cores)
            }
        if blocks:
            return self._even(prod(outer), rows, blocks), None
        lanes = max(where.unit(x.dtype)[1] for x in (self.output, *self.readers))
        piece = where.largest(columns, lanes, lambda part: self._need(unit, part))
        return unit, balanced_block_size(columns, piece, lanes)

    def _even(self, n_matrices: int, rows: int, blocks: Collection[int]) -> int:
        """Return a block size that balances the rows of the cores; ties prefer large blocks.

        Args:
            n_matrices: Number of matrices of rows.
            rows: Rows of each matrix.
            blocks: Block sizes that fit the scratchpad.
        """
        cores: int = self.where.target.cores

        def of_a_core(size: int) -> int:
            per_core: int = ceil_div(n_matrices * ceil_div(rows, size), cores)
            return per_core * size

        found: int = min(blocks, key=lambda size: (of_a_core(size), -size))
        return found

    def _blocks_in_place(self, rows: int, columns: int, unit: int) -> set[int]:
        """Return the block sizes that fit if rows are computed in place.

        All blocks are equal and whole sticks or tiles, so that one statement computes all elements
        of a stage. Requested divisions have blocks of other sizes.
        """
        where, stages = self.where, self._stages_in_place()
        if not stages or columns % where.units(self.output)[-1] or self.output in where.cuts:
            return set()
        unit = lcm(unit, where.target.memory(where.scratchpad).rows or 1)
        pairs = ((n, rows // n) for n in range(1, isqrt(rows) + 1) if rows % n == 0)
        sizes = {n for pair in pairs for n in pair if n % unit == 0}

        def required(size: int) -> int:
            reused: int = sum(where.bytes_of_part((size, columns), x.dtype) for x in stages)
            return self._need(size, columns) - reused

        return {size for size in sizes if required(size) <= where.scratchpad_bytes}

    def _stages_in_place(self) -> list[te.Tensor]:
        """Return the rows that are computed in the memory of rows that they read last.

        An overwritten row has the size of the result row, and each element is read only at its own
        index. Stages in other lane counts are inlined, and their operands are not considered.
        """
        order = {stage.op.output(0): k for k, stage in enumerate(self.s.stages)}
        found: list[te.Tensor] = []
        overwritten: set[te.Tensor] = set()
        candidates = [x for x in (*self.private_stages, self.output) if self._is_kept_row(x)]
        for x in sorted(candidates, key=lambda x: order[x]):
            parents = [
                y for y in x.op.input_tensors
                if y not in overwritten and self._is_kept_row(y) and width_of(y) == width_of(x)
                and x == max(self.readers[y], key=lambda reader: order[reader])
                and all(map(self._is_computed_here, self.readers[y]))
                and all(
                    is_same(read.axes, x.op.axis)
                    for read in accesses(x).reads if read.tensor == y
                )
            ]
            if parents and not x.op.reduce_axis:
                overwritten.add(parents[0])
                found.append(x)
        return found

    def _is_kept_row(self, x: te.Tensor) -> bool:
        """Return whether a block of a tensor of the shape of the result is in the scratchpad."""
        where = self.where
        is_row = sizes_of(x) == sizes_of(self.output) and x not in where.resident_tensors
        return is_row and (x not in self.private_stages or self._is_computed_here(x))

    def _is_computed_here(self, x: te.Tensor) -> bool:
        """Return whether a stage is computed in the scratchpad, not inlined into its readers."""
        lanes = self.where.lanes
        return not self._has_columns(x) or bool(lanes(x.dtype) == lanes(self.output.dtype))

    def _need(self, rows: int, columns: int) -> int:
        """Return the bytes of the scratchpad for a block of rows, or for a piece of it."""
        total = 0
        for x in (self.output, *(x for x in self.readers if x not in self.where.resident_tensors)):
            height = rows if x in self.private_stages or self._is_of_rows(x) else 1
            width = columns if self._has_columns(x) else 1
            total += self.where.bytes_of_part((height, width), x.dtype)
        return total

    def _is_of_rows(self, x: te.Tensor) -> bool:
        return len(x.shape) == len(self.output.shape)

    def _has_columns(self, x: te.Tensor) -> bool:
        is_row = same_shape(x.shape, self.output.shape) or not is_value_of_row(x, self.output)
        return is_row or x not in self.private_stages

    def _share_rows(self) -> te.IterVar:
        """Divide the blocks of rows among cores, and return the loop over a core's blocks."""
        s, output, where = self.s, self.output, self.where
        if output in where.cuts:
            return self._share_as_asked(where.cuts[output])
        where.put(s, output)
        result = s.cache_write(output, where.scratchpad)
        *outer, column = s[output].op.axis
        row = []
        if outer:
            block, inner = s[output].split(outer[-1], factor=self.rows)
            outer, row = [*outer[:-1], block], [inner]
        step: te.IterVar = where.share(s, output, s[output].fuse(*outer))
        piece_loop = self._cut(output, step, row, column)
        where.keep(s, result, output, piece_loop)
        self.sites[output] = result, output, piece_loop
        return step

    def _share_as_asked(self, spec: DivisionSpec) -> te.IterVar:
        """Divide the rows as requested, and return the loop over a core's blocks.

        Raises:
            TargetError: If rows would be split, or the target does not have the requested cores.
            CapacityError: If a block exceeds the scratchpad.
        """
        s, output, where = self.s, self.output, self.where
        shape = sizes_of(output)
        last, cut = len(shape) - 1, spec.for_result_axes(len(shape))
        division, core = _rows_of_cores(output, cut, where)
        blocks = blocks_as(output, cut, core, where.units(output))
        rows = [*[1] * (last - 1), min(self.rows, core[-2])] if last else []
        block = [*(blocks.get(axis, n) for axis, n in enumerate(rows)), core[-1]]
        required = self._need(prod(block[:-1]), shape[-1])
        if required > where.scratchpad_bytes:
            raise CapacityError(
                "{output}: a block of {block} requires {need} bytes of memory `{scratchpad}`, but "
                "each core of target {target} has {free_bytes}; request more tiles",
                output=output.name, block=" x ".join(map(str, block)), need=required,
                scratchpad=where.scratchpad, target=where.target.name,
                free_bytes=where.scratchpad_bytes,
            )
        where.put(s, output)
        result = s.cache_write(output, where.scratchpad)
        step: te.IterVar = traverse_parts(s, output, core, block, division.shares, where)
        where.keep(s, result, output, step)
        self.sites[output] = result, output, step
        return step

    def _cut(
        self, x: te.Tensor, step: te.IterVar | None, rows: list[te.IterVar], column: te.IterVar
    ) -> te.IterVar:
        """Write `x` in pieces, in memory order; return the loop over the pieces."""
        s = self.s
        piece_loop = step
        if self.columns is not None:
            piece_loop, column = s[x].split(column, factor=self.columns)
            s[x].reorder(piece_loop, *rows, column)
        self.where.traverse(s, x, rows, column)
        assert piece_loop is not None
        return piece_loop

    def _keep_value(self, x: te.Tensor) -> None:
        """Compute one value for each row of the block, in the scratchpad."""
        s, where = self.s, self.where
        s[x].set_scope(where.scratchpad)
        place, leading = where.lone(x.dtype), len(self.output.shape) - 1
        s[x].transform_layout(lambda *index: place(*index[:leading]))
        s[x].compute_at(s[self.output], self.step)
        site = self.output, self.step
        if self.columns is not None and s[x].op.reduce_axis:
            piece, inner = s[x].split(s[x].op.reduce_axis[-1], factor=self.columns)
            others = [axis for axis in s[x].leaf_iter_vars if axis not in (piece, inner)]
            s[x].reorder(piece, *others, inner)
            site = x, piece
        self.sites[x] = x, *site

    def _keep_row(self, x: te.Tensor) -> None:
        """Compute the rows of the block, in the scratchpad if whole rows fit.

        If the dtype has another lane count than the result, such a row would need a relayout; it is
        recomputed at each use instead.
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
        piece_loop = self._cut(x, None, rows, column)
        where.keep(s, result, x, piece_loop)
        self.sites[x] = result, x, piece_loop

    def _bring(self, x: te.Tensor) -> None:
        """Copy an input to the scratchpad: once per block, or once per reader of pieces."""
        sites = [self.sites[reader] for reader in self.readers[x]]
        if self.columns is None:
            _, stage, loop = sites[0]
            copy = self.s.cache_read(x, self.where.scratchpad, [reader for reader, *_ in sites])
            self.where.keep(self.s, copy, stage, loop)
            return
        for reader, stage, loop in sites:
            copy = self.s.cache_read(x, self.where.scratchpad, [reader])
            self.where.keep(self.s, copy, stage, loop)
