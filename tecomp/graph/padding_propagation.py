"""Propagate padding values through operations.

Padding is undefined by default. A rule may require a value that does not affect the result, such as
0 in a sum. The operand is then computed or copied with that padding value, at a cost of one store
per padding element, unless the padding holds the value anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.reduce import Reduce
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.constraints.check import has_roles, rules_for
from tecomp.constraints.operation_view import IndirectAccess, computation, storable
from tecomp.graph.layout_candidates import layout_along
from tecomp.graph.layout_combinations import Seat
from tecomp.graph.sizes import plain_layout
from tecomp.ir.interpreter.evaluate import evaluate
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import Const, Expr, Var
from tecomp.ir.nodes.stmt import Buffer, BufferStore, PrimFunc
from tecomp.ir.traversal.rewrite import contains, top_down
from tecomp.layout.core.layout import Layout
from tecomp.machine.descriptor import Target
from tecomp.machine.operand_constraints import OperandPadding


def requested_paddings(
    operations: Sequence[Operation], views: Mapping[Operation, TensorLoad], target: Target,
    *, is_strict: bool,
) -> dict[Tensor, set[float]]:
    """Collect the padding values that rules require of operands, including operands behind views.

    Args:
        operations: Operations of the program in topological order.
        views: Load of each operation that is a view.
        target: Target.
        is_strict: Whether the factor order of products is fixed where a rule distinguishes the
            factors.
    """
    found: dict[Tensor, set[float]] = {}
    for op in reversed(operations):
        if op in views:
            required = found.get(op.output(0), set())
            found.setdefault(views[op].tensor, set()).update(required)
        elif isinstance(op, ComputeOp) and isinstance(op.body[0], Reduce):
            for tensor, value in _asked_by(op, target, is_strict=is_strict):
                found.setdefault(tensor, set()).add(value)
    return found


def _asked_by(
    op: ComputeOp, target: Target, *, is_strict: bool
) -> Iterator[tuple[Tensor, float]]:
    layouts = {x: plain_layout(x) for x in (*op.input_tensors, op.output(0))}
    analyzed = computation(op, op.body[0], layouts)
    rules = rules_for(analyzed, target)
    orders = [analyzed]
    if not (is_strict and has_roles(rules)):
        orders.append(analyzed.with_inputs(analyzed.inputs[::-1]))
    for rule in rules:
        if not isinstance(rule, OperandPadding) or rule.value != "neutral":
            continue
        for use in (u for order in orders for name in rule.operands for u in order.named(name)):
            neutral = analyzed.neutral_in(use.layout)
            if neutral is not None:
                yield use.tensor, neutral


def with_paddings(
    layouts: Sequence[Layout], values: Sequence[float], target: Target
) -> tuple[Layout, ...]:
    """Return the layouts, and variants of the padded ones with the given padding values.

    If a rule requires padding to a multiple of bytes, variants with more padding are included.
    """
    found = dict.fromkeys(layouts)
    steps = any(isinstance(r, OperandPadding) and r.multiple_bytes for r in target.rules)
    for layout in layouts:
        wider = [layout]
        if values and steps and target.stick is not None and target.stick.padding == "stick":
            wider += [
                layout_along(target, layout.shape, layout.dtype, dim, pads_all=True)
                for dim in range(len(layout.shape))
            ]
        for variant in wider:
            for value in values if variant.padding_count else ():
                found.setdefault(with_pad_value(variant, value))
    return tuple(found)


def with_pad_value(layout: Layout, value: float) -> Layout:
    """Return the layout with a padding value, rounded to the nearest representable value."""
    base = Layout(
        layout.shape, layout.dtype, layout.index_map, layout.storage, layout.pad_value,
        layout.memory, layout.grid_axes,
    )
    return replace(base, pad_value=storable(value, layout))


def has_padding_value(op: Operation, out: Layout, storages: Mapping[Tensor, Seat]) -> bool:
    """Return whether evaluating an operation in the padding yields the required padding value.

    This holds for element-wise operations on operands with the layout of the result and with known
    padding values.
    """
    if not isinstance(op, ComputeOp) or isinstance(op.body[0], Reduce):
        return False
    addresses = _places(out, op.axis)

    def padding_of(node: Any) -> Expr | None:
        if not isinstance(node, TensorLoad):
            return None
        src = storages.get(node.tensor)
        if src is None or isinstance(src, IndirectAccess) or src.pad_value is None:
            return None
        if _places(src, node.indices) != addresses or src.physical_shape != out.physical_shape:
            return None
        return Const(src.pad_value, node.dtype)

    body = top_down(op.body[0], padding_of)
    if contains((TensorLoad, Var), body):
        return False
    # Evaluate in the result dtype, with the same arithmetic as compiled kernels on this host.
    buffer = Buffer("padding", (1,), out.dtype)
    value = np.zeros(1, out.dtype.numpy)
    store = BufferStore(buffer, body, (Const(0, INT64),))
    evaluate(PrimFunc("padding", (buffer,), store), [value])
    return bool(value[0] == out.pad_value)


def _places(layout: Layout, indices: Sequence[Expr]) -> tuple[str, ...]:
    return tuple(map(str, layout.index_map.at(indices)))
