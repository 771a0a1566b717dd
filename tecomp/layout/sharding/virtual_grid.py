"""Virtual grids: maps from the virtual cores of layouts to physical cores of devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt, prod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tecomp.drawing.drawable import Pictured
from tecomp.errors import LayoutError, safe_repr
from tecomp.ir.arith.extents import ceil_div, round_up
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.expr import Expr, Var, index_value
from tecomp.layout.core.layout import Layout
from tecomp.layout.formats.arguments import as_int_tuple, positive_numbers, quotient, remainder
from tecomp.layout.formats.stored_tensor import check_layout
from tecomp.layout.notations.mlir_affine import map_text, parse_affine_map
from tecomp.layout.notations.scanner import Scanner
from tecomp.layout.sharding.shard_maps import linearize_dims
from tecomp.poly.maps import brute_force
from tecomp.poly.maps.index_map import IndexMap

Shape = tuple[int, ...]
_MAX_CORES = 1 << 20
_GRID, _DEVICE = "grid map: the grid", "grid map: the device"


@dataclass(frozen=True, eq=False)
class GridMap(Pictured):
    r"""An index map from a virtual grid to physical cores.

    Attributes:
        shape: Shape of the virtual grid.
        index_map: Map from virtual to physical cores.
        physical: Extents of the physical grid, e.g. devices, rows and columns.

    Raises:
        LayoutError: If a core is outside the physical grid, or the map is not injective.

    Source:
        Tensor Layout (tt-mlir), "A couple of final notes regarding grid shape".

    >>> wide = GridMap.of((1, 48), lambda y, x: [0, x // 8, x % 8], (1, 8, 8))
    >>> wide.shape, wide.physical, wide.idle_count
    ((1, 48), (1, 8, 8), 16)
    >>> print(wide.index_map, wide.inverse, sep="\n")
    lambda y, x: [0, x // 8, x % 8]
    lambda p0, p1, p2: [0, 8 * p1 + p2]
    """

    _drawn_by: ClassVar[str] = "copies:draw_core_grid"

    shape: Shape
    index_map: IndexMap
    physical: Shape

    def __post_init__(self) -> None:
        if not isinstance(self.index_map, IndexMap):
            name = getattr(self.index_map, "__name__", safe_repr(self.index_map))
            raise LayoutError(
                "grid map: {value} is not an index map; use GridMap.of(shape, function, physical) "
                "to create a map from a function of the axes",
                kind="shards", value=name,
            )
        # Normalized here for all constructors.
        object.__setattr__(self, "shape", positive_numbers(self.shape, _GRID))
        object.__setattr__(self, "physical", positive_numbers(self.physical, _DEVICE))
        if len(self.shape) != len(self.index_map.initial_indices):
            raise LayoutError(
                "grid map: {index_map} does not match the axes of the grid {shape}; use one index "
                "per axis",
                kind="shards", index_map=self.index_map, shape=list(self.shape),
            )
        if prod(self.shape) > _MAX_CORES:
            raise LayoutError(
                "grid map: the grid {shape} has more than {max_cores} cores, the limit for "
                "enumeration; use a smaller grid",
                kind="shards", shape=list(self.shape), max_cores=_MAX_CORES,
            )
        self._check_cores()

    def _check_cores(self) -> None:
        cores, found = self._cores, len(self.index_map.final_indices)
        if found != len(self.physical):
            raise LayoutError(
                "grid map: {index_map} has {found} results, but the physical grid is {physical}; "
                "return one result per axis",
                kind="shards", index_map=self.index_map, found=found,
                physical=list(self.physical),
            )
        inside = np.all((cores >= 0) & (cores < np.array(self.physical)), axis=1)
        if not inside.all():
            k = int(np.argmin(inside))
            raise LayoutError(
                "grid map: {index_map} maps core {brute_force} of {shape} to {core}, which is out "
                "of bounds of {physical}; keep all cores in bounds",
                kind="shards", brute_force=brute_force.unravel(k, self.shape),
                shape=list(self.shape), core=tuple(map(int, cores[k])),
                physical=list(self.physical), index_map=self.index_map,
            )
        if (collision := self.index_map.collision(self.shape)) is not None:
            first, second = collision
            raise LayoutError(
                "grid map: {index_map} is not injective: cores {first} and {second} of {shape} map "
                "to the same core; map each core to a different core",
                kind="not-injective", first=first, second=second, shape=list(self.shape),
                index_map=self.index_map,
            )

    @classmethod
    def of(
        cls, shape: Sequence[int], mapping: Callable[..., Sequence[Any]], physical: Sequence[int]
    ) -> GridMap:
        """Build a grid map from a function of the virtual grid axes.

        Args:
            shape: Number of virtual cores along each axis.
            mapping: Function from the index of a virtual core to the index of the physical core.
            physical: Extents of the physical grid.

        Raises:
            LayoutError: If a core is outside the physical grid, or the map is not injective.

        >>> wide = GridMap.of((1, 64), lambda y, x: [0, y * 8 + x // 8, x % 8], (1, 8, 8))
        >>> wide.core((0, 27)), wide.virtual((0, 3, 3))
        ((0, 3, 3), (0, 27))
        """
        cores = positive_numbers(shape, _GRID)
        index_map = IndexMap.from_func(mapping, ndim=len(cores))
        return cls(cores, index_map, positive_numbers(physical, _DEVICE))

    @classmethod
    def mesh(cls, shape: Sequence[int], device: Sequence[int]) -> GridMap:
        """Build a mesh of devices under the last two axes; every other axis counts devices.

        Args:
            shape: Shape of the virtual grid, two axes or more.
            device: Rows and columns of cores of one device.

        Raises:
            LayoutError: If the grid has fewer than two axes.

        >>> GridMap.mesh((16, 32), (8, 8)).core((9, 17))
        (6, 1, 1)
        """
        shape, device = positive_numbers(shape, _GRID), positive_numbers(device, _DEVICE, 2)
        if len(shape) < 2:
            raise LayoutError(
                "grid map: a mesh of devices must have at least two axes, got {shape}; prepend a 1",
                kind="shards", shape=list(shape),
            )
        axes = tuple(Var(f"d{k}") for k in range(len(shape)))
        counts = [ceil_div(n, size) for n, size in zip(shape[-2:], device, strict=True)]
        device_digits = [
            (quotient(axis, size), count)
            for axis, size, count in zip(axes[-2:], device, counts, strict=True)
        ]
        digits: list[tuple[Expr, int]] = [*zip(axes[:-2], shape[:-2], strict=True), *device_digits]
        nontrivial = [(expr, n) for expr, n in digits if n > 1]
        inside = [
            axis if count == 1 else remainder(axis, size)
            for axis, size, count in zip(axes[-2:], device, counts, strict=True)
        ]
        chip = linearize_dims([expr for expr, _ in nontrivial], [n for _, n in nontrivial])
        devices = prod(n for _, n in digits)
        return cls(shape, IndexMap(axes, (chip, *inside)), (devices, *device))

    @classmethod
    def folded(cls, shape: Sequence[int], device: Sequence[int]) -> GridMap:
        """Map all cores in row-major order to the most square rectangle on one device.

        Raises:
            LayoutError: If no rectangle with this number of cores fits.

        >>> GridMap.folded((1, 48), (8, 8)).core((0, 47))
        (0, 5, 7)
        """
        shape, device = positive_numbers(shape, _GRID), positive_numbers(device, _DEVICE, 2)
        return cls._in_rows(shape, device, factors(prod(shape), device)[1])

    @classmethod
    def on_device(cls, shape: Sequence[int], device: Sequence[int]) -> GridMap:
        """Map any grid to the cores of one device.

        A two-dimensional grid that fits on the device is mapped identically. Any other grid is
        folded in row-major order onto the most square rectangle, or onto whole rows if no rectangle
        fits.

        Args:
            shape: Number of virtual cores along each axis.
            device: Rows and columns of cores.

        Raises:
            LayoutError: If the grid has more cores than the device.

        >>> [GridMap.on_device(grid, (8, 8)).core((0, 27)) for grid in ((1, 64), (1, 33))]
        [(0, 3, 3), (0, 3, 3)]
        """
        shape, device = positive_numbers(shape, _GRID), positive_numbers(device, _DEVICE, 2)
        if prod(shape) > prod(device):
            raise LayoutError(
                "grid map: the grid {shape} has {size} cores, but the device {device} has "
                "{device_cores}; use a smaller grid, or GridMap.mesh for several devices",
                kind="shards", shape=list(shape), size=prod(shape), device=list(device),
                device_cores=prod(device),
            )
        if len(shape) == 2 and shape[0] <= device[0] and shape[1] <= device[1]:
            return cls(shape, _identity(2), (1, *device))
        if is_rectangle(prod(shape), device):
            return cls.folded(shape, device)
        return cls._in_rows(shape, device, device[1])

    @classmethod
    def _in_rows(cls, shape: Shape, device: Shape, columns: int) -> GridMap:
        """Map a grid in row-major order to rows with `columns` cores."""
        axes = tuple(Var(f"d{k}") for k in range(len(shape)))
        nontrivial = [(axis, n) for axis, n in zip(axes, shape, strict=True) if n > 1]
        flat = linearize_dims([axis for axis, _ in nontrivial], [n for _, n in nontrivial])
        indices = index_value(0), quotient(flat, columns), remainder(flat, columns)
        return cls(shape, IndexMap(axes, indices), (1, *device))

    @classmethod
    def for_tensor(
        cls, shape: Sequence[int], device: Sequence[int], tile: Sequence[int] = (32, 32), *,
        is_collapsed: bool = True, is_aligned: bool = False,
    ) -> GridMap:
        """Return the grid that tt-mlir chooses for a tensor, on the cores of one device.

        Along each of the last two axes, the grid has the most cores that divide the tiles evenly.
        If this grid uses less than half of the device, or the tensor has more than two axes, it is
        replaced by a virtual grid with the most cores that divide the tiles and fill a rectangle;
        for a matrix, all these cores are along the longer axis. The replacement must use more than
        a quarter of the cores, or at least as many cores as the first grid.

        Args:
            shape: Shape of the tensor.
            device: Rows and columns of cores.
            tile: Rows and columns of a tile; (1, 1) for tensors without tiles.
            is_collapsed: Whether all axes but the last are merged into one.
            is_aligned: Whether an axis with more than one tile per core of the device is padded to
                a multiple of the device extent in tiles.

        Raises:
            LayoutError: If an extent is not positive, or the device has too many cores.

        Source:
            tt-mlir, D2M grid selection.

        >>> [GridMap.for_tensor(shape, (8, 8)).shape for shape in ((256, 256), (2048, 32))]
        [(8, 8), (64, 1)]
        >>> GridMap.for_tensor((9, 43, 7), (8, 8), is_aligned=True).shape
        (24, 1)
        """
        device = positive_numbers(device, _DEVICE, 2)
        if prod(device) > _MAX_CORES:
            raise LayoutError(
                "grid map: the device {device} has more than {max_cores} cores; use a smaller one",
                kind="limit-exceeded", device=list(device), max_cores=_MAX_CORES,
            )
        rows_columns = positive_numbers(tile, "grid map: the tile", 2)
        extents = positive_numbers(shape, "grid map: the shape")
        for name, flag in (("is_collapsed", is_collapsed), ("is_aligned", is_aligned)):
            check_kind(flag, bool, f"grid map: {name}", "pass True or False", LayoutError)
        pieces = _tiles_of((1, *extents)[-max(len(extents), 2):], device, rows_columns,
                           is_collapsed=is_collapsed, is_aligned=is_aligned)
        block = _block_grid(pieces, device)
        if len(pieces) == 2 and 2 * prod(block) >= prod(device):
            return cls(block, _identity(2), (1, *device))
        virtual = _virtual_grid(pieces, device)
        if 4 * prod(virtual) <= prod(device) and prod(block) > prod(virtual):
            virtual = block
        if len(virtual) == 2 and virtual[0] <= device[0] and virtual[1] <= device[1]:
            return cls(virtual, _identity(2), (1, *device))
        return cls.folded(virtual, device)

    @cached_property
    def _cores(self) -> npt.NDArray[np.int64]:
        """Physical core of each virtual core, in row-major order."""
        coordinates = brute_force.evaluate_over_box(
            self.index_map.final_indices, self.index_map.initial_indices, self.shape
        )
        return np.stack(coordinates, axis=1)

    @cached_property
    def _virtual(self) -> dict[Shape, Shape]:
        return {
            tuple(map(int, core)): brute_force.unravel(k, self.shape)
            for k, core in enumerate(self._cores)
        }

    def text(self) -> str:
        """Return the map in tt-mlir notation, with the extents of the physical grid.

        Raises:
            LayoutError: If the map contains bit operations.

        >>> print(GridMap.folded((1, 64), (8, 8)).text())
        #tt.device<#tt.grid<1x64, (d0, d1) -> (0, d1 floordiv 8, d1 mod 8)>, <1x8x8>>
        """
        shape, physical = ("x".join(map(str, extents)) for extents in (self.shape, self.physical))
        return f"#tt.device<#tt.grid<{shape}, {map_text(self.index_map)}>, <{physical}>>"

    @classmethod
    def parse(cls, text: str) -> GridMap:
        """Parse a map that `text` wrote.

        Raises:
            LayoutError: If the text does not parse (with the position), or the map is invalid.

        >>> wide = GridMap.folded((1, 64), (8, 8))
        >>> GridMap.parse(wide.text()) == wide
        True
        """
        scanner = Scanner(text, "grid map")
        found = parse_grid_map(scanner)
        scanner.end()
        return found

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GridMap)
            and (self.shape, self.physical) == (other.shape, other.physical)
            and bool((self._cores == other._cores).all())
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.physical, self._cores.tobytes()))

    @property
    def inverse(self) -> IndexMap:
        """Map from used physical cores to virtual cores."""
        return self.index_map.non_surjective_inverse(self.shape)[0]

    def core(self, virtual: Sequence[int]) -> Shape:
        """Return the physical core of a virtual core.

        Raises:
            LayoutError: If `virtual` is out of bounds.

        >>> GridMap.mesh((16, 32), (8, 8)).core((9, 17))
        (6, 1, 1)
        """
        position = self._checked(virtual, self.shape)
        flat = int(np.ravel_multi_index(position, self.shape))
        return tuple(map(int, self._cores[flat]))

    def virtual(self, core: Sequence[int]) -> Shape | None:
        """Return the virtual core of a physical core; None if the physical core is idle.

        Raises:
            LayoutError: If `core` is out of bounds.

        >>> folded = GridMap.folded((1, 48), (8, 8))
        >>> folded.virtual((0, 5, 7)), folded.virtual((0, 7, 7))
        ((0, 47), None)
        """
        return self._virtual.get(self._checked(core, self.physical))

    @property
    def idle_count(self) -> int:
        """Number of idle physical cores."""
        return prod(self.physical) - prod(self.shape)

    def applied(self, layout: Layout) -> Layout:
        """Replace the virtual grid of a layout, its first axes, by the physical grid.

        Memory of idle cores counts as padding.

        Raises:
            LayoutError: If `layout` is not a layout.

        >>> from tecomp import ShardLayout
        >>> layout = ShardLayout((96, 32), "float32", grid=(1, 48))
        >>> GridMap.folded((1, 48), (8, 8)).applied(layout).grid_shape
        (1, 8, 8)
        """
        check_layout(layout, "grid map")
        count = len(self.shape)
        base = layout.index_map
        cores = self.index_map.map_indices(base.final_indices[:count])
        declared = (
            remainder(expr, n)
            for expr, n in zip(cores, self.physical, strict=True)
        )
        results = (*declared, *base.final_indices[count:])
        return Layout(
            layout.shape, layout.dtype, IndexMap(base.initial_indices, results), layout.storage,
            layout.pad_value, layout.memory, tuple(range(len(self.physical))),
        )

    def _checked(self, core: Sequence[int], shape: Shape) -> Shape:
        position = as_int_tuple(core, "grid map: the core")
        if len(position) != len(shape) or not all(
            0 <= n < extent for n, extent in zip(position, shape, strict=True)
        ):
            raise LayoutError(
                "grid map: core {index!r} is out of bounds of {shape}; pass one index per axis, "
                "from 0 to its extent - 1",
                kind="shards", index=position, shape=list(shape),
            )
        return position


def parse_grid_map(scanner: Scanner) -> GridMap:
    """Parse a grid map at the position of the scanner.

    Raises:
        LayoutError: If the text does not parse (with the position), or the map is invalid.
    """
    for token in ("#tt.device", "<", "#tt.grid", "<"):
        scanner.take(token)
    shape = scanner.extents()
    scanner.take(",")
    index_map = parse_affine_map(scanner)
    for token in (">", ",", "<"):
        scanner.take(token)
    physical = scanner.extents()
    for _ in range(2):
        scanner.take(">")
    return GridMap(shape, index_map, physical)


def factors(count: int, device: Sequence[int]) -> tuple[int, int]:
    """Return the most square rectangle of `count` cores that fits on a device.

    Raises:
        LayoutError: If no rectangle fits.

    >>> factors(40, (8, 8)), factors(16, (2, 8))
    ((5, 8), (2, 8))
    """
    for small in range(min(isqrt(count), *device), 0, -1):
        if count % small:
            continue
        for rows, columns in ((small, count // small), (count // small, small)):
            if rows <= device[0] and columns <= device[1]:
                return rows, columns
    raise LayoutError(
        "grid map: no rectangle of {count} cores fits on {rows}x{columns}; use a count "
        "that is a product of two extents that fit, for example fewer cores",
        kind="shards", count=count, rows=device[0], columns=device[1],
    )


def _tiles_of(
    shape: Shape, device: Shape, tile: Shape, *, is_collapsed: bool, is_aligned: bool
) -> Shape:
    """Return the number of tiles of a tensor along each grid axis."""
    padded = [*shape[:-2], round_up(shape[-2], tile[0]), round_up(shape[-1], tile[1])]
    if is_collapsed:
        padded = [prod(padded[:-1]), padded[-1]]
    if is_aligned:
        for axis, size, cores in zip((-2, -1), tile, device, strict=True):
            # An axis with fewer tiles leaves cores idle, which padding would not change.
            if padded[axis] > size * cores:
                padded[axis] = round_up(padded[axis], size * cores)
    return (*padded[:-2], padded[-2] // tile[0], padded[-1] // tile[1])


def _block_grid(pieces: Shape, device: Shape) -> Shape:
    """Return the most cores along each of the last two axes that divide the tiles evenly."""
    last = [
        max(n for n in range(1, cores + 1) if count % n == 0)
        for count, cores in zip(pieces[-2:], device, strict=True)
    ]
    return (*[1] * (len(pieces) - 2), *last)


def _virtual_grid(pieces: Shape, device: Shape) -> Shape:
    """Return the grid with the most cores that divides the tiles evenly and fills a rectangle."""
    counts = [[n for n in range(1, prod(device) + 1) if n_tiles % n == 0] for n_tiles in pieces]
    if len(pieces) == 2:
        longer = 0 if pieces[0] >= pieces[1] else 1
        counts[1 - longer] = [1]
    found: tuple[int, ...] = (1,) * len(pieces)
    for grid in _products(counts, prod(device)):
        if prod(grid) > prod(found) and is_rectangle(prod(grid), device):
            found = grid
    return found


def _products(counts: Sequence[Sequence[int]], limit: int) -> Iterator[tuple[int, ...]]:
    """Yield the choices of one number per list with product at most `limit`, in list order."""
    if not counts:
        yield ()
        return
    for n in counts[0]:
        if n <= limit:
            yield from ((n, *suffix) for suffix in _products(counts[1:], limit // n))


def is_rectangle(count: int, device: Sequence[int]) -> bool:
    """Return whether some rectangle on a device has `count` cores.

    >>> is_rectangle(40, (8, 8)), is_rectangle(11, (8, 8))
    (True, False)
    """
    return any(
        count % rows == 0 and count // rows <= device[1] for rows in range(1, device[0] + 1)
    )


def _identity(rank: int) -> IndexMap:
    axes = tuple(Var(f"d{k}") for k in range(rank))
    return IndexMap(axes, (index_value(0), *axes))
