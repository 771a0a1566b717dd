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


def tensor_of(value: object, where: str, what: str = "data") -> te.Tensor:
    """`value`, if it is a tensor.

    Raises:
        TypeMismatchError: it is none.
    """
    if isinstance(value, te.Tensor):
        return value
    raise TypeMismatchError(
        f"{where}: {what} is {value!r} ({type(value).__name__}); give a tensor, made by "
        "te.placeholder or computed from one",
        kind="wrong-argument",
    )


def tensors_of(values: object, where: str, what: str) -> list[te.Tensor]:
    """`values`, if they are tensors, one at least.

    Raises:
        TypeMismatchError: they are no list or tuple, or one is no tensor.
        DefinitionError: there is none.
    """
    if not isinstance(values, list | tuple):
        raise TypeMismatchError(
            f"{where}: {what} is {values!r} ({type(values).__name__}); give a list of tensors",
            kind="wrong-argument",
        )
    if not values:
        raise DefinitionError(
            f"{where}: {what} is empty; give one tensor at least", kind="nothing-given"
        )
    return [tensor_of(value, where, f"{what}[{k}]") for k, value in enumerate(values)]


def integer_of(value: object, where: str, what: str, *, least: int | None = None) -> int:
    """`value` as an int.

    Raises:
        TypeMismatchError: it is no integer that is known now.
        DefinitionError: it is less than `least`.
    """
    literal = getattr(value, "value", value)  # a te.const
    if isinstance(literal, bool) or not isinstance(literal, int | np.integer):
        raise TypeMismatchError(
            f"{where}: {what} is {value!r} ({type(value).__name__}); write an integer",
            kind="wrong-argument",
        )
    if least is not None and literal < least:
        raise DefinitionError(
            f"{where}: {what} is {literal}; it is at least {least}", kind="wrong-number"
        )
    return int(literal)


def integers_of(
    value: object, count: int, where: str, what: str, *, least: int | None = None
) -> tuple[int, ...]:
    """`count` ints: one that is given for all of them, or a list of as many.

    Raises:
        TypeMismatchError: one is no integer.
        DefinitionError: there are more or fewer, or one is less than `least`.
    """
    if not isinstance(value, list | tuple):
        return (integer_of(value, where, what, least=least),) * count
    if len(value) != count:
        raise DefinitionError(
            f"{where}: {what} has {len(value)} numbers, and there are {count} axes; give one for "
            "each, or one number for all",
            kind="wrong-count",
        )
    return tuple(
        integer_of(each, where, f"{what}[{k}]", least=least) for k, each in enumerate(value)
    )


def listed(value: object, where: str, what: str) -> list[Any]:
    """`value` as a list, if it has entries.

    Raises:
        TypeMismatchError: it has none, or is a text or a tensor.
    """
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping | te.Tensor):
        return list(value)
    raise TypeMismatchError(
        f"{where}: {what} is {value!r} ({type(value).__name__}); give a list, of one for each axis",
        kind="wrong-argument",
    )


def extents_of(value: object, where: str, what: str) -> list[Size]:
    """A list of counts of elements: numbers, or expressions of sizes.

    Raises:
        TypeMismatchError: it is no list, or one is neither.
    """
    return [
        each if isinstance(each, te.Expr) and not hasattr(each, "value")
        else integer_of(each, where, f"{what}[{k}]")
        for k, each in enumerate(listed(value, where, what))
    ]


def truth_of(value: object, where: str, what: str) -> bool:
    """`value` as a truth; None is False.

    Raises:
        TypeMismatchError: it is none.
    """
    if value is None or isinstance(value, int | np.bool_):
        return bool(value)
    raise TypeMismatchError(
        f"{where}: {what} is {value!r} ({type(value).__name__}); give True or False",
        kind="wrong-argument",
    )


def float_of(value: object, where: str, what: str) -> float:
    """`value` as a float.

    Raises:
        TypeMismatchError: it is no number that is known now.
    """
    literal = getattr(value, "value", value)  # a te.const
    if isinstance(literal, int | float | np.number):
        return float(literal)
    raise TypeMismatchError(
        f"{where}: {what} is {value!r} ({type(value).__name__}); write a number",
        kind="wrong-argument",
    )


def axis_of(axis: object, rank: int, where: str, what: str = "axis") -> int:
    """An axis counted from 0, also if it is given from the end.

    Raises:
        TypeMismatchError: it is no integer.
        DefinitionError: there is no such axis.
    """
    number = integer_of(axis, where, what)
    if -rank <= number < rank:
        return number % rank
    raise DefinitionError(f"{where}: {what} is {number}, {_choice(rank)}", kind="unknown-choice")


def axes_of(axis: object, rank: int, where: str, what: str = "axis") -> list[int]:
    """Axes counted from 0, each once, in order; all of them for None.

    Raises:
        TypeMismatchError: one is no integer.
        DefinitionError: there is no such axis, or one is given twice.
    """
    if axis is None:
        return list(range(rank))
    if not isinstance(axis, list | tuple):
        return [axis_of(axis, rank, where, what)]
    found = [axis_of(each, rank, where, f"{what}[{k}]") for k, each in enumerate(axis)]
    if len(set(found)) < len(found):
        raise DefinitionError(
            f"{where}: {what} is {tuple(axis)} of a tensor of {rank} axes, and names one twice; "
            "give each once",
            kind="given-twice",
        )
    return sorted(found)


def _choice(rank: int) -> str:
    if not rank:
        return "and the tensor has no axes"
    axes = "1 axis" if rank == 1 else f"{rank} axes"
    return f"and the tensor has {axes}; give a number from {-rank} to {rank - 1}"


def check_rank(x: te.Tensor, rank: int, where: str, what: str, axes: str = "") -> None:
    """Refuse a tensor of another number of axes.

    Raises:
        DefinitionError: it has more or fewer.
    """
    if x.ndim == rank:
        return
    named = f", {axes}" if axes else ""
    raise DefinitionError(
        f"{where}: {what} has shape {shape_text(x.shape)}, and takes {rank} axes{named}; "
        "reshape it first",
        kind="shapes",
    )


def one_of(value: object, choices: Sequence[Any], where: str, what: str) -> None:
    """Refuse what is none of some choices.

    Raises:
        DefinitionError: it is none of them.
    """
    if isinstance(value, tuple({type(each) for each in choices})) and value in choices:
        return
    known = ", ".join(map(repr, choices))
    raise DefinitionError(
        f"{where}: {what} is {value!r}; it is one of {known}", kind="unknown-choice"
    )


def check_float(x: te.Tensor, where: str) -> None:
    """Refuse numbers that are no floats.

    Raises:
        TypeMismatchError: they are none.
    """
    if not x.dtype.is_float:
        raise TypeMismatchError(
            f"{where}: {x.name} is {x.dtype}, and this is a function of floats; convert it first: "
            f'topi.cast({x.name}, "float32")'
        )


def check_integer(x: te.Tensor, where: str, what: str) -> None:
    """Refuse indices that are no integers.

    Raises:
        TypeMismatchError: they are none.
    """
    if not x.dtype.is_integer:
        raise TypeMismatchError(
            f'{where}: {what} is {x.dtype}, and takes integers; convert it: topi.cast({x.name}, '
            '"int32")'
        )


def shape_of(shape: object) -> tuple[Size, ...]:
    """`shape` as a tuple, whose extents `te.compute` checks; a bare extent is one axis."""
    if isinstance(shape, list | tuple):
        return tuple(shape)
    single: Any = shape
    return (single,)


def constant_of(value: Operand, dtype: str, where: str, what: str) -> te.Expr:
    """A number, which the type has to hold, or an expression converted to it.

    Raises:
        TypeMismatchError: the type cannot hold the number.
    """
    if isinstance(value, te.Expr | te.Tensor):
        return te.cast(value, dtype)
    try:
        return te.const(value, dtype)
    except TypeMismatchError as error:
        raise TypeMismatchError(f"{where}: {what}: {error.message}", kind=error.kind) from None


def operand_of(value: Any, where: str, what: str) -> Any:
    """`value`, if it is a tensor, an expression or a number.

    Raises:
        TypeMismatchError: it is none of these.
    """
    if isinstance(value, te.Tensor | te.Expr | int | float | np.generic):
        return value
    raise TypeMismatchError(
        f"{where}: {what} is {value!r} ({type(value).__name__}); give a tensor, an expression "
        "or a number",
        kind="wrong-argument",
    )


def value_of(value: Operand) -> Any:
    """An operand that is no tensor: a number becomes an expression."""
    return te.const(value) if isinstance(value, int | float | np.generic) else value


def extent_of(value: Size, where: str, what: str, *, least: int = 0) -> Size:
    """An extent, of which not too little is known.

    Raises:
        DefinitionError: it is less than `least`.
    """
    if isinstance(value, int) and value < least:
        raise DefinitionError(
            f"{where}: {what} is {value}; it is at least {least}", kind="wrong-number"
        )
    return value
