"""Loops over a whole box, which the extents of splits say by themselves: no set is asked.

Most stages that are computed as a whole are such. Sets make the same loops, but take milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tecomp.compute.axis import IterVar
from tecomp.ir.algebra.extents import ceil_div
from tecomp.ir.language.expr import BinOp, Const, Expr, Var, binary, index_value, is_const
from tecomp.ir.language.stmt import For, ForKind, SeqStmt, Stmt
from tecomp.lowering.stages.kinds import grid_axes, loop_kinds
from tecomp.poly.maps.index_map import IndexMap
from tecomp.scheduling.relations import Frame, Frames, is_shifted, recover
from tecomp.scheduling.state import Fuse, Split, StageState, Transform

_AT_ONCE = (ForKind.VECTORIZED, ForKind.UNROLLED)

Index = Mapping[IterVar, Expr]
"""Values of loops, or of axes."""


def counted(stage: StageState, body: Callable[[Index], Stmt]) -> Stmt | None:
    """The loops over all elements of a stage.

    Args:
        stage: a map.
        body: makes the innermost statement from the axes of the tensor.

    Returns:
        The loops; None where sets have to be asked: an extent is no number or 0, loops follow a
        layout, or one that runs at once may be cut short.
    """
    loops = Counted.of(stage)
    if loops is None:
        return None
    return loops.nest(stage.leaves, {}, lambda values: body(loops.index(values)))


@dataclass(frozen=True)
class Counted:
    """The axes and loops of a stage, all of known extent.

    Attributes:
        stage: it.
        frames: where each axis starts, and its extent.
        made: for what a split made, that split.
    """

    stage: StageState
    frames: Frames
    made: Mapping[IterVar, Split]

    @classmethod
    def of(cls, stage: StageState) -> Counted | None:
        """Those of a stage; None if some are not such, or run at once and may be cut short."""
        frames = {axis: Frame(axis.dom.min, axis.extent) for axis in stage.compute.loops}
        made: dict[IterVar, Split] = {}
        for relation in stage.relations:
            if isinstance(relation, Transform):
                return None
            if isinstance(relation, Split):
                new = [relation.outer, relation.inner]
                made |= dict.fromkeys(new, relation)
            else:
                new = [relation.fused]
            frames |= {axis: Frame(Const(0), axis.extent) for axis in new}
        if not all(isinstance(frame.extent, int) and frame.extent for frame in frames.values()):
            return None
        loops = cls(stage, frames, made)
        return loops if loops._is_regular() and loops._are_in_order() else None

    def nest(
        self, leaves: Sequence[IterVar], values: Index, body: Callable[[Index], Stmt]
    ) -> Stmt:
        """Some of the loops, in order.

        Args:
            leaves: the loops.
            values: those around them.
            body: makes the innermost statement from the values of all these.
        """
        kinds, threads = loop_kinds(self.stage), grid_axes(self.stage)
        made: list[For] = []
        now = dict(values)
        for leaf in leaves:
            extent = self._count(leaf, now)
            now[leaf] = var = Var(leaf.name)
            if isinstance(extent, Const) and extent.value == 1:
                now[leaf] = Const(0)
                continue
            kind = kinds.get(leaf, ForKind.SERIAL)
            made.append(For(var, Const(0), extent, kind, SeqStmt(()), threads.get(leaf, "")))
        statement = body(now)
        for loop in reversed(made):
            statement = replace(loop, body=statement)
        return statement

    def index(self, values: Index) -> Index:
        """The axes, for values of all loops."""
        relative = recover(self.stage.relations, self.frames, values, _no_layout)
        return {
            axis: value if is_const(base := self.frames[axis].base, 0) else base + value
            for axis, value in relative.items()
        }

    def _is_regular(self) -> bool:
        """Whether no loop that is cut short was fused or shifted, and no part is empty."""
        for relation in self.stage.relations:
            whole = relation.parts if isinstance(relation, Fuse) else ()
            if isinstance(relation, Split):
                extent = self._extent(relation.parent)
                if ceil_div(extent, self._factor(relation)) != relation.outer.extent:
                    return False
                whole = (relation.parent,) if is_shifted(relation, extent) else ()
            if any(map(self._is_short, whole)):
                return False
        return True

    def _are_in_order(self) -> bool:
        """Whether what is cut short does not run at once, and is inside of what cuts it."""
        known: Index = {}
        for leaf in self.stage.leaves:
            if self._is_short(leaf):
                is_known = self._is_known(leaf, self.index(known))
                if self.stage.marks.get(leaf) in _AT_ONCE or not is_known:
                    return False
            known = {**known, leaf: Const(0)}
        return True

    def _is_known(self, axis: IterVar, index: Index) -> bool:
        """Whether axes that are known say how many values another one has."""
        if not self._is_short(axis):
            return True
        split = self.made[axis]
        is_cut = axis is split.outer or split.outer in index
        return is_cut and self._is_known(split.parent, index)

    def _extent(self, axis: IterVar) -> int:
        extent = self.frames[axis].extent
        assert isinstance(extent, int)
        return extent

    def _is_short(self, axis: IterVar) -> bool:
        """Whether an axis has fewer values in some iterations of the loops around."""
        split = self.made.get(axis)
        if split is None:
            return False
        if self._is_short(split.parent):
            return True
        extent = self._extent(split.parent)
        is_last = axis is split.inner and not is_shifted(split, extent)
        return is_last and extent % self._factor(split) != 0

    def _factor(self, split: Split) -> int:
        return self._extent(split.inner)

    def _count(self, axis: IterVar, values: Index) -> Expr:
        """How many values an axis has, for those of the loops around."""
        extent = index_value(self._extent(axis))
        if not self._is_short(axis):
            return extent
        split = self.made[axis]
        around = self._count(split.parent, values)
        if axis is split.outer:
            return index_value(ceil_div(around, self._factor(split)))
        outer = self.index(values)[split.outer]
        return binary(BinOp.MIN, extent, around - outer * self._factor(split))


def _no_layout(index_map: IndexMap, shape: object) -> IndexMap:
    raise AssertionError(f"loops that follow {index_map} are made from sets")
