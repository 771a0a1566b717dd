"""Decide layout properties by enumeration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tecomp.errors import LayoutError
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Call,
    Cast,
    CmpOp,
    Compare,
    Const,
    Expr,
    Not,
    Select,
    Var,
)
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.traversal.rewrite import fold, free_variables
from tecomp.progress import log_duration

LIMIT = 2**22
"""Maximum number of elements that are enumerated."""

FEW = 4096
"""Number of elements up to which enumeration is faster than integer sets."""

Array: TypeAlias = "npt.NDArray[Any]"
Index: TypeAlias = "tuple[int, ...]"


def values(root: Expr, bindings: Mapping[Var, Array]) -> Array:
    """Evaluate `root` at many points at once, as int64 (bool for a condition).

    Args:
        root: Index arithmetic over the variables in `bindings`.
        bindings: Value of each variable; the arrays must be broadcast-compatible.

    Raises:
        KeyError: If `root` contains another variable, or an operation that no index may have.
    """
    return fold(root, lambda node, operands: _value(node, operands, bindings))


def _value(node: Expr, operands: list[Array], bindings: Mapping[Var, Array]) -> Array:
    match node:
        case Var():
            return bindings[node]
        case Const(value):
            return np.asarray(value if node.dtype.is_bool else int(value))
        case Cast(dtype):
            return operands[0].astype(bool if dtype.is_bool else np.int64)
        case Binary(op):
            return _BINARY[op](*operands)
        case Compare(op):
            return _COMPARE[op](*operands)
        case Not():
            return np.logical_not(operands[0])
        case Select() | Call("if_then_else"):
            return np.where(*operands)
        case Call("abs"):
            return np.abs(operands[0])
    raise KeyError(node)


def _divide(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """Wrap an integer division so that division by 0 gives 0."""
    return lambda a, b: np.where(b == 0, 0, function(a, np.where(b == 0, 1, b)))


def _shift_left(a: Array, b: Array) -> Array:
    return np.where((b >= 0) & (b < 64), np.left_shift(a, b & 63), 0)


def _shift_right(a: Array, b: Array) -> Array:
    return np.where((b >= 0) & (b < 64), np.right_shift(a, b & 63), np.where(a < 0, -1, 0))


_BINARY: dict[BinOp, Callable[[Array, Array], Array]] = {
    BinOp.ADD: np.add,
    BinOp.SUB: np.subtract,
    BinOp.MUL: np.multiply,
    BinOp.FLOORDIV: _divide(np.floor_divide),
    BinOp.MOD: _divide(np.mod),
    BinOp.MIN: np.minimum,
    BinOp.MAX: np.maximum,
    BinOp.AND: np.logical_and,
    BinOp.OR: np.logical_or,
    BinOp.BITAND: np.bitwise_and,
    BinOp.BITOR: np.bitwise_or,
    BinOp.BITXOR: np.bitwise_xor,
    BinOp.SHL: _shift_left,
    BinOp.SHR: _shift_right,
}

_COMPARE: dict[CmpOp, Callable[[Array, Array], Array]] = {
    CmpOp.EQ: np.equal,
    CmpOp.NE: np.not_equal,
    CmpOp.LT: np.less,
    CmpOp.LE: np.less_equal,
    CmpOp.GT: np.greater,
    CmpOp.GE: np.greater_equal,
}


def is_small(exprs: Sequence[Expr], axes: Sequence[Var], shape: Sequence[Extent]) -> bool:
    """Return whether enumeration is possible and faster than integer sets."""
    numbers = [n for n in shape if isinstance(n, int)]
    if len(numbers) < len(shape) or prod(numbers) > FEW:
        return False
    axis_set = set(axes)
    return all(var in axis_set for expr in exprs for var in free_variables(expr))


def is_enumerable(
    exprs: Sequence[Expr], axes: Sequence[Var], shape: Sequence[Extent]
) -> tuple[int, ...]:
    """Return `shape` if its elements can be enumerated.

    Raises:
        LayoutError: If an expression depends on another variable than `axes`, an extent is not a
            constant, or there are more than `LIMIT` elements.
    """
    subject = "index map: bit operations are decided by enumerating all elements"
    numbers = []
    axis_set = set(axes)
    for expr in exprs:
        others = [var for var in free_variables(expr) if var not in axis_set]
        if others:
            raise LayoutError(
                "{subject}, but `{expr}` depends on the variable {other}; use a constant instead, "
                "or only // and %",
                kind="limit-exceeded", subject=subject, expr=expr, other=others[0],
            )
    for axis, extent in zip(axes, shape, strict=True):
        if not isinstance(extent, int):
            raise LayoutError(
                "{subject}, but `{axis}` has the extent {extent}; use a constant extent, or only "
                "// and %",
                kind="limit-exceeded", subject=subject, axis=axis, extent=extent,
            )
        numbers.append(extent)
    if prod(numbers) > LIMIT:
        names = ", ".join(axis.name for axis in axes)
        raise LayoutError(
            "{subject}, but there are {size} of them for {names}, which exceeds the limit of "
            "{limit}; combine fewer or smaller axes, e.g. i ^ j % 8 for i ^ j",
            kind="limit-exceeded", subject=subject, size=prod(numbers), names=names, limit=LIMIT,
        )
    return tuple(numbers)


def evaluate_over_box(
    exprs: Sequence[Expr], axes: Sequence[Var], shape: Sequence[int]
) -> list[npt.NDArray[np.int64]]:
    """Evaluate each of `exprs` at every index of a box, flattened in row-major order."""
    bindings = dict(zip(axes, np.ogrid[tuple(slice(n) for n in shape)], strict=True))
    full = tuple(shape)
    with log_duration(f"look at {prod(full)} elements of a layout"):
        return [
            np.broadcast_to(values(expr, bindings), full).ravel().astype(np.int64) for expr in exprs
        ]


def first_collision(
    indices: Sequence[npt.NDArray[np.int64]], shape: Sequence[int]
) -> tuple[Index, Index] | None:
    """Return the first two indices of a box whose physical indices are equal, or None."""
    order, is_repeat = _sorted_repeats(indices, prod(shape))
    if not is_repeat.any():
        return None
    firsts = order[:-1][is_repeat]
    k = int(np.argmin(firsts))
    return unravel(int(firsts[k]), shape), unravel(int(order[1:][is_repeat][k]), shape)


def count_places(indices: Sequence[npt.NDArray[np.int64]], n_elements: int) -> int:
    """Return the number of different physical indices."""
    if n_elements == 0:
        return 0
    _, is_repeat = _sorted_repeats(indices, n_elements)
    return n_elements - int(is_repeat.sum())


def _sorted_repeats(
    indices: Sequence[npt.NDArray[np.int64]], n_elements: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the elements stably sorted by physical index, and which equal their predecessor."""
    flat = np.zeros(n_elements, np.int64)
    for index in indices:
        low, high = (int(index.min()), int(index.max())) if n_elements else (0, 0)
        flat = flat * (high - low + 1) + (index - low)
    order = np.argsort(flat, kind="stable")
    ranked = flat[order]
    return order, ranked[1:] == ranked[:-1]


def unravel(position: int, shape: Sequence[int]) -> Index:
    """Return the index at a row-major position of a box."""
    return tuple(int(k) for k in np.unravel_index(position, tuple(shape))) if shape else ()
