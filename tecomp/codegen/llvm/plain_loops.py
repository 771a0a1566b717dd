"""Whether a function has loops that LLVM can make vectors of: those that the schedule left plain.

A schedule says which loops become vectors; what it says nothing about runs element by element, and
LLVM's vectorizer finds what can be done at once there. It does not reorder sums of floats, so that
results stay the same.

Source:
    docs/decisions/0014, which has the measurements.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tecomp.codegen.llvm.loop_work import innermost, mentions
from tecomp.ir.algebra.terms import Terms
from tecomp.ir.language.expr import Binary, BinOp, BufferLoad, Call, Const, Expr, Var
from tecomp.ir.language.stmt import BufferStore, For, Let, Stmt
from tecomp.ir.traversal.rewrite import children, walk

_WORTH = 8
"""Trips from which on a loop is worth it: a vector or two."""
_MOST = 4096
"""Nodes of its body up to which it is: LLVM's vectorizer takes the square of their number."""
_ANY_ORDER = (BinOp.ADD, BinOp.MUL, BinOp.MIN, BinOp.MAX)


def has_plain_loops(root: Stmt, *, fast_math: bool = False, is_outlined: bool = False) -> bool:
    """Whether an innermost loop of `root` stores elements in a row, or folds them in any order.

    Args:
        root: what becomes a function.
        fast_math: whether sums of floats may be reordered.
        is_outlined: whether it includes parallel loops, which are functions of their own otherwise.
    """
    fits: dict[int, bool] = {}
    sizes: Counter[int] = Counter()
    for loop, statement in innermost(root, is_outlined):
        if loop is None or not isinstance(statement, BufferStore | Let):
            continue
        nodes = list(walk(*(part for part in children(statement) if isinstance(part, Expr))))
        sizes[id(loop)] += len(nodes)
        known = fits.get(id(loop))
        if known is False or any(map(_is_one_at_a_time, nodes)):
            fits[id(loop)] = False
        elif isinstance(statement, BufferStore):
            fits[id(loop)] = _is_long(loop) and _is_scalar(statement) and (
                _goes_on(statement, loop.loop_var)
                or _folds(statement, loop.loop_var, fast_math=fast_math)
            )
    return any(is_plain and sizes[loop] <= _MOST for loop, is_plain in fits.items())


def _is_long(loop: For) -> bool:
    return not isinstance(loop.extent, Const) or int(loop.extent.value) >= _WORTH


def _is_scalar(store: BufferStore) -> bool:
    return store.value.dtype.lanes == 1 and store.indices[-1].dtype.lanes == 1


def _goes_on(store: BufferStore, var: Var) -> bool:
    """Whether each iteration stores next to the one before."""
    *outer, last = store.indices
    if any(mentions(index, var) for index in outer):
        return False
    terms = Terms()
    moving = [(x, n) for x, n in terms.listed(terms.sum_of(last)) if mentions(x, var)]
    return len(moving) == 1 and moving[0][0] is var and moving[0][1] == 1


def _folds(store: BufferStore, var: Var, *, fast_math: bool) -> bool:
    """Whether each iteration adds to the same element, and the order of them does not matter."""
    value = store.value
    if not isinstance(value, Binary) or value.op not in _ANY_ORDER:
        return False
    if value.dtype.is_float and not fast_math and value.op in (BinOp.ADD, BinOp.MUL):
        return False
    return not any(mentions(index, var) for index in store.indices) and any(
        isinstance(part, BufferLoad) and part.buffer.data is store.buffer.data
        for part in (value.a, value.b)
    )


def _is_one_at_a_time(node: Any) -> bool:
    """What processors have no vectors for, or may end the call."""
    if isinstance(node, Binary):
        return (
            node.op in (BinOp.FLOORDIV, BinOp.MOD) and node.dtype.is_integer
            and not isinstance(node.b, Const)
        )
    return isinstance(node, Call) and node.name == "check_index"
