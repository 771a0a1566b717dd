"""Passes `apply_buffer_transforms` and `fill_padding`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tecomp.errors import LayoutError, LowerError
from tecomp.ir.arith.quasi_affine_conversion import TermTable
from tecomp.ir.arith.simplify import Ranges, simplify
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.dtype import BOOL
from tecomp.ir.nodes.expr import (
    BinOp,
    BufferLoad,
    Const,
    Expr,
    Var,
    binary,
    index_value,
    logical_or,
)
from tecomp.ir.nodes.stmt import (
    Allocate,
    Buffer,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Extent,
    IndexMapNode,
    PadValue,
    PrimFunc,
    Range,
    SeqStmt,
    Stmt,
    check_separators,
    end_of,
    is_longer,
    seq,
)
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import bottom_up, nodes_of, substitute
from tecomp.lowering.storage.buffer_rewrite import (
    check_whole,
    memories_of,
    rewrite_statements,
    size_ranges,
)
from tecomp.lowering.storage.flatten_buffer import linear_index, row_major_strides
from tecomp.poly.loops.ast_generation import padding_loops
from tecomp.poly.maps.index_map import IndexMap, image_box


def apply_buffer_transforms(func: PrimFunc, *, is_simple: bool = False) -> PrimFunc:
    """Apply the layout maps in `layout_transform_map` to buffers and accesses, in order.

    All buffers whose memory is a key of the attribute are rewritten, including parameters and views
    (`DeclBuffer`): shapes become the extents of the map results, and indices are mapped. Axis
    separators are kept, because they refer to the axes after the maps. A realized region becomes
    the bounding box of its image. A view of another shape takes the mapped shape of its memory; its
    elements are those of the memory in row-major order.

    A map without parameters and results is the identity.

    The attribute is removed, so the pass is idempotent. Pad values receive the condition of the
    physical positions without an element (`PadValue.where`), or True if no expression for the
    condition is known.

    Args:
        func: Function to rewrite.
        is_simple: Whether `func` is already simplified; unmapped parts then stay as they are.

    Raises:
        LowerError: If a buffer with a map has strides, if a map is for no buffer of the function,
            or if a view of mapped memory has elements of another size, more elements or other axis
            separators.
        LayoutError: If a map does not fit its buffer, or has other axis separators.

    Source:
        transform_layout RFC, "ApplyBufferTransforms".

    >>> import tecomp
    >>> from tecomp import te
    >>> A = te.placeholder((4, 6), name="A")
    >>> B = te.compute((4, 6), lambda i, j: A[i, j] * 2.0, name="B")
    >>> s = te.create_schedule(B)
    >>> _ = s[A].transform_layout(lambda i, j: [j, i])
    >>> print(tecomp.apply_buffer_transforms(tecomp.lower(s, [A, B], stop_after="nest")))
    def main(A: Buffer("float32", (6, 4)), B: Buffer("float32", (4, 6))):
        for i in range(4):
            for j in range(6):
                B[i, j] = A[j, i] * float32(2.0)
    """
    check_kind(
        func, PrimFunc, "apply_buffer_transforms: the function", "pass a function returned by "
                                                                 "tecomp.lower",
        LowerError,
    )
    if not func.layout_maps:
        return func
    layouts = _Layouts(func)
    body = bottom_up(func.body, layouts.access)
    body = rewrite_statements(body, layouts.realize, size_ranges(func))
    params = tuple(layouts.buffer(p) if isinstance(p, Buffer) else p for p in func.params)
    pads = tuple(layouts.padding(data, pad) for data, pad in func.pad_values)
    mapped = replace(func, params=params, body=body, layout_maps=(), pad_values=pads)
    return simplify(mapped, since=func if is_simple else None)


class _Layouts:
    """Layout maps of a function, and the shapes of its memories after each map."""

    def __init__(self, func: PrimFunc) -> None:
        self.memories = memories_of(func)
        declared = [n.buffer for n in nodes_of(DeclBuffer, func.body)]
        self.views = {view.data: view for view in declared}
        self._moved = {id(view) for view in declared if view.has_offset}
        self.maps: dict[Var, tuple[IndexMap, ...]] = {}
        self.shapes: dict[Var, list[tuple[Extent, ...]]] = {}
        self._terms = TermTable()
        self._done: dict[int, tuple[Buffer, Buffer]] = {}
        for data, maps in func.layout_maps:
            if data not in self.memories:
                raise _no_memory(func, data, "apply_buffer_transforms", "layout map")
            applied = [m for m in maps if m.initial_indices or m.final_indices]
            if applied:
                self._add(self.memories[data], applied)

    def _add(self, memory: Buffer, maps: Sequence[IndexMapNode]) -> None:
        """Check and record the maps of a memory, and the shape after each map."""
        if memory.strides is not None:
            raise LowerError(
                "apply_buffer_transforms: `{memory}` has both strides {strides} and a layout map, "
                "and each alone determines the addresses; specify only one of them",
                kind="conflicting-options", memory=memory.name, strides=memory.strides,
            )
        shapes = [memory.shape]
        for node in maps:
            index_map = IndexMap.lift(node)
            if len(index_map.initial_indices) != len(shapes[-1]):
                raise LayoutError(
                    "apply_buffer_transforms: the layout map {index_map} of `{memory}` takes "
                    "{count} indices, but the buffer has {rank} axes; use one parameter for each "
                    "axis",
                    kind="layout-shape-mismatch", index_map=index_map, memory=memory.name,
                    count=len(index_map.initial_indices), rank=len(shapes[-1]),
                )
            # `transform_layout` has already checked the maps of a schedule.
            if index_map is not node and (pair := index_map.collision(shapes[-1])) is not None:
                raise LayoutError(
                    "apply_buffer_transforms: the layout map {index_map} is not injective: "
                    "elements {pair} and {other_pair} of `{memory}` map to the same address; "
                    "return results that distinguish all elements",
                    kind="not-injective", pair=pair[0], other_pair=pair[1], memory=memory.name,
                    index_map=index_map,
                )
            shapes.append(tuple(index_map.map_shape(shapes[-1])))
        check_separators(memory.axis_separators, len(shapes[-1]))
        _check_map_separators(memory, maps)
        self.shapes[memory.data] = shapes
        self.maps[memory.data] = tuple(map(IndexMap.lift, maps))

    def is_mapped(self, buffer: Buffer) -> bool:
        """Return whether the memory of `buffer` has a layout map."""
        return buffer.data in self.maps

    def buffer(self, buffer: Buffer) -> Buffer:
        """Return `buffer` with the mapped shape of its memory."""
        if not self.is_mapped(buffer):
            return buffer
        if id(buffer) not in self._done:
            self._done[id(buffer)] = buffer, self._mapped(buffer)
        return self._done[id(buffer)][1]

    def _mapped(self, buffer: Buffer) -> Buffer:
        memory, shape = self.memories[buffer.data], self.shapes[buffer.data][-1]
        # `indices` adds the offset of a view.
        bare = replace(buffer, elem_offset=0)
        if problem := _mapped_view_problem(buffer if id(buffer) in self._moved else bare, memory):
            raise LowerError(
                "apply_buffer_transforms: `{buffer}` is a view of `{memory}`, which has a layout "
                "map, but {problem}",
                buffer=buffer.name, memory=memory.name, problem=problem,
            )
        separators = memory.axis_separators
        base = bare if id(buffer) in self._moved else buffer
        return replace(base, shape=shape, strides=None, axis_separators=separators)

    def indices(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Map the indices of an element, without simplification (done once at the end)."""
        for index in indices:
            if index.dtype.lanes > 1:
                raise LowerError(
                    "apply_buffer_transforms: `{buffer}` has a layout map and is accessed with the "
                    "vector index {index}; use a loop over scalar indices, and vectorize it "
                    "afterwards",
                    buffer=buffer.name, index=index,
                )
        memory = self.memories[buffer.data]
        if id(buffer) in self._moved or not _has_shape_of(buffer, memory):
            indices = self._in_memory(buffer, indices, memory.shape)
        for index_map in self.maps[buffer.data]:
            indices = index_map.at(indices)
        return indices

    def _in_memory(
        self, view: Buffer, indices: tuple[Expr, ...], shape: tuple[Extent, ...]
    ) -> tuple[Expr, ...]:
        """Convert the indices of a view to indices of its memory of another `shape`."""
        strides = row_major_strides(view.shape) if view.strides is None else view.strides
        linear = linear_index(self._terms, indices, tuple(strides), view.elem_offset)
        found: list[Expr] = []
        for axis, step in enumerate(row_major_strides(shape)):
            is_last = isinstance(step, int) and step == 1
            index = linear if is_last else binary(BinOp.FLOORDIV, linear, index_value(step))
            found.append(binary(BinOp.MOD, index, index_value(shape[axis])) if axis else index)
        return tuple(found)

    def access(self, node: Any) -> Any:
        """Rewrite a load, store, allocation or view declaration."""
        match node:
            case BufferLoad(buffer, indices, predicate) if self.is_mapped(buffer):
                physical = self.indices(buffer, indices)
                return BufferLoad(self.buffer(buffer), physical, predicate)
            case BufferStore(buffer, value, indices, predicate) if self.is_mapped(buffer):
                physical = self.indices(buffer, indices)
                return BufferStore(self.buffer(buffer), value, physical, predicate)
            case Allocate(buffer, body) | DeclBuffer(buffer, body) if self.is_mapped(buffer):
                return type(node)(self.buffer(buffer), body)
        return None

    def realize(self, node: Stmt, ranges: Ranges) -> Stmt | None:
        """Rewrite a realized region."""
        if not isinstance(node, BufferRealize) or not self.is_mapped(node.buffer):
            return None
        buffer, bounds = self.buffer(node.buffer), node.bounds
        data = buffer.data
        if data in self.views:
            # A view addresses the memory from its start, so the whole memory must be realized.
            check_whole(node, self.views[data], "apply_buffer_transforms")
            return replace(node, buffer=buffer, bounds=tuple(map(_full_range, buffer.shape)))
        for index_map, shape in zip(self.maps[data], self.shapes[data], strict=False):
            bounds = tuple(image_box(index_map, bounds, ranges, shape))
        return replace(node, buffer=buffer, bounds=bounds)

    def padding(self, data: Var, pad: PadValue) -> tuple[Var, PadValue]:
        """Return `pad` with the condition under which a position holds no element."""
        if data not in self.maps:
            return data, pad
        indices: tuple[Expr, ...] = pad.indices
        empty: list[Expr] = []
        shapes = self.shapes[data]
        for index_map, shape in zip(reversed(self.maps[data]), reversed(shapes[:-1]), strict=True):
            # A position is empty if it has no preimage under this map, or an empty preimage.
            if index_map.inverse_or_none(shape) is None:
                # The empty positions are unknown. Fill all: elements are stored afterwards.
                return data, PadValue(pad.indices, pad.value, Const(True, BOOL))
            inverse, no_element = index_map.non_surjective_inverse(shape)
            bindings = dict(zip(inverse.initial_indices, indices, strict=True))
            empty.append(substitute(no_element, bindings))
            indices = tuple(inverse.map_indices(indices))
        ranges = {index: (0, extent - 1)
                  for index, extent in zip(pad.indices, shapes[-1], strict=True)}
        where = simplify(logical_or(*empty), ranges)
        if isinstance(where, Const) and not where.value:
            return data, PadValue(pad.indices, pad.value)
        return data, PadValue(pad.indices, pad.value, where)


def _check_map_separators(memory: Buffer, maps: Sequence[IndexMapNode]) -> None:
    """Refuse a map with AXIS_SEPARATOR if its buffer has other separators.

    The separators of the buffer are those of the last map that has any.
    """
    declared = next((m for m in reversed(maps) if m.axis_separators), None)
    if declared is None or declared.axis_separators == memory.axis_separators:
        return
    raise LayoutError(
        "apply_buffer_transforms: the layout map {description} of `{memory}` has axis_separators "
        "{axis_separators}, but the buffer has {memory_axis_separators}; declare the buffer with "
        "axis_separators={axis_separators}",
        kind="layout-shape-mismatch", description=declared, memory=memory.name,
        axis_separators=declared.axis_separators, memory_axis_separators=memory.axis_separators,
    )


def _no_memory(func: PrimFunc, data: Var, step: str, subject: str) -> LowerError:
    names = ", ".join(buffer.name for buffer in memories_of(func).values()) or "none"
    return LowerError(
        "{step}: the {subject} of `{data}` does not belong to a buffer of {func}; its buffers are "
        "{names}",
        step=step, subject=subject, data=data.name, func=func.name, names=names,
    )


def _has_shape_of(view: Buffer, memory: Buffer) -> bool:
    return view.strides is None and structural_equal(view.shape, memory.shape)


def _mapped_view_problem(view: Buffer, memory: Buffer) -> str:
    """Return why maps cannot rewrite a view of `memory`, or an empty string."""
    if view.dtype.bytes != memory.dtype.bytes:
        return (
            f"its {view.dtype} elements take {view.dtype.bytes} bytes, not {memory.dtype.bytes}; "
            f"declare a view of elements of {memory.dtype.bytes} bytes"
        )
    if len(view.axis_separators) != len(memory.axis_separators):
        return (
            f"its axis_separators are {view.axis_separators}, not {memory.axis_separators}; give "
            f"it those of `{memory.name}`"
        )
    if is_longer(view.shape, memory.shape):
        return (
            f"its shape {view.shape} has more elements than {memory.shape}; declare a smaller view"
        )
    end = end_of(view)
    if end is not None and is_longer((end,), memory.shape):
        return (
            f"its last element is at {end - 1}, and {memory.shape} is the shape of the memory; "
            "declare a smaller view"
        )
    return ""


def fill_padding(func: PrimFunc) -> PrimFunc:
    """Store the pad value at every position of a padded buffer that holds no element.

    `apply_buffer_transforms` determines these positions. Parameters are filled at the start of the
    function, and realized buffers at the start of the region, within its bounds. Buffers without a
    pad value or without such positions are unchanged. The pad values are removed, so the pass is
    idempotent.

    Raises:
        LowerError: If the layout maps of a buffer with a pad value have not been applied, or if a
            pad value belongs to no buffer of the function.
    """
    pending = {data for data, _ in func.layout_maps}
    memories = memories_of(func) if func.pad_values else {}
    for data, _ in func.pad_values:
        if data in pending:
            raise LowerError(
                "fill_padding: `{data}` still has layout maps; run apply_buffer_transforms first",
                data=data.name,
            )
        if data not in memories:
            raise _no_memory(func, data, "fill_padding", "pad value")
    pads = {data: pad for data, pad in func.pad_values if pad.where is not None}
    if not pads:
        return replace(func, pad_values=()) if func.pad_values else func
    body = bottom_up(func.body, lambda node: _realize(node, pads))
    params = [p for p in func.params if isinstance(p, Buffer) and p.data in pads]
    fills = [_fill(p, pads[p.data], [_full_range(n) for n in p.shape]) for p in params]
    return simplify(replace(func, body=seq(*fills, body), pad_values=()))


def _full_range(extent: int | Expr) -> Range:
    return Range(index_value(0), index_value(extent))


def _realize(node: object, pads: Mapping[Var, PadValue]) -> Stmt | None:
    match node:
        case BufferRealize(buffer, bounds, body) if buffer.data in pads:
            fill = _fill(buffer, pads[buffer.data], list(bounds))
            return replace(node, body=seq(fill, body))
    return None


def _fill(buffer: Buffer, pad: PadValue, bounds: list[Range]) -> Stmt:
    assert pad.where is not None
    # Use fresh variables: one buffer may be realized several times in nested loops.
    indices = tuple(Var(index.name) for index in pad.indices)
    renamed: dict[Var, Expr] = dict(zip(pad.indices, indices, strict=True))
    where, value = substitute(pad.where, renamed), substitute(pad.value, renamed)
    if isinstance(where, Const) and not where.value:
        return SeqStmt(())

    def store(position: tuple[Expr, ...]) -> Stmt:
        bindings = dict(zip(indices, position, strict=True))
        return BufferStore(buffer, substitute(value, bindings), position)

    return padding_loops(where, indices, bounds, store)
