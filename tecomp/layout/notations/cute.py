"""CuTe's layouts: `((2,2),3):((24,2),8)`, nested shapes and strides, the first fastest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import TypeAlias

from tecomp.errors import LayoutError
from tecomp.ir.language.given import check_kind
from tecomp.layout.descriptions.layout import Layout
from tecomp.layout.descriptions.memory import linear_map, same_memory
from tecomp.layout.notations.strides import from_digits, unswizzled
from tecomp.layout.placement.stored import check_layout
from tecomp.poly.maps.digits import StridedDigit, strided_digits

Nested: TypeAlias = "int | tuple[Nested, ...]"
Swizzle: TypeAlias = "tuple[int, int, int]"

_DEEPEST = 50

_TOKEN = re.compile(r"\d+|[(),:]")
_SWIZZLE = re.compile(r"Swizzle<(\d+),(\d+),(-?\d+)>o(?:0o)?")


def cute(text: str, dtype: str, *, memory: str = "global") -> Layout:
    """The layout that CuTe's notation says.

    Each mode of the text is an axis of the tensor; within a mode the first number is the fastest.

    Args:
        text: `shape:stride`, perhaps after `Swizzle<B,M,S> o 0 o`.
        dtype: type of the elements.
        memory: scope of the memory.

    Raises:
        LayoutError: the text does not parse, shape and stride are not nested alike, or two
            elements share a place, as with a stride of 0.

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
    if not isinstance(strides, tuple) or not _alike(modes, strides):
        raise LayoutError(
            f"cute: `{text}` nests its shape and its stride differently; give a stride for each "
            "number of the shape",
            kind="layout-text",
        )
    digits: list[StridedDigit] = []
    for axis, (mode, along) in enumerate(zip(modes, strides, strict=True)):
        low = 1
        for size, step in zip(_flat(mode), _flat(along), strict=True):
            digits.append(StridedDigit(axis, low, size, step))
            low *= size
    extents = [prod(_flat(mode)) for mode in modes]
    return from_digits(extents, dtype, digits, swizzle=swizzle, memory=memory)


def cute_text(layout: Layout) -> str:
    """A layout in CuTe's notation; padding between elements only, for it knows no other.

    Raises:
        LayoutError: the notation cannot say it.

    >>> cute_text(Layout.of((128, 256), "float16", lambda i, j: [j // 64, i, j % 64]))
    '(128,(64,4)):(64,(1,8192))'
    """
    check_layout(layout, "cute_text")
    base, swizzle = unswizzled(layout.index_map)
    digits = strided_digits(base, layout.shape)
    if digits is None:
        raise _unsaid(layout, "a place is no sum of digits times strides")
    shape: list[Nested] = []
    stride: list[Nested] = []
    for axis, extent in enumerate(layout.shape):
        own = sorted((s for s in digits if s.axis == axis), key=lambda each: each.low)
        sizes = [
            (above.low if above else extent) // each.low
            for each, above in zip(own, [*own[1:], None], strict=True)
        ]
        if prod(sizes) != extent:
            raise _unsaid(layout, f"the last block of axis {axis} is not full")
        shape.append(_mode(sizes or [1]))
        stride.append(_mode([each.stride for each in own] or [0]))
    text = f"{_written(_mode(shape))}:{_written(_mode(stride))}"
    if swizzle is not None:
        text = f"Swizzle<{','.join(map(str, swizzle))}>o0o{text}"
    if layout.shape and not _says(text, layout):
        raise _unsaid(layout, "a place is no sum of digits times strides")
    return text


def _says(text: str, layout: Layout) -> bool:
    again = cute(text, layout.dtype)
    return same_memory(again, layout) or linear_map(again).is_equivalent_to(
        linear_map(layout), layout.shape
    )


def _mode(numbers: Sequence[Nested]) -> Nested:
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


def _written(value: Nested) -> str:
    return str(value) if isinstance(value, int) else f"({','.join(map(_written, value))})"


def _flat(value: Nested) -> list[int]:
    return [value] if isinstance(value, int) else [n for part in value for n in _flat(part)]


def _alike(a: Nested, b: Nested) -> bool:
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int)
    return len(a) == len(b) and all(map(_alike, a, b))


def _unsaid(layout: Layout, why: str) -> LayoutError:
    return LayoutError(
        f"cute_text: CuTe's notation does not say {layout.index_map} on "
        f"{list(layout.shape)}: {why}",
        kind="layout-text",
    )


class _Reader:
    """The tokens of a text, and how far they have been read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def _peek(self) -> str:
        match = _TOKEN.match(self._text, self._place)
        return match[0] if match else ""

    def take(self, token: str) -> None:
        """Read one token."""
        if not token or self._peek() != token:
            raise self._unreadable(f"expected `{token}`")
        self._place += len(token)

    def nested(self, depth: int = 0) -> Nested:
        """Read a number, or a list of what is nested in it."""
        if depth > _DEEPEST:
            raise self._unreadable(f"expected at most {_DEEPEST} lists inside each other")
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
        """Nothing may follow."""
        if self._place < len(self._text):
            raise self._unreadable("expected the end")

    def _unreadable(self, what: str) -> LayoutError:
        return LayoutError(
            f"cute: `{self._text}` does not parse at position {self._place}: {what}, got "
            f"`{self._text[self._place:]}`; write e.g. (4,8):(8,1)",
            kind="layout-text",
        )
