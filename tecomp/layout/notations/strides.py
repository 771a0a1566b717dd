"""Strides: a place in memory is a sum of digits of the indices, times a stride each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial, reduce

from tecomp.errors import LayoutError
from tecomp.ir.language.dtype import DType
from tecomp.ir.language.equal import same
from tecomp.ir.language.expr import Binary, BinOp, Const, Expr, Var, binary, index_value
from tecomp.layout.descriptions.layout import Layout
from tecomp.layout.formats.format import Format
from tecomp.layout.placement.arguments import check_shape
from tecomp.layout.placement.axes import digit, index_names, quotient, remainder
from tecomp.poly.maps.digits import StridedDigit
from tecomp.poly.maps.index_map import IndexMap


def strided(
    shape: Sequence[int], dtype: str, strides: Sequence[int], *, memory: str = "global"
) -> Layout:
    """The layout of an array with these strides, counted in elements.

    Raises:
        LayoutError: two elements share a place, or a stride is negative.

    >>> strided((3, 5), "float32", (1, 4)).physical_shape
    (5, 4)
    """
    if len(strides) != len(shape):
        raise LayoutError(
            f"strided: {len(strides)} strides {list(strides)} for {len(shape)} axes "
            f"{list(shape)}; give one for each axis",
            kind="layout-text",
        )
    for axis, stride in enumerate(strides):
        if isinstance(stride, bool) or not isinstance(stride, int) or stride < 0:
            raise LayoutError(
                f"strided: stride {stride!r} of axis {axis}; places count from 0, so flip the "
                "axis in the computation instead",
                kind="layout-text",
            )
    digits = [StridedDigit(axis, 1, n, stride) for axis, (n, stride) in enumerate(
        zip(shape, strides, strict=True))]
    return from_digits(shape, dtype, digits, memory=memory)


def column_major(shape: Sequence[int], dtype: str) -> Layout:
    """Elements in the order of Fortran: the first index is the fastest.

    >>> column_major((3, 5), "float32").offset((1, 2))
    7
    """
    return Layout.of(shape, dtype, lambda *index: list(reversed(index)) or [0])


def from_digits(
    shape: Sequence[int],
    dtype: str,
    digits: Iterable[StridedDigit],
    *,
    swizzle: tuple[int, int, int] | None = None,
    memory: str = "global",
) -> Layout:
    """The layout that sums up digits times strides.

    Where each stride is a multiple of the one below it, the digits are physical axes of their own;
    else there is one physical axis.

    Args:
        shape: extents of the tensor.
        dtype: type of its elements.
        digits: every digit of every axis.
        swizzle: (bits, base, shift): bits of the place, from `base` on, are flipped by those
            `shift` above them.
        memory: scope of the memory.
    """
    check_shape(shape)
    axes = index_names(len(shape))
    moving = [each for each in digits if each.size > 1]
    results = None if swizzle else _nested(moving, axes, shape)
    if results is None:
        results = [swizzled(_sum(moving, axes), swizzle)]
    return Layout(
        tuple(shape), DType(dtype), IndexMap(axes, tuple(results), ()), Format.plain(dtype),
        memory=memory,
    )


def swizzled(place: Expr, swizzle: tuple[int, int, int] | None) -> Expr:
    """`place ^ ((place >> shift) & mask)`, the mask of `bits` bits from `base` on.

    Source:
        CuTe, Swizzle<B, M, S>.
    """
    if swizzle is None:
        return place
    bits, base, shift = swizzle
    mask = ((1 << bits) - 1) << base
    if shift >= 0:
        moved = binary(BinOp.SHR, place, index_value(shift))
    else:
        moved = binary(BinOp.SHL, place, index_value(-shift))
    return binary(BinOp.BITXOR, place, binary(BinOp.BITAND, moved, index_value(mask)))


def _nested(
    digits: Sequence[StridedDigit], axes: Sequence[Var], shape: Sequence[int]
) -> list[Expr] | None:
    """A physical axis for each digit, if each stride is whole times what lies below it."""
    inner = sorted(digits, key=lambda each: each.stride)
    results: list[Expr] = []
    if inner and inner[0].stride > 1:
        results.append(remainder(index_value(0), inner[0].stride))
    for each, above in zip(inner, [*inner[1:], None], strict=True):
        places = each.size
        if above is not None:
            if each.stride == 0 or above.stride % each.stride or (
                above.stride < each.stride * each.size
            ):
                return None
            places = above.stride // each.stride
        value = quotient(axes[each.axis], each.low)
        if each.low * each.size < shape[each.axis] and places != each.size:
            value = remainder(value, each.size)
        results.append(remainder(value, places))
    return results[::-1] or [index_value(0)]


def _sum(digits: Sequence[StridedDigit], axes: Sequence[Var]) -> Expr:
    parts = [
        _times(digit(axes[each.axis], each.low, each.size), each.stride)
        for each in digits
    ]
    return reduce(partial(binary, BinOp.ADD), parts) if parts else index_value(0)


def _times(x: Expr, stride: int) -> Expr:
    return x if stride == 1 else binary(BinOp.MUL, x, index_value(stride))


def unswizzled(index_map: IndexMap) -> tuple[IndexMap, tuple[int, int, int] | None]:
    """A map of one result without its swizzle, and (bits, base, shift) of that, if it has one."""
    match index_map.final_indices:
        case (Binary(BinOp.BITXOR, place, Binary(BinOp.BITAND, moved, Const(int(mask)))),):
            match moved:
                case Binary(BinOp.SHR, source, Const(int(shift))) if same(source, place):
                    base = (mask & -mask).bit_length() - 1
                    bits = (mask >> base).bit_length()
                    plain = IndexMap(index_map.initial_indices, (place,), ())
                    return plain, (bits, base, int(shift))
    return index_map, None
