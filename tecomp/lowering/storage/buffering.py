"""Passes `double_buffers` and `roll_buffers`, and the checks and windows of their stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Literal, NoReturn, TypeAlias

from tecomp.compute.iter_var import IterVar
from tecomp.errors import LowerError
from tecomp.ir.arith.simplify import Ranges, constant_upper_bound, simplify
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    BufferLoad,
    Const,
    Expr,
    Not,
    Var,
    index_value,
    logical_and,
)
from tecomp.ir.nodes.stmt import (
    Allocate,
    Buffer,
    BufferRealize,
    BufferStore,
    Extent,
    For,
    ForKind,
    IfThenElse,
    PrimFunc,
    Range,
    SeqStmt,
    Stmt,
    seq,
)
from tecomp.ir.traversal.rewrite import bottom_up, fold, free_variables, nodes_of, substitute, walk
from tecomp.lowering.stages.definition import Definition, loop_kinds
from tecomp.lowering.stages.edge_tiles import Bounds, Memory
from tecomp.lowering.stages.footprint import (
    Region,
    all_elements,
    evaluated_points,
    propagate_instances,
    read_elements,
)
from tecomp.lowering.stages.program import PreparedSchedule
from tecomp.lowering.storage.allocation import Indices, from_start, local_buffer, rebase_accesses
from tecomp.lowering.storage.buffer_rewrite import (
    Rule,
    extent_variables,
    rewrite_statements,
    size_ranges,
)
from tecomp.poly.loops.box_loops import bounding_box, windows_around
from tecomp.poly.loops.regions import (
    LoopScope,
    convex_superset,
    fill_gaps,
    is_inside,
    of_earlier_iterations,
    of_loops_inside,
)
from tecomp.poly.sets.to_isl import Points
from tecomp.scheduling.state import ComputedAt, StageState

Mark: TypeAlias = Literal["ahead", "carried"]
"""Name of the `BufferRealize` field that holds the loop variable."""

_Guarded: TypeAlias = "tuple[Stmt, list[Expr]]"


def hoist_loop_carried(func: PrimFunc, mark: Mark, rule: Rule) -> PrimFunc:
    """Hoist marked regions out of their loops with `rule`, and remove the marks.

    Args:
        func: Function to rewrite; a function without marks is returned unchanged.
        mark: Mark of the regions to hoist.
        rule: Function of a statement and the ranges of the variables in scope; None leaves the
            statement unchanged.
    """
    if not any(_has(node, mark) for node in nodes_of(BufferRealize, func.body)):
        return func
    body = rewrite_statements(func.body, rule, size_ranges(func))

    def unmarked(node: Any) -> Stmt | None:
        # A loop of one iteration was removed; it has neither a next nor a previous iteration.
        return replace(node, **{mark: None}) if _has(node, mark) else None

    return simplify(replace(func, body=bottom_up(body, unmarked, kind=BufferRealize)))


def _has(node: Any, mark: Mark) -> bool:
    return isinstance(node, BufferRealize) and getattr(node, mark) is not None


def regions_of(loop: For, mark: Mark) -> Iterator[tuple[BufferRealize, list[Expr]]]:
    """Yield the regions marked with `loop` in its body, with their path conditions."""

    def inside(item: _Guarded) -> list[_Guarded]:
        node, conditions = item
        match node:
            case BufferRealize() if getattr(node, mark) is loop.loop_var:
                return []
            case IfThenElse(condition, then, other):
                cases = [(then, [*conditions, condition])]
                return cases if other is None else [*cases, (other, [*conditions, Not(condition)])]
            case SeqStmt(stmts):
                return [(stmt, conditions) for stmt in stmts]
            case BufferRealize(body=body) | Allocate(body=body) | For(body=body):
                return [(body, conditions)]
        return []

    for node, conditions in walk((loop.body, []), parts=inside):
        if _has(node, mark) and getattr(node, mark) is loop.loop_var:
            yield node, conditions


def allocate_buffers(buffers: Sequence[Buffer], body: Stmt) -> Stmt:
    """Allocate `buffers` around `body`, the first one outermost."""
    for buffer in reversed(buffers):
        body = Allocate(buffer, body)
    return body


def replace_stmt(root: Stmt, old: Stmt, new: Stmt) -> Stmt:
    """Replace the statement `old` in `root` by `new`."""
    return bottom_up(root, lambda node: new if node is old else None)


def check_doubled(program: PreparedSchedule) -> None:
    """Check that double-buffered stages are computed inside sequential loops.

    Raises:
        LowerError: If a double-buffered stage has no enclosing loop, is attached to a concurrent
            loop, or is an argument.
    """
    for stage in program.state:
        if not stage.is_doubled:
            continue
        where = f"s[{stage.name}].double_buffer"
        if not isinstance(stage.attach, ComputedAt):
            raise LowerError(
                "{where}: {stage} is not computed inside a loop, so there is no next iteration to "
                "compute it for; use compute_at",
                kind="loop-carried", where=where, stage=stage.name,
            )
        if program.definitions[stage.key].is_argument:
            raise LowerError(
                "{where}: the caller passes the memory of {stage}, which holds a single copy; "
                "remove it from the arguments",
                kind="loop-carried", where=where, stage=stage.name,
            )
        parent, axis = program.state.stage(stage.attach.stage), stage.attach.axis
        kind = loop_kinds(parent).get(axis)
        if kind in (ForKind.PARALLEL, ForKind.VECTORIZED):
            raise LowerError(
                "{where}: the iterations of {axis} of {parent} run in parallel, so there is no "
                "next iteration; compute it in a loop inside of that one",
                kind="loop-carried", where=where, axis=axis.name, parent=parent.name,
            )


def prefetch_loop_var(definition: Definition, loops: Mapping[IterVar, Var]) -> Var | None:
    """Return the variable of the loop whose next iteration a stage is computed for, or None."""
    stage = definition.stage
    if not stage.is_doubled or not isinstance(stage.attach, ComputedAt):
        return None
    return loops.get(stage.attach.axis)


def double_buffers(func: PrimFunc) -> PrimFunc:
    """Give every region that is realized `ahead` of a loop two alternating copies.

        for i in range(n):                       with Allocate(... (2, 8)) as P:
            with BufferRealize(..., ahead=i):        if n > 0: P[0] = f(0)
                P = f(i)                   ->        for i in range(n):
                C[i] = g(P)                              if i + 1 < n: P[(i + 1) % 2] = f(i + 1)
                                                         C[i] = g(P[i % 2])

    Raises:
        LowerError: If the producer of the region reads data that the same loop computes, or if the
            size of the region depends on the iteration.
    """
    return hoist_loop_carried(func, "ahead", _pipeline)


def _pipeline(node: Stmt, ranges: Ranges) -> Stmt | None:
    if not isinstance(node, For):
        return None
    buffers: list[Buffer] = []
    first: list[Stmt] = []
    loop = node
    while found := next(regions_of(loop, "ahead"), None):
        realize, conditions = found
        inside = {**ranges, loop.loop_var: (loop.min, loop.min + loop.extent - 1)}
        single = local_buffer(realize, inside)
        local = _twice(single)
        remap = _in_turn(realize.bounds, loop.loop_var, _copy_axis(single))
        body = rebase_accesses(realize.body, realize.buffer, local, remap)
        produce, rest = _parts(body, local.data)
        _check(loop, realize, local, produce, rest)
        guarded = IfThenElse(logical_and(*conditions), produce) if conditions else produce
        following = loop.loop_var + 1
        ahead = IfThenElse(following < loop.min + loop.extent,
                           substitute(guarded, {loop.loop_var: following}))
        buffers.append(local)
        first.append(IfThenElse(loop.extent > 0, substitute(guarded, {loop.loop_var: loop.min})))
        # The next region is computed even if this iteration does not use its own region.
        new_body = replace_stmt(loop.body, realize, rest)
        loop = replace(loop, body=seq(ahead, new_body))
    return allocate_buffers(buffers, seq(*first, loop)) if buffers else None


def _twice(local: Buffer) -> Buffer:
    """Return a buffer with an additional axis of extent 2 that selects the copy."""
    axis = _copy_axis(local)
    shape, strides = local.shape, local.strides
    if strides is not None:
        total = index_value(strides[axis]) * shape[axis]
        stride = int(total.value) if isinstance(total, Const) else total
        strides = (*strides[:axis], stride, *strides[axis:])
    return replace(local, shape=(*shape[:axis], 2, *shape[axis:]), strides=strides)


def _copy_axis(local: Buffer) -> int:
    """Return the axis that selects the copy: the first of the last physical axis.

    The other physical axes keep their extents, which memories with a fixed number of rows require.
    """
    return max(local.axis_separators, default=-1) + 1


def _in_turn(
    bounds: tuple[Range, ...], loop: Var, axis: int
) -> Callable[[Indices], Indices]:
    """Return the index function of the alternating copies of a region, selected by `axis`."""
    remap = from_start(bounds)

    def place(indices: Indices) -> Indices:
        rebased = remap(indices)
        return (*rebased[:axis], loop % 2, *rebased[axis:])

    return place


def _parts(body: Stmt, data: Var) -> tuple[Stmt, Stmt]:
    """Split `body` into the producer of memory `data` and the remaining statements."""
    stmts = body.stmts if isinstance(body, SeqStmt) else (body,)
    last = (
        max((k for k, stmt in enumerate(stmts) if data in _written_buffers(stmt)), default=-1) + 1
    )
    return seq(*stmts[:last]), seq(*stmts[last:])


def _check(loop: For, realize: BufferRealize, local: Buffer, produce: Stmt, rest: Stmt) -> None:
    """Raise if computing the region one iteration ahead would read data too early.

    Raises:
        LowerError: If `produce` reads data that the rest of the loop computes, or if the shape of
            `local` depends on the iteration.
    """
    name = realize.buffer.name
    outside = replace_stmt(loop.body, realize, rest)
    computed = _written_buffers(outside) | {
        n.buffer.data for n in walk(outside) if isinstance(n, Allocate | BufferRealize)
    }
    for node in walk(produce):
        if isinstance(node, BufferLoad) and node.buffer.data in computed:
            _refuse(
                name,
                "it reads {buffer}, which the same loop computes; compute that inside {name}, or "
                "in an outer loop",
                buffer=node.buffer.name, name=name,
            )
    if loop.loop_var in extent_variables(local):
        _refuse(name, "the size of its memory depends on the iteration")


def _refuse(tensor: str, template: str, /, **parameters: Any) -> NoReturn:
    raise LowerError(
        "s[{tensor}].double_buffer: {tensor} cannot be computed an iteration ahead: " + template,
        kind="loop-carried", tensor=tensor, **parameters,
    )


def _written_buffers(root: Stmt) -> set[Var]:
    return {node.buffer.data for node in nodes_of(BufferStore, root)}


_CONCURRENT_KINDS = (ForKind.PARALLEL, ForKind.VECTORIZED)


def check_rolling(program: PreparedSchedule) -> None:
    """Check that stages with a rolling buffer are computed inside sequential loops.

    Raises:
        LowerError: If such a stage has no enclosing loop or a concurrent one, or if the stage is an
            argument, has a double buffer or has a pad value.
    """
    for stage in program.state:
        if not stage.is_rolling:
            continue
        where, name = f"s[{stage.name}].rolling_buffer", stage.name
        if not isinstance(stage.attach, ComputedAt):
            raise LowerError(
                "{where}: {name} is not computed inside a loop, so no iteration can reuse elements "
                "of another; use compute_at",
                kind="loop-carried", where=where, name=name,
            )
        if program.definitions[stage.key].is_argument:
            raise LowerError(
                "{where}: the caller passes the memory of {name}, which holds the whole tensor; "
                "remove it from the arguments",
                kind="loop-carried", where=where, name=name,
            )
        if stage.is_doubled:
            raise LowerError(
                "{where}: {name} has a double buffer too, which is recomputed in each iteration; "
                "use only one of them",
                kind="loop-carried", where=where, name=name,
            )
        if stage.layout.pad_value is not None:
            raise LowerError(
                "{where}: the layout of {name} has a pad_value, which would overwrite the reused "
                "elements; remove it",
                kind="loop-carried", where=where, name=name,
            )
        parent, axis = program.state.stage(stage.attach.stage), stage.attach.axis
        if loop_kinds(parent).get(axis) in _CONCURRENT_KINDS:
            raise LowerError(
                "{where}: the iterations of {axis} of {parent} run in parallel, so there is no "
                "previous iteration; compute {stage} in a loop inside of that one",
                kind="loop-carried", where=where, axis=axis.name, parent=parent.name,
                stage=stage.name,
            )


@dataclass(frozen=True)
class RollingWindow:
    """Rolling windows: regions of a stage that loop iterations need.

    Attributes:
        program: Program with all definitions.
        loops: Variables of open loops with several iterations, outermost first.
        scope: Parameters of the sets: sizes and enclosing loops.
        memory: Elements of stages computed around the loops.
    """

    program: PreparedSchedule
    loops: Mapping[IterVar, Var]
    scope: LoopScope
    memory: Memory

    def needed(self, definition: Definition, region: Region) -> Region:
        """Return `region` with its gaps filled.

        Otherwise later iterations would compute the gaps element by element. The gaps remain if
        their inputs have not been computed by the enclosing stages.
        """
        filled = self._filled(definition, region)
        if is_inside(filled.points, region.points, self.scope):
            return filled
        return filled if self._can_be_computed(definition, filled.points) else region

    def _filled(self, definition: Definition, region: Region) -> Region:
        all_points = all_elements(self.program, definition, self.scope)
        points = fill_gaps(region.points)
        if points is not None:
            return Region(points.intersect(all_points), region.unclipped)
        points = convex_superset(region.points)
        hull = convex_superset(region.unclipped.union(points))
        return Region(points.intersect(all_points), hull)

    def _can_be_computed(self, definition: Definition, points: Points) -> bool:
        """Return whether all inputs of `points` from enclosing stages have been computed."""
        parts = {key: mem.points for key, mem in self.memory.items() if mem.points is not None}
        if not parts:
            return True
        others = self.program.definitions.keys() - self.memory.keys()
        at = {definition.stage.key: evaluated_points(self.program, definition, points, self.scope)}
        instances = propagate_instances(self.program, at, others, self.scope)
        for key, known in parts.items():
            read = read_elements(self.program, key, instances, self.scope)
            all_points = all_elements(self.program, self.program.definitions[key], self.scope)
            if read is not None and not is_inside(read.intersect(all_points), known, self.scope):
                return False
        return True

    def computed(self, definition: Definition, region: Region) -> Region:
        """Return the elements of `needed` that earlier iterations have not computed."""
        return self.new(definition, self.needed(definition, region))

    def new(self, definition: Definition, window: Region) -> Region:
        """Return the elements of a `window` from `needed` that are not retained."""
        retained = self._retaining_loop(definition, window.points)
        if retained is None:
            return window
        return Region(window.points.subtract(retained[1]).coalesce(), window.unclipped)

    def carrying_loop(self, definition: Definition, window: Region) -> Var | None:
        """Return the loop that carries elements of a `window` to later iterations, or None."""
        retained = (
            self._retaining_loop(definition, window.points) if definition.stage.is_rolling else None
        )
        return None if retained is None else retained[0]

    def bounds(self, definition: Definition, window: Region, loop: Var | None) -> Bounds:
        """Return a box around a `window`; it moves with the carrying `loop`, if any."""
        shape = self.program.shape(definition)
        if loop is None:
            return bounding_box(window.points, window.unclipped, self.scope, shape)
        points, unclipped = (
            of_loops_inside(part, loop, self.scope) for part in (window.points, window.unclipped)
        )
        bounds = bounding_box(points, unclipped, self.scope, shape)
        return tuple(
            self._turning(points, k, loop, interval, extent)
            for k, (interval, extent) in enumerate(zip(bounds, shape, strict=True))
        )

    def _turning(
        self, points: Points, dim: int, loop: Var, interval: tuple[Expr, Extent], extent: Extent
    ) -> tuple[Expr, Extent]:
        """Return `interval` of one dimension, or a narrower interval that moves with the loop."""
        start, size = interval
        if loop in free_variables(start):
            if _is_monotone(start, loop):
                return interval
            # A fixed interval must cover the elements of all iterations.
            size = extent
        for other in windows_around(points, dim, loop, self.scope):
            if _is_monotone(other[0], loop) and not (isinstance(size, int) and other[1] >= size):
                return other
        return interval

    def _retaining_loop(self, definition: Definition, points: Points) -> tuple[Var, Points] | None:
        """Return the innermost loop that retains some of `points`, and the retained elements."""
        for axis in _in_order(self.program, definition.stage):
            if (loop := self.loops.get(axis)) is not None:
                # Inner loops retain nothing: no two of their iterations share an element.
                retained = of_earlier_iterations(points, loop, self.scope)
                if not points.intersect(retained).is_empty():
                    return loop, retained
        return None


def _in_order(program: PreparedSchedule, stage: StageState) -> list[IterVar]:
    """Return the sequential loops around a stage, innermost first, up to a concurrent loop."""
    attach = stage.attach
    if not isinstance(attach, ComputedAt):
        return []
    parent = program.definitions[attach.stage].stage
    kinds = loop_kinds(parent)
    loops = parent.leaves[: parent.leaves.index(attach.axis) + 1]
    return [*takewhile(lambda leaf: kinds.get(leaf) not in _CONCURRENT_KINDS, reversed(loops))]


def check_carried(program: PreparedSchedule, body: Stmt) -> None:
    """Check that every rolling buffer retains elements.

    Raises:
        LowerError: If a rolling buffer retains nothing although its loop has several iterations.
    """
    carried = {n.buffer.data for n in walk(body)
            if isinstance(n, BufferRealize) and n.carried is not None}  # fmt: skip
    for stage in program.state:
        if not stage.is_rolling or not isinstance(stage.attach, ComputedAt):
            continue
        axis = stage.attach.axis
        is_loop = not isinstance(axis.extent, int) or axis.extent > 1
        if is_loop and program.definitions[stage.key].buffers[0].data not in carried:
            names = ", ".join(loop.name for loop in reversed(_in_order(program, stage)))
            raise LowerError(
                "s[{stage}].rolling_buffer: no two iterations of {names} share an element of "
                "{stage}, so nothing can be reused; remove it, or compute the stage in another "
                "loop",
                kind="loop-carried", stage=stage.name, names=names,
            )


def roll_buffers(func: PrimFunc) -> PrimFunc:
    """Allocate every region that is `carried` to the next iteration around its loop.

        for i in range(n):                                 with Allocate(... (2,)) as P:
            with BufferRealize(..., bounds=((i, 2),),          for i in range(n):
                               carried=i) as P:        ->          if i < 1: P[i % 2] = f(i)
                if i < 1: P[i] = f(i)                              P[(i + 1) % 2] = f(i + 1)
                P[i + 1] = f(i + 1)                                C[i] = P[i % 2] + P[(i + 1) % 2]
                C[i] = P[i] + P[i + 1]

    Args:
        func: Function to rewrite; a function without such regions is returned unchanged.
    """
    return hoist_loop_carried(func, "carried", _roll_buffer)


def _roll_buffer(node: Stmt, ranges: Ranges) -> Stmt | None:
    if not isinstance(node, For):
        return None
    inside = {**ranges, node.loop_var: (node.min, node.min + node.extent - 1)}
    buffers: list[Buffer] = []
    loop = node
    while found := next(regions_of(loop, "carried"), None):
        realize, _ = found
        bounds = tuple(
            _range_of_all_iterations(part, extent, loop.loop_var, inside)
            for part, extent in zip(realize.bounds, realize.buffer.shape, strict=True)
        )
        local = local_buffer(replace(realize, bounds=bounds), ranges)
        remap = _rolling_index(realize, bounds, loop.loop_var)
        body = rebase_accesses(realize.body, realize.buffer, local, remap)
        buffers.append(local)
        loop = replace(loop, body=replace_stmt(loop.body, realize, body))
    return allocate_buffers(buffers, loop) if buffers else None


def _range_of_all_iterations(part: Range, extent: Extent, loop: Var, ranges: Ranges) -> Range:
    """Return the range to allocate for all iterations of `loop`; moving ranges start at 0."""
    upper = constant_upper_bound(part.extent, ranges)
    moves = loop in free_variables(part.min)
    if moves and not _is_monotone(part.min, loop):
        return Range(Const(0), index_value(extent))
    if not moves and (upper is not None or loop not in free_variables(part.extent)):
        return part if upper is None else Range(part.min, Const(upper))
    if upper is None or (isinstance(extent, int) and extent < upper):
        return Range(Const(0), index_value(extent))
    return Range(Const(0), Const(upper))


def _is_monotone(start: Expr, loop: Var) -> bool:
    """Return whether `start` is provably monotone in the loop variable."""
    return fold(start, lambda node, operands: _direction(node, operands, loop)) in (-1, 0, 1)


def _direction(node: Expr, operands: list[int | None], loop: Var) -> int | None:
    """Return the direction of an expression: 1, -1, 0 (constant), or None if unknown."""
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


def _rolling_index(
    realize: BufferRealize, bounds: tuple[Range, ...], loop: Var
) -> Callable[[Indices], Indices]:
    """Return the index function into `bounds`: modulo the extent along axes that move."""
    turns = [loop in free_variables(part.min) for part in realize.bounds]

    def place(indices: Indices) -> Indices:
        return tuple(
            index % bound.extent if turning else index - bound.min
            for index, bound, turning in zip(indices, bounds, turns, strict=True)
        )

    return place
