"""Invert XOR layouts by linear algebra over GF(2).

With shifts, masks, exclusive ors, and `//`, `%`, `*` by powers of two, every bit of a physical
index is an exclusive or of bits of the index. Elimination solves such a system of any shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import Binary, BinOp, Cast, Const, Expr, Var, binary, is_const
from tecomp.ir.traversal.rewrite import fold

# One bit mask of unknowns for each bit of a value, least significant first; the bit of the value is
# the exclusive or of these unknowns. The bit `_ONE` of the mask represents the constant 1.
Bits = list[int]
_ONE = 1


def invert(
    exprs: Sequence[Expr], axes: Sequence[Var], extents: Sequence[int], places: Sequence[Expr]
) -> tuple[Expr, ...] | None:
    """Solve `exprs[k] == places[k]` for the indices; None if the system is not solvable over GF(2).

    A result is valid for every index of the box whose extents are rounded up to powers of two.
    """
    widths = [(n - 1).bit_length() for n in extents]
    unknowns: dict[Var, Bits] = {}
    first = 1
    for axis, width in zip(axes, widths, strict=True):
        unknowns[axis] = [1 << (first + k) for k in range(width)]
        first += width
    rows: list[tuple[int, int]] = []
    sources: list[tuple[int, int]] = []
    for number, expr in enumerate(exprs):
        bits = _bits(expr, unknowns)
        if bits is None:
            return None
        for position, unknown in enumerate(bits):
            # A row equates an exclusive or of unknowns with an exclusive or of sources.
            rows.append((unknown & ~_ONE, (1 << (len(sources) + 1)) | (unknown & _ONE)))
            sources.append((number, position))
    solved = _eliminate(rows)
    indices = []
    for axis in axes:
        found = [solved.get(unknown) for unknown in unknowns[axis]]
        if any(row is None for row in found):
            return None
        indices.append(_xor_of_rows([row for row in found if row is not None], sources, places))
    return tuple(indices)


def greatest(expr: Expr, axes: Sequence[Var], extents: Sequence[int]) -> int | None:
    """Return the greatest value of `expr`, whose bits are exclusive ors of bits of the indices.

    Returns None if `expr` is not of this form, or if an extent is not a power of two, because bits
    then depend on each other.
    """
    if any(n & (n - 1) for n in extents):
        return None
    unknowns: dict[Var, Bits] = {}
    first = 1
    for axis, n in zip(axes, extents, strict=True):
        width = n.bit_length() - 1
        unknowns[axis] = [1 << (first + k) for k in range(width)]
        first += width
    rows = _bits(expr, unknowns)
    if rows is None:
        return None
    total = 0
    fixed: list[tuple[int, int]] = []  # rows that were set to 1, each with its pivot unknown
    for k in reversed(range(len(rows))):
        row = rows[k]
        for other, pivot in fixed:
            if row & pivot:
                row ^= other ^ _ONE
        if row & ~_ONE:
            pivot = (row & ~_ONE) & -(row & ~_ONE)
            fixed = [(o ^ row ^ _ONE, p) if o & pivot else (o, p) for o, p in fixed]
            fixed.append((row, pivot))
            total |= 1 << k
        elif row & _ONE:
            total |= 1 << k
    return total


def _eliminate(rows: list[tuple[int, int]]) -> dict[int, int]:
    """Return the rows with a single unknown after elimination, by that unknown."""
    pivots: list[tuple[int, int, int]] = []
    for left, right in rows:
        for pivot, other_left, other_right in pivots:
            if left & pivot:
                left, right = left ^ other_left, right ^ other_right
        if not left:
            continue
        pivot = left & -left
        pivots = [
            (p, a ^ left, b ^ right) if a & pivot else (p, a, b) for p, a, b in pivots
        ]
        pivots.append((pivot, left, right))
    return {pivot: right for pivot, left, right in pivots if left == pivot}


def _bits(root: Expr, unknowns: Mapping[Var, Bits]) -> Bits | None:
    return fold(root, lambda node, operands: _node_bits(node, operands, unknowns))


def _node_bits(
    node: Expr, operands: list[Bits | None], unknowns: Mapping[Var, Bits]
) -> Bits | None:
    match node:
        case Var() if node in unknowns:
            return unknowns[node]
        case Const(int() as value) if value >= 0:
            return [value >> k & 1 for k in range(value.bit_length())]
        case Cast(dtype) if dtype.is_integer:
            return operands[0]
        case Binary(op):
            a, b = operands
            return None if a is None or b is None else _binary_bits(op, a, b)
    return None


def _binary_bits(op: BinOp, a: Bits, b: Bits) -> Bits | None:
    if op is BinOp.BITXOR:
        return _xor(a, b)
    if op in (BinOp.ADD, BinOp.BITOR):
        # Without a carry, a sum is an exclusive or.
        return _xor(a, b) if not any(x and y for x, y in zip(a, b, strict=False)) else None
    if op in (BinOp.BITAND, BinOp.MUL) and _number(a) is not None:
        a, b = b, a
    if (number := _number(b)) is None:
        return None
    if op is BinOp.BITAND:
        return [bit if number >> k & 1 else 0 for k, bit in enumerate(a)]
    if op is BinOp.MUL and number == 0:
        return []
    if op in (BinOp.SHL, BinOp.SHR):
        number = 1 << number if number < 63 else 0
    is_power = number > 0 and number & (number - 1) == 0
    return _shift(op, a, number.bit_length() - 1) if is_power else None


def _shift(op: BinOp, a: Bits, distance: int) -> Bits | None:
    match op:
        case BinOp.MUL | BinOp.SHL:
            return [0] * distance + a
        case BinOp.FLOORDIV | BinOp.SHR:
            return a[distance:]
        case BinOp.MOD:
            return a[:distance]
    return None


def _xor(a: Bits, b: Bits) -> Bits:
    width = max(len(a), len(b))
    return [x ^ y for x, y in zip(a + [0] * (width - len(a)), b + [0] * (width - len(b)),
                                  strict=True)]


def _number(bits: Bits) -> int | None:
    if any(bit & ~_ONE for bit in bits):
        return None
    return sum(bit << k for k, bit in enumerate(bits))


def _xor_of_rows(rows: list[int], sources: list[tuple[int, int]], places: Sequence[Expr]) -> Expr:
    """Return the number whose bit k is the exclusive or of the sources in `rows[k]`."""
    # One shift and one mask moves all bits that have the same distance and the same source.
    masks: dict[tuple[int, int], int] = {}
    flipped = 0
    for k, row in enumerate(rows):
        flipped |= (row & _ONE) << k
        for n, (number, position) in enumerate(sources):
            if row >> (n + 1) & 1:
                key = number, position - k
                masks[key] = masks.get(key, 0) | 1 << k
    widths: dict[int, int] = {}
    for number, position in sources:
        widths[number] = max(widths.get(number, 0), position + 1)
    total: Expr = Const(flipped, INT64)
    for (number, distance), mask in sorted(masks.items()):
        part = _masked_shift(places[number], distance, mask, widths[number])
        no_start = is_const(total, 0)
        total = part if no_start else binary(BinOp.BITXOR, total, part)
    return total


def _masked_shift(place: Expr, distance: int, mask: int, width: int) -> Expr:
    """Return `place >> distance`, or `<<`, restricted to the bits in `mask`."""
    if distance > 0:
        place = binary(BinOp.SHR, place, Const(distance, INT64))
    elif distance < 0:
        place = binary(BinOp.SHL, place, Const(-distance, INT64))
    all_bits = (1 << width) - 1
    all_bits = all_bits >> distance if distance > 0 else all_bits << -distance
    if mask == all_bits:
        return place
    return binary(BinOp.BITAND, place, Const(mask, INT64))
