"""tt-mlir notation of shard layouts."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tecomp.errors import LayoutError
from tecomp.layout.formats.registry import BFP_TILES
from tecomp.layout.notations.mlir_affine import map_text, parse_affine_map
from tecomp.layout.notations.scanner import Scanner
from tecomp.layout.sharding.shard_maps import collapse_map
from tecomp.layout.sharding.virtual_grid import GridMap, parse_grid_map
from tecomp.operations.element_types import MLIR_NAMES, SIGNED
from tecomp.poly.maps.index_map import IndexMap

MEMORY_SPACES = ("system", "mmio", "dram", "l1")
"""Host memory, host memory mapped to the device, device DRAM, and SRAM of each core."""

OOB_VALUES = {"undef": None, "zero": 0, "one": 1, "inf": float("inf"), "neginf": float("-inf")}
"""Padding values by keyword."""

_DTYPES = {
    **{name: dtype for dtype, name in MLIR_NAMES.items()},
    **{f"s{MLIR_NAMES[dtype]}": dtype for dtype in SIGNED},
    "u8": "uint8", "u16": "uint16", "u32": "uint32",
}
"""Dtypes by their names in MLIR, which may have a sign, and by names of tt-mlir."""


@dataclass(frozen=True)
class ShardNotation:
    """Contents of the text form of a shard layout.

    Attributes:
        shape: Shape of the tensor.
        dtype: Dtype of the tensor.
        linear: Map from tensor indices to grid axes.
        oob_val: Padding value.
        grid: Number of cores along each axis.
        memref: Shape of a shard, counting tiles if there are any.
        tile: Rows and columns of a tile, or None.
        element: Storage format of the elements; None for the format of `dtype`.
        memory_space: Memory space.
        alignment_bytes: Byte multiple to which rows of untiled shards are padded, or None.
        device: Map from the grid to physical cores, or None.
    """

    shape: tuple[int, ...]
    dtype: str
    linear: IndexMap
    oob_val: str
    grid: tuple[int, ...]
    memref: tuple[int, ...]
    tile: tuple[int, int] | None
    element: str | None
    memory_space: str
    alignment_bytes: int | None = None
    device: GridMap | None = None


def shard_text(layout: ShardNotation) -> str:
    """Format a layout as text that `parse_shard` reads.

    Raises:
        LayoutError: If the notation cannot express a part of the layout.
    """
    stored = layout.element or layout.dtype
    element = stored if stored in BFP_TILES else _type_name(stored)
    if layout.tile is not None:
        rows, columns = layout.tile
        element = f"!tt.tile<{rows} x {columns}, {element}>"
    tensor = "".join(f"{n}x" for n in layout.shape) + _type_name(layout.dtype)
    memref = "".join(f"{n}x" for n in layout.memref) + element
    suffix = _suffix_text(layout.alignment_bytes, layout.device)
    return (
        f"tensor<{tensor}, #tt.layout<{map_text(layout.linear)}, {layout.oob_val}, "
        f"<{'x'.join(map(str, layout.grid))}>, "
        f"memref<{memref}, #tt.memory_space<{layout.memory_space}>>{suffix}>>"
    )


def _suffix_text(alignment_bytes: int | None, device: GridMap | None) -> str:
    alignment = "" if alignment_bytes is None else f", alignment_bytes = {alignment_bytes}"
    return alignment if device is None else f"{alignment}, {device.text()}"


def _parse_suffix(scanner: Scanner) -> tuple[int | None, GridMap | None]:
    """Parse the alignment of rows and the map to physical cores, which are both optional."""
    alignment = None
    if not scanner.accept(","):
        return None, None
    if not scanner.at("#"):
        for token in ("alignment_bytes", "="):
            scanner.take(token)
        alignment = scanner.number()
        if not scanner.accept(","):
            return alignment, None
    return alignment, parse_grid_map(scanner)


def _type_name(dtype: str) -> str:
    if dtype not in MLIR_NAMES:
        raise LayoutError(
            "shard layout: {dtype} is not supported in #tt.layout<...>; supported dtypes: {names}",
            kind="shards", dtype=dtype, names=", ".join(sorted(MLIR_NAMES)),
        )
    return MLIR_NAMES[dtype]


def parse_shard(text: str) -> ShardNotation:
    """Parse the text of a shard layout; whitespace is insignificant.

    A tensor without `#tt.layout` is row-major in host memory.

    Raises:
        LayoutError: If the text does not parse; the message states the position.

    >>> parse_shard(
    ...     "tensor<8x300xf32, #tt.layout<(d0, d1) -> (d0, d1), undef, <1x2>, "
    ...     "memref<8x150xf32, #tt.memory_space<l1>>>>"
    ... ).memref
    (8, 150)
    """
    scanner = Scanner(text, "shard layout")
    scanner.take("tensor")
    scanner.take("<")
    shape = _extents(scanner)
    dtype = _type(scanner)
    if scanner.accept(">"):
        scanner.end()
        return _of_host(shape, dtype)
    for token in (",", "#tt.layout", "<"):
        scanner.take(token)
    linear = parse_affine_map(scanner)
    scanner.take(",")
    oob_val = _one_of(scanner, tuple(OOB_VALUES))
    scanner.take(",")
    scanner.take("<")
    grid = scanner.extents()
    scanner.take(">")
    for token in (",", "memref", "<"):
        scanner.take(token)
    memref = _extents(scanner)
    tile, element = _element(scanner)
    for token in (",", "#tt.memory_space", "<"):
        scanner.take(token)
    space = _one_of(scanner, MEMORY_SPACES)
    for _ in range(2):
        scanner.take(">")
    alignment, device = _parse_suffix(scanner)
    for _ in range(2):
        scanner.take(">")
    scanner.end()
    return ShardNotation(
        shape, dtype, linear, oob_val, grid, memref, tile, element, space, alignment, device)


@dataclass(frozen=True)
class MetalNotation:
    """Contents of the text form of a shard layout with aligned dimensions.

    Attributes:
        shape: Shape of the tensor.
        dtype: Dtype of the elements; float32 if a tile stores them in a block format.
        alignments: Multiple to which each dimension is padded.
        intervals: Intervals of dimensions that are merged.
        oob_val: Padding value.
        grid: Number of cores along each axis.
        memref: Shape of a shard, counting tiles if there are any.
        tile: Rows and columns of a tile, or None.
        element: Storage format of the elements; None for the format of `dtype`.
        memory_space: Memory space.
        alignment_bytes: Byte multiple to which rows of untiled shards are padded, or None.
        device: Map from the grid to physical cores, or None.
    """

    shape: tuple[int, ...]
    dtype: str
    alignments: tuple[int, ...]
    intervals: tuple[tuple[int, int], ...]
    oob_val: str
    grid: tuple[int, ...]
    memref: tuple[int, ...]
    tile: tuple[int, int] | None
    element: str | None
    memory_space: str
    alignment_bytes: int | None = None
    device: GridMap | None = None


def metal_text(layout: MetalNotation) -> str:
    """Format a layout with aligned dimensions as text that `parse_metal` reads.

    Raises:
        LayoutError: If the dtype has no name in the notation.
    """
    stored = layout.element or layout.dtype
    element = stored if stored in BFP_TILES else _type_name(stored)
    if layout.tile is not None:
        element = f"!ttcore.tile<{layout.tile[0]}x{layout.tile[1]}, {element}>"
    physical = "".join(f"{n}x" for n in (*layout.grid, *layout.memref))
    pairs = ", ".join(f"[{begin}, {end}]" for begin, end in layout.intervals)
    intervals = f"dense<[{pairs}]>" if pairs else "dense<>"
    suffix = _suffix_text(layout.alignment_bytes, layout.device)
    oob = "" if layout.oob_val == "undef" else f"{layout.oob_val}, "
    return (
        f"tensor<{physical}{element}, #ttcore.metal_layout<"
        f"logical_shape = {'x'.join(map(str, layout.shape))}, "
        f"dim_alignments = {'x'.join(map(str, layout.alignments))}, "
        f"collapsed_intervals = {intervals} : tensor<{len(layout.intervals)}x2xi64>, "
        f"{oob}{layout.memory_space}, sharded{suffix}>>"
    )


def parse_metal(text: str) -> MetalNotation:
    """Parse a tensor type with a `#ttcore.metal_layout`; whitespace is insignificant.

    Raises:
        LayoutError: If the text does not parse; the message states the position.

    >>> parse_metal(
    ...     "tensor<6x1x32x32xf32, #ttcore.metal_layout<logical_shape = 3x43x7, "
    ...     "dim_alignments = 1x32x32, collapsed_intervals = dense<[[0, 2], [2, 3]]> : "
    ...     "tensor<2x2xi64>, undef, l1, sharded>>"
    ... ).grid
    (6, 1)
    """
    scanner = Scanner(text, "shard layout")
    scanner.take("tensor")
    scanner.take("<")
    physical = _extents(scanner)
    position = scanner.skip()
    tile, element = _element(scanner, "!ttcore.tile")
    if not physical or len(physical) % 2:
        scanner.fail("as many shard extents as grid extents", position)
    cut = len(physical) // 2
    for token in (",", "#ttcore.metal_layout", "<", "logical_shape", "="):
        scanner.take(token)
    shape = scanner.extents()
    for token in (",", "dim_alignments", "="):
        scanner.take(token)
    alignments = scanner.extents()
    for token in (",", "collapsed_intervals", "="):
        scanner.take(token)
    intervals = _dense_pairs(scanner)
    scanner.take(",")
    oob_val = next((word for word in OOB_VALUES if scanner.accept(word)), None)
    if oob_val is not None:
        scanner.take(",")
    space = _one_of(scanner, MEMORY_SPACES)
    alignment = device = None
    if scanner.accept(","):
        # Interleaved pages have no grid of shards: these are layouts of `TtnnLayout`.
        scanner.take("sharded")
        alignment, device = _parse_suffix(scanner)
    for _ in range(2):
        scanner.take(">")
    scanner.end()
    stored = element or "float32"
    return MetalNotation(
        shape, "float32" if stored in BFP_TILES else stored, alignments, intervals,
        oob_val or "undef", physical[:cut], physical[cut:], tile, element, space, alignment,
        device)


def _dense_pairs(scanner: Scanner) -> tuple[tuple[int, int], ...]:
    """Parse a constant of pairs such as `dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>`."""
    scanner.take("dense")
    scanner.take("<")
    pairs: list[tuple[int, int]] = []
    if scanner.accept("["):
        while True:
            scanner.take("[")
            begin = _signed(scanner)
            scanner.take(",")
            pairs.append((begin, _signed(scanner)))
            scanner.take("]")
            if not scanner.accept(","):
                break
        scanner.take("]")
    for token in (">", ":", "tensor", "<"):
        scanner.take(token)
    position = scanner.skip()
    if _extents(scanner) != (len(pairs), 2):
        scanner.fail(f"{len(pairs)}x2x", position)
    scanner.take("i64")
    scanner.take(">")
    return tuple(pairs)


def _signed(scanner: Scanner) -> int:
    return -scanner.number() if scanner.accept("-") else scanner.number()


def _of_host(shape: tuple[int, ...], dtype: str) -> ShardNotation:
    """Return the notation of a builtin tensor type, which has no encoding."""
    linear = collapse_map(shape, None, 2 if len(shape) > 1 else None)
    extents = (prod(shape[:-1]), shape[-1]) if len(shape) > 1 else shape or (1,)
    grid = (1,) * len(extents)
    return ShardNotation(shape, dtype, linear, "undef", grid, extents, None, None, "system")


def _extents(scanner: Scanner) -> tuple[int, ...]:
    """Parse extents such as `2x3x`."""
    extents: list[int] = []
    while (extent := scanner.number_or_none()) is not None:
        extents.append(extent)
        if not scanner.accept_letter("x"):
            scanner.fail("x and then an extent or the element type")
    return tuple(extents)


def _element(
    scanner: Scanner, keyword: str = "!tt.tile"
) -> tuple[tuple[int, int] | None, str | None]:
    if not scanner.accept(keyword):
        return None, _type(scanner)
    scanner.take("<")
    rows = scanner.number()
    scanner.skip()
    if not scanner.accept_letter("x"):
        scanner.fail("x between the rows and the columns of a tile")
    tile = (rows, scanner.number())
    if scanner.accept(">"):
        return tile, None
    scanner.take(",")
    element = _type(scanner, stored=True)
    scanner.take(">")
    return tile, element


def _type(scanner: Scanner, *, stored: bool = False) -> str:
    expected = "an element type such as f32" + (" or bfp_bf8" if stored else "")
    position = scanner.skip()
    name = scanner.word(expected)
    if stored and name in BFP_TILES:
        return name
    found = _DTYPES.get(name)
    return scanner.fail(expected, position) if found is None else found


def _one_of(scanner: Scanner, words: tuple[str, ...]) -> str:
    expected = f"one of {', '.join(words)}"
    position = scanner.skip()
    word = scanner.word(expected)
    return word if word in words else scanner.fail(expected, position)
