"""Check argument types; shape formatting and broadcasting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from operator import index
from types import UnionType
from typing import Any

from tecomp.errors import DefinitionError, TecompError
from tecomp.ir.nodes.expr import Expr, as_expr, const, is_const
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.nodes.structural_equality import same

Kind = type | tuple[type, ...] | UnionType


def check_kind(given: Any, kind: Kind, where: str, cure: str, error: type[TecompError]) -> None:
    """Refuse what is of another kind.

    Args:
        given: what the caller gave.
        kind: what it may be, as for `isinstance`.
        where: how the message begins.
        cure: what to give instead.
        error: what is raised.

    Raises:
        TecompError: it is of another kind; an `error`.
    """
    if not isinstance(given, kind):
        raise error(f"{where} is {given!r}; {cure}", kind="wrong-argument")


def check_list(given: Any, kind: Kind, where: str, cure: str, error: type[TecompError]) -> None:
    """Refuse what is no list or tuple of things of a kind.

    Raises:
        TecompError: it is no list, or has something else in it; an `error`.
    """
    if not isinstance(given, (tuple, list)):
        raise error(f"{where} is {given!r}; {cure}", kind="wrong-argument")
    for each in given:
        if not isinstance(each, kind):
            raise error(f"{where} is {given!r}; {cure}", kind="wrong-argument")


def check_function(
    given: Any, count: int, where: str, cure: str, error: type[TecompError]
) -> None:
    """Refuse what cannot be called with so many arguments, or does not say whether it can.

    Raises:
        TecompError: it cannot; an `error`.
    """
    try:
        signature(given).bind(*range(count))
    except (TypeError, ValueError):
        raise error(f"{where} is {given!r}; {cure}", kind="wrong-argument") from None


def dictionary_of(
    given: Any, keys: Kind, values: Kind, where: str, cure: str, error: type[TecompError]
) -> dict[Any, Any]:
    """A dictionary with keys and values of some kinds; an empty one for None.

    Raises:
        TecompError: it is no dictionary, or has something else in it; an `error`.
    """
    if given is None:
        return {}
    is_right = isinstance(given, Mapping) and all(
        isinstance(key, keys) and isinstance(value, values) for key, value in given.items()
    )
    if not is_right:
        raise error(f"{where} is {given!r}; {cure}", kind="wrong-argument")
    return dict(given)


def whole_number(given: Any) -> int | None:
    """An integer, of Python or of NumPy; None for all else: truths, texts, arrays of several."""
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        return None
    try:
        return index(given)
    except (TypeError, TecompError):
        return None


def whole_numbers_of(given: Any) -> tuple[int, ...] | None:
    """Integers, of Python or of NumPy, in order; None where something else is given."""
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        return None
    values = tuple(given)
    numbers = tuple(n for n in map(whole_number, values) if n is not None)
    return numbers if len(numbers) == len(values) else None


def is_one_of(name: Any, names: Any) -> bool:
    """Whether it is one of some names; what is no text, or has no hash, is none."""
    return isinstance(name, str) and name in names


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
