"""The alignment of an access that follows from its memory and from its index.

Memory of the function's own starts at a multiple of 64 bytes on the stack, of 128 on the heap, and
so does every row of a table. Arguments are aligned to their elements, which a call checks, and no
further.
"""

from __future__ import annotations

from typing import Any

from tecomp.codegen.llvm.emit import Code
from tecomp.ir.language.expr import Binary, BinOp, Cast, Const, Expr, Select
from tecomp.ir.language.stmt import Buffer

_MOST = 128
# A remainder is the dividend less a multiple of the divisor, so what divides both divides it.
_LEAST_OF = (BinOp.ADD, BinOp.SUB, BinOp.MOD, BinOp.MIN, BinOp.MAX)


def alignment(code: Code, buffer: Buffer, index: Expr) -> int:
    """Bytes that the address of `buffer[..., index]` is a multiple of."""
    base = code.aligned.get(buffer.data)
    element = buffer.dtype.scalar.bytes
    if base is None:
        return element
    steps = buffer.dtype.bytes & -buffer.dtype.bytes
    return max(min(base, divisor(index) * steps), element)


def divisor(index: Expr) -> int:
    """A power of two, 128 at most, that an integer is always a multiple of.

    >>> from tecomp.ir.language.expr import Var
    >>> i, j = Var("i"), Var("j")
    >>> divisor(i * 48 + j * 8), divisor(i + 4), divisor((i * 64) % 24)
    (8, 1, 8)
    """
    least = _MOST
    todo: list[tuple[Any, int]] = [(index, 1)]
    while todo and least > 1:
        node, factor = todo.pop()
        kind = type(node)
        if kind is Const and node.dtype.is_integer:
            least = min(least, factor * _power_of_two(node.value))
        elif kind is Binary and node.op is BinOp.MUL:
            a, b = (node.b, node.a) if type(node.a) is Const else (node.a, node.b)
            # The product of two that are no numbers counts as anything.
            known = type(b) is Const and b.dtype.is_integer
            todo.append((a, factor * _power_of_two(b.value)) if known else (None, factor))
        elif kind is Select or (kind is Binary and node.op in _LEAST_OF):
            todo += ((node.a, factor), (node.b, factor))
        elif kind is Cast and node.value.dtype.is_integer:
            todo.append((node.value, factor))
        else:
            least = min(least, factor)
    return least


def _power_of_two(value: Any) -> int:
    number = int(value)
    return number & -number if number else _MOST
