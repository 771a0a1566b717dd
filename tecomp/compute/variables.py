"""The variables of a definition that are no axes of it: sizes, and numbers of the call."""

from __future__ import annotations

from tecomp.compute.extern import ExternOp
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.reduce import Reduce
from tecomp.compute.scan import ScanOp
from tecomp.ir.language.expr import Var
from tecomp.ir.language.stmt import Extent
from tecomp.ir.traversal.rewrite import free_variables, walk


def variables_of(op: Operation) -> list[Var]:
    """Those of its shapes, its reductions and its body, as often as they are there."""
    found = [var for shape in op.shapes for n in shape for var in variables_in(n)]
    if isinstance(op, ComputeOp):
        for axis in op.reduce_axis:
            found += [*variables_in(axis.extent), *variables_in(axis.dom.min)]
        bound = {*op.axis, *op.reduce_axis, *_bound_by_reducer(op)}
        start = op.start if isinstance(op, ScanOp) else ()
        nodes = walk(*op.body, *start)
        found += [node for node in nodes if type(node) is Var and node not in bound]
    if isinstance(op, ExternOp):
        found += free_variables(op.statement)
    return found


def variables_in(extent: Extent) -> list[Var]:
    """Those of an extent."""
    return [] if isinstance(extent, int) else [n for n in walk(extent) if isinstance(n, Var)]


def _bound_by_reducer(op: ComputeOp) -> set[Var]:
    first = op.body[0]
    return set(first.combiner.bound()) if isinstance(first, Reduce) else set()
