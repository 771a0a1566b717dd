"""How convolutions are cut: tiles of sums in registers, and rows whose input stays in a cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tecomp import Target, te
from tecomp.schedules.structure.convolutions import Convolution
from tecomp.schedules.structure.sizes import ceil_div, product
from tecomp.schedules.tiling.tiles import RegisterTile, balanced, core_of, used_share

_ROWS = 4
"""Rows of a block where it is open how long they are."""
_LOAD = 0.5
"""What a load beside the products takes of the time of one."""


@dataclass(frozen=True)
class Plan:
    """How a convolution is cut into blocks.

    Attributes:
        tile: sums in registers; its rows are outputs along the axis whose operand is read one value
            at a time, its columns those along the other.
        rows: output rows whose input stays in the second cache.
    """

    tile: RegisterTile
    rows: int


def plan(d: Convolution, target: Target) -> Plan:
    """The tile that wastes least of itself at the edges, among those that fit the registers.

    Sums, vectors and one single value have to fit. At least 8 sums are needed: as many as two
    multipliers have under way. Depthwise, both operands are vectors, and those of the image stay
    for several taps: sums get half of the registers.
    """
    core, total, depthwise = core_of(target), d.total, d.depthwise
    lanes = core.lanes(total.dtype)
    _, a, b, c = total.shape
    transposed = d.first and not depthwise
    along, across = (c, a) if transposed else (b, c)
    own = _channels_of_group(d)
    if own is not None:
        # A vector of channels of several groups would gather its inputs.
        while own % lanes:
            lanes //= 2
    best, chosen = 0.0, (1, 1)
    for vectors in (4, 3, 2, 1):
        if vectors > 1 and isinstance(across, int) and across < vectors * lanes:
            # The only tile would be a part of one, with masks in its innermost loop.
            continue
        room = core.vector_registers // 2 if depthwise else core.vector_registers - 1 - vectors
        for single in range(1, max(room // vectors, 1) + 1):
            if own is not None and own % (vectors * lanes):
                continue
            used = used_share(along, single) * used_share(across, vectors * lanes)
            # Each step loads `single` values, and vectors that come from farther away: twice
            # their price. The products hide a part of that.
            work = single * vectors / (single + 2 * vectors)
            score = used * min(single * vectors / 8, 1.0) / (1 + _LOAD / work)
            if score > best * 1.001:
                best, chosen = score, (single, vectors)
    single, vectors = chosen
    rows = _rows(d, target, transposed)
    return Plan(RegisterTile(single, vectors * lanes, lanes), rows)


def _rows(d: Convolution, target: Target, transposed: bool) -> int:
    """Output rows whose input stays in the second cache, in as many blocks for each core.

    Images that are transposed are there twice. Of those that are not, a block has one channel, if
    that comes first; then there are blocks enough.
    """
    core, total, image, first = core_of(target), d.total, d.image, d.first
    images, height = total.shape[0], total.shape[2 if first else 1]
    if first and not transposed:
        row_bytes, blocks = _bytes(image, [3]), product(total.shape[:2])
    elif first:
        row_bytes, blocks = _bytes(image, [1, 3]) + _bytes(total, [1, 3]), images
    else:
        row_bytes, blocks = _bytes(image, [2, 3]), images
    is_known = all(isinstance(extent, int) for extent in image.shape[1:])
    most = max(core.second_cache // 4 // (row_bytes or 1), 1) if is_known else _ROWS
    is_even = isinstance(blocks, int) and blocks % core.count == 0
    if isinstance(height, int) and not is_even:
        most = min(most, max(ceil_div(height, core.count), 1))
    rows: int = balanced(height, most, share=1 if is_even else core.count)
    return rows


def _channels_of_group(d: Convolution) -> int | None:
    """Output channels that see the same input channels; None where all do, or each its own."""
    *_, channel = d.axes_of(d.total)
    if d.groups == 1 or d.depthwise or not isinstance(channel.extent, int):
        return None
    return int(channel.extent // d.groups)


def _bytes(x: te.Tensor, axes: Sequence[int]) -> int:
    """Bytes along some axes."""
    sizes = [x.shape[k] for k in axes]
    return x.dtype.bytes * prod(n if isinstance(n, int) else 64 for n in sizes)
