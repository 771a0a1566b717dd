"""`decl_buffer`: the memory that a tensor is asked to be in, and where its elements are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tecomp.compute.builder import Operand, check_scope
from tecomp.compute.shape import dtype_of, extent_of, name_of, shape_of
from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir.language.given import whole_number
from tecomp.ir.language.stmt import Buffer, Extent

# What TVM asks of buffers for the sake of instructions; the schedule says where operands are.
ALIGNMENT = ("offset_factor", "data_alignment")

_LEAST = -(2**63)


def decl_buffer(
    shape: Sequence[Extent],
    dtype: str = "float32",
    name: str = "buffer",
    *,
    scope: str = "",
    strides: Sequence[Extent] | None = None,
    data_alignment: int = -1,
    offset_factor: int = 0,
) -> Buffer:
    """What is asked of the memory of a tensor, for `binds`.

    Args:
        shape: extents, in elements.
        dtype: type of an element.
        name: what messages call it.
        scope: the memory that it has to be in; any if empty.
        strides: how many elements further the next one of each axis is: numbers, which may be 0 or
            negative, or variables. For `tecomp.build`, variables take their values from the arrays
            of a call. For an intrinsic they are any; `operand.strides` says what they are.
        data_alignment: taken, and changes nothing: the schedule says where operands are.
        offset_factor: as `data_alignment`.

    Raises:
        DefinitionError: an extent is no size, or strides are not one for each axis.
        TypeMismatchError: something is of another kind.

    >>> from tecomp import te
    >>> te.decl_buffer((16,), "float32", "a", scope="local").scope
    'local'
    """
    where = f"te.decl_buffer {name_of(name, 'te.decl_buffer')}"
    check_scope(scope, where)
    for number, what in ((data_alignment, "data_alignment"), (offset_factor, "offset_factor")):
        if whole_number(number) is None:
            raise TypeMismatchError(
                f"{where}: {what} is {number!r}; give a whole number", kind="wrong-argument"
            )
    extents = shape_of(shape, where)
    given = None if strides is None else _strides_of(strides, where)
    if given is not None and len(given) != len(extents):
        raise DefinitionError(
            f"{where}: it has {len(extents)} axes and {len(given)} strides; give one for each",
            kind="wrong-count",
        )
    return Buffer(name, extents, dtype_of(dtype, where), scope, strides=given)


def _strides_of(given: Any, where: str) -> tuple[Extent, ...]:
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise TypeMismatchError(
            f"{where}: strides is {given!r}; give a list of numbers and of what te.var makes",
            kind="wrong-argument",
        )
    return tuple(
        extent_of(n, f"{where}: the stride of axis {k}", least=_LEAST)
        for k, n in enumerate(given)
    )


def check_without_gaps(buffer: Buffer, where: str) -> None:
    """Strides that are asked of an operand are those that functions get.

    Raises:
        DefinitionError: they are others.
    """
    strides = Operand(buffer).strides
    for axis, (asked, own) in enumerate(zip(buffer.strides or (), strides, strict=False)):
        if isinstance(asked, int) and isinstance(own, int) and asked != own:
            raise DefinitionError(
                f"{where}: the stride of axis {axis} is {asked}, and functions take operands "
                f"without gaps, where it is {own}; leave it to a te.var, and take it from "
                "operand.strides"
            )
