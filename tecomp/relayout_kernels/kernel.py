"""Build functions and compiled kernels that copy a whole tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from tecomp.caches import memoize
from tecomp.codegen.dispatch.kernel import Kernel
from tecomp.codegen.memory.vector_access import STREAM
from tecomp.copy_schedule import Dim
from tecomp.ir.arith.intervals import Box
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import CmpOp, Compare, Expr, Var, index_value
from tecomp.ir.nodes.stmt import Buffer, For, ForKind, IfThenElse, PrimFunc, Stmt, seq
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.machine.components import Core
from tecomp.machine.descriptor import Target
from tecomp.poly.accesses.common_digits import (
    CommonDigits,
    DigitAxis,
    common_digits,
    padding_boxes,
)
from tecomp.relayout_kernels.box_copy import CopiedBox, CopySpec, Memories, copy_box, plus

_MAX_BOXES = 16
"""Maximum number of boxes that are filled, or copied, separately."""
_SHARED_BYTES = 1 << 20
"""Minimum bytes of a parallel copy: a smaller copy ends before other threads have started."""


def host_function(copy: CopySpec, name: str = "copy") -> PrimFunc:
    """Return the function of a copy for the host processor."""
    core = Target.load("cpu").core
    assert core is not None
    return function_of(copy, core, name)


def function_of(copy: CopySpec, core: Core, name: str = "copy") -> PrimFunc:
    """Return the function of a copy for processors with the given core."""
    return _Maker(copy, core).function(name)


class _Maker:
    """Builder of the function of one copy."""

    def __init__(self, copy: CopySpec, core: Core) -> None:
        self._copy = copy
        self._source = Buffer("source", (prod(copy.source.physical_extents),), copy.dtype)
        self._result = Buffer("result", (prod(copy.result.physical_extents),), copy.dtype)
        self._bytes = prod(copy.result.physical_extents) * copy.dtype.bytes
        self._threads = core.count if self._bytes >= _SHARED_BYTES else 1
        bits = DType(f"uint{8 * copy.dtype.bytes}")
        (reads,), (writes,) = self._source.shape, self._result.shape
        # A result as large as the last-level cache would be evicted before it is read again.
        scope = STREAM if self._bytes >= core.cache_bytes[-1] else "global"
        self._memories = Memories(
            Buffer("from_bits", (reads,), bits, data=self._source.data),
            Buffer("to_bits", (writes,), bits, scope, data=self._result.data),
            core.vector_bytes,
            core.second_cache // 2,
        )

    def function(self, name: str) -> PrimFunc:
        copy = self._copy
        parts: list[Stmt] = []
        if prod(copy.result.physical_extents):
            parts = list(self._parts()) if prod(copy.shape) else list(self._filled())
        return PrimFunc(name, (self._source, self._result), seq(*parts))

    def _parts(self) -> Iterator[Stmt]:
        copy = self._copy
        cut = common_digits(copy.shape, [
            (layout.index_map, layout.physical_extents) for layout in (copy.source, copy.result)
        ])
        volume = prod(copy.result.physical_extents)
        if copy.fill is not None and prod(copy.shape) < volume:
            boxes = padding_boxes(cut.axes, cut.offsets[1], volume)
            if boxes is None or len(boxes) > _MAX_BOXES:
                yield from self._filled()
            else:
                yield from (self._fill(dims, start) for start, dims in boxes)
        guarded = _guarded_axes(cut)
        for values in product(*(
            [tuple((0, digit.size) for digit in axis.digits)] if axis in guarded
            else list(axis.boxes()) for axis in cut.axes
        )):
            yield self._box(cut, values, guarded)

    def _filled(self) -> Iterator[Stmt]:
        """Fill the whole result."""
        if self._copy.fill is not None:
            yield self._fill([(prod(self._copy.result.physical_extents), 1)], 0)

    def _fill(self, dims: Sequence[tuple[int, int]], start: int) -> Stmt:
        """Fill a box of the result.

        Args:
            dims: Count and stride of each dimension.
            start: Offset of the first element.
        """
        assert self._copy.fill is not None
        memories = replace(self._memories, source=self._copy.fill)
        steps = tuple(Dim(count, stride, stride) for count, stride in dims)
        offset = index_value(start)
        return copy_box(CopiedBox(steps, offset, offset, memories), self._threads)

    def _box(
        self, cut: CommonDigits, values: Sequence[Box[int]], guarded: Sequence[DigitAxis]
    ) -> Stmt:
        """Copy one box inside loops over the digits that have no fixed stride in both memories.

        Args:
            cut: Axes of the copy, cut into digits.
            values: First value and count of each digit, for each axis.
            guarded: Axes that also get loops, and a check of their index against the extent.
        """
        offsets = [index_value(offset.const) for offset in cut.offsets]
        named = {
            var
            for o in cut.offsets
            if o.remainder is not None
            for var in free_variables(o.remainder)
        }
        starts: list[Expr] = list(offsets)
        dims: list[Dim] = []
        loops: list[tuple[Var, int, int]] = []
        for axis, box in zip(cut.axes, values, strict=True):
            for digit, (first, count) in zip(axis.digits, box, strict=True):
                steps = [offset.strides.get(digit.var, 0) for offset in cut.offsets]
                index: Expr = index_value(first)
                if digit.var in named or axis in guarded:
                    loops.append((digit.var, first, count))
                    index = digit.var
                else:
                    dims.append(Dim(count, *steps))
                starts = [plus(e, index, n) for e, n in zip(starts, steps, strict=True)]
        source, result = (
            start if offset.remainder is None else plus(start, offset.remainder)
            for start, offset in zip(starts, cut.offsets, strict=True)
        )
        threads = 1 if loops else self._threads
        body = copy_box(CopiedBox(tuple(dims), source, result, self._memories), threads)
        for axis in guarded:
            body = IfThenElse(Compare(CmpOp.LT, _index(axis), index_value(axis.extent)), body)
        for var, first, count in reversed(loops):
            body = For(var, index_value(first), index_value(count), ForKind.SERIAL, body)
        return body


def _guarded_axes(cut: CommonDigits) -> list[DigitAxis]:
    """Return the partial axes whose indices are checked at run time, longest strides first.

    A partial axis ends inside a block. An unchecked partial axis is split into at least two boxes,
    and the copy has one box per combination; axes are checked until `_MAX_BOXES` boxes suffice.
    """
    guarded: list[DigitAxis] = []
    box_counts = {id(axis): len(list(axis.boxes())) for axis in cut.axes}
    unchecked = sorted(
        (axis for axis in cut.axes if box_counts[id(axis)] > 1),
        key=lambda axis: -min(
            offset.strides.get(digit.var, 0) for offset in cut.offsets for digit in axis.digits
        ),
    )
    while prod(box_counts[id(axis)] for axis in unchecked) > _MAX_BOXES:
        guarded.append(unchecked.pop(0))
    return guarded


def _index(axis: DigitAxis) -> Expr:
    """Return the index of an axis from its digits."""
    total: Expr = index_value(0)
    for digit in axis.digits:
        total = plus(total, digit.var, digit.unit)
    return total


@memoize("copies.kernels")
def kernel_of(copy: CopySpec, name: str = "copy") -> Kernel:
    """Compile a copy; the kernel takes arrays with the shapes `places` of source and result."""
    signature = [
        Buffer("source", copy.source.physical_extents, copy.dtype),
        Buffer("result", copy.result.physical_extents, copy.dtype),
    ]
    return Kernel(host_function(copy, name), signature)
