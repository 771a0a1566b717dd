"""Shapes that are brought to one by repeating axes of length 1, as NumPy and topi do."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tecomp.errors import DefinitionError
from tecomp.ir.language.equal import same
from tecomp.ir.language.expr import Expr, as_expr, const, is_const
from tecomp.ir.language.stmt import Extent

# What topi calls the results of operators.
NAMES: Mapping[Callable[..., object], str] = MappingProxyType({
    operator.add: "T_add", operator.sub: "T_subtract", operator.mul: "T_multiply",
    operator.truediv: "T_divide", operator.floordiv: "T_floor_divide",
    operator.mod: "T_floor_mod", operator.and_: "T_bitwise_and", operator.or_: "T_bitwise_or",
    operator.xor: "T_bitwise_xor", operator.lshift: "T_left_shift",
    operator.rshift: "T_right_shift", operator.neg: "T_negative", operator.pos: "T_identity",
    operator.invert: "T_bitwise_not",
})


def broadcast_shape(shapes: Sequence[Sequence[Extent]], where: str) -> tuple[Extent, ...]:
    """The shape that some shapes have together, their last axes beside one another.

    Raises:
        DefinitionError: two extents of an axis are neither known to be alike nor 1.

    >>> broadcast_shape([(4, 1, 3), (5, 1)], "example")
    (4, 5, 3)
    """
    rank = max(map(len, shapes), default=0)
    extents: list[Extent] = [1] * rank
    for shape in shapes:
        for k, extent in enumerate(shape, rank - len(shape)):
            if is_one(extents[k]):
                extents[k] = extent
            elif not is_one(extent) and not _alike(extents[k], extent):
                told = " and ".join(map(_text, shapes))
                raise DefinitionError(
                    f"{where}: the shapes {told} do not broadcast: axis {k - rank} is "
                    f"{extents[k]} and {extent}; extents are alike, or one is 1"
                )
    return tuple(extents)


def broadcast_index(shape: Sequence[Extent], index: Sequence[Expr]) -> tuple[Expr, ...]:
    """Where an operand of some shape is read for an element of the result."""
    own = index[len(index) - len(shape):]
    return tuple(
        const(0, place.dtype) if is_one(extent) else place
        for extent, place in zip(shape, own, strict=True)
    )


def is_one(extent: Extent) -> bool:
    """Whether an axis is repeated as often as the others have elements."""
    return is_const(as_expr(extent), 1)


def _text(shape: Sequence[Extent]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _alike(one: Extent, other: Extent) -> bool:
    return same(as_expr(one), as_expr(other))
