"""Check argument types; shape formatting and broadcasting."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from operator import index
from types import UnionType
from typing import Any

from tecomp.errors import DefinitionError, TecompError, safe_str
from tecomp.ir.nodes.expr import Expr, as_expr, const, is_const
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.nodes.structural_equality import structural_equal

Kind = type | tuple[type, ...] | UnionType


def check_kind(value: Any, kind: Kind, where: str, remedy: str, error: type[TecompError]) -> None:
    """Raise `error` if an argument is not an instance of a type.

    Args:
        value: Value passed by the caller.
        kind: Accepted types, as for `isinstance`.
        where: Beginning of the message.
        remedy: Remedy at the end of the message.
        error: Exception class to raise.

    Raises:
        TecompError: If `value` is not an instance of `kind`; of class `error`.
    """
    if not isinstance(value, kind):
        raise error(
            "{where} is {value!r}; {remedy}",
            kind="invalid-type", where=where, value=value, remedy=remedy,
        )


def check_list(value: Any, kind: Kind, where: str, remedy: str, error: type[TecompError]) -> None:
    """Raise `error` if an argument is not a list or tuple of instances of a type.

    Raises:
        TecompError: If `value` is not a list or tuple, or an item is not an instance of `kind`; of
            class `error`.
    """
    if not isinstance(value, (tuple, list)):
        raise error(
            "{where} is {value!r}; {remedy}",
            kind="invalid-type", where=where, value=value, remedy=remedy,
        )
    for item in value:
        if not isinstance(item, kind):
            raise error(
                "{where} is {value!r}; {remedy}",
                kind="invalid-type", where=where, value=value, remedy=remedy,
            )


def check_function(
    value: Any, count: int, where: str, remedy: str, error: type[TecompError]
) -> None:
    """Raise `error` if an argument cannot be called with `count` positional arguments.

    Raises:
        TecompError: If `value` is not callable with `count` arguments, or its signature is not
            available; of class `error`.
    """
    # `signature` formats an object that is not callable with `repr`, which may raise any error.
    if not callable(value):
        raise error(
            "{where} is {value!r}; {remedy}",
            kind="invalid-type", where=where, value=value, remedy=remedy,
        )
    try:
        signature(value).bind(*range(count))
    except (TypeError, ValueError):
        raise error(
            "{where} is {value!r}; {remedy}",
            kind="invalid-type", where=where, value=value, remedy=remedy,
        ) from None


def dictionary_of(
    mapping: Any, keys: Kind, values: Kind, where: str, remedy: str, error: type[TecompError]
) -> dict[Any, Any]:
    """Return a mapping as a dict after checking key and value types; None gives an empty dict.

    Raises:
        TecompError: If `mapping` is not a mapping, or a key or value has another type; of class
            `error`.
    """
    if mapping is None:
        return {}
    is_valid = isinstance(mapping, Mapping) and all(
        isinstance(key, keys) and isinstance(value, values) for key, value in mapping.items()
    )
    if not is_valid:
        raise error(
            "{where} is {value!r}; {remedy}",
            kind="invalid-type", where=where, value=mapping, remedy=remedy,
        )
    return dict(mapping)


def as_int(value: Any) -> int | None:
    """Return a Python or NumPy integer as an int; None for bools, strings and other values.

    Objects that only implement `__index__` conditionally, such as arrays with several elements and
    symbolic expressions, also give None.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    try:
        return index(value)
    except (TypeError, TecompError):
        return None


def as_ints(value: Any) -> tuple[int, ...] | None:
    """Return an iterable of Python or NumPy integers as a tuple of ints; None for other values."""
    if not isinstance(value, Iterable) or isinstance(value, str | bytes):
        return None
    values = tuple(value)
    numbers = tuple(n for n in map(as_int, values) if n is not None)
    return numbers if len(numbers) == len(values) else None


def is_one_of(name: Any, names: Any) -> bool:
    """Return whether `name` is a string in `names`; other objects need not be hashable."""
    return isinstance(name, str) and name in names


def shape_text(shape: Sequence[Extent]) -> str:
    """Format a shape as a Python tuple for a message.

    >>> shape_text((4, 5)), shape_text((4,)), shape_text(())
    ('(4, 5)', '(4,)', '()')
    """
    extents = ", ".join(map(safe_str, shape))
    return f"({extents},)" if len(shape) == 1 else f"({extents})"


def broadcast_shape(shapes: Sequence[Sequence[Extent]], where: str) -> tuple[Extent, ...]:
    """Return the broadcast shape of several shapes, aligned at their last axes.

    Raises:
        DefinitionError: If two extents of an axis are neither provably equal nor 1.

    >>> broadcast_shape([(4, 1, 3), (5, 1)], "example")
    (4, 5, 3)
    """
    rank = max(map(len, shapes), default=0)
    extents: list[Extent] = [1] * rank
    for shape in shapes:
        for k, extent in enumerate(shape, rank - len(shape)):
            if _is_one(extents[k]):
                extents[k] = extent
            elif not _is_one(extent) and not structural_equal(as_expr(extents[k]), as_expr(extent)):
                shape_list = " and ".join(map(shape_text, shapes))
                raise DefinitionError(
                    "{where}: shapes {shapes} do not broadcast: axis {axis} has extents {extent} "
                    "and {other_extent}; make them equal, or one of them 1",
                    kind="shapes", where=where, shapes=shape_list, axis=k - rank, extent=extents[k],
                    other_extent=extent,
                )
    return tuple(extents)


def broadcast_index(shape: Sequence[Extent], index: Sequence[Expr]) -> tuple[Expr, ...]:
    """Return the index at which an operand is read for an element of the broadcast result."""
    aligned = index[len(index) - len(shape):]
    return tuple(
        const(0, expr.dtype) if _is_one(extent) else expr
        for extent, expr in zip(shape, aligned, strict=True)
    )


def _is_one(extent: Extent) -> bool:
    """Return whether an axis has extent 1 and is therefore broadcast."""
    return is_const(as_expr(extent), 1)
