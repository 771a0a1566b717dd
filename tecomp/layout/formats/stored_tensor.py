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
from tecomp.layout.formats.arguments import as_int_tuple, check_pad_value, check_shape
from tecomp.layout.formats.format import Format
from tecomp.layout.formats.layout_tags import LayoutTag, layout_tag
from tecomp.poly.maps import brute_force
from tecomp.poly.maps.index_map import IndexMap

Index = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class StoredTensor:
    """A stored tensor: an index map and a storage format.

    The public class `Layout` adds queries and operations.

    Attributes:
        shape: Shape of the tensor.
        dtype: Dtype of the elements.
        index_map: Map from tensor indices to physical indices.
        storage: Storage format of the elements.
        pad_value: Value of padding; None if undefined.
        memory: Memory scope.
        grid_axes: Physical axes that enumerate cores or devices; the other axes form the shard of
            each core.

    Raises:
        LayoutError: If the map is not injective, an address is negative, or storage blocks are
            incomplete.

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
        # Extents may be instances of an int subclass with extra data, which cannot be serialized.
        object.__setattr__(self, "shape", tuple(map(int, self.shape)))
        object.__setattr__(self, "dtype", DType(self.dtype))
        if not isinstance(self.storage, Format):
            raise LayoutError(
                "layout: storage must be a storage format, got {storage!r}; use "
                "storage_format(name)",
                kind="storage-format", storage=self.storage,
            )
        check_kind(
            self.index_map, IndexMap, "layout: the index map",
            "create one with IndexMap.from_func, or use Layout.of", LayoutError,
        )
        check_kind(
            self.memory, str, "layout: the memory", 'pass the name of a memory, such as "global"',
            LayoutError,
        )
        grid_axes = as_int_tuple(self.grid_axes, "layout: grid_axes")
        object.__setattr__(self, "grid_axes", grid_axes)
        check_pad_value(self.pad_value, self.dtype, self.storage)
        if (collision := self._collision()) is not None:
            first, second = collision
            raise LayoutError(
                "layout: {index_map} is not injective on {dtype}{shape}: elements {first} and "
                "{second} map to the same address; keep every index in the map, e.g. both i // 4 "
                "and i % 4",
                kind="not-injective", first=first, second=second, dtype=self.dtype,
                shape=list(self.shape), index_map=self.index_map,
            )
        for axis in self.grid_axes:
            if not 0 <= axis < len(self.physical_shape):
                raise LayoutError(
                    "layout: grid axis {axis!r} is out of range for the {physical_shape_count} "
                    "physical axes of {index_map}",
                    kind="invalid-value", axis=axis, physical_shape_count=len(self.physical_shape),
                    index_map=self.index_map,
                )
        self.storage.storage_shape(self.physical_shape)

    def _collision(self) -> tuple[Index, Index] | None:
        """Return two elements with equal addresses, or None; subclasses may have a faster check."""
        return self.index_map.collision(self.shape)

    @cached_property
    def _key(self) -> tuple[object, ...]:
        """Key of equality: layouts that differ in index names only are equal."""
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
        """Extent of each physical axis."""
        found = self.index_map.map_shape(self.shape)
        return tuple(int(extent) for extent in found if isinstance(extent, int))

    @cached_property
    def mark(self) -> LayoutTag:
        """Tag that identifies the layout of an array."""
        formula, storage = self.index_map.formula, self.storage
        is_plain = storage.name == self.dtype == storage.stored
        return layout_tag(formula, self.index_map) if is_plain else layout_tag(
            f"{formula} of {storage.name}")

    @property
    def axis_separators(self) -> tuple[int, ...]:
        """Physical axes after which an axis of the memory ends."""
        return self.index_map.axis_separators

    @cached_property
    def memory_shape(self) -> tuple[int, ...]:
        """Physical shape with the axes between separators merged."""
        ends = [*(axis + 1 for axis in self.axis_separators), len(self.physical_shape)]
        starts = [0, *ends[:-1]]
        return tuple(
            prod(self.physical_shape[a:b]) for a, b in zip(starts, ends, strict=True)
        )

    @property
    def storage_shape(self) -> tuple[int, ...]:
        """Shape of the array that stores the tensor, in units of `storage.stored`."""
        return self.storage.storage_shape(self.physical_shape)

    @property
    def grid_shape(self) -> tuple[int, ...]:
        """Number of cores along each grid axis."""
        return tuple(self.physical_shape[axis] for axis in self.grid_axes)

    @property
    def shard_shape(self) -> tuple[int, ...]:
        """Physical shape of the shard of one core."""
        grid = set(self.grid_axes)
        return tuple(n for axis, n in enumerate(self.physical_shape) if axis not in grid)

    @property
    def num_elements(self) -> int:
        """Number of elements of the tensor."""
        return prod(self.shape)

    @property
    def num_places(self) -> int:
        """Number of element slots in memory, including padding."""
        return prod(self.physical_shape)

    @property
    def padding_count(self) -> int:
        """Number of padding slots."""
        return self.num_places - self.num_elements

    @property
    def padding_share(self) -> float:
        """Fraction of the slots that is padding; 0 if there are no slots."""
        return self.padding_count / self.num_places if self.num_places else 0.0

    @property
    def nbytes(self) -> int:
        """Size in memory of all shards together in bytes, including padding."""
        return self.storage.bytes(self.physical_shape)

    @property
    def shard_nbytes(self) -> int:
        """Size in the memory of one core in bytes."""
        return self.nbytes // max(prod(self.grid_shape), 1)

    @cached_property
    def _inverse(self) -> tuple[IndexMap, Expr]:
        return self.index_map.non_surjective_inverse(self.shape)

    @property
    def inverse(self) -> IndexMap:
        """Map from the physical index of an element to its tensor index.

        Raises:
            LayoutError: If no closed form is known.
        """
        return self._inverse[0]

    @property
    def padding(self) -> tuple[tuple[Var, ...], Expr]:
        """Physical index variables, and the condition under which a slot is padding.

        Raises:
            LayoutError: If no closed form of the inverse is known.
        """
        return self._inverse[0].initial_indices, self._inverse[1]


def check_layout(value: Any, where: str) -> None:
    """Check that an argument is a layout.

    Raises:
        LayoutError: If `value` is not a layout.
    """
    if not isinstance(value, StoredTensor):
        raise LayoutError(
            "{where} must be a layout, got {value!r}; create one, for example with Layout.of",
            kind="invalid-type", where=where, value=value,
        )


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the row-major strides of a shape, in elements.

    >>> row_major((2, 3, 5))
    (15, 5, 1)
    """
    return tuple(prod(shape[k + 1 :]) for k in range(len(shape)))


def offset_of(indices: Sequence[Any], shape: Sequence[int]) -> Any:
    """Return the row-major offset of a physical index.

    Args:
        indices: Index on each axis: numbers, arrays that broadcast, or expressions.
        shape: Physical shape.

    >>> offset_of((1, 2, 3), (2, 3, 5))
    28
    """
    total = indices[0] if indices else 0
    for index, extent in zip(indices[1:], shape[1:], strict=True):
        total = total * extent + index
    return total


def offsets_at(layout: StoredTensor, index: Sequence[Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the offsets of the elements at the given indices, which are broadcast."""
    bindings = dict(zip(layout.index_map.initial_indices, map(np.asarray, index), strict=False))
    indices = [brute_force.values(expr, bindings) for expr in layout.index_map.final_indices]
    shape = np.broadcast_shapes(*(np.shape(n) for n in index))
    return np.asarray(np.zeros(shape, np.int64) + offset_of(indices, layout.physical_shape))


def all_offsets(layout: StoredTensor) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the offset of every element, in the shape of the tensor."""
    axes = np.indices(layout.shape, np.int64, sparse=True)
    return np.broadcast_to(offsets_at(layout, axes), layout.shape)


def elements_at(
    layout: StoredTensor, offsets: np.ndarray[Any, np.dtype[np.int64]]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the tensor index at each offset; -1 in all components for padding."""
    indices = np.unravel_index(offsets, layout.physical_shape)
    inverse = layout.inverse
    bindings = dict(zip(inverse.initial_indices, indices, strict=True))
    index = [
        np.broadcast_to(brute_force.values(expr, bindings), offsets.shape)
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
