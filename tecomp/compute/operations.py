"""How many operations an expression has, and how many are too many."""

from __future__ import annotations

from typing import Any

from tecomp.ir.language.expr import Const, Expr, Var
from tecomp.ir.traversal.rewrite import walk

# A minute of compiling, nearly all of it LLVM's.
MOST_OPERATIONS = 1 << 16


def operations(*roots: Expr) -> int:
    """How many operations some expressions have, each shared part counted once.

    >>> x = Var("x")
    >>> operations(x + 1), operations((x + 1) * (x + 1))
    (1, 3)
    >>> y = x + 1
    >>> operations(y * y)
    2
    """
    return sum(map(_is_operation, walk(*roots)))


def _is_operation(node: Any) -> bool:
    # What is read has a name; its index is computed.
    return not isinstance(node, Const | Var) and not hasattr(node, "tensor")
