"""Conversions in formulas as operations of their own, where sticks have more lanes of some types.

The lanes of a formula are those of its result. What is read in another type has its elements in
other lanes, unless a conversion brings them there first: that is something that machines have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tecomp.compute.define import compute
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.reduce import Reduce
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.graph.candidates import lanes_of
from tecomp.ir.language.dtype import BOOL, DType
from tecomp.ir.language.expr import Cast, Expr, const
from tecomp.ir.traversal.rewrite import substitute, top_down, walk
from tecomp.machine.descriptor import Target


def with_conversions_apart(target: Target) -> Callable[[Operation], Operation]:
    """What gives for a formula the same one, of values that were converted before it.

    A value that several formulas convert is converted once. Conditions are compared with 0.

    >>> from tecomp import te
    >>> A, B = te.placeholder((8,), "float16", name="A"), te.placeholder((8,), name="B")
    >>> C = te.compute((8,), lambda i: A[i] * B[i], name="C")
    >>> print(with_conversions_apart(Target.load("stick128"))(C.op))
    C[i] = A_float32[i] * B[i]
    """
    made: dict[tuple[Tensor, DType], Tensor] = {}

    def converted(load: TensorLoad, dtype: DType) -> TensorLoad:
        key = load.tensor, dtype
        if key not in made:
            made[key] = _conversion(*key)
        return TensorLoad(made[key], load.indices, load.location)

    def change(op: Operation) -> Operation:
        if not _is_formula(op):
            return op
        assert isinstance(op, ComputeOp)
        lanes = {x: lanes_of(target, x.dtype) for x in (*op.input_tensors, op.output(0))}
        own = lanes[op.output(0)]

        def rule(node: Any) -> Expr | None:
            is_cast = isinstance(node, Cast)
            load: Any = node.value if is_cast else node
            if not isinstance(load, TensorLoad):
                return None
            stays: Expr = node
            if lanes[load.tensor] == own or not _is_known(load):
                return stays
            if is_cast:
                return converted(load, node.dtype) if lanes_of(target, node.dtype) == own else stays
            dtype = op.output(0).dtype
            return converted(load, dtype) != const(0, dtype) if load.dtype == BOOL else stays

        result = op.body[0]
        if isinstance(result, Cast) and lanes_of(target, result.value.dtype) != own:
            wide = any(lanes[x] != own for x in op.input_tensors)
            return _converted_at_last(op, result, change) if wide else op
        body = top_down(result, rule)
        return op if body is op.body[0] else replace(op, body=(body,))

    return change if target.stick is not None else lambda op: op


def _converted_at_last(
    op: ComputeOp, result: Cast, change: Callable[[Operation], Operation]
) -> Operation:
    """What a formula makes as a value of its own, and then in the type that it is to have."""

    def element(*axes: Expr) -> Expr:
        return substitute(result.value, dict(zip(op.axis, axes, strict=True)))

    made = compute(op.shape, element, name=f"{op.name}_{result.value.dtype}")
    assert isinstance(made, Tensor)
    return replace(op, body=(Cast(result.dtype, change(made.op).output(0)[op.axis]),))


def _is_formula(op: Operation) -> bool:
    """Whether it computes an element from elements, and not by a conversion alone."""
    if not isinstance(op, ComputeOp) or isinstance(op, ScanOp) or len(op.body) != 1:
        return False
    value: Any = op.body[0]
    while isinstance(value, Cast):
        value = value.value
    return not isinstance(value, TensorLoad | Reduce)


def _is_known(load: TensorLoad) -> bool:
    """Whether no data says which element it is: of a table that is looked up little is read."""
    return not any(isinstance(node, TensorLoad) for index in load.indices for node in walk(index))


def _conversion(tensor: Tensor, dtype: DType) -> Tensor:
    """All of it: so no element is read that the tensor does not have, whatever conditions say."""
    made = compute(
        tensor.shape, lambda *axes: Cast(dtype, tensor[axes]), name=f"{tensor.name}_{dtype}"
    )
    assert isinstance(made, Tensor)
    return made
