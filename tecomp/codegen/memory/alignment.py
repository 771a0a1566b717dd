"""Known alignment of memory accesses, derived from the allocation and the index.

Memory allocated by the function is aligned to 64 bytes on the stack and 128 bytes on the heap, and
so is every row of a table. Arguments are aligned to their element size only, which dispatch checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tecomp.codegen.llvm.ir_builder import FunctionBuilder
from tecomp.codegen.runtime.runtime_structs import ALIGNMENT
from tecomp.ir.nodes.expr import Binary, BinOp, Cast, Const, Expr, Select
from tecomp.ir.nodes.stmt import Buffer
from tecomp.ir.traversal.rewrite import fold

# a % b is a minus a multiple of b, so common divisors of a and b divide a % b.
_LEAST_OF = (BinOp.ADD, BinOp.SUB, BinOp.MOD, BinOp.MIN, BinOp.MAX)


def alignment(code: FunctionBuilder, buffer: Buffer, index: Expr) -> int:
    """Return the known alignment of the address of `buffer[..., index]` in bytes."""
    base = code.aligned.get(buffer.data)
    element = buffer.dtype.scalar.bytes
    if base is None:
        return element
    steps = buffer.dtype.bytes & -buffer.dtype.bytes
    return max(min(base, divisor(index) * steps), element)


def divisor(index: Expr) -> int:
    """Return a power of two, `ALIGNMENT` at most, that always divides an integer expression.

    >>> from tecomp.ir.nodes.expr import Var
    >>> i, j = Var("i"), Var("j")
    >>> divisor(i * 48 + j * 8), divisor(i + 4), divisor((i * 64) % 24)
    (8, 1, 8)
    """
    return fold(index, _divisor, _parts)


def _parts(node: Any) -> Sequence[Any]:
    """Return the non-constant operands that determine the divisor of a node."""
    kind = type(node)
    if kind is Binary and node.op is BinOp.MUL:
        # A product of two non-constants has no known divisor.
        return [x for x, y in ((node.a, node.b), (node.b, node.a)) if _is_number(y)][:1]
    if kind is Select or (kind is Binary and node.op in _LEAST_OF):
        return node.a, node.b
    return (node.value,) if kind is Cast and node.value.dtype.is_integer else ()


def _divisor(node: Any, parts: Sequence[int]) -> int:
    if _is_number(node):
        return _power_of_two(node.value)
    if not parts:
        return 1
    if isinstance(node, Binary) and node.op is BinOp.MUL:
        number: Any = node.b if _is_number(node.b) else node.a
        return min(parts[0] * _power_of_two(number.value), ALIGNMENT)
    return min(parts)


def _is_number(node: Any) -> bool:
    return type(node) is Const and node.dtype.is_integer


def _power_of_two(value: Any) -> int:
    number = int(value)
    return min(number & -number, ALIGNMENT) if number else ALIGNMENT
