"""Shapes: as texts, and brought to one by repeating axes of length 1, as NumPy does."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.errors import DefinitionError
from tecomp.ir.language.equal import same
from tecomp.ir.language.expr import Expr, as_expr, const, is_const
from tecomp.ir.language.stmt import Extent


def shape_text(shape: Sequence[Extent]) -> str:
    """A shape as a Python tuple, for a message.

    >>> shape_text((4, 5)), shape_text((4,)), shape_text(())
    ('(4, 5)', '(4,)', '()')
    """
    extents = ", ".join(map(str, shape))
    return f"({extents},)" if len(shape) == 1 else f"({extents})"


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
            if _is_one(extents[k]):
                extents[k] = extent
            elif not _is_one(extent) and not _alike(extents[k], extent):
                told = " and ".join(map(shape_text, shapes))
                raise DefinitionError(
                    f"{where}: shapes {told} do not broadcast: axis {k - rank} has extents "
                    f"{extents[k]} and {extent}; make them equal, or one of them 1",
                    kind="shapes",
                )
    return tuple(extents)


def broadcast_index(shape: Sequence[Extent], index: Sequence[Expr]) -> tuple[Expr, ...]:
    """Where an operand of some shape is read for an element of the result."""
    own = index[len(index) - len(shape):]
    return tuple(
        const(0, place.dtype) if _is_one(extent) else place
        for extent, place in zip(shape, own, strict=True)
    )


def _is_one(extent: Extent) -> bool:
    """Whether an axis is repeated as often as the others have elements."""
    return is_const(as_expr(extent), 1)


def _alike(one: Extent, other: Extent) -> bool:
    return same(as_expr(one), as_expr(other))
