"""oneDNN blocked layout tags."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from tecomp.errors import LayoutError
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.dtype import DType
from tecomp.layout.core.layout import Layout, same_memory
from tecomp.layout.formats.arguments import check_shape, digit, index_names, quotient
from tecomp.layout.formats.format import Format
from tecomp.layout.formats.stored_tensor import check_layout
from tecomp.poly.maps.analysis import strided_digits
from tecomp.poly.maps.index_map import IndexMap

_IMAGES = "ncdhw"
_WEIGHTS = "goidhw"
_TAG = re.compile(r"([A-Za-z]+?)((?:\d{1,18}[a-z])*)")


_AXES = 'pass one letter per axis, such as "nchw"'


def blocked(shape: Sequence[int], dtype: str, tag: str, *, axes: str | None = None) -> Layout:
    """Build the layout of a oneDNN tag.

    Letters are axes, from the slowest to the fastest. A capital letter counts the blocks of an
    axis, whose elements follow at the end with the block size: `nChw16c` keeps 16 channels
    together. A partial block is padded with zeros.

    Args:
        shape: Shape of the tensor, with axes in the order of `axes`.
        dtype: Dtype of the elements.
        tag: Tag.
        axes: Letters of the axes in the order of the shape. Default: derived from the letters:
            `ncdhw` for images, `goidhw` for weights, or the alphabet.

    Raises:
        LayoutError: If the tag does not parse or does not match the shape.

    Source:
        oneDNN, "Understanding memory formats".

    >>> blocked((2, 17, 5, 4), "float32", "nChw8c").physical_shape
    (2, 3, 5, 4, 8)
    """
    check_shape(shape)
    check_kind(axes, str | None, "blocked: axes", _AXES, LayoutError)
    check_kind(tag, str, "blocked: the tag", 'write one such as "nChw8c"', LayoutError)
    outer, blocks = _parse(tag)
    order = axes if axes is not None else _order(outer.lower(), tag)
    if len(order) != len(shape):
        raise LayoutError(
            "blocked: `{tag}` describes {order_count} axes, {order}, but the shape {shape} has "
            "{rank}",
            kind="layout-text", tag=tag, order_count=len(order), order=order, shape=list(shape),
            rank=len(shape),
        )
    if sorted(order) != sorted(outer.lower()):
        raise LayoutError(
            "blocked: `{tag}` contains the axes {outer}, but the tensor has {order}",
            kind="layout-text", tag=tag, outer=outer.lower(), order=order,
        )
    if unknown := [letter for _, letter in blocks if letter not in order]:
        raise LayoutError(
            "blocked: `{tag}` blocks the unknown axis {strange}; use one of the axes {order}",
            kind="layout-text", tag=tag, strange=unknown[0], order=order,
        )
    inner: dict[str, int] = dict.fromkeys(order, 1)
    for size, letter in blocks:
        inner[letter] *= size
    _check_capitals(tag, outer, blocks)
    variables = index_names(len(shape))
    var_of = dict(zip(order, variables, strict=True))
    results = [quotient(var_of[letter], inner[letter]) for letter in outer.lower()]
    for size, letter in blocks:
        inner[letter] //= size
        results.append(digit(var_of[letter], inner[letter], size))
    return Layout(
        tuple(shape), DType(dtype), IndexMap(variables, tuple(results), ()), Format.plain(dtype),
        pad_value=0 if blocks else None,
    )


def blocked_tag(layout: Layout, axes: str | None = None) -> str:
    """Return the oneDNN tag of a layout.

    Args:
        layout: Layout.
        axes: Letters of the axes. Default: the alphabet.

    Raises:
        LayoutError: If no tag describes the layout.

    >>> blocked_tag(blocked((2, 17, 5, 4), "float32", "nChw8c"), axes="nchw")
    'nChw8c'
    """
    check_layout(layout, "blocked_tag")
    check_kind(axes, str | None, "blocked_tag: axes", _AXES, LayoutError)
    letters = axes if axes is not None else "abcdefghijkl"[: len(layout.shape)]
    digits = strided_digits(layout.index_map.on(layout.shape))
    if digits is None or len(letters) != len(layout.shape):
        raise _no_tag(layout)
    outer: list[int] = []
    blocks: list[tuple[int, str]] = []
    for d in digits:
        is_short = layout.shape[d.axis] <= d.low * (d.size - 1)
        if d.axis not in outer and not is_short:
            outer.append(d.axis)
        elif d.size > 1:
            blocks.append((d.size, letters[d.axis]))
    for axis in range(len(layout.shape)):
        # An axis with at most one block has block count 1, whose position is arbitrary.
        if axis not in outer:
            before = (k for k, other in enumerate(outer) if other > axis)
            outer.insert(next(before, len(outer)), axis)
    cut = {letter for _, letter in blocks}
    names = "".join(
        letter.upper() if letter in cut else letter for letter in (letters[k] for k in outer)
    )
    tag = names + "".join(f"{size}{letter}" for size, letter in blocks)
    if not same_memory(layout, blocked(layout.shape, layout.dtype, tag, axes=letters)):
        raise _no_tag(layout)
    return tag


def _no_tag(layout: Layout) -> LayoutError:
    return LayoutError(
        "blocked_tag: {index_map} on {shape} cannot be expressed as a tag; a tag has each axis "
        "once, followed by blocks without gaps",
        kind="layout-text", index_map=layout.index_map, shape=list(layout.shape),
    )


def _parse(tag: str) -> tuple[str, list[tuple[int, str]]]:
    match = _TAG.fullmatch(tag)
    if match is None:
        position = _end_of_prefix(tag)
        raise LayoutError(
            "blocked: cannot parse `{tag}` at position {position}, `{rest}`; write the letters of "
            "the axes, then the blocks, as in nChw16c",
            kind="layout-text", tag=tag, position=position, rest=tag[position:],
        )
    blocks = [(int(n), letter) for n, letter in re.findall(r"(\d{1,18})([a-z])", match[2])]
    return match[1], blocks


def _end_of_prefix(tag: str) -> int:
    match = re.match(r"[A-Za-z]+(?:\d{1,18}[a-z])*", tag)
    return match.end() if match else 0


def _order(letters: str, tag: str) -> str:
    if len(set(letters)) != len(letters):
        duplicate = next(x for k, x in enumerate(letters) if x in letters[:k])
        raise LayoutError(
            "blocked: duplicate axis {twice} in `{tag}`; write its blocks at the end, each with "
            "its size",
            kind="layout-text", tag=tag, twice=duplicate,
        )
    if sorted(letters) == [chr(ord("a") + k) for k in range(len(letters))]:
        return "".join(sorted(letters))
    for family in (_IMAGES, _WEIGHTS):
        if set(letters) <= set(family):
            return "".join(x for x in family if x in letters)
    raise LayoutError(
        "blocked: the axes of `{tag}` do not match {images}, {weights} or the alphabet; specify "
        "their order in the shape with axes=",
        kind="layout-text", tag=tag, images=_IMAGES, weights=_WEIGHTS,
    )


def _check_capitals(tag: str, outer: str, blocks: list[tuple[int, str]]) -> None:
    cut = {letter for _, letter in blocks}
    for letter in outer:
        if letter.isupper() != (letter.lower() in cut):
            has = "has no block" if letter.isupper() else "has blocks"
            raise LayoutError(
                "blocked: axis {letter} of `{tag}` {has}; an axis must be a capital letter if and "
                "only if it is blocked",
                kind="layout-text", letter=letter, tag=tag, has=has,
            )
    if prod(size for size, _ in blocks) == 0:
        raise LayoutError(
            "blocked: `{tag}` contains a block of size 0",
            kind="layout-text", tag=tag,
        )
