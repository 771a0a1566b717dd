"""Strided layouts and CuTe notation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial, reduce
from math import prod
from typing import TypeAlias

from tecomp.errors import LayoutError
from tecomp.ir.arith.extents import ceil_div
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Binary, BinOp, Const, Expr, Var, binary, index_value
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.layout.core.layout import Layout, linear_map, same_memory
from tecomp.layout.formats.arguments import (
    as_int_tuple,
    check_shape,
    digit,
    index_names,
    positive_numbers,
    quotient,
    remainder,
)
from tecomp.layout.formats.format import Format
from tecomp.layout.formats.stored_tensor import check_layout
from tecomp.poly.maps.analysis import StridedDigit, strided_digits
from tecomp.poly.maps.index_map import IndexMap


def strided(
    shape: Sequence[int], dtype: str, strides: Sequence[int], *, memory: str = "global"
) -> Layout:
    """Build the layout of an array with the given strides in elements.

    Args:
        shape: Shape of the tensor.
        dtype: Dtype of the elements.
        strides: Stride of each axis in elements, 0 or more.
        memory: Memory scope.

    Raises:
        LayoutError: If the layout is not injective, a stride is negative, or the number of strides
            differs from the number of axes.

    >>> strided((3, 5), "float32", (1, 4)).physical_shape
    (5, 4)
    """
    check_shape(shape)
    strides = as_int_tuple(strides, "strided: strides")
    if len(strides) != len(shape):
        raise LayoutError(
            "strided: got {stride_count} strides {strides} for {rank} axes {shape}; pass one "
            "stride per axis",
            kind="layout-text", stride_count=len(strides), strides=list(strides), rank=len(shape),
            shape=list(shape),
        )
    for axis, stride in enumerate(strides):
        if stride < 0:
            raise LayoutError(
                "strided: stride {stride!r} of axis {axis} is negative, but addresses must be "
                "non-negative; reverse the axis in the computation instead",
                kind="layout-text", stride=stride, axis=axis,
            )
    if (last := sum(n * stride for n, stride in zip(shape, strides, strict=True))) >= 2**63:
        raise LayoutError(
            "strided: strides {strides} spread {shape} over {last} addresses, which exceeds 64-bit "
            "indices; pass smaller strides",
            kind="limit-exceeded", strides=list(strides), shape=list(shape), last=last,
        )
    digits = [StridedDigit(axis, 1, n, stride) for axis, (n, stride) in enumerate(
        zip(shape, strides, strict=True))]
    return from_digits(shape, dtype, digits, memory=memory)


def column_major(shape: Sequence[int], dtype: str) -> Layout:
    """Build a column-major layout (Fortran order).

    Args:
        shape: Shape of the tensor.
        dtype: Dtype of the elements.

    Raises:
        LayoutError: If `shape` is not a shape or `dtype` does not exist.

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
    """Build the layout whose address is the sum of digits times strides.

    If the strides nest, that is, each is a multiple of the next smaller one and at least as large
    as the span of its digit, every digit becomes a physical axis; otherwise there is one physical
    axis.

    Args:
        shape: Shape of the tensor.
        dtype: Dtype of the elements.
        digits: All digits of all axes.
        swizzle: Triple (bits, base, shift): address bits `base` to `base + bits - 1` are XORed with
            the bits `shift` above them.
        memory: Memory scope.
    """
    check_shape(shape)
    axes = index_names(len(shape))
    nontrivial = [d for d in digits if d.size > 1]
    results = None if swizzle else _nest_digits(nontrivial, axes, shape)
    if results is None:
        results = [apply_swizzle(_sum(nontrivial, axes), swizzle)]
    return Layout(
        tuple(shape), DType(dtype), IndexMap(axes, tuple(results), ()), Format.plain(dtype),
        memory=memory,
    )


def apply_swizzle(place: Expr, swizzle: tuple[int, int, int] | None) -> Expr:
    """Return `place ^ ((place >> shift) & mask)`, where `mask` has `bits` bits from `base` on.

    Source:
        CuTe, Swizzle<B, M, S>.
    """
    if swizzle is None:
        return place
    bits, base, shift = swizzle
    mask = ((1 << bits) - 1) << base
    if shift >= 0:
        shifted = binary(BinOp.SHR, place, index_value(shift))
    else:
        shifted = binary(BinOp.SHL, place, index_value(-shift))
    return binary(BinOp.BITXOR, place, binary(BinOp.BITAND, shifted, index_value(mask)))


def _nest_digits(
    digits: Sequence[StridedDigit], axes: Sequence[Var], shape: Sequence[int]
) -> list[Expr] | None:
    """Return one physical axis per digit, or None if the strides do not nest."""
    inner = sorted(digits, key=lambda d: d.stride)
    results: list[Expr] = []
    if inner and inner[0].stride > 1:
        results.append(remainder(index_value(0), inner[0].stride))
    for d, next_digit in zip(inner, [*inner, None][1:], strict=True):
        span = d.size
        if next_digit is not None:
            if d.stride == 0 or next_digit.stride % d.stride or (
                next_digit.stride < d.stride * d.size
            ):
                return None
            span = next_digit.stride // d.stride
        value = quotient(axes[d.axis], d.low)
        if d.low * d.size < shape[d.axis] and span != d.size:
            value = remainder(value, d.size)
        results.append(remainder(value, span))
    return results[::-1] or [index_value(0)]


def _sum(digits: Sequence[StridedDigit], axes: Sequence[Var]) -> Expr:
    parts = [
        _times(digit(axes[d.axis], d.low, d.size), d.stride)
        for d in digits
    ]
    return reduce(partial(binary, BinOp.ADD), parts) if parts else index_value(0)


def _times(x: Expr, stride: int) -> Expr:
    return x if stride == 1 else binary(BinOp.MUL, x, index_value(stride))


def split_swizzle(index_map: IndexMap) -> tuple[IndexMap, tuple[int, int, int] | None]:
    """Split a map with one result into the map without swizzle and (bits, base, shift) or None."""
    match index_map.final_indices:
        case (Binary(BinOp.BITXOR, address, Binary(BinOp.BITAND, shifted, Const(int(mask)))),):
            match shifted:
                case Binary(BinOp.SHR, source, Const(int(shift))) if structural_equal(
                    source, address
                ):
                    base = (mask & -mask).bit_length() - 1
                    bits = (mask >> base).bit_length()
                    unswizzled = IndexMap(index_map.initial_indices, (address,), ())
                    return unswizzled, (bits, base, int(shift))
    return index_map, None


Nested: TypeAlias = "int | tuple[Nested, ...]"
Swizzle: TypeAlias = "tuple[int, int, int]"

_MAX_DEPTH = 50

_TOKEN = re.compile(r"\d{1,18}|[(),:]")
_SWIZZLE = re.compile(r"Swizzle<(\d{1,18}),(\d{1,18}),(-?\d{1,18})>o(?:0o)?")


def cute(text: str, dtype: str, *, memory: str = "global") -> Layout:
    """Parse a layout in CuTe notation.

    Each mode of the text is an axis of the tensor; within a mode the first number is the fastest.

    Args:
        text: Text `shape:stride`, optionally after `Swizzle<B,M,S> o 0 o`.
        dtype: Dtype of the elements.
        memory: Memory scope.

    Raises:
        LayoutError: If the text does not parse, shape and stride are nested differently, or the
            layout is not injective, as with a stride of 0.

    Source:
        CUTLASS, "CuTe layouts".

    >>> cute("((2,2),3):((24,2),8)", "float32").offset((3, 1))
    34
    """
    check_kind(text, str, "cute: the text", 'write one such as "(8,8):(8,1)"', LayoutError)
    short = text.replace(" ", "")
    swizzle = None
    if (match := _SWIZZLE.match(short)) is not None:
        swizzle = (int(match[1]), int(match[2]), int(match[3]))
        short = short[match.end() :]
    reader = _Reader(short)
    shape = reader.nested()
    reader.take(":")
    stride = reader.nested()
    reader.end()
    modes = shape if isinstance(shape, tuple) else (shape,)
    strides = stride if isinstance(shape, tuple) else (stride,)
    if not isinstance(strides, tuple) or not _are_equal(modes, strides):
        raise _nested_differently("cute", text)
    digits: list[StridedDigit] = []
    for axis, (mode, mode_stride) in enumerate(zip(modes, strides, strict=True)):
        low = 1
        for size, step in zip(_flat(mode), _flat(mode_stride), strict=True):
            digits.append(StridedDigit(axis, low, size, step))
            low *= size
    extents = [prod(_flat(mode)) for mode in modes]
    return from_digits(extents, dtype, digits, swizzle=swizzle, memory=memory)


def cute_text(layout: Layout) -> str:
    """Return a layout in CuTe notation, which can express padding between elements only.

    Raises:
        LayoutError: If the notation cannot express the layout.

    >>> cute_text(Layout.of((128, 256), "float16", lambda i, j: [j // 64, i, j % 64]))
    '(128,(64,4)):(64,(1,8192))'
    """
    check_layout(layout, "cute_text")
    base, swizzle = split_swizzle(layout.index_map)
    digits = strided_digits(base.on(layout.shape))
    if digits is None:
        raise _unsaid(layout, "an address is not a sum of digits times strides")
    shape: list[Nested] = []
    stride: list[Nested] = []
    for axis, extent in enumerate(layout.shape):
        axis_digits = sorted((s for s in digits if s.axis == axis), key=lambda d: d.low)
        sizes = [
            (outer.low if outer else extent) // d.low
            for d, outer in zip(axis_digits, [*axis_digits[1:], None], strict=True)
        ]
        if prod(sizes) != extent:
            raise _unsaid(layout, f"the last block of axis {axis} is not full")
        shape.append(_mode(sizes or [1]))
        stride.append(_mode([d.stride for d in axis_digits] or [0]))
    text = f"{_format_modes(_mode(shape))}:{_format_modes(_mode(stride))}"
    if swizzle is not None:
        text = f"Swizzle<{','.join(map(str, swizzle))}>o0o{text}"
    if layout.shape and not _says(text, layout):
        raise _unsaid(layout, "an address is not a sum of digits times strides")
    return text


def cute_complement(text: str, size: int) -> str:
    """Return the complement of a layout: the layout of the addresses that it skips.

    The modes of both layouts together reach every address below `size`, rounded up to a multiple
    of the extent of the layout, exactly once.

    Args:
        text: Text `shape:stride` in CuTe notation.
        size: Number of addresses to cover.

    Raises:
        LayoutError: If `text` does not parse, if the layout is not injective, or if a stride is
            not a multiple of the number of addresses that the smaller strides reach.

    Source:
        CUTLASS, "CuTe layout algebra", complement.

    >>> cute_complement("4:2", 24), cute_complement("(4,6):(1,4)", 24)
    ('(2,3):(1,8)', '1:0')
    """
    check_kind(text, str, "cute_complement: the text", 'write one such as "4:2"', LayoutError)
    total = positive_numbers([size], "cute_complement: the size")[0]
    reader = _Reader(text.replace(" ", ""))
    shape = reader.nested()
    reader.take(":")
    stride = reader.nested()
    reader.end()
    if not _are_equal(shape, stride):
        raise _nested_differently("cute_complement", text)
    modes = sorted((step, n) for n, step in zip(_flat(shape), _flat(stride), strict=True) if n > 1)
    found: list[tuple[int, int]] = []
    covered = 1
    for step, n in modes:
        if step == 0 or step % covered:
            raise LayoutError(
                "cute_complement: `{text}` has no complement: stride {step} is not a multiple of "
                "{reach}, the number of addresses that the smaller strides cover; pass strides "
                "that divide each other",
                kind="layout-text", text=text, step=step, reach=covered,
            )
        found.append((step // covered, covered))
        covered = step * n
    found.append((ceil_div(total, covered), covered))
    merged = _coalesce([(n, step) for n, step in found if n > 1])
    sizes, steps = ([pair[k] for pair in merged] for k in (0, 1))
    return f"{_format_modes(_mode(sizes or [1]))}:{_format_modes(_mode(steps or [0]))}"


def _coalesce(modes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge modes with the preceding mode if both together are contiguous."""
    found: list[tuple[int, int]] = []
    for n, step in modes:
        if found and found[-1][0] * found[-1][1] == step:
            found[-1] = found[-1][0] * n, found[-1][1]
        else:
            found.append((n, step))
    return found


def _nested_differently(where: str, text: str) -> LayoutError:
    return LayoutError(
        "{where}: shape and stride of `{text}` have different nesting; specify one stride per "
        "number of the shape",
        kind="layout-text", where=where, text=text,
    )


def _says(text: str, layout: Layout) -> bool:
    parsed = cute(text, layout.dtype)
    return same_memory(parsed, layout) or linear_map(parsed).is_equivalent_to(
        linear_map(layout), layout.shape
    )


def _mode(numbers: Sequence[Nested]) -> Nested:
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


def _format_modes(value: Nested) -> str:
    return str(value) if isinstance(value, int) else f"({','.join(map(_format_modes, value))})"


def _flat(value: Nested) -> list[int]:
    return [value] if isinstance(value, int) else [n for part in value for n in _flat(part)]


def _are_equal(a: Nested, b: Nested) -> bool:
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int)
    return len(a) == len(b) and all(map(_are_equal, a, b))


def _unsaid(layout: Layout, reason: str) -> LayoutError:
    return LayoutError(
        "cute_text: {index_map} on {shape} cannot be expressed in CuTe notation: {reason}",
        kind="layout-text", index_map=layout.index_map, shape=list(layout.shape), reason=reason,
    )


class _Reader:
    """Recursive-descent reader of CuTe notation."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def _peek(self) -> str:
        match = _TOKEN.match(self._text, self._place)
        return match[0] if match else ""

    def take(self, token: str) -> None:
        """Consume one expected token."""
        if not token or self._peek() != token:
            raise self._unreadable(f"expected `{token}`")
        self._place += len(token)

    def nested(self, depth: int = 0) -> Nested:
        """Read a number or a nested list."""
        if depth > _MAX_DEPTH:
            raise self._unreadable(f"expected at most {_MAX_DEPTH} lists inside each other")
        token = self._peek()
        if token.isdigit():
            self.take(token)
            return int(token)
        if token != "(":
            raise self._unreadable("expected a number or `(`")
        self.take("(")
        parts = [self.nested(depth + 1)]
        while self._peek() == ",":
            self.take(",")
            parts.append(self.nested(depth + 1))
        self.take(")")
        return tuple(parts)

    def end(self) -> None:
        """Check that no text follows."""
        if self._place < len(self._text):
            raise self._unreadable("expected the end")

    def _unreadable(self, expected: str) -> LayoutError:
        return LayoutError(
            "cute: `{text}` does not parse at position {position}: {subject}, got `{rest}`; write "
            "e.g. (4,8):(8,1)",
            kind="layout-text", text=self._text, position=self._place, subject=expected,
            rest=self._text[self._place:],
        )
