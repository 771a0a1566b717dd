"""Addresses of the elements of a stored tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from tecomp.errors import LayoutError
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Expr, Var
from tecomp.layout.addressing.arguments import check_pad_value, check_shape, whole_numbers
from tecomp.layout.addressing.layout_tags import Mark, mark
from tecomp.layout.formats.format import Format
from tecomp.poly.maps import brute_force
from tecomp.poly.maps.index_map import IndexMap

Index = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class StoredTensor:
    """A tensor as memory holds it: one index map, and how its elements are stored.

    `Layout`, which users hold, adds what can be asked about it and done with it.

    Attributes:
        shape: extents of the tensor.
        dtype: type of its elements.
        index_map: from its indices to physical axes.
        storage: how an element is kept.
        pad_value: what places without an element hold; None if that is not defined.
        memory: scope of the memory that it lies in.
        grid_axes: physical axes that count cores or devices; the rest is what each of them has.

    Raises:
        LayoutError: two elements share a place, a place is negative, or blocks are not whole.

    >>> from tecomp import Layout
    >>> tiles = Layout.of(
    ...     (6, 30), "int16", lambda i, j: [j // 8, i, j % 8], pad_value=-1, grid_axes=[0])
    >>> tiles.shape, tiles.dtype, tiles.index_map, tiles.storage.name, tiles.pad_value, tiles.memory
    ((6, 30), 'int16', lambda i, j: [j // 8, i, j % 8], 'int16', -1, 'global')
    >>> tiles.physical_shape, tiles.storage_shape, tiles.memory_shape, tiles.axis_separators
    ((4, 6, 8), (4, 6, 8), (192,), ())
    >>> tiles.grid_axes, tiles.grid_shape, tiles.shard_shape, tiles.nbytes, tiles.shard_nbytes
    ((0,), (4,), (6, 8), 384, 96)
    >>> tiles.num_elements, tiles.num_places, tiles.padding_count, round(tiles.padding_share, 3)
    (180, 192, 12, 0.062)
    >>> tiles.inverse, tiles.padding
    (lambda p0, p1, p2: [p1, 8 * p0 + p2], ((p0, p1, p2), 8 * p0 + p2 >= 30))
    """

    shape: tuple[int, ...]
    dtype: DType
    index_map: IndexMap
    storage: Format
    pad_value: float | None = None
    memory: str = "global"
    grid_axes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_shape(self.shape)
        # Extents of tensors are ints that say more, which no file holds.
        object.__setattr__(self, "shape", tuple(map(int, self.shape)))
        object.__setattr__(self, "dtype", DType(self.dtype))
        if not isinstance(self.storage, Format):
            raise LayoutError(
                f"layout: {self.storage!r} is no storage format; take one of storage_format(name)",
                kind="storage-format",
            )
        check_kind(
            self.index_map, IndexMap, "layout: the index map",
            "make one with IndexMap.from_func, or use Layout.of", LayoutError,
        )
        check_kind(
            self.memory, str, "layout: the memory", 'name one, such as "global"', LayoutError
        )
        grid_axes = whole_numbers(self.grid_axes, "layout: grid_axes")
        object.__setattr__(self, "grid_axes", grid_axes)
        check_pad_value(self.pad_value, self.dtype, self.storage)
        if (clash := self._collision()) is not None:
            first, second = clash
            raise LayoutError(
                f"layout: elements {first} and {second} of {self.dtype}{list(self.shape)} share "
                f"one place under {self.index_map}; keep every index in the map, "
                "e.g. both i // 4 and i % 4",
                kind="shared-place",
            )
        for axis in self.grid_axes:
            if not 0 <= axis < len(self.physical_shape):
                raise LayoutError(
                    f"layout: grid axis {axis} is none of the {len(self.physical_shape)} physical "
                    f"axes of {self.index_map}",
                    kind="wrong-number",
                )
        self.storage.storage_shape(self.physical_shape)

    def _collision(self) -> tuple[Index, Index] | None:
        """Two elements that share a place; a layout may know a shorter way to find them."""
        return self.index_map.collision(self.shape)

    @cached_property
    def _key(self) -> tuple[object, ...]:
        """What two layouts that are equal have in common; the names of indices do not count."""
        axes = [Var(f"i{k}") for k in range(len(self.shape))]
        return (
            type(self), self.shape, self.dtype, self.storage, self.pad_value, self.memory,
            self.grid_axes, self.axis_separators,
            tuple(map(str, self.index_map.map_indices(axes))), self.physical_shape,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredTensor) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def physical_shape(self) -> tuple[int, ...]:
        """How many places there are along each physical axis."""
        found = self.index_map.map_shape(self.shape)
        return tuple(int(extent) for extent in found if isinstance(extent, int))

    @cached_property
    def mark(self) -> Mark:
        """What an array in this layout carries, so that it is not taken for another."""
        formula, storage = self.index_map.formula, self.storage
        is_plain = storage.name == self.dtype == storage.stored
        return mark(formula, self.index_map) if is_plain else mark(f"{formula} of {storage.name}")

    @property
    def axis_separators(self) -> tuple[int, ...]:
        """Physical axes after which an axis of the memory ends."""
        return self.index_map.axis_separators

    @cached_property
    def memory_shape(self) -> tuple[int, ...]:
        """The physical shape, with the axes between separators taken together."""
        ends = [*(axis + 1 for axis in self.axis_separators), len(self.physical_shape)]
        starts = [0, *ends[:-1]]
        return tuple(
            prod(self.physical_shape[a:b]) for a, b in zip(starts, ends, strict=True)
        )

    @property
    def storage_shape(self) -> tuple[int, ...]:
        """The shape of the array that holds it, in units of `storage.stored`."""
        return self.storage.storage_shape(self.physical_shape)

    @property
    def grid_shape(self) -> tuple[int, ...]:
        """How many cores there are along each grid axis."""
        return tuple(self.physical_shape[axis] for axis in self.grid_axes)

    @property
    def shard_shape(self) -> tuple[int, ...]:
        """The physical shape of what one core has."""
        grid = set(self.grid_axes)
        return tuple(n for axis, n in enumerate(self.physical_shape) if axis not in grid)

    @property
    def num_elements(self) -> int:
        """Elements of the tensor."""
        return prod(self.shape)

    @property
    def num_places(self) -> int:
        """Places for elements, those of padding included."""
        return prod(self.physical_shape)

    @property
    def padding_count(self) -> int:
        """Places that hold no element."""
        return self.num_places - self.num_elements

    @property
    def padding_share(self) -> float:
        """What part of the places holds no element; 0 if there are none."""
        return self.padding_count / self.num_places if self.num_places else 0.0

    @property
    def nbytes(self) -> int:
        """Size in memory, padding included, of all cores together."""
        return self.storage.bytes(self.physical_shape)

    @property
    def shard_nbytes(self) -> int:
        """Size in the memory of one core."""
        return self.nbytes // max(prod(self.grid_shape), 1)

    @cached_property
    def _inverse(self) -> tuple[IndexMap, Expr]:
        return self.index_map.non_surjective_inverse(self.shape)

    @property
    def inverse(self) -> IndexMap:
        """From a place that holds an element to that element.

        Raises:
            LayoutError: no expression for it was found.
        """
        return self._inverse[0]

    @property
    def padding(self) -> tuple[tuple[Var, ...], Expr]:
        """The places without an element: a variable for each physical axis, and what holds there.

        Raises:
            LayoutError: no expression for the inverse was found.
        """
        return self._inverse[0].initial_indices, self._inverse[1]


def check_layout(given: Any, where: str) -> None:
    """Refuse what is no layout of a tensor.

    Raises:
        LayoutError: it has no map, or nothing that its elements are stored as.
    """
    if not isinstance(given, StoredTensor):
        raise LayoutError(
            f"{where}: {given!r} is no layout; make one, such as with Layout.of",
            kind="wrong-argument",
        )


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """How far one step along each axis goes in an array in the order of NumPy.

    >>> row_major((2, 3, 5))
    (15, 5, 1)
    """
    return tuple(prod(shape[k + 1 :]) for k in range(len(shape)))


def offset_of(place: Sequence[Any], shape: Sequence[int]) -> Any:
    """How many places lie before `place` in row-major order.

    Args:
        place: an index on each axis: numbers, arrays that broadcast, or expressions.
        shape: of the memory.

    >>> offset_of((1, 2, 3), (2, 3, 5))
    28
    """
    total = place[0] if place else 0
    for index, extent in zip(place[1:], shape[1:], strict=True):
        total = total * extent + index
    return total


def offsets_at(layout: StoredTensor, index: Sequence[Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The offsets of the elements at broadcast indices."""
    at = dict(zip(layout.index_map.initial_indices, map(np.asarray, index), strict=False))
    place = [brute_force.values(expr, at) for expr in layout.index_map.final_indices]
    shape = np.broadcast_shapes(*(np.shape(n) for n in index))
    return np.asarray(np.zeros(shape, np.int64) + offset_of(place, layout.physical_shape))


def all_offsets(layout: StoredTensor) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The offset of every element, in the shape of the tensor."""
    axes = np.indices(layout.shape, np.int64, sparse=True)
    return np.broadcast_to(offsets_at(layout, axes), layout.shape)


def elements_at(
    layout: StoredTensor, offsets: np.ndarray[Any, np.dtype[np.int64]]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """For each offset the index of its element, or -1 throughout where there is none."""
    places = np.unravel_index(offsets, layout.physical_shape)
    inverse = layout.inverse
    at = dict(zip(inverse.initial_indices, places, strict=True))
    index = [
        np.broadcast_to(brute_force.values(expr, at), offsets.shape)
        for expr in inverse.final_indices
    ]
    if not index:
        return np.zeros((len(offsets), 0), np.int64)
    inside = np.ones(offsets.shape, bool)
    for n, extent in zip(index, layout.shape, strict=True):
        inside &= (n >= 0) & (n < extent)
    clipped = [np.where(inside, n, 0) for n in index]
    inside &= offsets_at(layout, clipped) == offsets
    return np.where(inside[:, None], np.stack(clipped, axis=1), -1)
