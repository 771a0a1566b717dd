"""The same operations on other inputs: a part of a program as a program of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.ir.language.expr import Expr
from tecomp.ir.traversal.rewrite import bottom_up


def rebuilt(
    operations: Sequence[Operation],
    inputs: Mapping[Tensor, Tensor],
    *,
    change: Callable[[Operation], Operation] = lambda op: op,
) -> dict[Tensor, Tensor]:
    """Operations with other tensors in the place of what they read.

    Args:
        operations: producers before consumers.
        inputs: for tensors that they read, what they read instead.
        change: what is done to each of them then; what it computes stays the same.

    Returns:
        What takes the place of each tensor: of the inputs, and of the outputs of the operations.

    >>> from tecomp import te
    >>> A, P = te.placeholder((4,), name="A"), te.placeholder((4,), name="P")
    >>> B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    >>> C = te.compute((4,), lambda i: B[i] * A[i], name="C")
    >>> print(rebuilt([C.op], {B: P})[C].op)
    C[i] = P[i] * A[i]
    """
    known = dict(inputs)
    for op in operations:
        changed = change(_rebuilt(op, known) if isinstance(op, ComputeOp) else op)
        if changed is op:
            continue
        known.update(zip(op.outputs, changed.outputs, strict=True))
    return known


def _rebuilt(op: ComputeOp, known: Mapping[Tensor, Tensor]) -> ComputeOp:
    if not any(x in known for x in op.input_tensors):
        return op
    return op.rewritten(lambda value: _moved(value, known))


def _moved(value: Expr, known: Mapping[Tensor, Tensor]) -> Expr:
    def rule(node: Any) -> Expr | None:
        if not isinstance(node, TensorLoad) or node.tensor not in known:
            return None
        return TensorLoad(known[node.tensor], node.indices, node.location)

    return bottom_up(value, rule)
