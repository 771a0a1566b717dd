"""Operators that move elements, and operators on sizes."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod
from typing import Any

import numpy as np
import onnx

from tecomp import te, topi
from tecomp.onnx.node import Array, OpNode, TensorSequence, Value, operator

_MAX = 2**31 - 1


def product_of(sizes: Sequence[Any]) -> Any:
    """Return the product of sizes, of which some may be symbolic."""
    return prod(sizes)


def matrix_of(x: te.Tensor, axis: int) -> te.Tensor:
    """Return a matrix of the axes before and from `axis`."""
    axis = axis % len(x.shape) if axis < 0 else axis
    return topi.reshape(x, (product_of(x.shape[:axis]), product_of(x.shape[axis:])))


@operator("Shape")
def _shape(node: OpNode) -> Array:
    value = node.inputs[0]
    assert value is not None
    assert not isinstance(value, TensorSequence)
    shape = [*value.shape][slice(node.attribute("start", 0), node.attribute("end"))]
    is_known = all(isinstance(n, int) for n in shape)
    return np.array(shape, np.int64) if is_known else _objects(shape)


def _objects(values: Sequence[Any]) -> Array:
    found = np.empty(len(values), object)
    found[:] = values
    return found


@operator("Size")
def _size(node: OpNode) -> Array:
    value = node.inputs[0]
    assert value is not None
    assert not isinstance(value, TensorSequence)
    size = product_of(value.shape)
    return np.array(size, np.int64 if isinstance(size, int) else object)


@operator("Reshape")
def _reshape(node: OpNode) -> te.Tensor:
    x = node.tensor(0)
    target = node.attribute("shape")
    shape = list(target) if target is not None else node.numbers(1)
    if not node.attribute("allowzero", 0):
        shape = [x.shape[k] if isinstance(n, int) and n == 0 else n for k, n in enumerate(shape)]
    unknown = [k for k, n in enumerate(shape) if isinstance(n, int) and n == -1]
    for k in unknown:
        rest, total = [n for j, n in enumerate(shape) if j != k], [*x.shape]
        for n in [*rest]:  # cancel equal symbolic sizes
            match = next((m for m in total if m is n), None)
            if match is not None:
                rest = [m for m in rest if m is not n]
                total = [m for m in total if m is not match]
        shape[k] = product_of(total) // product_of(rest) if rest else product_of(total)
    return topi.reshape(x, shape)


@operator("Flatten")
def _flatten(node: OpNode) -> te.Tensor:
    return matrix_of(node.tensor(0), node.attribute("axis", 1))


@operator("Transpose")
def _transpose(node: OpNode) -> te.Tensor:
    return topi.transpose(node.tensor(0), node.attribute("perm"))


@operator("Squeeze")
def _squeeze(node: OpNode) -> te.Tensor:
    return topi.squeeze(node.tensor(0), node.axes())


@operator("Unsqueeze")
def _unsqueeze(node: OpNode) -> te.Tensor:
    x, axes = node.tensor(0), node.axes()
    assert axes is not None
    rank = len(x.shape) + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        x = topi.expand_dims(x, axis)
    return x


@operator("Concat")
def _concat(node: OpNode) -> te.Tensor:
    return topi.concatenate(node.tensors(), node.attribute("axis", 0))


@operator("Split")
def _split(node: OpNode) -> list[te.Tensor]:
    x, axis = node.tensor(0), node.attribute("axis", 0)
    sizes = node.attribute("split") or node.numbers(1)
    if sizes is None:
        size = -(-x.shape[axis] // node.outputs)
        sizes = [size] * (node.outputs - 1)
    else:
        sizes = sizes[:-1]
    return list(topi.split(x, [int(n) for n in np.cumsum(sizes)], axis)) if len(sizes) else [x]


@operator("Slice")
def _slice(node: OpNode) -> te.Tensor:
    x = node.tensor(0)
    if node.opset < 10:
        begins, ends = node.attribute("starts"), node.attribute("ends")
        axes, steps = node.attribute("axes"), None
    else:
        begins, ends, axes, steps = (node.numbers(k) for k in (1, 2, 3, 4))
    axes = [*range(len(begins))] if axes is None else [k % len(x.shape) for k in axes]
    steps = [1] * len(axes) if steps is None else steps
    begin, end, stride = [0] * len(x.shape), [*x.shape], [1] * len(x.shape)
    for axis, first, last, step in zip(axes, begins, ends, steps, strict=True):
        if isinstance(x.shape[axis], int):
            found = range(x.shape[axis])[slice(first, last, step)]
            begin[axis], end[axis], stride[axis] = found.start, found.stop, step
            if step < 0 and found.stop < 0:
                end[axis] = -x.shape[axis] - 1
        else:
            begin[axis], stride[axis] = first, step
            end[axis] = x.shape[axis] if last >= _MAX else last
    return topi.strided_slice(x, begin, end, stride)


@operator("Gather")
def _gather(node: OpNode) -> te.Tensor:
    x, axis = node.tensor(0), node.attribute("axis", 0)
    return topi.take(x, _from_the_start(node.tensor(1), x.shape[axis]), axis)


@operator("GatherElements")
def _gather_elements(node: OpNode) -> te.Tensor:
    x, axis = node.tensor(0), node.attribute("axis", 0)
    return topi.gather(x, axis % len(x.shape), _from_the_start(node.tensor(1), x.shape[axis]))


def _from_the_start(indices: te.Tensor, size: Any) -> te.Tensor:
    """Return indices in which negative ones are counted from the start."""
    def element(i: te.Expr) -> te.Expr:
        return te.select(i < te.const(0, i.dtype), i + te.cast(size, i.dtype), i)

    result: te.Tensor = te.compute(
        indices.shape, lambda *i: element(indices(*i)), name="indices")
    return result


@operator("ScatterElements")
def _scatter_elements(node: OpNode) -> te.Tensor:
    x, axis = node.tensor(0), node.attribute("axis", 0)
    names = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}
    indices = _from_the_start(node.tensor(1), x.shape[axis])
    reduction = names[node.attribute("reduction", "none")]
    return topi.scatter_elements(x, indices, node.tensor(2), axis, reduction)


@operator("Expand")
def _expand(node: OpNode) -> te.Tensor:
    x, shape = node.tensor(0), node.numbers(1)
    rank = max(len(x.shape), len(shape))
    sizes = [1] * (rank - len(x.shape)) + [*x.shape]
    wider = [1] * (rank - len(shape)) + shape
    return topi.broadcast_to(x, [
        a if isinstance(b, int) and b == 1 else b for a, b in zip(sizes, wider, strict=True)
    ])


@operator("Tile")
def _tile(node: OpNode) -> te.Tensor:
    return topi.tile(node.tensor(0), node.numbers(1))


@operator("Pad")
def _pad(node: OpNode) -> te.Tensor:
    x = node.tensor(0)
    given = node.attribute("pads")
    pads = list(given) if given is not None else node.numbers(1)
    rank = len(x.shape)
    axes = [k % rank for k in (node.numbers(3) or range(rank))]
    before, after = [0] * rank, [0] * rank
    for position, axis in enumerate(axes):
        before[axis], after[axis] = pads[position], pads[position + len(axes)]
    if min(*before, *after, 0) < 0:
        raise node.error("negative padding is not supported")
    match node.attribute("mode", "constant"):
        case "constant":
            value = node.attribute("value", 0.0)
            number = node.known(2).item() if node.has(2) else value
            return topi.nn.pad(x, before, after, te.const(number, str(x.dtype)))
        case "reflect":
            return topi.nn.reflect_pad(x, before, after)
        case "edge":
            return topi.nn.replicate_pad(x, before, after)
    return topi.nn.circular_pad(x, before, after)


@operator("DepthToSpace", "SpaceToDepth")
def _blocks(node: OpNode) -> te.Tensor:
    x, block = node.tensor(0), node.attribute("blocksize")
    if node.kind == "SpaceToDepth" and node.attribute("mode", "DCR") == "CRD":
        n, c, h, w = x.shape
        split = topi.reshape(x, (n, c, h // block, block, w // block, block))
        moved = topi.transpose(split, (0, 1, 3, 5, 2, 4))
        return topi.reshape(moved, (n, c * block * block, h // block, w // block))
    if node.kind == "SpaceToDepth":
        return topi.nn.space_to_depth(x, block)
    return topi.nn.depth_to_space(x, block, mode=node.attribute("mode", "DCR"))


@operator("Trilu")
def _triangle(node: OpNode) -> te.Tensor:
    k = int(node.known(1).item()) if node.has(1) else 0
    return topi.trilu(node.tensor(0), te.const(k, "int32"), bool(node.attribute("upper", 1)))


@operator("OneHot")
def _one_hot(node: OpNode) -> te.Tensor:
    depth, values = int(node.known(1).item()), node.known(2)
    off, on = values.tolist()
    indices = _from_the_start(topi.cast(node.tensor(0), "int64"), depth)
    dtype = str(values.dtype)
    return topi.one_hot(
        indices, te.const(on, dtype), te.const(off, dtype), depth, node.attribute("axis", -1),
        dtype,
    )


@operator("TopK")
def _top_k(node: OpNode) -> Sequence[Value]:
    k = int(node.known(1).item()) if node.has(1) else node.attribute("k")
    is_largest = bool(node.attribute("largest", 1))
    return list(topi.topk(
        node.tensor(0), k, node.attribute("axis", -1), is_ascend=not is_largest, dtype="int64"))


def _object_array(value: Any) -> Array:
    """Return an array of objects; NumPy operations return an element in place of a 0-d array."""
    if isinstance(value, np.ndarray):
        return value
    found = np.empty((), object)
    found[()] = value
    return found


def of_sizes(node: OpNode) -> Array | None:
    """Return the result of an operator on symbolic sizes, or None if it has no rule for them."""
    values = [value for value in node.inputs if value is not None]
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    if len(arrays) < len(values) or all(x.dtype != object for x in arrays):
        return None
    first = arrays[0]
    match node.kind:
        case "Cast" | "Identity":
            return first
        case "Concat":
            return np.concatenate([x.astype(object) for x in arrays])
        case "Gather":
            return _object_array(np.take(first, arrays[1], axis=node.attribute("axis", 0)))
        case "Unsqueeze":
            return first.reshape(1) if first.ndim == 0 else None
        case "Squeeze":
            return first.reshape(())
        case "Slice":
            begin, end = (int(node.known(k).item()) for k in (1, 2))
            step = int(node.known(4).item()) if node.has(4) else 1
            return first[begin:end:step]
        case "Add" | "Sub" | "Mul" | "Div":
            function = {
                "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.floor_divide}
            return _object_array(function[node.kind](first, arrays[1]))
    return None


_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


def _positions_first(indices: te.Tensor, sizes: Any) -> te.Tensor:
    """Return tuples of indices along the first axis, as topi has them, without negative ones."""
    count, rank = indices.shape[-1], len(indices.shape)

    def element(k: te.Expr, *outer: te.Expr) -> te.Expr:
        index = indices(*outer, k)
        size: te.Expr = te.const(0, str(indices.dtype))
        for axis in range(count):
            size = te.select(te.all(k == axis), te.cast(sizes[axis], indices.dtype), size)
        return te.select(index < te.const(0, index.dtype), index + size, index)

    result: te.Tensor = te.compute(
        (count, *indices.shape[:rank - 1]), element, name="positions")
    return result


@operator("GatherND")
def _gather_tuples(node: OpNode) -> te.Tensor:
    x, batch = node.tensor(0), node.attribute("batch_dims", 0)
    return topi.gather_nd(x, _positions_first(node.tensor(1), x.shape[batch:]), batch)


@operator("ScatterND")
def _scatter_tuples(node: OpNode) -> te.Tensor:
    x, mode = node.tensor(0), _REDUCTIONS[node.attribute("reduction", "none")]
    return topi.scatter_nd(x, _positions_first(node.tensor(1), x.shape), node.tensor(2), mode)


@operator("Scatter")
def _scatter(node: OpNode) -> te.Tensor:
    x, positions, values = node.tensors()
    return topi.scatter_elements(x, positions, values, node.attribute("axis", 0), "update")


@operator("EyeLike")
def _identity_matrix(node: OpNode) -> te.Tensor:
    x, given = node.tensor(0), node.attribute("dtype")
    dtype = str(x.dtype if given is None else onnx.helper.tensor_dtype_to_np_dtype(given))
    return topi.eye(x.shape[0], x.shape[1], node.attribute("k", 0), dtype)


@operator("ReverseSequence")
def _reverse_sequence(node: OpNode) -> te.Tensor:
    x, lengths = node.tensors()
    return topi.reverse_sequence(
        x, lengths, node.attribute("time_axis", 0), node.attribute("batch_axis", 1))


@operator("Einsum")
def _contraction(node: OpNode) -> te.Tensor:
    return topi.einsum(node.attribute("equation").replace(" ", ""), *node.tensors())


@operator("Hardmax")
def _hardmax(node: OpNode) -> te.Tensor:
    x, axis = node.tensor(0), node.attribute("axis", -1 if node.opset >= 13 else 1)
    if node.opset < 13 and axis % len(x.shape) != len(x.shape) - 1:
        raise node.error("axes before the last are not supported before operator set 13")
    axis, dtype = axis % len(x.shape), str(x.dtype)
    best = topi.argmax(x, axis, False)
    one, zero = te.const(1, dtype), te.const(0, dtype)
    return topi.one_hot(best, one, zero, x.shape[axis], axis, dtype)


@operator("IsInf")
def _is_infinite(node: OpNode) -> te.Tensor:
    x = node.tensor(0)
    bound = te.const(inf, str(x.dtype))
    signs = [
        topi.equal(x, sign)
        for name, sign in (("detect_positive", bound), ("detect_negative", -bound))
        if node.attribute(name, 1)
    ]
    if not signs:
        return topi.full(x.shape, "bool", te.const(False, "bool"))
    return topi.logical_or(*signs) if len(signs) == 2 else signs[0]


@operator("BitCast")
def _reinterpret(node: OpNode) -> te.Tensor:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(node.attribute("to"))
    return topi.reinterpret(node.tensor(0), str(dtype))


@operator("CumProd")
def _cumulative_product(node: OpNode) -> te.Tensor:
    x, axis = node.tensor(0), int(node.known(1).item())
    is_reversed, exclusive = node.attribute("reverse", 0), bool(node.attribute("exclusive", 0))
    x = topi.flip(x, axis) if is_reversed else x
    found = topi.cumprod(x, axis, str(x.dtype), exclusive)
    return topi.flip(found, axis) if is_reversed else found


@operator("LpNormalization")
def _norm(node: OpNode) -> te.Tensor:
    x, axis = node.tensor(0), node.attribute("axis", -1)
    if node.attribute("p", 2) == 1:
        norm = topi.sum(topi.abs(x), axis, True)
    else:
        norm = topi.sqrt(topi.sum(topi.multiply(x, x), axis, True))
    zero = te.const(0, str(x.dtype))
    return topi.where(topi.equal(norm, zero), topi.multiply(x, zero), topi.divide(x, norm))


@operator("Range")
def _range(node: OpNode) -> te.Tensor | Array:
    start, limit, delta = (node.number(k) for k in range(3))
    # The limits are sizes of which some are symbolic; others are constants or run on the host.
    is_unit = isinstance(delta, int | np.integer) and int(delta) == 1
    if not is_unit:
        raise node.error("the step of a range of symbolic sizes must be 1")
    count = limit - start
    result: te.Tensor = te.compute(
        (count,), lambda i: te.cast(i, "int64") + te.cast(start, "int64"), name="range")
    return result


@operator("ConstantOfShape")
def _fill(node: OpNode) -> te.Tensor:
    value = node.attribute("value")
    number = np.zeros(1, np.float32) if value is None else onnx.numpy_helper.to_array(value)
    dtype = str(number.dtype)
    return topi.full(node.numbers(0), dtype, te.const(number.reshape(-1)[0].item(), dtype))


@operator("Shrink")
def _shrink(node: OpNode) -> te.Tensor:
    x = node.tensor(0)
    dtype = str(x.dtype)
    bias, bound = (te.const(node.attribute(name, default), dtype)
                   for name, default in (("bias", 0.0), ("lambd", 0.5)))

    def element(value: te.Expr) -> te.Expr:
        inner = te.select(value > bound, value - bias, te.const(0, dtype))
        return te.select(value < -bound, value + bias, inner)

    result: te.Tensor = te.compute(x.shape, lambda *i: element(x(*i)), name="shrink")
    return result


# Sequences and optional values

@operator("SequenceConstruct")
def _sequence(node: OpNode) -> TensorSequence:
    return TensorSequence(node.inputs)


@operator("SequenceEmpty")
def _empty_sequence(node: OpNode) -> TensorSequence:
    del node
    return TensorSequence()


def _place(node: OpNode, position: int, count: int, default: int) -> int:
    place = int(node.number(position, default))
    if not -count <= place <= count:
        raise node.error("the position {place} is out of bounds for {count} elements",
                         place=place, count=count)
    return place


@operator("SequenceInsert")
def _insert(node: OpNode) -> TensorSequence:
    found = TensorSequence(node.sequence(0))
    found.insert(_place(node, 2, len(found), len(found)), node.inputs[1])
    return found


@operator("SequenceErase")
def _erase(node: OpNode) -> TensorSequence:
    found = TensorSequence(node.sequence(0))
    place = _place(node, 1, len(found), len(found) - 1)
    if not -len(found) <= place < len(found):
        raise node.error("the sequence is too short")
    del found[place]
    return found


@operator("SequenceAt")
def _element(node: OpNode) -> Value:
    items = node.sequence(0)
    place = _place(node, 1, len(items), 0)
    if not -len(items) <= place < len(items):
        raise node.error("the sequence is too short")
    value = items[place]
    assert value is not None
    return value


@operator("SequenceLength")
def _sequence_length(node: OpNode) -> Array:
    return np.array(len(node.sequence(0)), np.int64)


@operator("ConcatFromSequence")
def _concat_sequence(node: OpNode) -> te.Tensor:
    items = [node.as_tensor(x) for x in node.sequence(0) if x is not None]
    if not items:
        raise node.error("the sequence is empty")
    axis = node.attribute("axis")
    if node.attribute("new_axis", 0):
        return topi.stack(items, axis)
    return topi.concatenate(items, axis)


@operator("SplitToSequence")
def _split_sequence(node: OpNode) -> TensorSequence:
    x = node.tensor(0)
    axis = node.axis(len(x.shape))
    size = x.shape[axis]
    if not isinstance(size, int):
        raise node.error("the axis to split requires a constant size")
    given = node.known(1) if node.has(1) else np.array(1)
    step = int(given.reshape(-1)[0]) if given.size else 0
    if step <= 0:
        raise node.error("the size of a part must be positive, got {size}", size=step)
    ends = np.cumsum(given).tolist() if given.ndim else [*range(step, size, step), size]
    parts = topi.split(x, ends[:-1], axis) if len(ends) > 1 else [x]
    if not node.has(1) and not node.attribute("keepdims", 1):
        parts = [topi.squeeze(part, [axis]) for part in parts]
    return TensorSequence(parts)


@operator("Optional")
def _optional(node: OpNode) -> Sequence[Value | None]:
    return [node.inputs[0] if node.inputs else None]


@operator("OptionalHasElement")
def _has_element(node: OpNode) -> Array:
    return np.array(node.has(0))


@operator("OptionalGetElement")
def _get_element(node: OpNode) -> Sequence[Value | None]:
    if not node.has(0):
        raise node.error("the optional value is absent")
    return [node.inputs[0]]


@operator("CenterCropPad")
def _crop_or_pad(node: OpNode) -> te.Tensor:
    x, sizes = node.tensor(0), node.numbers(1)
    axes = [k % len(x.shape) for k in node.attribute("axes", range(len(x.shape)))]
    low, high, before, after = ([0] * len(x.shape) for _ in range(4))
    for axis, size in zip(axes, sizes, strict=True):
        extra = size - x.shape[axis]
        if extra < 0:
            low[axis], high[axis] = -extra // 2, -extra - -extra // 2
        else:
            before[axis], after[axis] = extra // 2, extra - extra // 2
    ends = [n - h for n, h in zip(x.shape, high, strict=True)]
    cut = topi.strided_slice(x, low, ends)
    return topi.nn.pad(cut, before, after, te.const(0, str(x.dtype)))


@operator("TensorScatter")
def _write_cache(node: OpNode) -> te.Tensor:
    cache, new = node.tensor(0), node.tensor(1)
    rank = len(cache.shape)
    axis, size = node.axis(rank, -2), cache.shape[node.axis(rank, -2)]
    first = node.tensor(2) if node.has(2) else None
    is_circular = node.attribute("mode", "linear") == "circular"

    def element(*index: te.Expr) -> te.Expr:
        begin = te.cast(first(index[0]), "int64") if first is not None else te.const(0, "int64")
        place = te.cast(index[axis], "int64") - begin
        place = te.floormod(place, size) if is_circular else place
        inner = [place if k == axis else i for k, i in enumerate(index)]
        is_new = te.all(place >= 0, place < new.shape[axis])
        return te.if_then_else(is_new, new(*inner), cache(*index))

    result: te.Tensor = te.compute(cache.shape, element, name="cache")
    return result
