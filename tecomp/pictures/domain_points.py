"""Points of two axes of a stage: in which order its loops meet them, and what each follows from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import numpy as np
import numpy.typing as npt

from tecomp.compute.axis import IterKind, IterVar
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.reduce import Reduce
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.ir.language.expr import Const, Expr, Var, index_value
from tecomp.ir.language.statements import ForKind
from tecomp.ir.traversal.guards import Guards
from tecomp.ir.traversal.rewrite import free_variables, substitute, walk
from tecomp.poly.maps.enumerate import values
from tecomp.scheduling.relations import Frame, Frames, derive_frames
from tecomp.scheduling.state import StageState, State, Transform

Numbers = npt.NDArray[np.int64]
At = Mapping[Var, Any]

SIZE = 16
"""What a size is in a picture that is known when the kernel is called."""
_MOST_ROWS, _MOST_COLUMNS = 12, 16
_MOST_READS, _MOST_TERMS = 64, 16


@dataclass(frozen=True)
class Domain:
    """The points of a picture: those of two axes, or of one, in a corner of all.

    Attributes:
        axes: the axes, the first of which goes down.
        extents: how many values each has.
        firsts: the first value of each.
        is_inside: whether there is a point.
        leaves: for each loop its value at each point.
        thread: a number for each point: those with one number run after each other.
        time: when each runs among those of its thread; what runs at once has one number.
        at: the values of all variables.
    """

    axes: tuple[IterVar, ...]
    extents: tuple[int, ...]
    firsts: tuple[int, ...]
    is_inside: npt.NDArray[np.bool_]
    leaves: Mapping[IterVar, Numbers]
    thread: Numbers
    time: Numbers
    at: At

    @property
    def shape(self) -> tuple[int, ...]:
        """How many rows and columns of points there are."""
        return self.is_inside.shape

    def in_order(self) -> list[list[tuple[int, ...]]]:
        """For each thread its points, as they are met."""
        found: dict[int, list[tuple[int, ...]]] = {}
        points = [tuple(map(int, point)) for point in np.argwhere(self.is_inside)]
        lanes = [*self.leaves.values()]
        for point in sorted(points, key=lambda p: (self.time[p], *(each[p] for each in lanes))):
            found.setdefault(int(self.thread[point]), []).append(point)
        return [found[thread] for thread in sorted(found)]


def domain_of(state: State, stage: StageState, axes: tuple[IterVar, ...]) -> Domain:
    """The points of some axes; all others have their first value."""
    op = stage.compute
    at: dict[Var, Any] = {size: np.asarray(SIZE) for size in _sizes(state, stage)}
    extents, firsts = [], []
    for axis in dict.fromkeys((*op.axis, *op.reduce_axis, *op.loops)):
        first = int(values(index_value(axis.low), at))
        at[axis] = np.asarray(first)
    for number, axis in enumerate(axes):
        extent = max(int(values(index_value(axis.extent), at)), 0)
        most = _MOST_COLUMNS if number == len(axes) - 1 else _MOST_ROWS
        extents.append(extent)
        firsts.append(int(at[axis]))
        counted = at[axis] + np.arange(min(extent, most))
        at[axis] = counted if number == len(axes) - 1 else counted[:, None]
    shape = tuple(min(n, most) for n, most in zip(
        extents, (_MOST_ROWS, _MOST_COLUMNS)[-len(extents):], strict=True))
    is_inside = np.full(shape, fill_value=True)
    for condition in _conditions(op):
        is_inside &= _seen(condition, at, shape).astype(bool)
    leaves = {leaf: _seen(value, at, shape) for leaf, value in _loops(stage).items()}
    thread, time = _order(stage, leaves, shape)
    return Domain(axes, tuple(extents), tuple(firsts), is_inside, leaves, thread, time, at)


def _sizes(state: State, stage: StageState) -> Iterator[Var]:
    """The variables that calls give, of shapes and of loops."""
    yield from state.sizes.values()
    op = stage.compute
    bounds = (n for axis in (*op.axis, *op.reduce_axis) for n in (axis.low, axis.extent))
    for value in (*map(index_value, bounds), *_loops(stage).values()):
        yield from (var for var in free_variables(value) if not isinstance(var, IterVar))


def _conditions(op: ComputeOp) -> Iterator[Expr]:
    """What holds where there is an iteration."""
    for axis in op.reduce_axis:
        first, end = axis.inside
        if first is not None:
            yield index_value(axis) >= first
        if end is not None:
            yield index_value(axis) < end
    for body in op.body:
        if isinstance(body, Reduce):
            yield body.condition


def _seen(expr: Expr, at: At, shape: tuple[int, ...]) -> Numbers:
    """A value at each point; what reads memory is taken to be 1."""
    try:
        found = values(expr, at)
    except KeyError:
        found = np.asarray(1)
    return np.broadcast_to(found, shape)


def _loops(stage: StageState) -> dict[IterVar, Expr]:
    """The loops as functions of the axes."""
    op = stage.compute
    roots: Frames = {
        axis: Frame(index_value(axis.low), axis.extent)
        for axis in (*op.axis, *op.reduce_axis, *op.loops)
    }

    def box_of(relation: Transform, frames: Frames, places: object) -> Sequence[Frame]:
        return [Frame(Const(0), axis.extent) for axis in relation.after]

    _, found = derive_frames(stage.relations, roots, box_of)
    return {leaf: found[leaf] for leaf in stage.leaves}


def at_once(stage: StageState) -> tuple[IterVar, ...]:
    """The loops of which all iterations run at once."""
    lanes = [leaf for leaf in stage.leaves if stage.marks.get(leaf) is ForKind.VECTORIZED]
    if stage.tensorized is not None:
        lanes += stage.leaves[stage.leaves.index(stage.tensorized.axis):]
    return tuple(dict.fromkeys(lanes))


def shared(stage: StageState) -> tuple[IterVar, ...]:
    """The loops that threads and cores share."""
    return tuple(
        leaf for leaf in stage.leaves
        if leaf in stage.threads or stage.marks.get(leaf) is ForKind.PARALLEL
    )


def numbered(columns: Sequence[Numbers], shape: tuple[int, ...]) -> Numbers:
    """Numbers for the values of some loops together, in their order."""
    if not columns or 0 in shape:
        return np.zeros(shape, np.int64)
    stacked = np.stack([np.asarray(each).ravel() for each in columns], axis=1)
    return np.unique(stacked, axis=0, return_inverse=True)[1].reshape(shape)


def _order(
    stage: StageState, leaves: Mapping[IterVar, Numbers], shape: tuple[int, ...]
) -> tuple[Numbers, Numbers]:
    """The thread of each point, and when it runs there."""
    apart, lanes = shared(stage), at_once(stage)
    thread = numbered([leaves[leaf] for leaf in apart], shape)
    rest = [leaves[leaf] for leaf in stage.leaves if leaf not in (*apart, *lanes)]
    time = numbered(rest, shape)
    for each in np.unique(thread):
        mine = thread == each
        time[mine] = np.unique(time[mine], return_inverse=True)[1]
    return thread, time


Arrow = tuple[tuple[int, ...], tuple[int, ...]]


def sums(domain: Domain) -> list[Arrow]:
    """From each point of a reduction to the next one that adds to the same element."""
    down = [k for k, axis in enumerate(domain.axes) if axis.kind is not IterKind.REDUCE]
    found: list[Arrow] = []
    for points in domain.in_order():
        last: dict[tuple[int, ...], tuple[int, ...]] = {}
        for point in points:
            element = tuple(point[k] for k in down)
            before = last.get(element)
            if before is not None and domain.time[before] == domain.time[point]:
                continue
            if before is not None:
                found.append((before, point))
            last[element] = point
    return found


@dataclass(frozen=True)
class Read:
    """An element of an earlier step that a step reads.

    Attributes:
        indices: which one.
        conditions: where it is read.
    """

    indices: tuple[Expr, ...]
    conditions: tuple[Expr, ...]


def steps(state: State, stage: StageState, domain: Domain) -> list[Arrow]:
    """From the points of earlier steps of a scan to those that read what they computed."""
    found: dict[Arrow, None] = {}
    axes = stage.compute.axis
    places = [axes.index(axis) for axis in domain.axes if axis in axes]
    if len(places) < len(domain.axes):
        return []
    for read in _reads(state, stage):
        for at in _terms(read, domain):
            try:
                indices = [np.broadcast_to(values(i, at), domain.shape) for i in read.indices]
            except KeyError:
                continue  # an index that is read from memory
            holds = domain.is_inside.copy()
            for condition in read.conditions:
                holds &= _seen(condition, at, domain.shape).astype(bool)
            for k, (axis, index) in enumerate(zip(axes, indices, strict=True)):
                if k not in places:
                    holds &= index == domain.at[axis]
            for point in map(tuple, np.argwhere(holds).tolist()):
                source = tuple(
                    int(indices[k][point]) - first
                    for k, first in zip(places, domain.firsts, strict=True))
                if source != point and _is_shown(source, domain):
                    found[source, point] = None
    return list(found)


def _is_shown(point: tuple[int, ...], domain: Domain) -> bool:
    return all(0 <= n < count for n, count in zip(point, domain.shape, strict=True)) and bool(
        domain.is_inside[point])


def _terms(read: Read, domain: Domain) -> Iterator[At]:
    """The values of variables, with the first ones of what a reduction on the way adds up."""
    variables = dict.fromkeys(
        node for node in walk(*read.indices, *read.conditions)
        if isinstance(node, IterVar) and node not in domain.axes
        and (node.kind is IterKind.REDUCE or node not in domain.at)
    )
    counts = [
        range(first := int(values(index_value(axis.low), domain.at)),
              first + min(int(values(index_value(axis.extent), domain.at)), _MOST_TERMS))
        for axis in variables
    ]
    for chosen in islice(product(*counts), _MOST_TERMS ** 2):
        yield {**domain.at, **dict(zip(variables, map(np.asarray, chosen), strict=True))}


def scan_around(state: State, stage: StageState) -> ScanOp | None:
    """The scan that a stage is, or whose steps it computes; None of others."""
    if isinstance(stage.op, ScanOp):
        return stage.op
    for each in state:
        if not isinstance(each.op, ScanOp):
            continue
        for body in each.op.body:
            if isinstance(body, TensorLoad) and state.find(body.tensor.op) is stage and all(
                index is axis for index, axis in zip(body.indices, each.op.axis, strict=True)
            ):
                return each.op
    return None


def _reads(state: State, stage: StageState) -> Iterator[Read]:
    """What the body of a step reads of earlier ones, through the stages between."""
    scan = scan_around(state, stage)
    if scan is None:
        return
    states = frozenset(scan.states)
    has_state = _reaching(state, states)
    found: Iterator[Read] = _inside(state, stage.compute.body, states, has_state, {}, ())
    yield from islice(found, _MOST_READS)


def _reaching(state: State, states: frozenset[Tensor]) -> set[Operation]:
    """The stages that read states, also through others."""
    placeholders = {each.op for each in states}
    found: set[Operation] = set()
    for stage in state:
        inputs = [tensor.op for tensor in stage.op.input_tensors]
        known = [each.key for op in inputs if (each := state.find(op)) is not None]
        if placeholders & {*inputs, *known} or found & {*known}:
            found.add(stage.key)
    return found


def _inside(
    state: State, body: Sequence[Expr], states: frozenset[Tensor], reaching: set[Operation],
    known: Mapping[Var, Expr], around: tuple[Expr, ...],
) -> Iterator[Read]:
    parts = [part for each in body for part in _sources(each)]
    guards = Guards(parts)
    for node in walk(*parts):
        if not isinstance(node, TensorLoad):
            continue
        guard = guards.of(node)
        holds = () if guard is None else tuple(guard.conditions())
        conditions = (*around, *(substitute(each, known) for each in holds))
        indices = tuple(substitute(index_value(each), known) for each in node.indices)
        stage = state.find(node.tensor.op)
        if node.tensor in states:
            yield Read(indices, conditions)
        elif stage is not None and stage.key in reaching and not isinstance(stage.op, ScanOp):
            inner: dict[Var, Expr] = dict(zip(stage.compute.axis, indices, strict=True))
            yield from _inside(state, stage.compute.body, states, reaching, inner, conditions)


def _sources(value: Expr) -> Sequence[Expr]:
    return value.source if isinstance(value, Reduce) else (value,)
