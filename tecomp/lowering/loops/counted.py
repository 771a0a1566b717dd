"""Loops over a whole box, which the extents of splits say by themselves: no set is asked.

Most stages that are computed as a whole are such. Sets make the same loops, but take milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tecomp.compute.axis import IterVar
from tecomp.ir.algebra.extents import ceil_div
from tecomp.ir.language.expr import BinOp, Const, Expr, Var, binary, index_value
from tecomp.ir.language.stmt import For, ForKind, Stmt
from tecomp.lowering.stages.kinds import grid_axes, loop_kinds
from tecomp.poly.maps.index_map import IndexMap
from tecomp.scheduling.relations import Frame, Frames, is_shifted, recover
from tecomp.scheduling.state import Fuse, Split, StageState, Transform

_AT_ONCE = (ForKind.VECTORIZED, ForKind.UNROLLED)

Index = Mapping[IterVar, Expr]
"""The value of each axis of the tensor."""


def counted(stage: StageState, body: Callable[[Index], Stmt]) -> Stmt | None:
    """The loops over all elements of a stage.

    Args:
        stage: a map.
        body: makes the innermost statement.

    Returns:
        The loops; None where sets have to be asked: an extent is no number or 0, loops follow a
        layout, or one that runs at once may be cut short.
    """
    box = _Box.of(stage)
    if box is None:
        return None
    kinds, threads = loop_kinds(stage), grid_axes(stage)
    loops: list[tuple[IterVar, Expr]] = []
    values: dict[IterVar, Expr] = {}
    for leaf in stage.leaves:
        extent = box.count(leaf, box.values(values))
        if extent is None or (not isinstance(extent, Const) and kinds.get(leaf) in _AT_ONCE):
            return None
        loops.append((leaf, extent))
        is_one = isinstance(extent, Const) and extent.value == 1
        values[leaf] = Const(0) if is_one else Var(leaf.name)
    statement = body(box.values(values))
    for leaf, extent in reversed(loops):
        var = values[leaf]
        if isinstance(var, Var):
            kind = kinds.get(leaf, ForKind.SERIAL)
            statement = For(var, Const(0), extent, kind, statement, threads.get(leaf, ""))
    return statement


@dataclass(frozen=True)
class _Box:
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
    def of(cls, stage: StageState) -> _Box | None:
        """Those of a stage; None if some are not such."""
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
        box = cls(stage, frames, made)
        return box if box._is_regular() else None

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

    def values(self, loops: Index) -> Index:
        """All axes that open loops determine."""
        relative = recover(self.stage.relations, self.frames, loops, _no_layout)
        return {axis: self.frames[axis].base + value for axis, value in relative.items()}

    def count(self, axis: IterVar, values: Index) -> Expr | None:
        """How many values an axis has, for given ones; None if these do not say it."""
        extent = index_value(self._extent(axis))
        if not self._is_short(axis):
            return extent
        split = self.made[axis]
        around = self.count(split.parent, values)
        if around is None:
            return None
        if axis is split.outer:
            return index_value(ceil_div(around, self._factor(split)))
        if split.outer not in values:
            return None
        left = around - values[split.outer] * self._factor(split)
        return binary(BinOp.MIN, extent, left)


def _no_layout(index_map: IndexMap, shape: object) -> IndexMap:
    raise AssertionError(f"loops that follow {index_map} are made from sets")
