"""Operators of ATen that move or select elements, and that create tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tecomp import te, topi
from tecomp.torch.operator_calls import AtenCall, as_dtype, axes_of, axis_of, operator


@operator("view", "reshape", "_unsafe_view")
def _reshape(call: AtenCall, x: te.Tensor, shape: Any) -> te.Tensor:
    return topi.reshape(x, call.shape)


@operator("permute")
def _permute(call: AtenCall, x: te.Tensor, dims: Sequence[int]) -> te.Tensor:
    return topi.transpose(x, axes_of(dims, len(x.shape)))


@operator("t", "transpose.int")
def _transpose(call: AtenCall, x: te.Tensor, first: int = 0, second: int = 1) -> te.Tensor:
    rank = len(x.shape)
    if rank < 2:
        return x
    order = list(range(rank))
    a, b = axis_of(first, rank), axis_of(second, rank)
    order[a], order[b] = order[b], order[a]
    return topi.transpose(x, order)


@operator("expand")
def _expand(call: AtenCall, x: te.Tensor, sizes: Any, **attributes: Any) -> te.Tensor:
    return topi.broadcast_to(x, call.shape)


@operator("unsqueeze")
def _unsqueeze(call: AtenCall, x: te.Tensor, dim: int) -> te.Tensor:
    return topi.expand_dims(x, axis_of(dim, len(x.shape) + 1))


@operator("squeeze")
def _squeeze(call: AtenCall, x: te.Tensor, dims: Any = None) -> te.Tensor:
    return topi.reshape(x, call.shape)


def _start(call: AtenCall, start: Any, extent: Any, default: Any) -> Any:
    """Return a bound of a slice as a non-negative number that is at most the extent."""
    if start is None:
        return default
    if isinstance(start, int) and isinstance(extent, int):
        return min(max(start + extent if start < 0 else start, 0), extent)
    call.require(isinstance(start, int), "a slice from a symbolic index is not supported")
    return extent + start if start < 0 else start


@operator("slice.Tensor")
def _slice(
    call: AtenCall, x: te.Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> te.Tensor:
    axis = axis_of(dim, len(x.shape))
    low = _start(call, start, x.shape[axis], 0)
    if isinstance(low, int) and low == 0 and step == 1 and call.shape[axis] is x.shape[axis]:
        return x

    def element(*at: te.Expr) -> te.Expr:
        index = list(at)
        index[axis] = low + at[axis] * step
        return x(*index)

    return call.compute(element)


@operator("unfold")
def _windows(call: AtenCall, x: te.Tensor, dim: int, size: int, step: int) -> te.Tensor:
    axis = axis_of(dim, len(x.shape))

    def element(*at: te.Expr) -> te.Expr:
        *index, j = at
        index[axis] = index[axis] * step + j
        return x(*index)

    return call.compute(element)


@operator("select.int")
def _select(call: AtenCall, x: te.Tensor, dim: int, index: Any) -> te.Tensor:
    axis = axis_of(dim, len(x.shape))
    call.require(isinstance(index, int), "a symbolic index is not supported")
    place = x.shape[axis] + index if index < 0 else index
    return call.compute(lambda *at: x(*at[:axis], place, *at[axis:]))


@operator("split_with_sizes", "split.Tensor")
def _split(call: AtenCall, x: te.Tensor, sizes: Any, dim: int = 0) -> list[te.Tensor]:
    axis, found, low = axis_of(dim, len(x.shape)), [], 0
    for result in call.results:
        shape = call.sizes.shape(result)
        found.append(te.compute(
            shape, lambda *at, low=low: x(*at[:axis], at[axis] + low, *at[axis + 1:]),
            name="split"))
        low = low + shape[axis]
    return found


@operator("cat")
def _concatenate(call: AtenCall, tensors: Sequence[te.Tensor], dim: int = 0) -> te.Tensor:
    rank = len(call.shape)
    parts = [as_dtype(x, call.dtype) for x in tensors if len(x.shape) == rank]
    return topi.concatenate(parts, axis_of(dim, rank)) if len(parts) > 1 else parts[0]


@operator("stack")
def _stack(call: AtenCall, tensors: Sequence[te.Tensor], dim: int = 0) -> te.Tensor:
    return topi.stack(list(tensors), axis_of(dim, len(call.shape)))


@operator("repeat")
def _repeat(call: AtenCall, x: te.Tensor, repeats: Sequence[Any]) -> te.Tensor:
    offset = len(repeats) - len(x.shape)
    return call.compute(lambda *at: x(
        *(i % n if not isinstance(n, int) or n != 1 else 0
          for i, n in zip(at[offset:], x.shape, strict=True))))


@operator("flip")
def _flip(call: AtenCall, x: te.Tensor, dims: Sequence[int]) -> te.Tensor:
    axes = axes_of(dims, len(x.shape)) if len(dims) else []
    return call.compute(lambda *at: x(
        *(x.shape[k] - 1 - i if k in axes else i for k, i in enumerate(at))))


@operator("constant_pad_nd")
def _pad(call: AtenCall, x: te.Tensor, pads: Sequence[int], value: Any = 0) -> te.Tensor:
    rank, count = len(x.shape), len(pads) // 2
    before = [0] * (rank - count) + [pads[2 * k] for k in reversed(range(count))]
    fill = te.const(value, call.dtype)

    def element(*at: te.Expr) -> te.Expr:
        index = [i - low if low else i for i, low in zip(at, before, strict=True)]
        bounds = []
        for k in range(rank - count, rank):
            bounds += [index[k] >= 0, index[k] < x.shape[k]]
        return te.if_then_else(te.all(*bounds), x(*index), fill) if bounds else x(*index)

    return call.compute(element)


def _wrapped(index: te.Expr, extent: Any) -> te.Expr:
    """Return an index that may be negative, counted from the front."""
    return te.select(index < 0, index + te.cast(extent, "int64"), index)


@operator("index.Tensor")
def _index(call: AtenCall, x: te.Tensor, indices: Sequence[te.Tensor | None]) -> te.Tensor:
    given = [k for k, index in enumerate(indices) if index is not None]
    tensors = {k: indices[k] for k in given}
    call.require(
        all(str(t.dtype) != "bool" for t in tensors.values() if t is not None),
        "the shape of a result of masks depends on data")
    rank = max(len(t.shape) for t in tensors.values() if t is not None)
    is_adjacent = given == list(range(given[0], given[-1] + 1))
    first = given[0] if is_adjacent else 0

    def element(*at: te.Expr) -> te.Expr:
        shared, rest = at[first:first + rank], [*at[:first], *at[first + rank:]]
        index: list[te.Expr] = []
        for k in range(len(x.shape)):
            tensor = tensors.get(k)
            if tensor is None:
                index.append(rest.pop(0))
                continue
            place = shared[rank - len(tensor.shape):]
            value = tensor(*(
                0 if isinstance(n, int) and n == 1 else i
                for n, i in zip(tensor.shape, place, strict=True)))
            index.append(_wrapped(te.cast(value, "int64"), x.shape[k]))
        return x(*index)

    return call.compute(element)


@operator("index_select")
def _index_select(call: AtenCall, x: te.Tensor, dim: int, index: te.Tensor) -> te.Tensor:
    axis = axis_of(dim, len(x.shape))
    return call.compute(lambda *at: x(*at[:axis], index(at[axis]), *at[axis + 1:]))


@operator("gather")
def _gather(
    call: AtenCall, x: te.Tensor, dim: int, index: te.Tensor, sparse_grad: bool = False
) -> te.Tensor:
    axis = axis_of(dim, len(x.shape))
    return call.compute(lambda *at: x(*at[:axis], index(*at), *at[axis + 1:]))


@operator("select_scatter")
def _select_scatter(
    call: AtenCall, x: te.Tensor, source: te.Tensor, dim: int, index: Any
) -> te.Tensor:
    axis = axis_of(dim, len(x.shape))
    call.require(isinstance(index, int), "a symbolic index is not supported")
    place = x.shape[axis] + index if index < 0 else index
    return call.compute(lambda *at: te.if_then_else(
        at[axis].equal(place), source(*at[:axis], *at[axis + 1:]), x(*at)))


@operator("slice_scatter")
def _slice_scatter(
    call: AtenCall, x: te.Tensor, source: te.Tensor, dim: int = 0, start: Any = None,
    end: Any = None, step: int = 1,
) -> te.Tensor:
    axis = axis_of(dim, len(x.shape))
    low = _start(call, start, x.shape[axis], 0)

    def element(*at: te.Expr) -> te.Expr:
        offset = at[axis] - low
        place = offset // step if step != 1 else offset
        conditions = [offset >= 0, place < source.shape[axis]]
        if step != 1:
            conditions.append((offset % step).equal(0))
        return te.if_then_else(
            te.all(*conditions), source(*at[:axis], place, *at[axis + 1:]), x(*at))

    return call.compute(element)


@operator("tril", "triu")
def _triangle(call: AtenCall, x: te.Tensor, diagonal: int = 0) -> te.Tensor:
    return topi.trilu(x, te.const(diagonal, "int64"), "triu" in call.name)


@operator("diagonal")
def _diagonal(
    call: AtenCall, x: te.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> te.Tensor:
    a, b = axis_of(dim1, len(x.shape)), axis_of(dim2, len(x.shape))

    def element(*at: te.Expr) -> te.Expr:
        *rest, i = at
        index = {a: i + max(-offset, 0), b: i + max(offset, 0)}
        return x(*(index[k] if k in index else rest.pop(0) for k in range(len(x.shape))))

    return call.compute(element)


@operator("full", "full_like")
def _full(call: AtenCall, like: Any, value: Any, **attributes: Any) -> te.Tensor:
    return call.compute(lambda *_: as_dtype(value, call.dtype))


@operator("zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones")
def _constant(call: AtenCall, *attributes: Any, **more: Any) -> te.Tensor:
    return call.compute(lambda *_: te.const(int("ones" in call.name), call.dtype))


@operator("scalar_tensor")
def _scalar(call: AtenCall, value: Any, **attributes: Any) -> te.Tensor:
    return call.compute(lambda: as_dtype(value, call.dtype))


@operator("arange", "arange.start", "arange.start_step")
def _range(call: AtenCall, *bounds: Any, **attributes: Any) -> te.Tensor:
    start, step = (0 if len(bounds) < 2 else bounds[0]), (bounds[2] if len(bounds) > 2 else 1)
    return call.compute(
        lambda i: as_dtype(start, call.dtype) + te.cast(i, call.dtype) * te.const(step, call.dtype))

