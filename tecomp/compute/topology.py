"""Which operation is computed before which."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.compute.operation import Operation
from tecomp.ir.language.graph import post_order as inner_first


def post_order(outputs: Sequence[Operation]) -> tuple[Operation, ...]:
    """`outputs` and all that they read, each once, producers before consumers."""
    return tuple(inner_first(*outputs, parts=_producers))


def _producers(op: Operation) -> list[Operation]:
    return [tensor.op for tensor in op.input_tensors]
