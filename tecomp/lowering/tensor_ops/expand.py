"""Operations of the machine become the statements that do them."""

from __future__ import annotations

from typing import Any

from tecomp.ir.language.stmt import PrimFunc, Stmt
from tecomp.ir.language.tensor_op import TensorOp
from tecomp.ir.traversal.rewrite import bottom_up, map_body, walk


def expand_tensor_ops(func: PrimFunc) -> PrimFunc:
    """`func` with the body of each `TensorOp` in its place.

    What counts operations looks at the function before; what makes code of it sees none of them.
    """
    if not any(isinstance(node, TensorOp) for node in walk(func.body)):
        return func
    return map_body(func, lambda body: bottom_up(body, _body))


def _body(node: Any) -> Stmt | None:
    return node.body if isinstance(node, TensorOp) else None
