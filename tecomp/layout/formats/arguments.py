"""Validate layout arguments, and build digit expressions of axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from tecomp.errors import LayoutError
from tecomp.ir.nodes.argument_checks import as_ints, check_kind
from tecomp.ir.nodes.dtype import INT64, DType
from tecomp.ir.nodes.expr import Binary, BinOp, Expr, Var, binary, index_value
from tecomp.ir.nodes.operators import holds
from tecomp.layout.formats.format import Format

_MAX_BITS = 128  # of an integer: 64-bit sizes and products of two of them


def as_int_tuple(values: Any, where: str) -> tuple[int, ...]:
    """Convert a sequence of integers to a tuple of Python ints.

    Args:
        values: Integers of any kind; unvalidated user input.
        where: Prefix of error messages.

    Raises:
        LayoutError: If `values` is not a sequence of integers.

    >>> as_int_tuple(np.array([3, 4]), "layout: the place")
    (3, 4)
    """
    numbers = as_ints(values)
    if numbers is None:
        raise LayoutError(
            "{where} must be a sequence of integers, got {values!r}; pass one integer per axis, "
            "such as (0, 1)",
            kind="invalid-type", where=where, values=values,
        )
    check_bits(numbers, where)
    return numbers


def positive_numbers(values: Any, where: str, count: int | None = None) -> tuple[int, ...]:
    """Convert a nonempty sequence of positive integers to a tuple of Python ints.

    Args:
        values: Unvalidated user input.
        where: Prefix of error messages.
        count: Required number of integers. Default: any number.

    Raises:
        LayoutError: If `values` is not a sequence of `count` positive integers.
    """
    numbers = as_ints(values)
    if not numbers or min(numbers) < 1 or count not in (None, len(numbers)):
        count_text = "" if count is None else f"{count} "
        raise LayoutError(
            "{where} must be a sequence of {many}positive integers, such as (2, 4), got {values!r}",
            kind="invalid-type", where=where, values=values, many=count_text,
        )
    check_bits(numbers, where)
    return numbers


def check_bits(numbers: Iterable[int], where: str) -> None:
    """Check that integers have at most 128 bits.

    Sizes of 64-bit machines and their products are smaller. Python does not convert integers of
    more than 4,300 digits to text, and their arithmetic takes long.

    Raises:
        LayoutError: If an integer has more bits.
    """
    if any(n.bit_length() > _MAX_BITS for n in numbers):
        raise LayoutError(
            "{where} contains an integer of more than {max_bits} bits; pass smaller integers",
            kind="limit-exceeded", where=where, max_bits=_MAX_BITS,
        )


def check_index_in_bounds(index: Any, shape: tuple[int, ...], subject: str) -> tuple[int, ...]:
    """Convert an index of a tensor, memory or grid to a tuple of Python ints, with bounds check.

    Raises:
        LayoutError: If `index` is not an index or is out of bounds of `shape`.
    """
    position = as_int_tuple(index, f"layout: the {subject}")
    if len(position) != len(shape) or not all(
        0 <= n < extent for n, extent in zip(position, shape, strict=True)
    ):
        raise LayoutError(
            "layout: {subject} {index!r} is out of bounds for {shape}; pass one index per axis, "
            "from 0 to its extent - 1",
            kind="index-out-of-bounds", subject=subject, index=position, shape=list(shape),
        )
    return position


def check_pad_value(value: object, dtype: DType, storage: Format) -> None:
    """Check that a padding value is representable in the dtype and in the storage format."""
    if value is None:
        return
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, int | float):
        raise LayoutError(
            "layout: pad_value must be a number or None, got {value!r}",
            kind="pad-value", value=value,
        )
    if not holds(dtype, value):
        raise LayoutError(
            "layout: pad_value={value} is not representable in {dtype}, the dtype of the elements; "
            "pass a representable number",
            kind="pad-value", value=value, dtype=dtype,
        )
    if not storage.holds(value):
        raise LayoutError(
            "layout: pad_value={value} is not representable in the storage format {storage}; pass "
            "a representable number",
            kind="pad-value", value=value, storage=storage.name,
        )


def check_shape(shape: Sequence[object]) -> None:
    """Check that a shape is a sequence of nonnegative integers."""
    check_kind(
        shape, Sequence | np.ndarray, "layout: the shape",
        "pass one integer per axis, such as (0, 1)", LayoutError,
    )
    for extent in shape:
        if isinstance(extent, bool) or not isinstance(extent, int | np.integer) or extent < 0:
            raise LayoutError(
                "layout: shape {shape!r} contains the invalid extent {extent!r}; extents must be "
                "non-negative integers",
                kind="invalid-type", extent=extent, shape=list(shape),
            )
    check_bits(map(int, cast("Sequence[int]", shape)), "layout: the shape")


_NAMES = "ijklmn"


def index_names(rank: int) -> tuple[Var, ...]:
    """Return one variable per axis: `i, j, k, ...`, or `d0, d1, ...` for more than six axes."""
    names = _NAMES[:rank] if rank <= len(_NAMES) else [f"d{k}" for k in range(rank)]
    return tuple(Var(name, INT64) for name in names)


def remainder(x: Expr, size: int) -> Expr:
    """Return `x % size`, which declares an axis of extent `size`; not folded for constant `x`."""
    return Binary(BinOp.MOD, x, index_value(size))


def quotient(x: Expr, low: int) -> Expr:
    """Return `x // low`."""
    return x if low == 1 else binary(BinOp.FLOORDIV, x, index_value(low))


def digit(x: Expr, low: int, size: int) -> Expr:
    """Return `(x // low) % size`, which declares an axis of extent `size`."""
    return remainder(quotient(x, low), size)
