"""Flatten buffers to one index for each physical axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import Any, TypeVar

from tecomp.errors import LowerError
from tecomp.ir.algebra.quasi_affine import QuasiAffine
from tecomp.ir.algebra.terms import Terms
from tecomp.ir.language.dtype import INT64
from tecomp.ir.language.expr import (
    Binary,
    BinOp,
    Broadcast,
    BufferLoad,
    Const,
    Expr,
    Ramp,
    binary,
    cast,
    index_value,
)
from tecomp.ir.language.given import check_kind
from tecomp.ir.language.stmt import (
    Allocate,
    Buffer,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Extent,
    PrimFunc,
    check_separators,
)
from tecomp.ir.traversal.rewrite import bottom_up, walk

T = TypeVar("T")


def flatten_buffer(func: PrimFunc) -> PrimFunc:
    """Merge each group of axes of every buffer into one axis.

    Groups end at `axis_separators`; without any, a buffer becomes 1-d. Within a group elements
    lie in row-major order, or as the strides of the buffer say. The separators of the result are
    `range(N - 1)`, which tells a flattened buffer of N axes from one that is not flattened yet:
    flattening again changes nothing. Parameters are flattened too. One with strides keeps its shape
    and them, as it is what a call compares arrays with, and becomes `flat`: how many places it
    takes, and how many of them lie before its first element, only the call may say.

    Raises:
        LowerError: layout maps, pad values or realized regions are left; their passes come first.
        DefinitionError: the separators of a buffer leave a group without an axis.

    Source:
        transform_layout RFC, "FlattenBuffer/StorageFlatten".

    >>> import tecomp
    >>> from tecomp import te
    >>> A = te.placeholder((4, 6), name="A")
    >>> B = te.compute((4, 6), lambda i, j: A[i, j] * 2.0, name="B")
    >>> nested = tecomp.lower(te.create_schedule(B), [A, B], stop_after="lower_storage")
    >>> print(tecomp.flatten_buffer(nested))
    def main(A: Buffer("float32", (24,)), B: Buffer("float32", (24,))):
        for i in range(4):
            for j in range(6):
                B[i * 6 + j] = A[i * 6 + j] * float32(2.0)
    """
    _check_ready(func)
    terms = Terms()
    done: dict[int, tuple[Buffer, Buffer]] = {}
    strided = {p for p in func.params if isinstance(p, Buffer) and _is_strided(p)}

    def physical(buffer: Buffer) -> Buffer:
        if id(buffer) not in done:
            is_argument = _is_strided(buffer) and buffer in strided
            flat = replace(buffer, flat=True) if is_argument else flattened(buffer)
            done[id(buffer)] = buffer, flat
        return done[id(buffer)][1]

    def rule(node: Any) -> Any:
        match node:
            case BufferLoad(buffer, indices, predicate) if not is_flat(buffer):
                return BufferLoad(physical(buffer), _flat(terms, buffer, indices), predicate)
            case BufferStore(buffer, value, indices, predicate) if not is_flat(buffer):
                flat = _flat(terms, buffer, indices)
                return BufferStore(physical(buffer), value, flat, predicate)
            case Allocate(buffer, body) | DeclBuffer(buffer, body) if not is_flat(buffer):
                return type(node)(physical(buffer), body)
        return None

    params = tuple(physical(p) if isinstance(p, Buffer) else p for p in func.params)
    return replace(func, params=params, body=bottom_up(func.body, rule))


def _check_ready(func: PrimFunc) -> None:
    check_kind(func, PrimFunc, "flatten_buffer: the function", "give what tecomp.lower returns",
               LowerError)
    if func.layout_maps or func.pad_values:
        data = (func.layout_maps or func.pad_values)[0][0]
        kind, step = ("layout maps", "apply_buffer_transforms") if func.layout_maps else (
            "a pad value", "fill_padding")
        raise LowerError(f"flatten_buffer: `{data.name}` still has {kind}; run {step} first")
    for node in walk(func.body):
        if isinstance(node, BufferRealize):
            raise LowerError(
                f"flatten_buffer: `{node.buffer.name}` is realized in a region; run "
                "lower_storage first"
            )


def _is_strided(buffer: Buffer) -> bool:
    return buffer.strides is not None and not buffer.axis_separators


def is_flat(buffer: Buffer) -> bool:
    """Whether each axis is a physical one: every axis has its own group, packed densely."""
    is_dense = buffer.strides is None
    return buffer.flat or (is_dense and len(buffer.shape) == len(buffer.axis_separators) + 1)


def flattened(buffer: Buffer) -> Buffer:
    """`buffer` with each group of axes merged into one; one of rank 0 has 1 element."""
    check_separators(buffer.axis_separators, max(len(buffer.shape), 1))
    if is_flat(buffer):
        return buffer
    shape = tuple(_extent(*group) for group in zip(
        _groups(buffer, buffer.shape), _groups(buffer, buffer.strides or ()), strict=True))
    if (most := max((n for n in shape if isinstance(n, int)), default=0)) >= 2**63:
        raise LowerError(
            f"flatten_buffer: `{buffer.name}` takes {most} places in a row, more than 64-bit "
            "indices count; use a denser layout or a smaller storage_align",
            kind="too-much",
        )
    separators = tuple(range(len(shape) - 1))
    return replace(buffer, shape=shape, axis_separators=separators, strides=None)


def _extent(shape: tuple[Extent, ...], strides: tuple[Extent, ...]) -> Extent:
    """How many elements from the first to the last of a group, and the rest of its last row."""
    if not strides:
        return _product(shape)
    spans = [_product(pair) for pair in zip(shape, strides, strict=True)]
    known = [span for span in spans if isinstance(span, int)]
    if 0 in known:
        return 0
    return max(known) if len(known) == len(spans) else spans[0]


def _product(factors: Sequence[Extent]) -> Extent:
    known = prod(factor for factor in factors if isinstance(factor, int))
    result: Expr | None = None
    for factor in factors:
        if isinstance(factor, Expr):
            result = factor if result is None else binary(BinOp.MUL, result, factor)
    if result is None or known == 0:
        return known
    return result if known == 1 else binary(BinOp.MUL, result, index_value(known))


def _flat(terms: Terms, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Index within each group of axes."""
    strides: tuple[Extent, ...] = buffer.strides if buffer.strides is not None else tuple(
        stride for group in _groups(buffer, buffer.shape) for stride in _row_major(group))
    return tuple(
        _dot(terms, *group)
        for group in zip(_groups(buffer, indices), _groups(buffer, strides), strict=True)
    )


def _row_major(shape: tuple[Extent, ...]) -> list[Extent]:
    return [_product(shape[axis + 1:]) for axis in range(len(shape))]


def _dot(terms: Terms, indices: tuple[Expr, ...], strides: tuple[Extent, ...]) -> Expr:
    """The sum of index times stride; a ramp in the last index stays one."""
    total = QuasiAffine()
    for index, stride in zip(indices, strides, strict=True):
        if index.dtype.lanes > 1:
            return _across(terms, total, index, stride)
        total = total.plus(terms.sum_of(_times(cast(INT64, index), stride)))
    return terms.expr(total)


def _across(terms: Terms, total: QuasiAffine, index: Expr, stride: Extent) -> Expr:
    """`total + index * stride` where the index, the last one, is a vector."""
    lanes = index.dtype.lanes
    match index:
        case Ramp(base, step):
            start = total.plus(terms.sum_of(_times(cast(INT64, base), stride)))
            wide = terms.sum_of(_times(cast(INT64, step), stride))
            return Ramp(terms.expr(start), terms.expr(wide), lanes)
    scaled = index
    if stride != 1 if isinstance(stride, int) else True:
        scaled = binary(BinOp.MUL, cast(INT64, index), Broadcast(index_value(stride), lanes))
    if not total.terms and not total.const:
        return scaled
    return Binary(BinOp.ADD, Broadcast(terms.expr(total), lanes), cast(INT64, scaled))


def _times(index: Expr, stride: Extent) -> Expr:
    if isinstance(stride, int):
        return Const(0, INT64) if stride == 0 else (
            index if stride == 1 else binary(BinOp.MUL, index, index_value(stride)))
    return binary(BinOp.MUL, index, stride)


def _groups(buffer: Buffer, axes: tuple[T, ...]) -> list[tuple[T, ...]]:
    cuts = [0, *(last + 1 for last in buffer.axis_separators), len(buffer.shape)]
    return [axes[start:stop] for start, stop in pairwise(cuts)]
