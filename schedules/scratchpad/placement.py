"""Memories, cores, lane axes and tile shapes of tensors; the largest sizes that fit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from types import MappingProxyType
from typing import Any

from tecomp import IndexMap, Layout, ScheduleError, Target, TargetError, te
from tecomp.schedules.analysis.stages import is_scan
from tecomp.schedules.common import ceil_div, round_up
from tecomp.schedules.scratchpad.work_division import Cuts, largest

_MIN_CYCLES_PER_CORE = 4
"""Cycles through the rows of a scratchpad per core, from which on parts are whole cycles.

Cores then have at most a quarter more than the average.
"""

HOST = "global"
"""Memory that contains the arrays of the caller."""

Map = Callable[..., list[object]]

Layouts = Mapping[te.Tensor, Layout | IndexMap]
"""Layouts of whole tensors that are not in the default layout of the target."""

NO_LAYOUTS: Layouts = MappingProxyType({})


@dataclass(frozen=True)
class Placement:
    """Memories and cores for the operands of an operator.

    Attributes:
        target: Target.
        device: Memory for whole tensors, which all cores can access.
        scratchpad: Memory in which cores compute.
        scratchpad_bytes: Bytes of the scratchpad per core.
        tensor_layouts: Layouts of some whole tensors, which replace the default layout of the
            target.
        cuts: Requested work divisions of some results, which replace the automatic division.
        resident_tensors: Whole tensors that are resident in scratchpads; each core has the part
            that it computes.
    """

    target: Target
    device: str
    scratchpad: str
    scratchpad_bytes: int
    tensor_layouts: Layouts = field(default_factory=lambda: NO_LAYOUTS)
    cuts: Cuts = field(default_factory=dict)
    resident_tensors: Collection[te.Tensor] = ()

    def within(self, s: te.Schedule) -> Placement:
        """Return the placement for the tensors of a schedule, which may have redefined them."""
        return replace(
            self,
            tensor_layouts={_store_within(s, x): spec for x, spec in self.tensor_layouts.items()},
            cuts={_store_within(s, x): cut for x, cut in self.cuts.items()},
            resident_tensors=frozenset(_store_within(s, x) for x in self.resident_tensors),
        )

    def lanes(self, dtype: str) -> int:
        """Return the number of contiguous elements of a dtype: a row of a face, or a stick."""
        return self.blocks(dtype)[1][-1]

    def unit(self, dtype: str) -> tuple[int, int]:
        """Return the rows and columns that are indivisible: a tile, or a stick of one row.

        >>> for name in ("stick128", "tensix_wh"):
        ...     placement = placement_of(Target.load(name))
        ...     placement.unit("float32"), placement.unit("float16")
        ((1, 32), (1, 64))
        ((32, 32), (32, 32))
        """
        rows, columns = self.blocks(dtype)
        return max(rows, default=1), columns[0]

    def units(self, x: te.Tensor) -> tuple[int, ...]:
        """Return the indivisible extents along each axis of a whole tensor: tiles or sticks.

        A layout in `tensor_layouts` may have its sticks along any axis, or one element in each
        stick.

        >>> from tecomp import StickFormat, StickLayout
        >>> x = te.placeholder((128, 128), "float32")
        >>> machine = Target.load("stick128")
        >>> for order, form in (([0, 1], "Dense"), ([1, 0], "Dense"), ([0, 1], "Sparse")):
        ...     layout = StickLayout((128, 128), "float32", order, StickFormat[form])
        ...     placement_of(machine, {x: layout}).units(x)
        (1, 32)
        (32, 1)
        (1, 1)
        """
        sticks = self._sticks(x)
        if sticks is None:
            rows, columns = self.unit(x.dtype)
            cyclic = self.target.memory(self.scratchpad).rows
            cycles = sizes_of(x)[-2] // cyclic if cyclic and len(x.shape) > 1 else 0
            if cyclic and cycles >= _MIN_CYCLES_PER_CORE * self.target.cores:
                # Parts of whole cycles take all rows of the scratchpad equally.
                rows = cyclic
            return (*[1] * len(x.shape), rows, columns)[-len(x.shape):] if x.shape else ()
        lane, extent = sticks
        return tuple(extent if dim == lane else 1 for dim in range(len(x.shape)))

    def lane_of(self, x: te.Tensor) -> int | None:
        """Return the axis of a whole tensor along a stick or a row of a tile.

        Return None for a tensor without axes, and for a tensor with one element in each stick.
        """
        sticks = self._sticks(x)
        return len(x.shape) - 1 if sticks is None and x.shape else sticks and sticks[0]

    def _sticks(self, x: te.Tensor) -> tuple[int | None, int] | None:
        """Return the axis along the sticks of a layout in `tensor_layouts`, and their extent.

        Return None if the layout is the default layout of the target, or has no sticks.
        """
        spec, shape = self.tensor_layouts.get(x), sizes_of(x)
        if self.target.stick is None or spec is None or 0 in shape or not shape:
            return None
        layout = spec if isinstance(spec, Layout) else Layout.of(shape, x.dtype, spec)

        def place(dim: int, index: int) -> tuple[int, ...]:
            return tuple(layout.place([index if d == dim else 0 for d in range(len(shape))]))

        varying = [d for d, n in enumerate(shape) if n > 1 and place(d, 1)[-1] != place(d, 0)[-1]]
        if not varying:
            return None, 1
        dim, extent = varying[-1], self.lanes(x.dtype)
        # Staggered sticks alternate, so that two of them share one range of elements.
        for count in (extent, 2 * extent):
            if count >= shape[dim] or place(dim, count)[-1] == 0:
                return (dim, count) if len(varying) == 1 else None
        return None

    def blocks(self, dtype: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the nested block sizes of rows and of columns, largest first."""
        tile, stick = self.target.tile, self.target.stick
        if tile is not None:
            rows, columns = (tile.rows, tile.face_rows), (tile.columns, tile.face_columns)
            return rows, columns
        width = _bytes(dtype)
        if stick is not None:
            return (), (max(stick.bytes // width, 1),)
        return (), (max(self._alignment // width, 1),)

    @property
    def _alignment(self) -> int:
        return self.target.memory(self.scratchpad).alignment_bytes

    def layout(self, shape: Sequence[int], dtype: str, memory: str | None = None) -> Map:
        """Return the layout of a tensor: sticks along its rows, or tiles of its last two axes.

        In a memory with a multi-dimensional address, a row of the tensor is the last address
        component. In a memory with a fixed number of rows, the last but one dimension is
        distributed cyclically over these rows.

        Args:
            shape: Shape of the tensor.
            dtype: Dtype of its elements.
            memory: Memory that contains the tensor. Default: the scratchpad. In device memory, the
                dimensions are padded that the target pads.

        Returns:
            A function that `transform_layout` accepts.
        """
        name = self.scratchpad if memory is None else memory
        storage = self.target.memory(name)
        if storage.rows is not None:
            return self._in_partitions(dtype, storage.rows)
        if storage.rank > 1:
            return self._in_rows(dtype, storage.rank)
        if self.target.tile is not None:
            return self._in_tiles(dtype)
        stick = self.target.stick
        is_padded = name == self.device and stick is not None and stick.padding == "all"
        return self._in_sticks(shape, dtype, is_padded=is_padded)

    def _in_sticks(self, shape: Sequence[int], dtype: str, *, is_padded: bool) -> Map:
        lanes = self.lanes(dtype)

        def dimension(i: te.Expr, extent: int) -> te.Expr:
            # The remainder changes no value; it only defines the padded extent.
            padded = round_up(extent, lanes)
            return i % padded if is_padded and extent not in (1, padded) else i

        def place(*i: te.Expr) -> list[object]:
            *others, last = map(dimension, i, (*shape[:-1], 1)) if i else [_zero()]
            return [*others[1:], last // lanes, *others[:1], last % lanes]

        return place

    def _in_rows(self, dtype: str, rank: int) -> Map:
        lanes = self.lanes(dtype)

        def place(*i: te.Expr) -> list[object]:
            leading = [*[_zero()] * (rank - len(i)), *i[:-1]]
            first = len(leading) - (rank - 2)
            parts = [part for index in leading[first:] for part in (te.AXIS_SEPARATOR, index)]
            return [*leading[:first], *parts, te.AXIS_SEPARATOR, *_split_index(i[-1:], (lanes,))]

        return place

    def _in_partitions(self, dtype: str, rows: int) -> Map:
        lanes = self.lanes(dtype)

        def place(*i: te.Expr) -> list[object]:
            row = i[-2] if len(i) > 1 else _zero()
            return _cyclic_rows(rows, i[:-2], row, _split_index(i[-1:], (lanes,)))

        return place

    def in_rows(
        self, memory: str, outer: Sequence[te.Expr], row: te.Expr, inner: Sequence[te.Expr]
    ) -> list[object]:
        """Return physical indices in a memory of rank 2, of which `inner` are inside a row.

        In a memory with a fixed number of rows, `row` is distributed cyclically over these rows.

        Args:
            memory: Name of the memory.
            outer: Indices before the row.
            row: Index of the row.
            inner: Indices inside the row.
        """
        rows = self.target.memory(memory).rows
        if rows is None:
            return [*outer, row, te.AXIS_SEPARATOR, *inner]
        return _cyclic_rows(rows, outer, row, inner)

    def _in_tiles(self, dtype: str) -> Map:
        rows, columns = self.blocks(dtype)

        def place(*i: te.Expr) -> list[object]:
            pairs = zip(_split_index(i[-2:-1], rows), _split_index(i[-1:], columns), strict=True)
            return [*i[:-2], *(part for pair in pairs for part in pair)]

        return place

    def lone(self, dtype: str) -> Map:
        """Return the layout of one value per row: in lane 0 of a stick, or of a row of a tile."""
        rows, _ = self.blocks(dtype)
        memory = self.target.memory(self.scratchpad)
        is_flat = memory.rank == 1

        def place(*i: te.Expr) -> list[object]:
            if memory.rows is not None:
                return _cyclic_rows(memory.rows, i[:-1], i[-1] if i else _zero(), [_zero()])
            axes = [*i[:-1], *_split_index(i[-1:], rows)]
            return [*axes, *([] if is_flat else [te.AXIS_SEPARATOR]), _zero()]

        return place

    def bytes(self, shape: Sequence[int], dtype: str, memory_name: str | None = None) -> int:
        """Return the bytes of a memory that a tensor takes, in whole tiles or sticks.

        Args:
            shape: Shape of the tensor.
            dtype: Dtype of its elements.
            memory_name: Memory that contains the tensor. Default: the scratchpad.
        """
        memory = self.target.memory(memory_name or self.scratchpad)
        unit = self.unit(dtype)
        *outer, rows, columns = (1, 1, *shape)
        row = round_up(columns, unit[1]) * _bytes(dtype)
        count: int = prod(outer) * round_up(rows, unit[0])
        step = memory.alignment_bytes
        if memory.rows is not None:
            # The rows of a tensor are distributed cyclically over those of the memory.
            n_rows = ceil_div(rows, memory.rows)
            return int(memory.rows * round_up(prod(outer) * n_rows * row, step))
        size: int = count * round_up(row, step) if memory.rank == 2 else round_up(count * row, step)
        return size

    def bytes_of_part(self, part: Sequence[int], dtype: str) -> int:
        """Return the bytes of the scratchpad that a part takes, whichever row is its first."""
        sizes = list(part)
        rows = self.target.memory(self.scratchpad).rows
        if len(sizes) > 1 and rows is not None and sizes[-2] > 1 and sizes[-2] % rows:
            sizes[-2] += rows - 1
        return self.bytes(sizes, dtype)

    def bytes_near(self, x: te.Tensor, part: Sequence[int]) -> int:
        """Return the bytes of a resident region whose lane axis is that of the whole tensor."""
        lane = self.lane_of(x)
        if lane is None and part:
            return self.bytes_of_part([*part, 1], x.dtype)
        sizes = list(part)
        if lane is not None:
            sizes.append(sizes.pop(lane))
        return self.bytes_of_part(sizes, x.dtype)

    def largest(self, extent: int, unit: int, required: Callable[[int], int]) -> int:
        """Return the largest part of an extent that fits the scratchpad.

        Args:
            extent: Extent to be split.
            unit: Number of which the part is a multiple.
            required: Function from the size of a part to its bytes in the scratchpad.

        Returns:
            The size; at least `unit`, which may not fit.
        """
        pieces: int = largest(
            ceil_div(extent, unit), lambda n: required(n * unit) <= self.scratchpad_bytes
        )
        return pieces * unit

    def put(self, s: te.Schedule, x: te.Tensor) -> None:
        """Assign a whole tensor to its memory and its layout; its loops are unchanged.

        In host memory, the tensor keeps the host layout. A layout in `tensor_layouts` may name
        another memory.
        """
        s[x].set_scope(self.memory_of(x))
        if (layout := self.layout_of(x)) is not None:
            s[x].transform_layout(layout, loops="logical")

    def memory_of(self, x: te.Tensor) -> str:
        """Return the memory of a whole tensor."""
        if x in self.resident_tensors:
            return self.scratchpad
        spec = self.tensor_layouts.get(x)
        named = spec.memory if isinstance(spec, Layout) else self.device
        return named if named in self.target.memories else self.device

    def layout_of(self, x: te.Tensor) -> Layout | IndexMap | Map | None:
        """Return the layout of a whole tensor; None if it is the host layout."""
        spec, shape = self.tensor_layouts.get(x), sizes_of(x)
        if x in self.resident_tensors:
            return self.near_layout(x, self.lane_of(x))
        rank = self.target.memory(self.memory_of(x)).rank
        if spec is not None:
            return spec if rank == 1 else _with_axes(spec, rank)
        return None if self.device == HOST else self.layout(shape, x.dtype, self.device)

    def put_arguments(self, s: te.Schedule) -> None:
        """Assign all arguments of the caller to device memory."""
        tensors = [stage.op.output(0) for stage in s.stages]
        scans: list[Any] = [x.op for x in tensors if is_scan(x)]
        # A scan state is a placeholder for the scan result, not an argument.
        states = {state for op in scans for state in op.states}
        for x in tensors:
            if not x.op.input_tensors and x not in states:
                self.put(s, x)

    def layout_of_tensor(self, x: te.Tensor) -> Layout:
        """Return the layout of a whole tensor, as a `Layout`."""
        shape, layout = sizes_of(x), self.layout_of(x)
        if layout is None:
            return Layout.row_major(shape, x.dtype)
        return layout if isinstance(layout, Layout) else Layout.of(shape, x.dtype, layout)

    def keep(
        self, s: te.Schedule, x: te.Tensor, where: te.Tensor, loop: te.IterVar,
        lane: int | None = -1,
    ) -> None:
        """Compute the region of `x` that a stage needs in the scratchpad, in vectors of lanes.

        Args:
            s: Schedule.
            x: Tensor.
            where: Stage that needs the region.
            loop: Loop of that stage at which the region is computed.
            lane: Axis of `x` along the lanes; None for one element in each stick. Default: the last
                axis.
        """
        s[x].set_scope(self.scratchpad)
        *_, last = s[x].transform_layout(self.near_layout(x, lane))
        s[x].compute_at(s[where], loop)
        if lane is not None:
            s[x].vectorize(last)

    def near_layout(self, x: te.Tensor, lane: int | None) -> Map:
        """Return the layout of a tensor in the scratchpad.

        Args:
            x: Tensor.
            lane: Axis of `x` along the lanes; None for one element in each stick.
        """
        if lane is None and x.shape:
            return self.lone(x.dtype)
        dims = list(range(len(x.shape)))
        if lane is not None and dims:
            dims.append(dims.pop(lane))
        return self.transposed(x, dims)

    def transposed(self, x: te.Tensor, order: Sequence[int]) -> Map:
        """Return the scratchpad layout of a tensor with its dimensions in another order."""
        shape = sizes_of(x)
        layout = self.layout([shape[dim] for dim in order], x.dtype)
        return lambda *i: layout(*(i[dim] for dim in order))

    def traverse(
        self, s: te.Schedule, x: te.Tensor, rows: Sequence[te.IterVar], column: te.IterVar
    ) -> None:
        """Write a region of a whole tensor in memory order, vectorized over lanes.

        Args:
            s: Schedule.
            x: Tensor, whose layout `put` has assigned.
            rows: Innermost loops without the last one: over rows of the region, if it has rows.
            column: Innermost loop, over columns.
        """
        heights, widths = self.blocks(x.dtype)
        is_flat = self.target.memory(self.device).rank == 1 and self.device != HOST
        columns = _split_loop(s, x, column, widths)
        if is_flat and heights and rows:
            parts = _split_loop(s, x, rows[-1], heights)
            s[x].reorder(*(part for pair in zip(parts, columns, strict=True) for part in pair))
        elif is_flat and len(x.shape) == 2:
            s[x].reorder(columns[0], *rows, *columns[1:])
        s[x].vectorize(columns[-1])

    def share(self, s: te.Schedule, x: te.Tensor, loop: te.IterVar) -> te.IterVar:
        """Distribute the iterations of a loop evenly over all cores.

        The number of iterations is arbitrary: with more iterations than cores, each core has
        several; with fewer, some cores have none.

        Returns:
            The loop over the iterations of one core.
        """
        iterations = number(loop.extent, x)
        per_core = max(ceil_div(iterations, self.target.cores), 1)
        outer, inner = s[x].split(loop, factor=per_core)
        count = max(ceil_div(iterations, per_core), 1)
        first, *others = self.target.grid.items()
        for axis, cores in reversed(others):
            outer, core_loop = s[x].split(outer, factor=min(cores, count))
            s[x].bind(core_loop, te.thread_axis(axis))
            count = ceil_div(count, cores)
        s[x].bind(outer, te.thread_axis(first[0]))
        return inner


def placement_of(target: Target, layouts: Layouts = NO_LAYOUTS) -> Placement | None:
    """Return the placement on a target with scratchpads; None for other targets.

    Whole tensors are in the memory to which links from the host lead. If the device shares its
    memory with the host, they are in another chip memory, such as image memory, if there is one,
    else in host memory. The scratchpad is the destination of a link from a chip memory, or from the
    host if it is a memory of each core; else the memory of an engine unit. Shards of given layouts
    in the scratchpad require space there.

    >>> where = placement_of(Target.load("stick128"))
    >>> where.device, where.scratchpad, where.scratchpad_bytes
    ('ddr', 'lx', 2031616)
    >>> placement_of(Target.load("cpu")) is None
    True
    """
    if not target.grid or target.core is not None:
        return None
    of_host = [m.name for m in target.memories.values() if m.scope == "host"]
    of_chip = [m.name for m in target.memories.values() if m.scope == "chip"]
    of_host_links = [link.to for link in target.links.values() if link.from_ in of_host]
    of_cores = [name for name in of_host_links if target.memory(name).scope == "core"]
    # Whole tensors must be in a memory that all cores can access.
    filled = [name for name in of_host_links if name not in of_cores]
    scratchpads = [link.to for link in target.links.values() if link.from_ in of_chip]
    scratchpads += of_cores
    scratchpads += [unit.memory for unit in target.engine.values()]
    for name in scratchpads:
        memory = target.memory(name)
        if name in (*of_host, *filled) or memory.usable_bytes is None:
            continue
        images = [memory_name for memory_name in of_chip if memory_name not in (name, HOST)]
        sharers = 1 if memory.scope == "core" else target.cores
        free_bytes = memory.usable_bytes // sharers
        device = [*filled, *images, HOST][0]
        resident = (x for x in layouts.values() if isinstance(x, Layout) and x.memory == name)
        free_bytes -= sum(layout.shard_nbytes for layout in resident)
        free_bytes -= free_bytes % memory.alignment_bytes
        return Placement(target, device, name, free_bytes, layouts)
    return None


def _store_within(s: te.Schedule, x: te.Tensor) -> te.Tensor:
    try:
        return s[x].op.output(x.value_index)
    except ScheduleError:
        return x  # no stage of this schedule reads `x`


def number(extent: int | te.Expr, x: te.Tensor) -> int:
    """Return an extent as an int.

    Raises:
        TargetError: If the extent is known only at call time.
    """
    if isinstance(extent, int):
        return extent
    raise TargetError(
        "{x}: extent {extent} is dynamic, but scratchpads are planned at compile time; pass a "
        "static shape, or schedule it for target cpu",
        kind="unbound-size", x=x.name, extent=extent,
    )


def sizes_of(x: te.Tensor) -> tuple[int, ...]:
    """Return the shape of a tensor as ints.

    Raises:
        TargetError: If an extent is known only at call time.
    """
    return tuple(number(extent, x) for extent in x.shape)


def _with_axes(layout: Layout | IndexMap, rank: int) -> Layout | IndexMap:
    """Return a layout with axis separators for a memory with a `rank`-dimensional address.

    The last `rank - 1` results are one address component each.
    """
    index_map = layout.index_map if isinstance(layout, Layout) else layout
    if index_map.axis_separators:
        return layout
    results = tuple(index_map.final_indices)
    results = tuple(_zero() for _ in range(rank - len(results))) + results
    separators = range(len(results) - rank, len(results) - 1)
    return IndexMap(index_map.initial_indices, results, tuple(separators))


def _split_loop(
    s: te.Schedule, x: te.Tensor, loop: te.IterVar, sizes: Sequence[int]
) -> list[te.IterVar]:
    """Split a loop into nested blocks."""
    loops = []
    for size in sizes:
        outer, loop = s[x].split(loop, factor=size)
        loops.append(outer)
    return [*loops, loop]


def _cyclic_rows(
    rows: int, outer: Sequence[te.Expr], row: te.Expr, inner: Sequence[te.Expr]
) -> list[object]:
    return [row % rows, te.AXIS_SEPARATOR, *outer, row // rows, *inner]


def _zero() -> te.Expr:
    return te.const(0, "int64")


def _bytes(dtype: str) -> int:
    return max(int(te.const(1, dtype).dtype.bytes), 1)


def _split_index(index: Sequence[te.Expr], blocks: Sequence[int]) -> list[te.Expr]:
    """Split an index into nested blocks: `i // 32, i % 32 // 16, i % 16`; an empty index is 0."""
    remaining = index[0] if index else _zero()
    parts = []
    for size in blocks:
        parts.append(remaining // size)
        remaining = remaining % size
    return [*parts, remaining]


def device_of(target: Target) -> str:
    """Return the memory for whole tensors that are not passed by the caller.

    >>> device_of(Target.load("stick128")), device_of(Target.load("cpu"))
    ('ddr', 'global')
    """
    where = placement_of(target)
    return HOST if where is None else where.device
