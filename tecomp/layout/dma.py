"""DMA loop nests and contiguous runs of copies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import gcd, prod
from typing import ClassVar

import numpy as np

from tecomp.drawing.drawable import Pictured
from tecomp.errors import LayoutError
from tecomp.ir.arith.extents import ceil_div
from tecomp.ir.arith.intervals import Box
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.layout.formats.arguments import as_int_tuple
from tecomp.layout.formats.stored_tensor import StoredTensor, check_layout, row_major
from tecomp.poly.accesses.contiguous_runs import Method, RunStatistics, find_runs, nests_of_runs
from tecomp.poly.accesses.strided_nests import (
    AddressFunction,
    Nest,
    NotDigitsError,
    TooManyError,
    nests,
)
from tecomp.poly.maps.brute_force import LIMIT

MOST_NESTS = 1024
"""Maximum number of nests of a copy."""

_NAMES = "ijklmnpqrstuvw"


@dataclass(frozen=True, slots=True)
class DmaNest(Pictured):
    """Loop nest that copies one element per iteration, with strides and offsets in elements.

    Attributes:
        ranges: Trip count of each loop, outermost first.
        device_strides: Device stride of each loop; not increasing from the outermost inwards.
        host_strides: Host stride of each loop.
        device_offset: Device offset of the first element.
        host_offset: Host offset of the first element.
        host_axes: Tensor axis on the host along which each loop runs; () if unknown.

    Source:
        RFC 0047 (tiled tensors), "Contiguous Tiles", with names for the tuples and offsets.

    >>> nest = DmaNest((3, 8), (64, 1), (200, 1), host_offset=192)
    >>> nest.ranges, nest.device_strides, nest.host_strides, nest.size
    ((3, 8), (64, 1), (200, 1), 24)
    >>> nest.device_offset, nest.host_offset, nest.host_axes
    (0, 192, ())
    """

    _drawn_by: ClassVar[str] = "copies:draw_dma_nest"

    ranges: tuple[int, ...]
    device_strides: tuple[int, ...]
    host_strides: tuple[int, ...]
    device_offset: int = 0
    host_offset: int = 0
    host_axes: tuple[int, ...] = field(default=(), compare=False)

    @property
    def size(self) -> int:
        """Number of elements that the nest copies."""
        return prod(self.ranges)

    def as_tuples(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Return ranges, device strides and host strides, in the order that the RFC prints.

        >>> DmaNest((3, 8), (64, 1), (200, 1)).as_tuples()
        ((3, 8), (64, 1), (200, 1))
        """
        return self.ranges, self.device_strides, self.host_strides

    def __str__(self) -> str:
        text = str(self.as_tuples()).replace(",)", ")")
        if self.device_offset == 0 and self.host_offset == 0:
            return text
        return f"{text} from host {self.host_offset} to device {self.device_offset}"

    def as_loops(self) -> str:
        """Format the nest as loops in the notation of the RFC.

        Loops along the same host axis are parenthesized.

        >>> print(DmaNest((3, 8), (64, 1), (200, 1), host_offset=192).as_loops())
        for i in range(3):
          for j in range(8):
            device_memory[device_tensor_address + i*64 + j*1] = \
host_memory[host_tensor_address + 192 + i*200 + j*1]
        """
        names = [
            _NAMES[k] if k < len(_NAMES) else f"i{k}" for k in range(len(self.ranges))
        ]
        lines = [
            f"{'  ' * k}for {name} in range({count}):"
            for k, (name, count) in enumerate(zip(names, self.ranges, strict=True))
        ]
        on_device, on_host = (
            [f"{name}*{stride}" for name, stride in zip(names, strides, strict=True)]
            for strides in (self.device_strides, self.host_strides)
        )
        device = _address("device_tensor_address", self.device_offset, on_device)
        host = _address("host_tensor_address", self.host_offset, self._by_axis(on_host))
        indent = "  " * len(names)
        return "\n".join([*lines, f"{indent}device_memory[{device}] = host_memory[{host}]"])

    def _by_axis(self, terms: Sequence[str]) -> list[str]:
        """Group the terms of the loops by host axis, in axis order."""
        if not self.host_axes:
            return [*terms]
        groups: dict[int, list[str]] = {axis: [] for axis in sorted(self.host_axes)}
        for axis, term in zip(self.host_axes, terms, strict=True):
            groups[axis].append(term)
        sums = [" + ".join(group) for group in groups.values()]
        return [
            text if len(group) == 1 else f"({text})"
            for text, group in zip(sums, groups.values(), strict=True)
        ]


def _address(start: str, offset: int, terms: Sequence[str]) -> str:
    return " + ".join([start, *([str(offset)] if offset else []), *terms])


def dma_nests(
    layout: StoredTensor,
    host_strides: Sequence[int] | None,
    host_offset: int,
    start: Sequence[int] | None,
    extents: Sequence[int] | None,
) -> tuple[DmaNest, ...]:
    """Implement `Layout.dma`."""
    box = check_box(layout, start, extents, "layout.dma")
    device = AddressFunction(layout.index_map.final_indices, row_major(layout.physical_shape))
    host = host_side(layout, host_strides, host_offset, "layout.dma")
    axes = layout.index_map.initial_indices
    try:
        found = nests(device, host, axes, box, MOST_NESTS)
    except (NotDigitsError, TooManyError):
        found = _of_runs(layout, device, host, box)
    assert sum(nest.size for nest in found) == prod(count for _, count in box)
    return tuple(
        DmaNest(
            n.ranges, n.first, n.second, n.first_offset, n.second_offset,
            tuple(_host_axis(step, layout.shape, host.strides) for step in n.second),
        )
        for n in found
    )


def _host_axis(step: int, shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return the host axis to which a stride belongs: the axis with the next smaller stride."""
    candidates = [
        (abs(stride), extent > 1, axis)
        for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True))
        if abs(stride) <= abs(step)
    ]
    return max(candidates, default=(0, False, 0))[2]


def _of_runs(
    layout: StoredTensor, device: AddressFunction, host: AddressFunction, box: Box[int]
) -> tuple[Nest, ...]:
    """Return the nests of a map that is not a sum of digits: loops over groups of equal runs."""
    count = prod(n for _, n in box)
    subject = f"layout.dma: {layout.index_map} on {list(layout.shape)}"
    if count > LIMIT:
        raise LayoutError(
            "{subject} requires more than {most_nests} loop nests, and its {count} elements exceed "
            "the limit of {limit} for enumeration; copy parts of it with start= and extents=",
            kind="limit-exceeded", subject=subject, most_nests=MOST_NESTS, count=count, limit=LIMIT,
        )
    found = nests_of_runs(device, host, layout.index_map.initial_indices, box)
    if len(found) > MOST_NESTS:
        raise LayoutError(
            "{subject} requires {found_count} loop nests, which exceeds the limit of {most_nests}; "
            "copy parts of it with start= and extents=, or rearrange the elements on the device",
            kind="limit-exceeded", subject=subject, found_count=len(found), most_nests=MOST_NESTS,
        )
    return found


def host_side(
    layout: StoredTensor, strides: Sequence[int] | None, offset: int, caller: str
) -> AddressFunction:
    """Return the addresses of the elements of a tensor on the host.

    Raises:
        LayoutError: If the strides are not one integer per axis, or addresses exceed 64 bits.
    """
    if not isinstance(strides, Iterable | None):
        raise LayoutError(
            "{caller}: {strides!r} is not a valid sequence of strides; pass one per axis, in "
            "elements",
            kind="transfer", caller=caller, strides=strides,
        )
    chosen = row_major(layout.shape) if strides is None else tuple(strides)
    for number in (*chosen, offset):
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise LayoutError(
                "{caller}: {number!r} is not a valid stride or offset; pass an integer number of "
                "elements",
                kind="transfer", caller=caller, number=number,
            )
    if len(chosen) != len(layout.shape):
        raise LayoutError(
            "{caller}: got {chosen_count} host strides {chosen!r} for the {rank} indices of "
            "{shape}; pass one per index, in elements",
            kind="transfer", caller=caller, chosen_count=len(chosen), chosen=list(chosen),
            rank=len(layout.shape), shape=list(layout.shape),
        )
    span = sum(abs(int(s)) * max(n, 1) for s, n in zip(chosen, layout.shape, strict=True))
    if abs(int(offset)) + span >= 1 << 63:
        raise LayoutError(
            "{caller}: strides {chosen!r} from offset {offset!r} on exceed 64-bit addresses; pass "
            "smaller ones",
            kind="transfer", caller=caller, chosen=list(chosen), offset=offset,
        )
    return AddressFunction(layout.index_map.initial_indices, tuple(map(int, chosen)), int(offset))


def check_box(
    layout: StoredTensor, start: Sequence[int] | None, extents: Sequence[int] | None, caller: str
) -> tuple[tuple[int, int], ...]:
    """Return start and extent of a box along each axis; by default, of the whole tensor.

    Raises:
        LayoutError: If the box is out of bounds of the tensor.
    """
    shape = layout.shape
    first = (0,) * len(shape) if start is None else as_int_tuple(start, f"{caller}: start")
    counts = (
        tuple(n - low for n, low in zip(shape, first, strict=False))
        if extents is None else as_int_tuple(extents, f"{caller}: extents")
    )
    is_in_bounds = len(first) == len(counts) == len(shape) and all(
        min(low, count) >= 0 and low + count <= n
        for low, count, n in zip(first, counts, shape, strict=True)
    )
    if not is_in_bounds:
        raise LayoutError(
            "{caller}: start {first} and extents {counts} are not a box within {shape}; pass one "
            "start and one extent per index, within the shape",
            kind="transfer", caller=caller, first=list(first), counts=list(counts),
            shape=list(shape),
        )
    return tuple(zip(first, counts, strict=True))


@dataclass(frozen=True, slots=True)
class Runs(Pictured):
    """Maximal runs of a copy: elements that are contiguous in both memories.

    No run crosses from the memory of one core into the memory of another.

    Attributes:
        lengths: Pairs of a run length and the number of runs of this length, in ascending order.
        elements: Number of elements in these runs.
        total: Number of elements of the copy.
        method: `sets` if runs were counted with integer sets; `counted` if they were counted by
            enumeration of runs or elements; `part` if only the first elements along the outermost
            indices were enumerated, so that runs may be truncated at the end of that part.

    >>> from tecomp import Layout
    >>> runs = Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64]).runs()
    >>> runs.lengths, runs.elements, runs.total, runs.method
    (((8, 1000), (64, 3000)), 200000, 200000, 'sets')
    >>> runs.count, runs.shortest, runs.longest, runs.median, runs.factor
    (4000, 8, 64, 64, 8)
    """

    _drawn_by: ClassVar[str] = "copies:draw_copy_runs"

    lengths: tuple[tuple[int, int], ...]
    elements: int
    total: int
    method: Method

    @property
    def count(self) -> int:
        """Number of runs."""
        return sum(count for _, count in self.lengths)

    @property
    def shortest(self) -> int:
        """Length of the shortest run; 0 if nothing is copied."""
        return self.lengths[0][0] if self.lengths else 0

    @property
    def longest(self) -> int:
        """Length of the longest run; 0 if nothing is copied."""
        return self.lengths[-1][0] if self.lengths else 0

    @property
    def median(self) -> int:
        """Lower median of the run lengths; 0 if nothing is copied."""
        covered = 0
        for length, count in self.lengths:
            covered += count
            if 2 * covered >= self.count:
                return length
        return 0

    @property
    def factor(self) -> int:
        """Greatest common divisor of all run lengths; 0 if nothing is copied.

        Source:
            tt-mlir, `calculateCoalescingFactor`: the greatest common divisor of all runs.
        """
        return gcd(*(length for length, _ in self.lengths))

    def transactions(self, most: int | None = None) -> int:
        """Return the number of transactions of at most `most` elements that copy the runs.

        Raises:
            LayoutError: If `most` is not a positive integer.

        >>> Runs(((8, 1000), (64, 3000)), 200000, 200000, "sets").transactions(32)
        7000
        """
        if most is None:
            return self.count
        check_kind(
            most, int | np.integer, "runs: what a transaction moves", "give 1 or more", LayoutError
        )
        if most < 1:
            raise LayoutError(
                "runs: a transaction must have 1 or more elements, got {size!r}",
                kind="transfer", size=most,
            )
        return sum(ceil_div(length, most) * count for length, count in self.lengths)

    def __str__(self) -> str:
        method_text = {
            "sets": "by sets",
            "counted": "counted",
            "part": f"counted in {self.elements:,} of {self.total:,} elements",
        }[self.method]
        if self.shortest == self.longest:
            return f"{self.count:,} runs of {self.longest:,} elements, {method_text}"
        return (
            f"{self.count:,} runs of {self.shortest:,} to {self.longest:,} elements, "
            f"median {self.median:,}, all multiples of {self.factor:,}, {method_text}"
        )


def host_runs(
    layout: StoredTensor,
    host_strides: Sequence[int] | None,
    start: Sequence[int] | None,
    extents: Sequence[int] | None,
) -> Runs:
    """Implement `Layout.runs`."""
    box = check_box(layout, start, extents, "layout.runs")
    host = host_side(layout, host_strides, 0, "layout.runs")
    return _runs(find_runs(
        _core_side(layout, layout), host, layout.index_map.initial_indices, box
    ), box)


def copy_runs(
    source: StoredTensor,
    target: StoredTensor,
    start: Sequence[int] | None,
    extents: Sequence[int] | None,
) -> Runs:
    """Implement `Layout.runs_to`."""
    check_layout(target, "layout.runs_to")
    if source.shape != target.shape:
        raise LayoutError(
            "layout.runs_to: {shape} and {target_shape} are shapes of different tensors; use the "
            "same shape for both layouts, e.g. with maps of their common tensor",
            kind="layout-shape-mismatch", shape=list(source.shape), target_shape=list(target.shape),
        )
    box = check_box(source, start, extents, "layout.runs_to")
    axes = source.index_map.initial_indices
    return _runs(find_runs(
        _core_side(target, source), _core_side(source, source), axes, box
    ), box)


def _core_side(layout: StoredTensor, other: StoredTensor) -> AddressFunction:
    """Return the addresses in a layout for indices of `other`, with a gap after each core."""
    shape = layout.physical_shape
    grid = [axis for axis in range(len(shape)) if axis in layout.grid_axes]
    inner = [axis for axis in range(len(shape)) if axis not in layout.grid_axes]
    strides = [0] * len(shape)
    for axis, stride in zip(inner, row_major([shape[k] for k in inner]), strict=True):
        strides[axis] = stride
    core_span = prod(shape[k] for k in inner) + (1 if grid else 0)
    for axis, stride in zip(grid, row_major([shape[k] for k in grid]), strict=True):
        strides[axis] = stride * core_span
    exprs = layout.index_map.final_indices
    if layout is not other:
        exprs = tuple(layout.index_map.map_indices(other.index_map.initial_indices))
    return AddressFunction(exprs, tuple(strides))


def _runs(found: RunStatistics, box: Box[int]) -> Runs:
    lengths = tuple(sorted(found.lengths.items()))
    return Runs(lengths, found.elements, prod(count for _, count in box), found.method)
