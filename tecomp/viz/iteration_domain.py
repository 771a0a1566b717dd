"""Draw iteration domains and dependences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from math import hypot
from typing import Any

import numpy as np
import numpy.typing as npt

from tecomp.compute.iter_var import IterKind, IterVar
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.reduce import Reduce
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.drawing.canvas import MARGIN, Canvas, colour, head, heading, legend, text_width
from tecomp.drawing.svg import Svg
from tecomp.errors import ScheduleError
from tecomp.ir.nodes.expr import Const, Expr, Var, index_value
from tecomp.ir.nodes.printer import format_count, truncate
from tecomp.ir.nodes.stmt_nodes import ForKind
from tecomp.ir.traversal.analyses import PathConditions
from tecomp.ir.traversal.rewrite import free_variables, substitute, walk
from tecomp.poly.maps.brute_force import values
from tecomp.scheduling.loop_relations import Frame, Frames, derive_frames
from tecomp.scheduling.schedule import Stage
from tecomp.scheduling.state import ComputedAt, Inline, LayoutTransform, ScheduleState, StageState

Numbers = npt.NDArray[np.int64]
At = Mapping[Var, Any]

SIZE = 16
"""Value assumed in figures for sizes that are bound at call time."""
_MOST_ROWS, _MOST_COLUMNS = 12, 16
_MOST_READS, _MOST_TERMS = 64, 16


@dataclass(frozen=True)
class Domain:
    """The iteration points of a figure: a corner of the domain of one or two axes.

    Attributes:
        axes: Drawn axes; of two axes the first runs downwards.
        extents: Full extent of each axis.
        firsts: First value of each axis.
        is_inside: Whether each point belongs to the iteration domain.
        leaves: Value of each loop at each point.
        thread: Number of the thread of each point; points with equal numbers run sequentially.
        time: Position of each point in its thread; points that run at once have equal numbers.
        values: Values of all variables.
    """

    axes: tuple[IterVar, ...]
    extents: tuple[int, ...]
    firsts: tuple[int, ...]
    is_inside: npt.NDArray[np.bool_]
    leaves: Mapping[IterVar, Numbers]
    thread: Numbers
    time: Numbers
    values: At

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and columns of points."""
        return self.is_inside.shape

    def in_order(self) -> list[list[tuple[int, ...]]]:
        """Return the points of each thread in execution order."""
        found: dict[int, list[tuple[int, ...]]] = {}
        points = [tuple(map(int, point)) for point in np.argwhere(self.is_inside)]
        lanes = [*self.leaves.values()]
        for point in sorted(points, key=lambda p: (self.time[p], *(lane[p] for lane in lanes))):
            found.setdefault(int(self.thread[point]), []).append(point)
        return [found[thread] for thread in sorted(found)]


def domain_of(state: ScheduleState, stage: StageState, axes: tuple[IterVar, ...]) -> Domain:
    """Compute the iteration points of the given axes, with all other axes at their first value."""
    op = stage.compute
    env: dict[Var, Any] = {size: np.asarray(SIZE) for size in _sizes(state, stage)}
    extents, starts = [], []
    for axis in dict.fromkeys((*op.axis, *op.reduce_axis, *op.loops)):
        first = int(values(index_value(axis.low), env))
        env[axis] = np.asarray(first)
    for number, axis in enumerate(axes):
        extent = max(int(values(index_value(axis.extent), env)), 0)
        limit = _MOST_COLUMNS if number == len(axes) - 1 else _MOST_ROWS
        extents.append(extent)
        starts.append(int(env[axis]))
        points = env[axis] + np.arange(min(extent, limit))
        env[axis] = points if number == len(axes) - 1 else points[:, None]
    shape = tuple(min(n, limit) for n, limit in zip(
        extents, (_MOST_ROWS, _MOST_COLUMNS)[-len(extents):], strict=True))
    is_inside = np.full(shape, fill_value=True)
    for condition in _conditions(op):
        is_inside &= _evaluate_at_points(condition, env, shape).astype(bool)
    leaves = {leaf: _evaluate_at_points(value, env, shape) for leaf, value in _loops(stage).items()}
    thread, time = _order(stage, leaves, shape)
    return Domain(axes, tuple(extents), tuple(starts), is_inside, leaves, thread, time, env)


def _sizes(state: ScheduleState, stage: StageState) -> Iterator[Var]:
    """Yield the size variables of shapes and loops that are bound at call time."""
    yield from state.sizes.values()
    op = stage.compute
    bounds = (n for axis in (*op.axis, *op.reduce_axis) for n in (axis.low, axis.extent))
    for value in (*map(index_value, bounds), *_loops(stage).values()):
        yield from (var for var in free_variables(value) if not isinstance(var, IterVar))


def _conditions(op: ComputeOp) -> Iterator[Expr]:
    """Yield the conditions that restrict the iteration domain."""
    for axis in op.reduce_axis:
        first, end = axis.inside
        if first is not None:
            yield index_value(axis) >= first
        if end is not None:
            yield index_value(axis) < end
    for body in op.body:
        if isinstance(body, Reduce):
            yield body.condition


def _evaluate_at_points(expr: Expr, env: At, shape: tuple[int, ...]) -> Numbers:
    """Evaluate an expression at each point; expressions that read memory evaluate to 1."""
    try:
        found = values(expr, env)
    except KeyError:
        found = np.asarray(1)
    return np.broadcast_to(found, shape)


def _loops(stage: StageState) -> dict[IterVar, Expr]:
    """Return each loop variable as an expression of the axes."""
    op = stage.compute
    roots: Frames = {
        axis: Frame(index_value(axis.low), axis.extent)
        for axis in (*op.axis, *op.reduce_axis, *op.loops)
    }

    def box_of(relation: LayoutTransform, frames: Frames, positions: object) -> Sequence[Frame]:
        return [Frame(Const(0), axis.extent) for axis in relation.after]

    _, found = derive_frames(stage.relations, roots, box_of)
    return {leaf: found[leaf] for leaf in stage.leaves}


def simultaneous_loops(stage: StageState) -> tuple[IterVar, ...]:
    """Return the loops whose iterations run simultaneously: vectorized and tensorized loops."""
    lanes = [leaf for leaf in stage.leaves if stage.marks.get(leaf) is ForKind.VECTORIZED]
    if stage.tensorized is not None:
        lanes += stage.leaves[stage.leaves.index(stage.tensorized.axis):]
    return tuple(dict.fromkeys(lanes))


def distributed_loops(stage: StageState) -> tuple[IterVar, ...]:
    """Return the loops that are distributed over threads and cores."""
    return tuple(
        leaf for leaf in stage.leaves
        if leaf in stage.threads or stage.marks.get(leaf) is ForKind.PARALLEL
    )


def number_combinations(columns: Sequence[Numbers], shape: tuple[int, ...]) -> Numbers:
    """Enumerate the value combinations of the given loops in lexicographic order."""
    if not columns or 0 in shape:
        return np.zeros(shape, np.int64)
    stacked = np.stack([np.asarray(column).ravel() for column in columns], axis=1)
    return np.unique(stacked, axis=0, return_inverse=True)[1].reshape(shape)


def _order(
    stage: StageState, leaves: Mapping[IterVar, Numbers], shape: tuple[int, ...]
) -> tuple[Numbers, Numbers]:
    """Compute the thread of each point and its position in the thread."""
    distributed, lanes = distributed_loops(stage), simultaneous_loops(stage)
    thread = number_combinations([leaves[leaf] for leaf in distributed], shape)
    sequential = [leaves[leaf] for leaf in stage.leaves if leaf not in (*distributed, *lanes)]
    time = number_combinations(sequential, shape)
    for number in np.unique(thread):
        in_thread = thread == number
        time[in_thread] = np.unique(time[in_thread], return_inverse=True)[1]
    return thread, time


Arrow = tuple[tuple[int, ...], tuple[int, ...]]


def sums(domain: Domain) -> list[Arrow]:
    """Return the dependences from each reduction point to the next one with the same element."""
    data_dims = [k for k, axis in enumerate(domain.axes) if axis.kind is not IterKind.REDUCE]
    found: list[Arrow] = []
    for points in domain.in_order():
        last: dict[tuple[int, ...], tuple[int, ...]] = {}
        for point in points:
            element = tuple(point[k] for k in data_dims)
            before = last.get(element)
            if before is not None and domain.time[before] == domain.time[point]:
                continue
            if before is not None:
                found.append((before, point))
            last[element] = point
    return found


@dataclass(frozen=True)
class StepRead:
    """A read of an element of an earlier scan step.

    Attributes:
        indices: Indices of the element.
        conditions: Conditions under which the element is read.
    """

    indices: tuple[Expr, ...]
    conditions: tuple[Expr, ...]


def steps(state: ScheduleState, stage: StageState, domain: Domain) -> list[Arrow]:
    """Return the dependences from points of earlier scan steps to the points that read them."""
    found: dict[Arrow, None] = {}
    axes = stage.compute.axis
    positions = [axes.index(axis) for axis in domain.axes if axis in axes]
    if len(positions) < len(domain.axes):
        return []
    for read in _reads(state, stage):
        for env in _terms(read, domain):
            try:
                indices = [np.broadcast_to(values(i, env), domain.shape) for i in read.indices]
            except KeyError:
                continue  # an index that is read from memory
            mask = domain.is_inside.copy()
            for condition in read.conditions:
                mask &= _evaluate_at_points(condition, env, domain.shape).astype(bool)
            for k, (axis, index) in enumerate(zip(axes, indices, strict=True)):
                if k not in positions:
                    mask &= index == domain.values[axis]
            for point in map(tuple, np.argwhere(mask).tolist()):
                source = tuple(
                    int(indices[k][point]) - first
                    for k, first in zip(positions, domain.firsts, strict=True))
                if source != point and _is_shown(source, domain):
                    found[source, point] = None
    return list(found)


def _is_shown(point: tuple[int, ...], domain: Domain) -> bool:
    return all(0 <= n < count for n, count in zip(point, domain.shape, strict=True)) and bool(
        domain.is_inside[point])


def _terms(read: StepRead, domain: Domain) -> Iterator[At]:
    """Yield variable bindings that enumerate the first terms of reductions inside the read."""
    variables = dict.fromkeys(
        node for node in walk(*read.indices, *read.conditions)
        if isinstance(node, IterVar) and node not in domain.axes
        and (node.kind is IterKind.REDUCE or node not in domain.values)
    )
    counts = [
        range(first := int(values(index_value(axis.low), domain.values)),
              first + min(int(values(index_value(axis.extent), domain.values)), _MOST_TERMS))
        for axis in variables
    ]
    for chosen in islice(product(*counts), _MOST_TERMS ** 2):
        yield {**domain.values, **dict(zip(variables, map(np.asarray, chosen), strict=True))}


def enclosing_scan(state: ScheduleState, stage: StageState) -> ScanOp | None:
    """Return the scan that a stage is or whose steps it computes, or None."""
    if isinstance(stage.op, ScanOp):
        return stage.op
    for candidate in state:
        if not isinstance(candidate.op, ScanOp):
            continue
        for body in candidate.op.body:
            if isinstance(body, TensorLoad) and state.find(body.tensor.op) is stage and all(
                index is axis for index, axis in zip(body.indices, candidate.op.axis, strict=True)
            ):
                return candidate.op
    return None


def _reads(state: ScheduleState, stage: StageState) -> Iterator[StepRead]:
    """Yield the reads of earlier steps by the body of a step, through intermediate stages."""
    scan = enclosing_scan(state, stage)
    if scan is None:
        return
    states = frozenset(scan.states)
    has_state = _state_readers(state, states)
    found: Iterator[StepRead] = _inside(state, stage.compute.body, states, has_state, {}, ())
    yield from islice(found, _MOST_READS)


def _state_readers(state: ScheduleState, states: frozenset[Tensor]) -> set[Operation]:
    """Return the stages that read the given states, directly or through other stages."""
    placeholders = {entry.op for entry in states}
    found: set[Operation] = set()
    for stage in state:
        inputs = [tensor.op for tensor in stage.op.input_tensors]
        known = [entry.key for op in inputs if (entry := state.find(op)) is not None]
        if placeholders & {*inputs, *known} or found & {*known}:
            found.add(stage.key)
    return found


def _inside(
    state: ScheduleState, body: Sequence[Expr], states: frozenset[Tensor], reaching: set[Operation],
    known: Mapping[Var, Expr], outer: tuple[Expr, ...],
) -> Iterator[StepRead]:
    parts = [
        part for expr in body
        for part in (expr.source if isinstance(expr, Reduce) else (expr,))
    ]
    guards = PathConditions(parts)
    for node in walk(*parts):
        if not isinstance(node, TensorLoad):
            continue
        guard = guards.of(node)
        local = () if guard is None else tuple(guard.conditions())
        conditions = (*outer, *(substitute(expr, known) for expr in local))
        indices = tuple(substitute(index_value(expr), known) for expr in node.indices)
        stage = state.find(node.tensor.op)
        if node.tensor in states:
            yield StepRead(indices, conditions)
        elif stage is not None and stage.key in reaching and not isinstance(stage.op, ScanOp):
            inner: dict[Var, Expr] = dict(zip(stage.compute.axis, indices, strict=True))
            yield from _inside(state, stage.compute.body, states, reaching, inner, conditions)


_STEP, _DOT = 34.0, 11.0
_MAX_COLOURS = 16
_MAX_ARROWS = 400

Point = tuple[int, ...]


def draw_domain(stage: Stage, axes: Sequence[IterVar]) -> Svg:
    """Draw two axes of the iteration domain of a stage.

    Args:
        stage: Stage of a schedule.
        axes: Axes of the definition to draw downwards and to the right. Default (empty): axes
            that carry dependences, or the first axes.

    Raises:
        ScheduleError: If the stage is a placeholder or does not have these axes.
    """
    state, record = stage._schedule.state, stage._state
    chosen = _axes(state, record, axes)
    canvas = Canvas()
    if not chosen:
        y = head(canvas, f"iteration domain of {record.name}", "one point: it has no axes") + 30
        canvas.dot(MARGIN + _DOT, y, _DOT, colour(0), "the only point")
        return canvas.finished(f"the iteration domain of {record.name}")
    domain = domain_of(state, record, chosen)
    names = ", ".join(truncate(axis.name, 40) for axis in chosen)
    loops = ", ".join(f"{leaf.name}" for leaf in record.leaves) or "none"
    y = head(canvas, f"iteration domain of {record.name}", _slice(record.compute, chosen, domain),
             f"loops, outermost first: {loops}") + 30
    heading(canvas, MARGIN, y, f"Points ({names})", "numbers: order of execution")
    arrows, note = _dependences(state, record, domain)
    fills, label = _colours(record, domain)
    bottom = _draw(canvas, record, domain, arrows, fills, y + 18)
    entries = [(colour(0, 1), label)] if label else []
    legend(canvas, bottom + 20, entries, [*_remarks(record, domain), note])
    return canvas.finished(f"the iteration domain of {record.name} over {names}")


def _axes(state: ScheduleState, stage: StageState, axes: Sequence[IterVar]) -> tuple[IterVar, ...]:
    """Return the axes to draw.

    Raises:
        ScheduleError: If `axes` is not one or two distinct axes of the stage.
    """
    op = stage.compute
    known = (*op.axis, *op.reduce_axis)
    if axes:
        is_known = all(any(axis is a for a in known) for axis in axes)
        if not is_known or len({*map(id, axes)}) != len(axes) or len(axes) > 2:
            names = ", ".join(axis.name for axis in known) or "none"
            raise ScheduleError(
                "s[{stage}].domain_picture: expected one or two distinct axes of the definition, "
                "got {axes}; the axes are {names}",
                kind="unknown-loop", stage=stage.name, axes=", ".join(map(str, axes)),
                names=names,
            )
        return tuple(axes)
    if op.reduce_axis and enclosing_scan(state, stage) is None:
        return (*op.axis[-1:], op.reduce_axis[0]) if op.axis else op.reduce_axis[:2]
    return known[:2]


def _slice(op: ComputeOp, chosen: Sequence[IterVar], domain: Domain) -> str:
    """Describe the definition and the fixed values of the axes that are not drawn."""
    text = truncate(" ".join(str(op).split()), 120)
    others = [axis for axis in (*op.axis, *op.reduce_axis) if axis not in chosen]
    fixed = ", ".join(f"{axis.name} = {int(domain.values[axis])}" for axis in others)
    return f"{text}, where {fixed}" if fixed else text


def _dependences(
    state: ScheduleState, stage: StageState, domain: Domain
) -> tuple[Sequence[Arrow], str]:
    """Return the dependences between drawn points, and a remark on them."""
    reduces = any(axis.kind is IterKind.REDUCE for axis in domain.axes)
    if reduces:
        return sums(domain), "Arrows: each point accumulates onto the previous one."
    found = steps(state, stage, domain)
    if found:
        text = "Arrows go from a step to the steps that read its result"
        if len(found) <= _MAX_ARROWS:
            return found, f"{text}."
        points = sorted({point for _, point in found})
        end = points[len(points) // 2]
        return [pair for pair in found if pair[1] == end], f"{text}; those to one point are drawn."
    if stage.compute.reduce_axis:
        name = stage.compute.reduce_axis[0].name
        return (), f"Elements are sums over other axes: a slice along {name} shows its dependences."
    return (), "No point depends on another one."


def _colours(stage: StageState, domain: Domain) -> tuple[dict[Point, str], str]:
    """Return a colour for each point, and the legend of the colours.

    Points share a colour if they belong to the same iteration of the outer loops, as many loops as
    the palette can distinguish.
    """
    best, used = np.zeros(domain.shape, np.int64), 0
    for count in range(1, len(stage.leaves) + 1):
        found = number_combinations(
            [domain.leaves[leaf] for leaf in stage.leaves[:count]], domain.shape
        )
        different = len(np.unique(found[domain.is_inside]))
        if different > _MAX_COLOURS or 1 < different == domain.is_inside.sum():
            break
        best, used = found, count
    varied = [
        leaf.name for leaf in stage.leaves[:used]
        if domain.is_inside.any() and np.ptp(domain.leaves[leaf][domain.is_inside])
    ]
    fills = {
        tuple(point): colour(int(best[tuple(point)]), int(best[tuple(point)]) // 8)
        for point in np.argwhere(domain.is_inside).tolist()
    }
    label = f"one colour: one iteration of {', '.join(varied)}" if varied else ""
    return fills, truncate(label, 120)


def _draw(
    canvas: Canvas, stage: StageState, domain: Domain, arrows: Sequence[Arrow],
    fills: dict[Point, str], y: float,
) -> float:
    """Draw the points with their order and dependences; return the bottom y coordinate."""
    left, top = _names(canvas, domain, y)

    def middle(point: Point) -> tuple[float, float]:
        return left + point[-1] * _STEP + _DOT, top + sum(point[:-1]) * _STEP

    for points in domain.in_order():
        if len(points) > 1:
            canvas.line([middle(point) for point in points], style="faint", width=2,
                        title="the order of the loops")
    for source, point in arrows:
        _arrow(canvas, middle(source), middle(point),
               f"{_at(domain, source)} is needed for {_at(domain, point)}")
    for point, fill in fills.items():
        _point(canvas, stage, domain, point, middle(point), fill)
    if not fills:
        canvas.text(left, top + 4, "none", style="soft")
    return _ends(canvas, domain, left, top)


def _names(canvas: Canvas, domain: Domain, y: float) -> tuple[float, float]:
    """Write the values of the axes; return the left and top coordinates of the points."""
    *row_axes, column_axis = domain.axes
    rows = [str(domain.firsts[0] + k) for k in range(domain.shape[0])] if row_axes else []
    corner = f"{truncate(row_axes[0].name, 20)} ↓" if row_axes else ""
    widths = [text_width(name, 10, "mono") for name in (*rows, corner)]
    left, top = MARGIN + max(widths) + 18, y + 30
    canvas.text(left - 16, y + 14, corner, size=10, style="mono soft", anchor="end")
    label = f"{truncate(column_axis.name, 20)} →"
    canvas.text(left - 8, y - 2, label, size=10, style="mono soft")
    for k in range(domain.shape[-1]):
        canvas.text(left + k * _STEP + _DOT, y + 14, str(domain.firsts[-1] + k), size=9,
                    style="mono soft", anchor="middle")
    for k, name in enumerate(rows):
        canvas.text(left - 16, top + k * _STEP + 5, name, size=10, style="mono soft", anchor="end")
    return left, top


def _ends(canvas: Canvas, domain: Domain, left: float, top: float) -> float:
    """Mark omitted points; return the bottom y coordinate."""
    rows = domain.shape[0] if len(domain.shape) > 1 else 1
    if domain.extents[-1] > domain.shape[-1]:
        canvas.text(left + domain.shape[-1] * _STEP + 6, top + 4, "⋯", style="soft")
    bottom = top + max(rows - 1, 0) * _STEP + _DOT
    if len(domain.shape) == 1 or domain.extents[0] == rows:
        return bottom
    canvas.text(left + _DOT, bottom + 16, "⋮", style="soft", anchor="middle")
    return bottom + 18


def _point(
    canvas: Canvas, stage: StageState, domain: Domain, point: Point,
    center: tuple[float, float], fill: str,
) -> None:
    x, y = center
    loops = ", ".join(f"{leaf.name} {int(domain.leaves[leaf][point])}" for leaf in stage.leaves)
    title = f"{_at(domain, point)}: {truncate(loops, 120)}"
    canvas.dot(x, y, _DOT, fill, title)
    canvas.text(x, y + 3, str(int(domain.time[point])), size=9, style="mono dark", anchor="middle")


def _at(domain: Domain, point: Point) -> str:
    return ", ".join(
        f"{truncate(axis.name, 30)} = {first + k}"
        for axis, first, k in zip(domain.axes, domain.firsts, point, strict=True))


def _arrow(
    canvas: Canvas, start: tuple[float, float], end: tuple[float, float], title: str
) -> None:
    """Draw an arrow from the border of one point to the border of another."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = hypot(dx, dy)
    x, y = dx / length * (_DOT + 1), dy / length * (_DOT + 1)
    canvas.arrow((start[0] + x, start[1] + y), (end[0] - x, end[1] - y), title)


def _remarks(stage: StageState, domain: Domain) -> list[str]:
    """Return remarks on the execution order and on omitted points."""
    found = []
    if lanes := [leaf.name for leaf in simultaneous_loops(stage)]:
        found.append("Points with the same number are computed together, in lanes of "
                     f"{', '.join(lanes)}.")
    if threads := [leaf.name for leaf in distributed_loops(stage)]:
        found.append(f"Iterations of {', '.join(threads)} run in parallel; each has its "
                     "own numbers.")
    match stage.attach:
        case ComputedAt():
            where = f"{stage.attach.stage.name}, {stage.attach.axis.name}"
            found.append(f"It is computed at {where}, in parts; this is the order if it was "
                         "computed once.")
        case Inline():
            found.append("It is computed inline, in the order of its reader.")
        case _:
            pass
    if any(not isinstance(axis.extent, int) for axis in domain.axes):
        found.append(f"Sizes that calls give are {SIZE} here.")
    if any(n > drawn for n, drawn in zip(domain.extents, domain.shape, strict=True)):
        total = " by ".join(f"{n:,}" for n in domain.extents)
        drawn = " by ".join(map(str, domain.shape))
        found.append(f"A corner of {drawn} of the {total} points is shown; numbers count its "
                     f"{format_count(int(domain.is_inside.sum()), 'point')} alone.")
    return found
