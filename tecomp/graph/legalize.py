"""Legalize operations that the target cannot execute as a single operation.

An element-wise operation whose operands are misaligned in the lanes, such as `A[i, j - 1]` with
`A[i - 1, j]`, reads realigned copies. A reduction whose terms the target cannot compute within the
reduction, such as a matrix-vector product in some layouts, reduces terms computed by a separate
element-wise operation.
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
from tecomp.constraints.check import satisfies_constraints
from tecomp.constraints.operation_view import (
    IndirectAccess,
    computation,
    is_pure_movement,
    loads_of,
)
from tecomp.errors import LayoutError
from tecomp.graph.canonicalize import extract_casts
from tecomp.graph.dag import ProgramGraph, graph_with
from tecomp.graph.layout_candidates import is_one_to_a_row
from tecomp.graph.layout_problem import LayoutProblem, LayoutVariable, copies_of
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
from tecomp.ir.traversal.rewrite import contains, nodes_of, substitute, top_down, walk
from tecomp.poly.sets.isl_context import isl_work
from tecomp.poly.sets.to_isl import NotAffine

Reached = Mapping[Tensor, frozenset[int]]
"""Candidates that each value can have on the target, computed there or copied."""


def legalize(problem: LayoutProblem) -> ProgramGraph | None:
    """Split infeasible operations into feasible ones; return None if no operation can be split."""
    reachable, stuck = _reachable_candidates(problem)
    split_casts = extract_casts(problem.machine.target)
    reads = {op: _misaligned_reads(op, problem, reachable) for op in stuck}
    # Comparing all elements reduces many more terms than there are results: the last resort.
    found = {op for op in stuck if problem.machine.is_lone and _is_found_by_data(op)}

    def changed(before: Operation, op: Operation) -> Operation:
        if before not in reads or not isinstance(op, ComputeOp):
            return op
        if reads[before]:
            return _with_reads_apart(op, reads[before])
        if before in found:
            return _with_all_compared(op)
        return _with_terms_apart(op, split_casts) if _has_terms(op) else op

    if not any(reads[op] or op in found or _has_terms(op) for op in stuck):
        return None
    return graph_with(problem.graph, changed)


def _reachable_candidates(problem: LayoutProblem) -> tuple[Reached, list[ComputeOp]]:
    """Return the reachable candidates of each value, and the operations without any combination."""
    graph = problem.graph
    reachable: dict[Tensor, frozenset[int]] = {}
    stuck = []
    for x in (*graph.inputs, *graph.constants):
        reachable[x] = copies_of(problem, x, problem.values[x].computable_candidates)
    for op, combos in problem.combinations.items():
        fit = [
            combo for combo in combos
            if all(n in reachable[slot.tensor]
                   for slot, n in zip(problem.slots[op], combo.inputs, strict=True))
        ]  # fmt: skip
        for k, x in enumerate(op.outputs):
            outs = {combo.outs[k] for combo in fit} & set(problem.values[x].computable_candidates)
            # Continue behind an infeasible operation as if it produced dense layouts.
            reachable[x] = copies_of(problem, x, outs or _full(problem.values[x]))
        if not fit and isinstance(op, ComputeOp) and op not in problem.opaque:
            stuck.append(op)
    return reachable, stuck


def _full(value: LayoutVariable) -> list[int]:
    """Return the candidates of a value with more than one element per stick."""
    return [
        k for k in value.computable_candidates
        if isinstance(s := value.candidates[k], IndirectAccess) or not is_one_to_a_row(s)
    ]


def _has_terms(op: ComputeOp) -> bool:
    """Return whether an operation is a reduction of computed terms."""
    body = op.body[0]
    return isinstance(body, Reduce) and not isinstance(body.source[0], TensorLoad)


def _misaligned_reads(op: ComputeOp, problem: LayoutProblem, reachable: Reached) -> frozenset[int]:
    """Return the numbers of misaligned reads, for the result candidate with the fewest of them.

    Reads at the indices of the loops are excluded, since a copy would not change them.
    """
    loads = loads_of(op.body[0])
    if is_pure_movement(op.body[0]):
        return frozenset()
    with isl_work("layouts", LayoutError):
        try:
            found = [
                _misplaced_in(op, k, problem, reachable)
                for k in problem.values[op.output(0)].computable_candidates
            ]
        except NotAffine:
            return frozenset()
    fewest = min(found, key=len, default=[])
    return frozenset(n for n in fewest if not _is_as_computed(loads[n], op))


def _is_as_computed(load: TensorLoad, op: ComputeOp) -> bool:
    """Return whether the indices of a read are the loops of the operation, in order."""
    axes = (*op.axis, *op.reduce_axis)
    return len(axes) == len(load.indices) and all(map(is_, load.indices, axes))


def _misplaced_in(
    op: ComputeOp, out: int, problem: LayoutProblem, reachable: Reached
) -> list[int]:
    """Return the misaligned reads for one result candidate and the best operand candidates."""
    values, target = problem.values, problem.machine.target
    base = computation(op, op.body[0], {})
    base = replace(base, out=base.out.at(values[op.output(0)].candidates[out]))
    found: list[int] = []
    for slot in problem.slots[op]:
        uses = {
            n: base.inputs[n] for n, load in enumerate(loads_of(op.body[0]))
            if slot.has(load.tensor, load.indices)
        }
        misplaced = [
            [n for n, use in uses.items()
             if not satisfies_constraints(base.with_inputs((use.at(s),)), target, is_alone=True)]
            for s in (values[slot.tensor].candidates[k] for k in sorted(reachable[slot.tensor]))
        ]  # fmt: skip
        fewest = min(map(len, misplaced), default=0)
        found += next((reads for reads in misplaced if len(reads) == fewest), uses)
    return found


def _with_reads_apart(op: ComputeOp, numbers: frozenset[int]) -> ComputeOp:
    """Replace the given reads by reads of copies that have one element per iteration."""
    loads = loads_of(op.body[0])
    guarded = _guarded_node_ids(op.body[0])
    axes = (*op.axis, *op.reduce_axis)
    copies = {
        id(load): _copy(load, axes, op.name, is_guarded=id(load) in guarded)
        for n, load in enumerate(loads) if n in numbers
    }
    body = top_down(op.body[0], lambda node: copies.get(id(node)))
    return replace(op, body=(body,))


def _copy(
    load: TensorLoad, axes: Sequence[IterVar], name: str, *, is_guarded: bool
) -> TensorLoad:
    """Return a load of a new copy with one axis per loop that the read depends on.

    If the read is a permutation of axes already, the copy repeats elements along all other loops.
    """
    used = {node for index in load.indices for node in nodes_of(Var, index)}
    loops = tuple(axis for axis in axes if axis in used)
    if len(loops) == len(load.indices) and all(isinstance(index, Var) for index in load.indices):
        loops = tuple(axes)

    def element(*indices: Expr) -> Expr:
        values = _values(loops, indices)
        idx = tuple(substitute(index, values) for index in load.indices)
        if is_guarded and any(map(_is_data, idx)):
            return _clamp(load, idx)
        value = TensorLoad(load.tensor, idx, load.location)
        inside = [
            test for before, index, extent in zip(load.indices, idx, load.tensor.shape, strict=True)
            if not _is_inside(before, extent) for test in (index >= 0, index < extent)
        ]
        if not is_guarded or not inside:
            return value
        return if_then_else(logical_and(*inside), value, const(0, value.dtype))

    copy = compute(
        tuple(axis.extent for axis in loops), element, name=f"{load.tensor.name}_for_{name}"
    )
    assert isinstance(copy, Tensor)
    return TensorLoad(copy, _numbers(loops), load.location)


def _clamp(load: TensorLoad, indices: Sequence[Expr]) -> Expr:
    """Return the element at data-dependent indices, clamped to the bounds of the tensor.

    A guard on data would turn the copy into an element-wise operation.
    """
    shape = load.tensor.shape
    if 0 in shape:
        return const(0, load.dtype)
    clamped = tuple(
        index if _is_inside(before, extent) else _nearest(index, extent)
        for before, index, extent in zip(load.indices, indices, shape, strict=True)
    )
    return TensorLoad(load.tensor, clamped, load.location)


def _nearest(index: Expr, extent: Extent) -> Expr:
    """Return an index clamped to the bounds of an axis."""
    position = cast(INT64, index)
    return binary(BinOp.MAX, binary(BinOp.MIN, position, index_value(extent) - 1), 0)


def _is_inside(index: Expr, extent: Extent) -> bool:
    """Return whether an index is a loop that starts at 0 and stays within the extent."""
    if not isinstance(index, IterVar) or not isinstance(extent, int):
        return False
    return isinstance(index.extent, int) and index.extent <= extent and is_const(index.dom.min, 0)


def _values(axes: Sequence[IterVar], indices: Sequence[Expr]) -> dict[Var, Expr]:
    """Return the axis values at tensor indices; axes may start at a nonzero bound."""
    return {
        axis: index if is_const(axis.dom.min, 0) else index + axis.low
        for axis, index in zip(axes, indices, strict=True)
    }


def _numbers(axes: Sequence[IterVar]) -> tuple[Expr, ...]:
    """Return the tensor indices that correspond to axis values."""
    return tuple(axis if is_const(axis.dom.min, 0) else axis - axis.low for axis in axes)


def _guarded_node_ids(body: Expr) -> set[int]:
    """Return the ids of guarded nodes, whose indices may be out of bounds if the guard is False."""
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
    """Return whether an operation is a gather: a load at data-dependent indices."""
    load = op.body[0]
    return isinstance(load, TensorLoad) and load.dtype != BOOL and any(map(_is_data, load.indices))


def _is_data(index: Expr) -> bool:
    return contains(TensorLoad, index)


def _with_all_compared(op: ComputeOp) -> ComputeOp:
    """Rewrite a gather as a sum over all candidate elements, masked by index comparisons."""
    (load,) = op.body
    assert isinstance(load, TensorLoad)
    data_axes = {
        dim: reduce_axis((0, load.tensor.shape[dim]), name=f"at{dim}")
        for dim, index in enumerate(load.indices) if _is_data(index)
    }
    indices = tuple(data_axes.get(dim, index) for dim, index in enumerate(load.indices))
    matches = logical_and(*(load.indices[dim] == k for dim, k in data_axes.items()))
    value = TensorLoad(load.tensor, indices, load.location)
    term = select(matches, value, const(0, value.dtype))
    return replace(op, body=(sum_of(term, axis=list(data_axes.values())),))


def _with_terms_apart(op: ComputeOp, split_casts: Callable[[Operation], Operation]) -> ComputeOp:
    """Split the terms of a reduction off into a separate element-wise operation."""
    (body,) = op.body
    assert isinstance(body, Reduce)
    axes = (*op.axis, *body.axis)

    def term(*indices: Expr) -> Expr:
        values = _values(axes, indices)
        value: Expr = substitute(body.source[0], values)
        if is_const(body.condition, True):
            return value
        return if_then_else(substitute(body.condition, values), value, const(0, value.dtype))

    term_tensor = compute(tuple(axis.extent for axis in axes), term, name=f"{op.name}_terms")
    assert isinstance(term_tensor, Tensor)
    terms = split_casts(term_tensor.op).output(0)
    load = TensorLoad(terms, _numbers(axes), op.location)
    return replace(op, body=(replace(body, source=(load,)),))
