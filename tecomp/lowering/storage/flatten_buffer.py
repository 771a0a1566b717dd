"""Pass `flatten_buffer`: one index per physical axis."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

from tecomp.errors import LowerError
from tecomp.ir.arith.extents import plus, product, simplify_extent
from tecomp.ir.arith.quasi_affine import QuasiAffine
from tecomp.ir.arith.quasi_affine_conversion import TermTable
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Broadcast,
    BufferLoad,
    Const,
    Expr,
    Ramp,
    Select,
    binary,
    cast,
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
    PrimFunc,
    check_separators,
    view_problem,
)
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.analyses import views_with_memory
from tecomp.ir.traversal.rewrite import bottom_up, nodes_of, walk

T = TypeVar("T")


def flatten_buffer(func: PrimFunc) -> PrimFunc:
    """Merge each group of axes of every buffer into one axis.

    Groups end at `axis_separators`; without separators, a buffer becomes 1-d. Within a group,
    elements are in row-major order, or addressed by the strides of the buffer. The separators of
    the result are `range(N - 1)`, which marks a buffer of N axes as flattened, so the pass is
    idempotent. The indices of a view include its `elem_offset`. Parameters are flattened too. A
    parameter with strides keeps its shape and strides, because calls compare arrays with them, and
    becomes `flat`: its span, and the number of positions before its first element, may be known at
    call time only.

    Raises:
        LowerError: If layout maps, pad values or realized regions remain (their passes must run
            first), if a view has another number of physical axes than its memory or longer ones, or
            if a buffer exceeds 64-bit indices.
        DefinitionError: If the separators of a buffer leave a group without an axis.

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
    terms = TermTable()
    done: dict[int, tuple[Buffer, Buffer]] = {}
    strided = {p for p in func.params if isinstance(p, Buffer) and _is_strided(p)}
    views = _view_offsets(func)

    def is_physical(buffer: Buffer) -> bool:
        return is_flat(buffer) and structural_equal(views.get(id(buffer), 0), 0)

    def physical(buffer: Buffer) -> Buffer:
        if id(buffer) not in done:
            is_argument = _is_strided(buffer) and id(buffer) not in views and buffer in strided
            flat = replace(buffer, flat=True) if is_argument else flatten_axis_groups(
                buffer, is_view=id(buffer) in views)
            done[id(buffer)] = buffer, flat
        return done[id(buffer)][1]

    def rule(node: Any) -> Any:
        match node:
            case BufferLoad(buffer, indices, predicate) if not is_physical(buffer):
                flat = _flatten_indices(terms, buffer, indices, views.get(id(buffer), 0))
                return BufferLoad(physical(buffer), flat, predicate)
            case BufferStore(buffer, value, indices, predicate) if not is_physical(buffer):
                flat = _flatten_indices(terms, buffer, indices, views.get(id(buffer), 0))
                return BufferStore(physical(buffer), value, flat, predicate)
            case Allocate(buffer, body) | DeclBuffer(buffer, body) if not is_physical(buffer):
                return type(node)(physical(buffer), body)
        return None

    params = tuple(physical(p) if isinstance(p, Buffer) else p for p in func.params)
    body = bottom_up(func.body, rule, kind=(BufferLoad, BufferStore, Allocate, DeclBuffer))
    flat = replace(func, params=params, body=body)
    for view, memory in views_with_memory(flat):
        if problem := view_problem(view, memory):
            raise LowerError(
                "flatten_buffer: {problem}; declare the view with axis_separators that split its "
                "shape into the physical axes of its memory",
                problem=problem,
            )
    return flat


def _view_offsets(func: PrimFunc) -> dict[int, Extent]:
    """Return the offset of each view of a function in its memory, by the id of the view."""
    views = (n.buffer for n in walk(func.body) if isinstance(n, DeclBuffer))
    return {id(view): view.elem_offset for view in views}


def _check_ready(func: PrimFunc) -> None:
    check_kind(func, PrimFunc, "flatten_buffer: the function", "pass a function returned by "
                                                               "tecomp.lower",
               LowerError)
    if func.layout_maps or func.pad_values:
        data = (func.layout_maps or func.pad_values)[0][0]
        kind, step = ("layout maps", "apply_buffer_transforms") if func.layout_maps else (
            "a pad value", "fill_padding")
        raise LowerError(
            "flatten_buffer: `{data}` still has {unlowered}; run {step} first",
            data=data.name, unlowered=kind, step=step,
        )
    for node in nodes_of(BufferRealize, func.body):
        raise LowerError(
            "flatten_buffer: `{buffer}` is realized in a region (BufferRealize); run "
            "lower_storage first",
            buffer=node.buffer.name,
        )


def _is_strided(buffer: Buffer) -> bool:
    return buffer.strides is not None and not buffer.axis_separators


def is_flat(buffer: Buffer) -> bool:
    """Return whether each axis is physical: every axis is its own densely packed group."""
    is_dense = buffer.strides is None
    return buffer.flat or (is_dense and len(buffer.shape) == len(buffer.axis_separators) + 1)


def flatten_axis_groups(buffer: Buffer, *, is_view: bool = False) -> Buffer:
    """Merge each group of axes of `buffer` into one axis; a buffer of rank 0 has 1 element.

    A view with strides ends at its last element, because its memory may end there too. A view
    includes the elements before its offset.
    """
    check_separators(buffer.axis_separators, max(len(buffer.shape), 1))
    is_moved = is_view and buffer.has_offset and not buffer.axis_separators
    if is_flat(buffer) and not is_moved:
        return buffer
    extent = _group_span if is_view and buffer.strides is not None else _group_extent
    shape = tuple(extent(*group) for group in zip(
        _groups(buffer, buffer.shape), _groups(buffer, buffer.strides or ()), strict=True))
    if is_moved:
        shape = (simplify_extent(plus(buffer.elem_offset, *shape)),)
    if (largest := max((n for n in shape if isinstance(n, int)), default=0)) >= 2**63:
        raise LowerError(
            "flatten_buffer: a physical axis of `{buffer}` has {count} elements, which exceeds "
            "64-bit indices; use a denser layout or a smaller storage_align",
            kind="limit-exceeded", buffer=buffer.name, count=largest,
        )
    separators = tuple(range(len(shape) - 1))
    flat = replace(buffer, shape=shape, axis_separators=separators, strides=None)
    return replace(flat, elem_offset=0) if is_moved else flat


def _group_extent(shape: tuple[Extent, ...], strides: tuple[Extent, ...]) -> Extent:
    """Return the number of elements that a group spans, including the padding of the last row."""
    if not strides:
        return product(shape)
    spans = [product(pair) for pair in zip(shape, strides, strict=True)]
    known = [span for span in spans if isinstance(span, int)]
    if 0 in known:
        return 0
    return max(known) if len(known) == len(spans) else spans[0]


def _group_span(shape: tuple[Extent, ...], strides: tuple[Extent, ...]) -> Extent:
    """Return the number of elements from the first to the last element of a group."""
    last: Expr = Const(0, INT64)
    for extent, stride in zip(shape, strides, strict=True):
        last = binary(BinOp.ADD, last, _scale_index(index_value(extent) - 1, stride))
    is_empty = logical_or(*(index_value(extent) <= 0 for extent in shape))
    return simplify_extent(Select(is_empty, index_value(0), last + 1))


def _flatten_indices(
    terms: TermTable, buffer: Buffer, indices: tuple[Expr, ...], start: Extent
) -> tuple[Expr, ...]:
    """Return the linear index within each group of axes, counted from `start`."""
    strides: tuple[Extent, ...] = buffer.strides if buffer.strides is not None else tuple(
        stride for group in _groups(buffer, buffer.shape) for stride in row_major_strides(group))
    return tuple(
        linear_index(terms, *group, start)
        for group in zip(_groups(buffer, indices), _groups(buffer, strides), strict=True)
    )


def row_major_strides(shape: tuple[Extent, ...]) -> list[Extent]:
    """Return the strides of an array without padding, in elements."""
    return [product(shape[axis + 1:]) for axis in range(len(shape))]


def linear_index(
    terms: TermTable, indices: tuple[Expr, ...], strides: tuple[Extent, ...], start: Extent = 0
) -> Expr:
    """Return `start` plus the dot product of indices and strides.

    The result is a ramp if the last index is a ramp.
    """
    total = QuasiAffine() if isinstance(start, int) and start == 0 else terms.sum_of(
        cast(INT64, index_value(start)))
    for index, stride in zip(indices, strides, strict=True):
        if index.dtype.lanes > 1:
            return _vector_index(terms, total, index, stride)
        total = total.plus(terms.sum_of(_scale_index(cast(INT64, index), stride)))
    return terms.expr(total)


def _vector_index(terms: TermTable, total: QuasiAffine, index: Expr, stride: Extent) -> Expr:
    """Return `total + index * stride` for a vector index, which is the last index."""
    lanes = index.dtype.lanes
    match index:
        case Ramp(base, step):
            start = total.plus(terms.sum_of(_scale_index(cast(INT64, base), stride)))
            scaled_step = terms.sum_of(_scale_index(cast(INT64, step), stride))
            return Ramp(terms.expr(start), terms.expr(scaled_step), lanes)
    scaled = index
    if stride != 1 if isinstance(stride, int) else True:
        scaled = binary(BinOp.MUL, cast(INT64, index), Broadcast(index_value(stride), lanes))
    if not total.terms and not total.const:
        return scaled
    return Binary(BinOp.ADD, Broadcast(terms.expr(total), lanes), cast(INT64, scaled))


def _scale_index(index: Expr, stride: Extent) -> Expr:
    if isinstance(stride, int):
        return Const(0, INT64) if stride == 0 else (
            index if stride == 1 else binary(BinOp.MUL, index, index_value(stride)))
    return binary(BinOp.MUL, index, stride)


def _groups(buffer: Buffer, axes: tuple[T, ...]) -> list[tuple[T, ...]]:
    if not buffer.axis_separators:
        return [axes[: len(buffer.shape)]]
    cuts = [0, *(last + 1 for last in buffer.axis_separators), len(buffer.shape)]
    return [axes[start:stop] for start, stop in pairwise(cuts)]
