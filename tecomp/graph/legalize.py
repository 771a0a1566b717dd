"""Legalize operations that the target cannot execute as a single operation.

A formula whose lanes would read other lanes, as `A[i, j - 1]` beside `A[i - 1, j]`, reads a copy
that has each element where it is read. A reduction whose terms are no operation of the machine, as
those of a matrix times a vector in some layouts, adds up what a formula makes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any

from tecomp.compute.define import compute, reduce_axis
from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.reduce import Reduce
from tecomp.compute.reduce import sum as sum_of
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.constraints.check import keeps_rules
from tecomp.constraints.operation_view import View, computation, loads_of, only_moves
from tecomp.errors import LayoutError
from tecomp.graph.canonicalize import with_conversions_apart
from tecomp.graph.dag import Graph, graph_with
from tecomp.graph.layout_candidates import is_one_to_a_row
from tecomp.graph.layout_problem import Problem, Value, copies_of
from tecomp.ir.nodes.dtype import BOOL, INT64
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Call,
    Expr,
    Var,
    binary,
    cast,
    const,
    if_then_else,
    index_value,
    is_const,
    logical_and,
    select,
)
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.traversal.rewrite import substitute, top_down, walk
from tecomp.poly.sets.isl_context import isl_work
from tecomp.poly.sets.to_isl import NotAffine

Reached = Mapping[Tensor, frozenset[int]]
"""The seats that values may have on a machine, made there or copied."""


def mended(problem: Problem) -> Graph | None:
    """The program with what cannot run in parts that may; None where nothing has such parts."""
    reached, stuck = _reached(problem)
    apart = with_conversions_apart(problem.machine.target)
    reads = {op: _misplaced(op, problem, reached) for op in stuck}
    # Many more terms are added up than there are elements, so that comes last.
    found = {op for op in stuck if problem.machine.is_lone and _is_found_by_data(op)}

    def changed(before: Operation, op: Operation) -> Operation:
        if before not in reads or not isinstance(op, ComputeOp):
            return op
        if reads[before]:
            return _with_reads_apart(op, reads[before])
        if before in found:
            return _with_all_compared(op)
        return _with_terms_apart(op, apart) if _has_terms(op) else op

    if not any(reads[op] or op in found or _has_terms(op) for op in stuck):
        return None
    return graph_with(problem.graph, changed)


def _reached(problem: Problem) -> tuple[Reached, list[ComputeOp]]:
    """The seats that values may have, and the operations that give none in any way."""
    graph = problem.graph
    reached: dict[Tensor, frozenset[int]] = {}
    stuck = []
    for x in (*graph.inputs, *graph.constants):
        reached[x] = copies_of(problem, x, problem.values[x].made)
    for op, ways in problem.ways.items():
        fit = [
            way for way in ways
            if all(n in reached[slot.tensor]
                   for slot, n in zip(problem.slots[op], way.inputs, strict=True))
        ]  # fmt: skip
        for k, x in enumerate(op.outputs):
            made = {way.outs[k] for way in fit} & set(problem.values[x].made)
            # What follows is looked at as if it were possible, in full sticks.
            reached[x] = copies_of(problem, x, made or _full(problem.values[x]))
        if not fit and isinstance(op, ComputeOp) and op not in problem.opaque:
            stuck.append(op)
    return reached, stuck


def _full(value: Value) -> list[int]:
    """The seats in which a value may be made with more than one element to a stick."""
    return [
        k for k in value.made
        if isinstance(seat := value.seats[k], View) or not is_one_to_a_row(seat)
    ]


def _has_terms(op: ComputeOp) -> bool:
    """Whether a reduction is of what is computed for it."""
    body = op.body[0]
    return isinstance(body, Reduce) and not isinstance(body.source[0], TensorLoad)


def _misplaced(op: ComputeOp, problem: Problem, reached: Reached) -> frozenset[int]:
    """The numbers of the reads that lie in no lanes of a result, for that with the fewest such.

    What is read as it is computed, and no copy would change, is none of them.
    """
    loads = loads_of(op.body[0])
    if only_moves(op.body[0]):
        return frozenset()
    with isl_work("layouts", LayoutError):
        try:
            found = [
                _misplaced_in(op, k, problem, reached) for k in problem.values[op.output(0)].made
            ]
        except NotAffine:
            return frozenset()
    least = min(found, key=len, default=[])
    return frozenset(n for n in least if not _is_as_computed(loads[n], op))


def _is_as_computed(load: TensorLoad, op: ComputeOp) -> bool:
    """Whether a read is of the element at the same place."""
    axes = (*op.axis, *op.reduce_axis)
    return len(axes) == len(load.indices) and all(map(is_, load.indices, axes))


def _misplaced_in(
    op: ComputeOp, out: int, problem: Problem, reached: Reached
) -> list[int]:
    """The same for one layout of the result: each tensor lies where most of its reads may."""
    values, target = problem.values, problem.machine.target
    each = computation(op, op.body[0], {})
    each = replace(each, out=each.out.at(values[op.output(0)].seats[out]))
    found: list[int] = []
    for slot in problem.slots[op]:
        uses = {
            n: each.inputs[n] for n, load in enumerate(loads_of(op.body[0]))
            if slot.has(load.tensor, load.indices)
        }
        by_seat = [
            [n for n, use in uses.items()
             if not keeps_rules(each.with_inputs((use.at(seat),)), target, is_alone=True)]
            for seat in (values[slot.tensor].seats[k] for k in sorted(reached[slot.tensor]))
        ]  # fmt: skip
        fewest = min(map(len, by_seat), default=0)
        found += next((each for each in by_seat if len(each) == fewest), uses)
    return found


def _with_reads_apart(op: ComputeOp, numbers: frozenset[int]) -> ComputeOp:
    """The same of copies that have an element wherever it is read."""
    loads = loads_of(op.body[0])
    guarded = _guarded(op.body[0])
    axes = (*op.axis, *op.reduce_axis)
    made = {
        id(load): _copy(load, axes, op.name, is_guarded=id(load) in guarded)
        for n, load in enumerate(loads) if n in numbers
    }
    body = top_down(op.body[0], lambda node: made.get(id(node)))
    return replace(op, body=(body,))


def _copy(
    load: TensorLoad, axes: Sequence[IterVar], name: str, *, is_guarded: bool
) -> TensorLoad:
    """An element of a copy for an operation of some name, with an axis for each loop it depends on.

    What is repeated along other loops is repeated in the copy, if nothing else is to be changed.
    """
    used = {node for index in load.indices for node in walk(index) if isinstance(node, Var)}
    own = tuple(axis for axis in axes if axis in used)
    if len(own) == len(load.indices) and all(isinstance(index, Var) for index in load.indices):
        own = tuple(axes)

    def element(*indices: Expr) -> Expr:
        values = _values(own, indices)
        at = tuple(substitute(index, values) for index in load.indices)
        if is_guarded and any(map(_is_data, at)):
            return _clamped(load, at)
        value = TensorLoad(load.tensor, at, load.location)
        inside = [
            test for before, index, extent in zip(load.indices, at, load.tensor.shape, strict=True)
            if not _is_inside(before, extent) for test in (index >= 0, index < extent)
        ]
        if not is_guarded or not inside:
            return value
        return if_then_else(logical_and(*inside), value, const(0, value.dtype))

    made = compute(
        tuple(axis.extent for axis in own), element, name=f"{load.tensor.name}_for_{name}"
    )
    assert isinstance(made, Tensor)
    return TensorLoad(made, _numbers(own), load.location)


def _clamped(load: TensorLoad, at: Sequence[Expr]) -> Expr:
    """The element at data, or the next one that there is where nothing asks for an element.

    A condition on data would make a formula of the read, which is no copy.
    """
    shape = load.tensor.shape
    if 0 in shape:
        return const(0, load.dtype)
    places = tuple(
        index if _is_inside(before, extent) else _nearest(index, extent)
        for before, index, extent in zip(load.indices, at, shape, strict=True)
    )
    return TensorLoad(load.tensor, places, load.location)


def _nearest(index: Expr, extent: Extent) -> Expr:
    """The place along an axis that is next to an index."""
    place = cast(INT64, index)
    return binary(BinOp.MAX, binary(BinOp.MIN, place, index_value(extent) - 1), 0)


def _is_inside(index: Expr, extent: Extent) -> bool:
    """Whether an index is an axis that runs through no more than there is."""
    if not isinstance(index, IterVar) or not isinstance(extent, int):
        return False
    return isinstance(index.extent, int) and index.extent <= extent and is_const(index.dom.min, 0)


def _values(axes: Sequence[IterVar], indices: Sequence[Expr]) -> dict[Var, Expr]:
    """The values of axes, which may begin elsewhere than at 0, at indices of a tensor."""
    return {
        axis: index if is_const(axis.dom.min, 0) else index + axis.low
        for axis, index in zip(axes, indices, strict=True)
    }


def _numbers(axes: Sequence[IterVar]) -> tuple[Expr, ...]:
    """The indices of a tensor at which it has what belongs to values of axes."""
    return tuple(axis if is_const(axis.dom.min, 0) else axis - axis.low for axis in axes)


def _guarded(body: Expr) -> set[int]:
    """What is computed under conditions alone: indices may be outside of a tensor elsewhere."""
    found: set[int] = set()
    for node in walk(body):
        parts: tuple[Any, ...] = ()
        if isinstance(node, Reduce) and not is_const(node.condition, True):
            parts = node.source
        elif isinstance(node, Call) and node.name == "if_then_else":
            parts = node.args[1:]
        elif isinstance(node, Binary) and node.op in (BinOp.AND, BinOp.OR):
            parts = (node.b,)
        found |= {id(inner) for part in parts for inner in walk(part)}
    return found


def _is_found_by_data(op: ComputeOp) -> bool:
    """Whether an element is one of another tensor, which one data say."""
    load = op.body[0]
    return isinstance(load, TensorLoad) and load.dtype != BOOL and any(map(_is_data, load.indices))


def _is_data(index: Expr) -> bool:
    return any(isinstance(node, TensorLoad) for node in walk(index))


def _with_all_compared(op: ComputeOp) -> ComputeOp:
    """The same as a sum of all elements that it may be, of which those at other places are 0."""
    (load,) = op.body
    assert isinstance(load, TensorLoad)
    every = {
        dim: reduce_axis((0, load.tensor.shape[dim]), name=f"at{dim}")
        for dim, index in enumerate(load.indices) if _is_data(index)
    }
    at = tuple(every.get(dim, index) for dim, index in enumerate(load.indices))
    here = logical_and(*(load.indices[dim] == k for dim, k in every.items()))
    value = TensorLoad(load.tensor, at, load.location)
    term = select(here, value, const(0, value.dtype))
    return replace(op, body=(sum_of(term, axis=list(every.values())),))


def _with_terms_apart(op: ComputeOp, apart: Callable[[Operation], Operation]) -> ComputeOp:
    """The same reduction of terms that are computed before it."""
    (body,) = op.body
    assert isinstance(body, Reduce)
    axes = (*op.axis, *body.axis)

    def term(*indices: Expr) -> Expr:
        values = _values(axes, indices)
        value: Expr = substitute(body.source[0], values)
        if is_const(body.condition, True):
            return value
        return if_then_else(substitute(body.condition, values), value, const(0, value.dtype))

    made = compute(tuple(axis.extent for axis in axes), term, name=f"{op.name}_terms")
    assert isinstance(made, Tensor)
    terms = apart(made.op).output(0)
    load = TensorLoad(terms, _numbers(axes), op.location)
    return replace(op, body=(replace(body, source=(load,)),))
