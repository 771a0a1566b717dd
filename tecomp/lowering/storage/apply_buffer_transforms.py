"""Apply layout maps: every buffer gets its physical shape, every access its physical indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tecomp.errors import LowerError
from tecomp.ir.algebra.simplify import Ranges, simplify
from tecomp.ir.language.dtype import BOOL
from tecomp.ir.language.expr import BufferLoad, Const, Expr, Var, logical_or
from tecomp.ir.language.given import check_kind
from tecomp.ir.language.stmt import (
    Allocate,
    Buffer,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Extent,
    PadValue,
    PrimFunc,
    Stmt,
    check_separators,
)
from tecomp.ir.traversal.rewrite import bottom_up, substitute, walk
from tecomp.lowering.storage.scopes import rewrite_statements, size_ranges
from tecomp.poly.maps.index_map import IndexMap, image_box


def apply_buffer_transforms(func: PrimFunc, *, is_simple: bool = False) -> PrimFunc:
    """Rewrite buffers and their accesses by the maps in `layout_transform_map`, in order.

    All buffers whose memory is a key of the attribute are rewritten, parameters included: shapes
    by the extents of the maps' results, indices by the maps themselves. Axis separators stay, as
    they are about the axes after the maps. A region that is realized becomes the least box that
    holds its places. Only a view (`DeclBuffer`) keeps the shape and the indices that it declares:
    it says how to look at the memory, whatever lies there.

    The attribute is removed, so a second run changes nothing. Pad values learn which places hold
    no element (`PadValue.where`), or, where no expression says so, that any may.

    Args:
        func: any function.
        is_simple: whether it is as `simplify` leaves it; what has no map is then left alone.

    Raises:
        LowerError: a buffer with strides has a map.
        LayoutError: a map does not fit its buffer.

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
        func, PrimFunc, "apply_buffer_transforms: the function", "give what tecomp.lower returns",
        LowerError,
    )
    if not func.layout_maps:
        return func
    maps = {data: tuple(map(IndexMap.lift, each)) for data, each in func.layout_maps}
    views = {n.buffer for n in walk(func.body) if isinstance(n, DeclBuffer)}
    layouts = _Layouts(maps, views)
    body = bottom_up(func.body, layouts.access)
    body = rewrite_statements(body, layouts.realize, size_ranges(func))
    params = tuple(layouts.buffer(p) if isinstance(p, Buffer) else p for p in func.params)
    pads = tuple(layouts.padding(data, pad) for data, pad in func.pad_values)
    mapped = replace(func, params=params, body=body, layout_maps=(), pad_values=pads)
    return simplify(mapped, since=func if is_simple else None)


class _Layouts:
    """The maps of a function, and what they make of its buffers."""

    def __init__(
        self, maps: Mapping[Var, Sequence[IndexMap]], views: set[Buffer]
    ) -> None:
        self.maps = maps
        self.views = views
        self.shapes: dict[Var, list[tuple[Extent, ...]]] = {}
        self._done: dict[int, tuple[Buffer, Buffer]] = {}

    def is_mapped(self, buffer: Buffer) -> bool:
        return buffer.data in self.maps and buffer not in self.views

    def buffer(self, buffer: Buffer) -> Buffer:
        """`buffer` with the shape that the maps give it."""
        if not self.is_mapped(buffer):
            return buffer
        if id(buffer) not in self._done:
            self._done[id(buffer)] = buffer, self._mapped(buffer)
        return self._done[id(buffer)][1]

    def _mapped(self, buffer: Buffer) -> Buffer:
        if buffer.strides is not None:
            raise LowerError(
                f"apply_buffer_transforms: `{buffer.name}` has strides {buffer.strides} and a "
                "layout map; a map says where each element lies, so give one of the two",
                kind="contrary-options",
            )
        shapes = [buffer.shape]
        for index_map in self.maps[buffer.data]:
            shapes.append(tuple(index_map.map_shape(shapes[-1])))
        self.shapes[buffer.data] = shapes
        check_separators(buffer.axis_separators, len(shapes[-1]))
        return replace(buffer, shape=shapes[-1])

    def indices(self, data: Var, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The place of the element at `indices`; all places are simplified together, in the end."""
        for index_map in self.maps[data]:
            indices = index_map.at(indices)
        return indices

    def access(self, node: Any) -> Any:
        """Rule for loads, stores and allocations."""
        match node:
            case BufferLoad(buffer, indices, predicate) if self.is_mapped(buffer):
                place = self.indices(buffer.data, indices)
                return BufferLoad(self.buffer(buffer), place, predicate)
            case BufferStore(buffer, value, indices, predicate) if self.is_mapped(buffer):
                place = self.indices(buffer.data, indices)
                return BufferStore(self.buffer(buffer), value, place, predicate)
            case Allocate(buffer, body) if self.is_mapped(buffer):
                return Allocate(self.buffer(buffer), body)
        return None

    def realize(self, node: Stmt, ranges: Ranges) -> Stmt | None:
        """Rule for realized regions."""
        if not isinstance(node, BufferRealize) or not self.is_mapped(node.buffer):
            return None
        buffer, bounds = self.buffer(node.buffer), node.bounds
        data = buffer.data
        for index_map, shape in zip(self.maps[data], self.shapes[data], strict=False):
            bounds = tuple(image_box(index_map, bounds, ranges, shape))
        return replace(node, buffer=buffer, bounds=bounds)

    def padding(self, data: Var, pad: PadValue) -> tuple[Var, PadValue]:
        """`pad` with the condition under which a place holds no element."""
        if data not in self.maps:
            return data, pad
        place: tuple[Expr, ...] = pad.indices
        empty: list[Expr] = []
        shapes = self.shapes[data]
        for index_map, shape in zip(reversed(self.maps[data]), reversed(shapes[:-1]), strict=True):
            # A place is empty if this map puts nothing there, or from an empty place.
            if index_map.inverse_or_none(shape) is None:
                # Which ones are empty is not known. All may be filled: elements come later.
                return data, PadValue(pad.indices, pad.value, Const(True, BOOL))
            inverse, nothing = index_map.non_surjective_inverse(shape)
            at = dict(zip(inverse.initial_indices, place, strict=True))
            empty.append(substitute(nothing, at))
            place = tuple(inverse.map_indices(place))
        ranges = {index: (0, _last(extent))
                  for index, extent in zip(pad.indices, shapes[-1], strict=True)}
        where = simplify(logical_or(*empty), ranges)
        if isinstance(where, Const) and not where.value:
            return data, PadValue(pad.indices, pad.value)
        return data, PadValue(pad.indices, pad.value, where)


def _last(extent: Extent) -> Extent:
    return extent - 1
