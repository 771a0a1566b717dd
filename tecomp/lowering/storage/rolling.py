"""Rolling buffers: what iterations of a loop have computed is kept for the next ones.

Of the elements that a stage is needed for, an iteration computes those that none before needed.
They take the place of others: along each axis an element is at its index modulo the extent of the
box that one iteration needs. The boxes move in one direction, so what is in two of them is in all
between, and nothing takes its place meanwhile.

The iterations are those of the innermost loop, from the one where the stage is computed outwards,
of which two need one element. A box is for all that loops inside of it need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile

from tecomp.compute.axis import IterVar
from tecomp.errors import LowerError
from tecomp.ir.algebra.simplify import Ranges, constant_upper_bound
from tecomp.ir.language.expr import Binary, BinOp, Const, Expr, Var, index_value
from tecomp.ir.language.stmt import (
    Buffer,
    BufferRealize,
    Extent,
    For,
    ForKind,
    PrimFunc,
    Range,
    Stmt,
)
from tecomp.ir.traversal.rewrite import fold, free_variables, walk
from tecomp.lowering.stages.definition import Definition
from tecomp.lowering.stages.footprint import (
    Region,
    evaluated,
    propagated,
    read_elements,
    whole,
)
from tecomp.lowering.stages.kinds import loop_kinds
from tecomp.lowering.stages.program import Program
from tecomp.lowering.stages.whole_tiles import Bounds, Memory
from tecomp.lowering.storage.across import across_iterations, allocated_around, regions_of, replaced
from tecomp.lowering.storage.allocations import Indices, local_buffer, rebased
from tecomp.poly.loops.hulls import box_around, windows_around
from tecomp.poly.loops.regions import (
    convex_around,
    is_inside,
    of_earlier_iterations,
    of_loops_inside,
    without_gaps,
)
from tecomp.poly.loops.scopes import Scope
from tecomp.poly.sets.point_sets import Points
from tecomp.scheduling.state import At, StageState

_AT_ONCE = (ForKind.PARALLEL, ForKind.VECTORIZED)


def check_rolling(program: Program) -> None:
    """Stages with a rolling buffer are computed inside loops that run in order.

    Raises:
        LowerError: one is not, or its memory has another use.
    """
    for stage in program.state:
        if not stage.is_rolling:
            continue
        where, name = f"s[{stage.name}].rolling_buffer", stage.name
        if not isinstance(stage.attach, At):
            raise LowerError(
                f"{where}: {name} is not computed inside a loop, so no iteration keeps anything "
                "for the next; use compute_at",
                kind="between-iterations",
            )
        if program.definitions[stage.key].is_argument:
            raise LowerError(
                f"{where}: the caller passes the memory of {name}, which has room for all of it; "
                "leave it out of the arguments",
                kind="between-iterations",
            )
        if stage.is_doubled:
            raise LowerError(
                f"{where}: {name} has a double buffer too, which is computed anew in each "
                "iteration; use one of them",
                kind="between-iterations",
            )
        if stage.layout.pad_value is not None:
            raise LowerError(
                f"{where}: the layout of {name} has a pad_value, which would be written over what "
                "is kept; leave it out",
                kind="between-iterations",
            )
        _check_loop(program, stage, stage.attach, where)


def _check_loop(program: Program, stage: StageState, attach: At, where: str) -> None:
    parent, axis = program.state.stage(attach.stage), attach.axis
    if loop_kinds(parent).get(axis) in _AT_ONCE:
        raise LowerError(
            f"{where}: the iterations of {axis.name} of {parent.name} run at the same time, so "
            f"none is the last before another; compute {stage.name} in a loop inside of that one",
            kind="between-iterations",
        )


@dataclass(frozen=True)
class Window:
    """What iterations of a loop need of a stage.

    Attributes:
        program: the definitions.
        loops: the variables of those loops that are open and have several iterations, outermost
            first.
        scope: what surrounds them.
        memory: what is computed around the loops.
    """

    program: Program
    loops: Mapping[IterVar, Var]
    scope: Scope
    memory: Memory

    def needed(self, definition: Definition, region: Region) -> Region:
        """`region` without gaps, which others would be computed to fill one by one.

        With them, if what is in the gaps needs elements that were not computed further out.
        """
        filled = self._filled(definition, region)
        if is_inside(filled.points, region.points, self.scope):
            return filled
        return filled if self._can_be_computed(definition, filled.points) else region

    def _filled(self, definition: Definition, region: Region) -> Region:
        everything = whole(self.program, definition, self.scope)
        points = without_gaps(region.points)
        if points is not None:
            return Region(points.intersect(everything), region.unclipped)
        points = convex_around(region.points)
        around = convex_around(region.unclipped.union(points))
        return Region(points.intersect(everything), around)

    def _can_be_computed(self, definition: Definition, points: Points) -> bool:
        """Whether all that `points` need of stages further out has its values."""
        parts = {key: held.points for key, held in self.memory.items() if held.points is not None}
        if not parts:
            return True
        others = self.program.definitions.keys() - self.memory.keys()
        at = {definition.stage.key: evaluated(self.program, definition, points, self.scope)}
        instances = propagated(self.program, at, others, self.scope)
        for key, known in parts.items():
            read = read_elements(self.program, key, instances, self.scope)
            everything = whole(self.program, self.program.definitions[key], self.scope)
            if read is not None and not is_inside(read.intersect(everything), known, self.scope):
                return False
        return True

    def computed(self, definition: Definition, region: Region) -> Region:
        """The elements of `needed` that are not there from iterations before."""
        return self.new(definition, self.needed(definition, region))

    def new(self, definition: Definition, window: Region) -> Region:
        """The elements of a `window`, as from `needed`, that are not there from before."""
        kept = self._kept(definition, window.points)
        if kept is None:
            return window
        return Region(window.points.subtract(kept[1]).coalesce(), window.unclipped)

    def carried(self, definition: Definition, window: Region) -> Var | None:
        """The loop whose iterations keep some of a `window` for later ones."""
        kept = self._kept(definition, window.points) if definition.stage.is_rolling else None
        return None if kept is None else kept[0]

    def bounds(self, definition: Definition, window: Region, loop: Var | None) -> Bounds:
        """A box around a `window` that turns with the `loop` which keeps some of it, if any."""
        shape = self.program.shape(definition)
        if loop is None:
            return box_around(window.points, window.unclipped, self.scope, shape)
        points, unclipped = (
            of_loops_inside(each, loop, self.scope) for each in (window.points, window.unclipped)
        )
        bounds = box_around(points, unclipped, self.scope, shape)
        return tuple(
            self._turning(points, k, loop, interval, extent)
            for k, (interval, extent) in enumerate(zip(bounds, shape, strict=True))
        )

    def _turning(
        self, points: Points, dim: int, loop: Var, interval: tuple[Expr, Extent], extent: Extent
    ) -> tuple[Expr, Extent]:
        """`interval` of one dimension, or a narrower one that moves on with the loop."""
        start, most = interval
        if loop in free_variables(start):
            if _is_monotone(start, loop):
                return interval
            # Memory that stands still is for all that any iteration needs.
            most = extent
        for other in windows_around(points, dim, loop, self.scope):
            if _is_monotone(other[0], loop) and not (isinstance(most, int) and other[1] >= most):
                return other
        return interval

    def _kept(self, definition: Definition, points: Points) -> tuple[Var, Points] | None:
        """The innermost loop whose iterations keep some of `points`, and what those before need."""
        for axis in _in_order(self.program, definition.stage):
            if (loop := self.loops.get(axis)) is not None:
                # What loops inside of it run through is in no two of their iterations.
                there = of_earlier_iterations(points, loop, self.scope)
                if not points.intersect(there).is_empty():
                    return loop, there
        return None


def _in_order(program: Program, stage: StageState) -> list[IterVar]:
    """The loops around a stage whose iterations run one after another, innermost first."""
    attach = stage.attach
    if not isinstance(attach, At):
        return []
    parent = program.definitions[attach.stage].stage
    kinds = loop_kinds(parent)
    around = parent.leaves[: parent.leaves.index(attach.axis) + 1]
    return [*takewhile(lambda leaf: kinds.get(leaf) not in _AT_ONCE, reversed(around))]


def check_carried(program: Program, body: Stmt) -> None:
    """Every rolling buffer keeps something.

    Raises:
        LowerError: one does not.
    """
    carried = {n.buffer.data for n in walk(body)
            if isinstance(n, BufferRealize) and n.carried is not None}  # fmt: skip
    for stage in program.state:
        if not stage.is_rolling or not isinstance(stage.attach, At):
            continue
        axis = stage.attach.axis
        is_loop = not isinstance(axis.extent, int) or axis.extent > 1
        if is_loop and program.definitions[stage.key].buffers[0].data not in carried:
            names = ", ".join(loop.name for loop in reversed(_in_order(program, stage)))
            raise LowerError(
                f"s[{stage.name}].rolling_buffer: no two iterations of {names} need one "
                f"element of {stage.name}, so nothing can be kept; leave it out, or compute it in "
                "another loop",
                kind="between-iterations",
            )


def roll_buffers(func: PrimFunc) -> PrimFunc:
    """Give every region that is `carried` to the next iteration of a loop memory around it.

        for i in range(n):                                 with Allocate(... (2,)) as P:
            with BufferRealize(..., bounds=((i, 2),),          for i in range(n):
                               carried=i) as P:        ->          if i < 1: P[i % 2] = f(i)
                if i < 1: P[i] = f(i)                              P[(i + 1) % 2] = f(i + 1)
                P[i + 1] = f(i + 1)                                C[i] = P[i % 2] + P[(i + 1) % 2]
                C[i] = P[i] + P[i + 1]

    Args:
        func: any function; one without such regions stays as it is.
    """
    return across_iterations(func, "carried", _rolled)


def _rolled(node: Stmt, ranges: Ranges) -> Stmt | None:
    if not isinstance(node, For):
        return None
    inside = {**ranges, node.loop_var: (node.min, node.min + node.extent - 1)}
    buffers: list[Buffer] = []
    loop = node
    while found := next(regions_of(loop, "carried"), None):
        realize, _ = found
        bounds = tuple(
            _around(part, extent, loop.loop_var, inside)
            for part, extent in zip(realize.bounds, realize.buffer.shape, strict=True)
        )
        local = local_buffer(replace(realize, bounds=bounds), ranges)
        place = _turning(realize, bounds, loop.loop_var)
        body = rebased(realize.body, realize.buffer, local, place)
        buffers.append(local)
        loop = replace(loop, body=replaced(loop.body, realize, body))
    return allocated_around(buffers, loop) if buffers else None


def _around(part: Range, extent: Extent, loop: Var, ranges: Ranges) -> Range:
    """What is allocated for all iterations of `loop`: from 0 where they begin at other indices."""
    most = constant_upper_bound(part.extent, ranges)
    moves = loop in free_variables(part.min)
    if moves and not _is_monotone(part.min, loop):
        return Range(Const(0), index_value(extent))
    if not moves and (most is not None or loop not in free_variables(part.extent)):
        return part if most is None else Range(part.min, Const(most))
    if most is None or (isinstance(extent, int) and extent < most):
        return Range(Const(0), index_value(extent))
    return Range(Const(0), Const(most))


def _is_monotone(start: Expr, loop: Var) -> bool:
    """Whether `start` surely never turns back while `loop` counts."""
    return fold(start, lambda node, operands: _direction(node, operands, loop)) in (-1, 0, 1)


def _direction(node: Expr, operands: list[int | None], loop: Var) -> int | None:
    """Where an expression moves: on, back, not at all; None where that is not certain."""
    match node:
        case Binary(BinOp.ADD | BinOp.MIN | BinOp.MAX):
            moves = {*operands} - {0}
        case Binary(BinOp.SUB):
            moves = {operands[0], None if operands[1] is None else -operands[1]} - {0}
        case Binary(BinOp.MUL | BinOp.FLOORDIV, _, Const(c)) | Binary(BinOp.MUL, Const(c), _):
            moves = {*operands} - {0}
            if c < 0:
                moves = {None if move is None else -move for move in moves}
        case _:
            if node is loop:
                return 1
            moves = {None} if any(move != 0 for move in operands) else set()
    return (moves.pop() if len(moves) == 1 else None) if moves else 0


def _turning(
    realize: BufferRealize, bounds: tuple[Range, ...], loop: Var
) -> Callable[[Indices], Indices]:
    """Where `bounds` have an element: along axes that move with `loop`, modulo their extent."""
    turns = [loop in free_variables(part.min) for part in realize.bounds]

    def place(indices: Indices) -> Indices:
        return tuple(
            index % held.extent if turning else index - held.min
            for index, held, turning in zip(indices, bounds, turns, strict=True)
        )

    return place
