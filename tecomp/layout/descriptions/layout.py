"""Layouts: where in memory each element of a tensor lives, and what surrounds it there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from tecomp.codegen.calls.packed import Mark, mark
from tecomp.errors import LayoutError
from tecomp.ir.dtype import DType
from tecomp.ir.expr import Const, Expr, Var
from tecomp.ir.given import check_kind
from tecomp.ir.operators import holds
from tecomp.ir.stmt import IndexMap as PlainIndexMap
from tecomp.layout.copies.relayout import packed, unpacked
from tecomp.layout.formats.format import Format
from tecomp.layout.pictures.picture import drawn
from tecomp.layout.pictures.text import described
from tecomp.layout.placement.arguments import check_layout, index_within, whole_numbers
from tecomp.layout.placement.places import offset_of, offsets_at
from tecomp.layout.transfers.dma import DmaNest, dma_nests
from tecomp.layout.transfers.runs import Runs, copy_runs, host_runs
from tecomp.poly.index_map import IndexMap

Index = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Layout:
    """One index map on a tensor of known shape, and how its elements are stored.

    Attributes:
        shape: extents of the tensor.
        dtype: type of its elements.
        index_map: from its indices to physical axes. A result `x % n` has n places, whether or
            not all of them hold an element; every other has as many as its values need.
        storage: how an element is kept.
        pad_value: what places without an element hold; None if that is not defined.
        memory: scope of the memory that it lies in.
        grid_axes: physical axes that count cores or devices; the rest is what each of them has.

    Raises:
        LayoutError: two elements share a place, a place is negative, or blocks are not whole.

    Source:
        Decision 11: a layout is one index map, and a remainder declares places.
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
        object.__setattr__(self, "dtype", DType(self.dtype))
        if not isinstance(self.storage, Format):
            raise LayoutError(
                f"layout: {self.storage!r} is no storage format; take one of storage_format(name)"
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
        check_pad_value(self.pad_value, self.dtype)
        if (clash := self._collision()) is not None:
            first, second = clash
            raise LayoutError(
                f"layout: elements {first} and {second} of {self.dtype}{list(self.shape)} share "
                f"one place under {self.index_map}; keep every index in the map, "
                "e.g. both i // 4 and i % 4"
            )
        for axis in self.grid_axes:
            if not 0 <= axis < len(self.physical_shape):
                raise LayoutError(
                    f"layout: grid axis {axis} is none of the {len(self.physical_shape)} physical "
                    f"axes of {self.index_map}"
                )
        self.storage.storage_shape(self.physical_shape)

    def _collision(self) -> tuple[Index, Index] | None:
        """Two elements that share a place; a layout may know a shorter way to find them."""
        return self.index_map.collision(self.shape)

    @classmethod
    def of(
        cls,
        shape: Sequence[int],
        dtype: str,
        mapping: Callable[..., Sequence[Any]] | PlainIndexMap,
        *,
        pad_value: float | None = None,
        memory: str = "global",
        grid_axes: Sequence[int] = (),
    ) -> Layout:
        """The layout that a function of the indices writes down.

        Args:
            shape: extents of the tensor.
            dtype: type of its elements, in memory too.
            mapping: as for `transform_layout`, or an index map.
            pad_value: what places without an element hold.
            memory: scope of the memory.
            grid_axes: physical axes that count cores.

        >>> Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64]).physical_shape
        (4, 1000, 64)
        """
        check_shape(shape)
        index_map = (
            IndexMap.lift(mapping)
            if isinstance(mapping, PlainIndexMap)
            else IndexMap.from_func(mapping, ndim=len(shape))
        )
        return Layout(
            tuple(shape), DType(dtype), index_map, Format.plain(dtype),
            pad_value, memory, whole_numbers(grid_axes, "layout: grid_axes"),
        )

    @classmethod
    def row_major(
        cls, shape: Sequence[int], dtype: str, order: Sequence[int] | None = None
    ) -> Layout:
        """Elements in the order of NumPy; `order` has the axes from the longest steps on."""
        check_shape(shape)
        axes = range(len(shape)) if order is None else whole_numbers(order, "layout: the order")
        if sorted(axes) != list(range(len(shape))):
            raise LayoutError(
                f"layout: the order {list(axes)} does not have each of the {len(shape)} axes once; "
                "give their numbers, from the longest steps on"
            )
        return cls.of(shape, dtype, lambda *index: [index[k] for k in axes] or [0])

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
        return isinstance(other, Layout) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        return self.describe()

    def describe(self) -> str:
        """The formula, the physical shape, bytes, padding and, if there are few, all places."""
        return described(self)

    def _repr_svg_(self) -> str:
        return drawn(self)

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

    def place(self, index: Sequence[int]) -> Index:
        """Where the element at `index` lives, one number for each physical axis.

        Raises:
            LayoutError: there is no such element.

        >>> Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64]).place((3, 130))
        (2, 3, 2)
        """
        at = index_within(index, self.shape, "element")
        return _numbers(self.index_map.map_indices(at))

    def offset(self, index: Sequence[int]) -> int:
        """How many places lie before the element at `index`, in row-major physical order.

        >>> Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64]).offset((3, 130))
        128194
        """
        return int(offset_of(self.place(index), self.physical_shape))

    def element(self, place: Sequence[int]) -> Index | None:
        """Which element lives at a place; None for padding.

        Raises:
            LayoutError: there is no such place.

        >>> sticks = Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64])
        >>> sticks.element((3, 0, 7)), sticks.element((3, 0, 8))
        ((0, 199), None)
        """
        where = index_within(place, self.physical_shape, "place")
        index = _numbers(self.inverse.map_indices(where))
        if not all(0 <= n < extent for n, extent in zip(index, self.shape, strict=True)):
            return None
        return index if self.place(index) == where else None

    def is_equivalent_to(self, other: Layout) -> bool:
        """Whether both keep equal elements at equal places of equal shapes."""
        check_layout(other, "layout.is_equivalent_to")
        return (
            self.shape == other.shape
            and self.physical_shape == other.physical_shape
            and self.storage == other.storage
            and self.index_map.is_equivalent_to(other.index_map, self.shape)
        )

    def offsets(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The offset of every element, in the shape of the tensor."""
        axes = np.indices(self.shape, np.int64, sparse=True)
        return np.broadcast_to(offsets_at(self, axes), self.shape)

    def pack(self, array: Any, out: Any = None) -> Any:
        """An array of NumPy in this layout, compiled; see `tecomp.layout.copies.relayout.packed`.

        >>> sticks = Layout.of((2, 6), "int32", lambda i, j: [j // 4, i, j % 4])
        >>> sticks.pack(np.arange(12, dtype="int32").reshape(2, 6))[1]
        array([[ 4,  5,  0,  0],
               [10, 11,  0,  0]], dtype=int32)
        """
        return packed(self, array, out)

    def unpack(self, array: Any, out: Any = None) -> Any:
        """An array in this layout as one of NumPy, compiled; as `pack` in all else."""
        return unpacked(self, array, out)

    def dma(
        self,
        host_strides: Sequence[int] | None = None,
        host_offset: int = 0,
        *,
        start: Sequence[int] | None = None,
        extents: Sequence[int] | None = None,
    ) -> tuple[DmaNest, ...]:
        r"""Loops with constant strides that together copy each element once, and no padding.

        Args:
            host_strides: how far one step of each index goes in the host's memory, in elements;
                0 repeats, a negative one goes backwards. Row-major if not given.
            host_offset: where the host has element 0.
            start: where the box of elements to copy starts; at 0 if not given.
            extents: of this box; all up to the end if not given.

        Returns:
            Nests in order of their place on the device, loops in order of decreasing device
            strides. Whole tiles are one nest, remainders others.

        Raises:
            LayoutError: an argument does not fit the tensor, or there are over 1024 nests.

        >>> sticks = Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64])
        >>> print(*sticks.dma(), sep="\n")
        ((3, 1000, 64), (64000, 64, 1), (64, 200, 1))
        ((1, 1000, 8), (64000, 64, 1), (64, 200, 1)) from host 192 to device 192000
        """
        return dma_nests(self, host_strides, host_offset, start, extents)

    def runs(
        self,
        host_strides: Sequence[int] | None = None,
        *,
        start: Sequence[int] | None = None,
        extents: Sequence[int] | None = None,
    ) -> Runs:
        """The contiguous runs of a copy to or from the host; arguments as for `dma`.

        >>> sticks = Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64])
        >>> print(sticks.runs())
        4,000 runs of 8 to 64 elements, median 64, all multiples of 8, by sets
        """
        return host_runs(self, host_strides, start, extents)

    def runs_to(
        self,
        target: Layout,
        *,
        start: Sequence[int] | None = None,
        extents: Sequence[int] | None = None,
    ) -> Runs:
        """The contiguous runs of a copy into another layout of the tensor, or of a box of it.

        Raises:
            LayoutError: the layouts are of other shapes, or the box does not fit.
        """
        return copy_runs(self, target, start, extents)


def check_pad_value(value: object, dtype: DType) -> None:
    """Refuse what is no number of a type."""
    if value is None:
        return
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, int | float):
        raise LayoutError(f"layout: pad_value={value!r} is no number; give a number or None")
    if not holds(dtype, value):
        raise LayoutError(
            f"layout: pad_value={value} is no {dtype}, the type of the elements; give a number "
            "that it has"
        )


def check_shape(shape: Sequence[object]) -> None:
    """Refuse what is no shape."""
    check_kind(
        shape, Sequence | np.ndarray, "layout: the shape",
        "give integers, one for each axis, such as (0, 1)", LayoutError,
    )
    for extent in shape:
        if isinstance(extent, bool) or not isinstance(extent, int | np.integer) or extent < 0:
            raise LayoutError(
                f"layout: {extent!r} in the shape {list(shape)} is no extent; extents are "
                "integers from 0 on"
            )


def _numbers(exprs: Sequence[Expr]) -> Index:
    numbers = tuple(int(e.value) for e in exprs if isinstance(e, Const))
    assert len(numbers) == len(exprs)
    return numbers
