"""XLA tiled layouts: `bf16[16,256]{1,0:T(8,128)(2,1)}`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tecomp.errors import LayoutError
from tecomp.ir.arith.extents import ceil_div
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.dtype import SCALARS, DType
from tecomp.ir.nodes.expr import BinOp, Expr, binary, index_value
from tecomp.layout.core.layout import Layout, same_memory
from tecomp.layout.formats.arguments import check_shape, index_names, quotient, remainder
from tecomp.layout.formats.format import Format
from tecomp.layout.formats.stored_tensor import check_layout
from tecomp.poly.maps.analysis import StridedDigit, strided_digits
from tecomp.poly.maps.index_map import IndexMap

_PREFIXES = (("uint", "u"), ("int", "s"), ("bfloat", "bf"), ("float", "f"))


def _type_name(dtype: str) -> str:
    """Return the name of a dtype in XLA, such as `f8e4m3fn` for `float8_e4m3fn`."""
    if dtype == "bool":
        return "pred"
    word, short = next(pair for pair in _PREFIXES if dtype.startswith(pair[0]))
    return short + dtype.removeprefix(word).replace("_", "")


_TYPES = {_type_name(dtype): dtype for dtype in SCALARS}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}
_TEXT = re.compile(
    r"(?P<type>[a-z]\w*)\[(?P<shape>(?:\d{1,18}(?:,\d{1,18})*)?)\]"
    r"\{(?P<order>(?:\d{1,18}(?:,\d{1,18})*)?)(?::T(?P<tiles>(?:\((?:\d{1,18}|\*)(?:,(?:\d{1,18}|\*))*\))+))?(?:S\((?P<space>\d{1,18})\))?\}"
)
_JOINED = -1


@dataclass(frozen=True, slots=True)
class _TiledAxis:
    """An axis during tiling: its index expression and extent."""

    index: Expr
    extent: int


def xla(text: str) -> Layout:
    """Parse a layout in XLA notation.

    Args:
        text: Type, shape, axes from minor to major, and tiles from the outermost to the innermost;
            `*` in a tile merges an axis with the next minor one. A memory space `S(n)` becomes the
            scope `space.n`.

    Raises:
        LayoutError: If the text does not parse, the axes are not a permutation, or a tile has more
            axes than are available.

    Source:
        OpenXLA, "Tiled layout".

    >>> xla("f32[3,5]{1,0:T(2,2)}").offset((2, 3))
    17
    """
    check_kind(text, str, "xla: the text", 'write one such as "f32[3,5]{1,0}"', LayoutError)
    match = _TEXT.fullmatch(text.replace(" ", ""))
    if match is None:
        raise _unreadable(text.replace(" ", ""))
    if match["type"] not in _TYPES:
        raise LayoutError(
            "xla: unsupported type `{type}`; supported types: {types}",
            kind="layout-text", type=match["type"], types=", ".join(sorted(_TYPES)),
        )
    shape, order = _numbers(match["shape"]), _numbers(match["order"])
    tiles = [
        tuple(_JOINED if n == "*" else int(n) for n in group.split(","))
        for group in re.findall(r"\(([^)]*)\)", match["tiles"] or "")
    ]
    memory = "global" if match["space"] is None else f"space.{match['space']}"
    return xla_layout(shape, _TYPES[match["type"]], order, tiles, memory=memory)


def xla_layout(
    shape: Sequence[int],
    dtype: str,
    minor_to_major: Sequence[int],
    tiles: Sequence[Sequence[int]] = (),
    *,
    memory: str = "global",
) -> Layout:
    """Build a layout from the minor-to-major axis order and tiles; -1 in a tile merges axes.

    >>> xla_layout((5, 130), "float32", (1, 0), [(8, 128)]).physical_shape
    (1, 2, 8, 128)
    """
    check_shape(shape)
    if sorted(minor_to_major) != list(range(len(shape))):
        raise LayoutError(
            "xla: the axes {minor_to_major} are not a permutation of the axes of {shape}; list "
            "each once, from minor to major",
            kind="layout-text", minor_to_major=list(minor_to_major), shape=list(shape),
        )
    variables = index_names(len(shape))
    axes = [_TiledAxis(variables[k], shape[k]) for k in reversed(minor_to_major)]
    for tile in tiles:
        axes = _tile(axes, tile, shape)
    results = [axis.index for axis in axes]
    return Layout(
        tuple(shape), DType(dtype), IndexMap(variables, tuple(results or [index_value(0)]), ()),
        Format.plain(dtype), memory=memory,
    )


def _tile(axes: list[_TiledAxis], tile: Sequence[int], shape: Sequence[int]) -> list[_TiledAxis]:
    """Split the last axes into tiles."""
    if len(tile) > len(axes) or tile[-1] == _JOINED:
        raise LayoutError(
            "xla: tile {tile} does not fit the {axis_count} axes of {shape} at this level; a tile "
            "must have at most as many sizes as there are axes, and its last size must be a number",
            kind="layout-text", tile=_tile_text(tile), axis_count=len(axes), shape=list(shape),
        )
    if any(size < 1 and size != _JOINED for size in tile):
        raise LayoutError(
            "xla: tile {tile} contains a size of 0",
            kind="layout-text", tile=_tile_text(tile),
        )
    leading = axes[: len(axes) - len(tile)]
    joined: list[tuple[_TiledAxis, int]] = []
    pending: _TiledAxis | None = None
    for axis, size in zip(axes[len(leading):], tile, strict=True):
        merged = axis if pending is None else _join(pending, axis)
        pending = merged if size == _JOINED else None
        if size != _JOINED:
            joined.append((merged, size))
    outer = [_TiledAxis(quotient(a.index, size), ceil_div(a.extent, size)) for a, size in joined]
    inner = [_TiledAxis(remainder(a.index, size), size) for a, size in joined]
    return [*leading, *outer, *inner]


def _join(major: _TiledAxis, minor: _TiledAxis) -> _TiledAxis:
    scaled = binary(BinOp.MUL, major.index, index_value(minor.extent))
    return _TiledAxis(binary(BinOp.ADD, scaled, minor.index), major.extent * minor.extent)


def xla_text(layout: Layout) -> str:
    """Return a layout in XLA notation.

    Raises:
        LayoutError: If the notation cannot express the layout.

    >>> xla_text(Layout.of((16, 256), "float32", lambda i, j: [i // 8, j // 128, i % 8, j % 128]))
    'f32[16,256]{1,0:T(8,128)}'
    """
    check_layout(layout, "xla_text")
    digits = strided_digits(layout.index_map.on(layout.shape))
    if layout.storage.name not in _NAMES or digits is None:
        raise _unsaid(layout)
    seen_axes = list(dict.fromkeys(d.axis for d in digits))
    missing = [axis for axis in range(len(layout.shape)) if axis not in seen_axes]
    orders = (sorted(seen_axes + missing), [*missing, *seen_axes])
    candidates = [(order[::-1], _tiles(digits, order, layout.shape)) for order in orders]
    for order, tiles in sorted(candidates, key=lambda text: len(text[1])):
        parsed = _layout_or_none(layout, order, tiles)
        if parsed is not None and same_memory(layout, parsed):
            space = re.fullmatch(r"space\.(\d{1,18})", layout.memory)
            suffix = f":T{''.join(map(_tile_text, tiles))}" if tiles else ""
            suffix += f"S({space[1]})" if space else ""
            return (
                f"{_NAMES[layout.storage.name]}[{','.join(map(str, layout.shape))}]"
                f"{{{','.join(map(str, order))}{suffix}}}"
            )
    raise _unsaid(layout)


def _layout_or_none(
    layout: Layout, minor_to_major: Sequence[int], tiles: Sequence[Sequence[int]]
) -> Layout | None:
    try:
        return xla_layout(
            layout.shape, layout.dtype, minor_to_major, tiles, memory=layout.memory
        )
    except LayoutError:
        return None


def _tiles(
    digits: Sequence[StridedDigit], order: Sequence[int], shape: Sequence[int]
) -> list[tuple[int, ...]]:
    """Return candidate tiles for all digits but the first of each axis, in this axis order."""
    queue = list(digits)
    for axis in order:
        # A digit with more values than its axis has extent is the only one there and forms a tile.
        if queue and queue[0].axis == axis and shape[axis] > queue[0].low * (queue[0].size - 1):
            queue.pop(0)
    tiles: list[tuple[int, ...]] = []
    axes = list(order)
    while queue:
        axes = axes[min(axes.index(d.axis) for d in queue) :]
        tiles.append(
            tuple(prod(d.size for d in queue if d.axis == axis) for axis in axes)
        )
        before = len(queue)
        for axis in axes:
            if queue and queue[0].axis == axis:
                queue.pop(0)
        if len(queue) == before:
            break
    return tiles


def _tile_text(tile: Sequence[int]) -> str:
    return f"({','.join('*' if n == _JOINED else str(n) for n in tile)})"


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(",")) if text else ()


def _unsaid(layout: Layout) -> LayoutError:
    return LayoutError(
        "xla_text: {index_map} on {storage}{shape} cannot be expressed in XLA notation, which has "
        "each axis once, followed by tiles of the last axes",
        kind="layout-text", index_map=layout.index_map, storage=layout.storage.name,
        shape=list(layout.shape),
    )


_PARTS = (
    r"[a-z]\w*", r"\[", r"[\d,]*", r"\]", r"\{", r"[\d,]*", r"(?::T(?:\([\d,*]+\))+)?",
    r"(?:S\(\d{1,18}\))?", r"\}",
)


def _unreadable(text: str) -> LayoutError:
    """Return the error for the position at which the text stops being a layout."""
    position = 0
    for part in _PARTS:
        match = re.compile(part).match(text, position)
        if match is None:
            break
        position = match.end()
    return LayoutError(
        "xla: cannot parse `{text}` at position {position}, `{rest}`; write e.g. "
        "f32[16,256]{{1,0:T(8,128)}}",
        kind="layout-text", text=text, position=position, rest=text[position:],
    )
