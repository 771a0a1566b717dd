"""Validate operator arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from tecomp import DefinitionError, TypeMismatchError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.topi.extents import Size

Operand: TypeAlias = "te.Tensor | te.Expr | int | float | bool"
Axes: TypeAlias = "int | Sequence[int] | None"
T = TypeVar("T")


def tensor_of(value: object, where: str, name: str = "data") -> te.Tensor:
    """Return `value` if it is a tensor.

    Raises:
        TypeMismatchError: If `value` is not a tensor.
    """
    if isinstance(value, te.Tensor):
        return value
    raise TypeMismatchError(
        "{where}: {subject} must be a tensor, got {value!r} ({type}); create it with "
        "te.placeholder or te.compute",
        kind="invalid-type", where=where, subject=name, value=value, type=type(value).__name__,
    )


def tensors_of(values: object, where: str, name: str) -> list[te.Tensor]:
    """Return `values` as a list if all of them are tensors.

    Raises:
        TypeMismatchError: If `values` is not a list or tuple, or if an entry is not a tensor.
        DefinitionError: If `values` is empty.
    """
    if not isinstance(values, list | tuple):
        raise TypeMismatchError(
            "{where}: {subject} must be a list of tensors, got {values!r} ({type})",
            kind="invalid-type", where=where, subject=name, values=values,
            type=type(values).__name__,
        )
    if not values:
        raise DefinitionError(
            "{where}: {subject} is empty; pass at least one tensor",
            kind="missing-input", where=where, subject=name,
        )
    return [tensor_of(value, where, f"{name}[{k}]") for k, value in enumerate(values)]


def integer_of(value: object, where: str, name: str, *, least: int | None = None) -> int:
    """Return `value` as an int; constant expressions are accepted.

    Raises:
        TypeMismatchError: If `value` is not an integer constant.
        DefinitionError: If `value` is less than `least`.
    """
    literal = getattr(value, "value", value)  # a te.const
    if isinstance(literal, bool) or not isinstance(literal, int | np.integer):
        raise TypeMismatchError(
            "{where}: {subject} must be an integer, got {value!r} ({type})",
            kind="invalid-type", where=where, subject=name, value=value, type=type(value).__name__,
        )
    if least is not None and literal < least:
        raise DefinitionError(
            "{where}: {subject} must be at least {minimum}, got {literal!r}",
            kind="invalid-value", where=where, subject=name, literal=literal, minimum=least,
        )
    return int(literal)


def integers_of(
    value: object, count: int, where: str, name: str, *, least: int | None = None
) -> tuple[int, ...]:
    """Return `count` ints from one integer for all axes or a list with one integer per axis.

    Raises:
        TypeMismatchError: If an entry is not an integer constant.
        DefinitionError: If the list does not have `count` entries, or if an entry is less than
            `least`.
    """
    if not isinstance(value, list | tuple):
        return (integer_of(value, where, name, least=least),) * count
    if len(value) != count:
        raise DefinitionError(
            "{where}: {subject} has {value_count} numbers, expected {count}; pass one number per "
            "axis, or a single number for all axes",
            kind="count-mismatch", where=where, subject=name, value_count=len(value), count=count,
        )
    return tuple(
        integer_of(item, where, f"{name}[{k}]", least=least) for k, item in enumerate(value)
    )


def as_list(value: object, where: str, name: str) -> list[Any]:
    """Return an iterable as a list.

    Raises:
        TypeMismatchError: If `value` is not iterable, or is a string, a mapping or a tensor.
    """
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping | te.Tensor):
        return list(value)
    raise TypeMismatchError(
        "{where}: {subject} must be a list with one entry per axis, got {value!r} ({type})",
        kind="invalid-type", where=where, subject=name, value=value, type=type(value).__name__,
    )


def extents_of(value: object, where: str, name: str) -> list[Size]:
    """Return a list of extents: ints, or expressions of size variables.

    Raises:
        TypeMismatchError: If `value` is not a list, or if an entry is neither an integer nor an
            expression.
    """
    return [
        item if isinstance(item, te.Expr) and not hasattr(item, "value")
        else integer_of(item, where, f"{name}[{k}]")
        for k, item in enumerate(as_list(value, where, name))
    ]


def as_bool(value: object, where: str, name: str) -> bool:
    """Return `value` as a bool; None gives False.

    Raises:
        TypeMismatchError: If `value` is not None, a bool or an integer.
    """
    if value is None or isinstance(value, int | np.bool_):
        return bool(value)
    raise TypeMismatchError(
        "{where}: {subject} must be True or False, got {value!r} ({type})",
        kind="invalid-type", where=where, subject=name, value=value, type=type(value).__name__,
    )


def float_of(value: object, where: str, name: str) -> float:
    """Return `value` as a float; constant expressions are accepted.

    Raises:
        TypeMismatchError: If `value` is not a numeric constant.
    """
    literal = getattr(value, "value", value)  # a te.const
    if isinstance(literal, int | float | np.number):
        return float(literal)
    raise TypeMismatchError(
        "{where}: {subject} must be a number, got {value!r} ({type})",
        kind="invalid-type", where=where, subject=name, value=value, type=type(value).__name__,
    )


def axis_of(axis: object, rank: int, where: str, name: str = "axis") -> int:
    """Return an axis as a non-negative number; negative values count from the last axis.

    Raises:
        TypeMismatchError: If `axis` is not an integer.
        DefinitionError: If `axis` is out of bounds.
    """
    number = integer_of(axis, where, name)
    if -rank <= number < rank:
        return number % rank
    raise DefinitionError(
        "{where}: {subject} {number!r} is out of bounds: {rank}",
        kind="unknown-choice", where=where, subject=name, number=number, rank=_choice(rank),
    )


def axes_of(axis: object, rank: int, where: str, name: str = "axis") -> list[int]:
    """Return axes as sorted non-negative numbers; None gives all axes.

    Raises:
        TypeMismatchError: If an entry is not an integer.
        DefinitionError: If an axis is out of bounds or occurs twice.
    """
    if axis is None:
        return list(range(rank))
    if not isinstance(axis, list | tuple):
        return [axis_of(axis, rank, where, name)]
    found = [axis_of(item, rank, where, f"{name}[{k}]") for k, item in enumerate(axis)]
    if len(set(found)) < len(found):
        raise DefinitionError(
            "{where}: {subject} {axis} contains a duplicate axis (the tensor has {rank} axes); "
            "pass each axis once",
            kind="duplicate-argument", where=where, subject=name, axis=tuple(axis), rank=rank,
        )
    return sorted(found)


def _choice(rank: int) -> str:
    if not rank:
        return "the tensor has no axes"
    axes = "1 axis" if rank == 1 else f"{rank} axes"
    return f"the tensor has {axes}; pass a number from {-rank} to {rank - 1}"


def check_rank(x: te.Tensor, rank: int, where: str, name: str, axes: str = "") -> None:
    """Raise if a tensor does not have the given rank.

    Raises:
        DefinitionError: If the rank of `x` is not `rank`.
    """
    if x.ndim == rank:
        return
    named = f", {axes}" if axes else ""
    raise DefinitionError(
        "{where}: {subject} has shape {shape}, expected {rank} axes{named}; reshape it first",
        kind="shapes", where=where, subject=name, shape=shape_text(x.shape), rank=rank, named=named,
    )


def validate_choice(value: object, choices: Sequence[Any], where: str, name: str) -> None:
    """Raise if `value` is not one of the choices.

    Raises:
        DefinitionError: If `value` is not one of the choices.
    """
    if isinstance(value, tuple({type(choice) for choice in choices})) and value in choices:
        return
    known = ", ".join(map(repr, choices))
    raise DefinitionError(
        "{where}: {subject} must be one of {known}, got {value!r}",
        kind="unknown-choice", where=where, subject=name, value=value, known=known,
    )


def check_float(x: te.Tensor, where: str) -> None:
    """Raise if a tensor is not floating-point.

    Raises:
        TypeMismatchError: If the dtype of `x` is not floating-point.
    """
    if not x.dtype.is_float:
        raise TypeMismatchError(
            "{where}: {x} has dtype {dtype}, expected a float dtype; convert it first: "
            'topi.cast({x}, "float32")',
            where=where, x=x.name, dtype=x.dtype,
        )


def check_integer(x: te.Tensor, where: str, name: str) -> None:
    """Raise if a tensor does not have an integer dtype.

    Raises:
        TypeMismatchError: If the dtype of `x` is not an integer dtype.
    """
    if not x.dtype.is_integer:
        raise TypeMismatchError(
            "{where}: {subject} has dtype {dtype}, expected an integer dtype; convert it: "
            'topi.cast({x}, "int32")',
            where=where, subject=name, dtype=x.dtype, x=x.name,
        )


def shape_of(shape: object) -> tuple[Size, ...]:
    """Return `shape` as a tuple; a single extent gives one axis.

    `te.compute` validates the extents.
    """
    if isinstance(shape, list | tuple):
        return tuple(shape)
    single: Any = shape
    return (single,)


def constant_of(value: Operand, dtype: str, where: str, name: str) -> te.Expr:
    """Convert a number to a constant of the dtype, or cast an expression or tensor to the dtype.

    Raises:
        TypeMismatchError: If the number is not representable in the dtype.
    """
    if isinstance(value, te.Expr | te.Tensor):
        return te.cast(value, dtype)
    try:
        return te.const(value, dtype)
    except TypeMismatchError as error:
        raise TypeMismatchError(
            "{where}: {subject}: {reason}",
            kind=error.kind, where=where, subject=name, reason=error.message,
        ) from None


def operand_of(value: Any, where: str, name: str) -> Any:
    """Return `value` if it is a tensor, an expression or a number.

    Raises:
        TypeMismatchError: If `value` has another type.
    """
    if isinstance(value, te.Tensor | te.Expr | int | float | np.generic):
        return value
    raise TypeMismatchError(
        "{where}: {subject} must be a tensor, an expression or a number, got {value!r} ({type})",
        kind="invalid-type", where=where, subject=name, value=value, type=type(value).__name__,
    )


def value_of(value: Operand) -> Any:
    """Convert a number to a constant expression; return other operands unchanged."""
    return te.const(value) if isinstance(value, int | float | np.generic) else value


def extent_of(value: Size, where: str, name: str, *, least: int = 0) -> Size:
    """Return an extent; only ints are compared with `least`.

    Raises:
        DefinitionError: If `value` is an int less than `least`.
    """
    if isinstance(value, int) and value < least:
        raise DefinitionError(
            "{where}: {subject} must be at least {minimum}, got {value}",
            kind="invalid-value", where=where, subject=name, value=value, minimum=least,
        )
    return value
