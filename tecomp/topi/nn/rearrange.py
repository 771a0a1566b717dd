"""Operators that move elements between axes: flatten, depth_to_space, space_to_batch_nd, dilate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tecomp import DefinitionError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.topi import tag
from tecomp.topi.extents import Size, differ, equal, plus, product, quotient, ravel, times
from tecomp.topi.nn.pad import pad
from tecomp.topi.transform.concatenate import concatenate
from tecomp.topi.transform.slices import part_of, strided_slice
from tecomp.topi.transform.views import in_blocks, reshape, transpose
from tecomp.topi.validation import (
    Operand,
    as_list,
    axis_of,
    integer_of,
    integers_of,
    tensor_of,
    validate_choice,
)
from tecomp.topi.windows import images_of


def flatten(data: te.Tensor) -> te.Tensor:
    """Merge all axes except the first.

    Args:
        data: Input tensor of rank 1 or more.

    Raises:
        DefinitionError: If `data` has rank 0.

    >>> flatten(te.placeholder((2, 3, 4), name="A")).shape
    (2, 12)
    """
    data = tensor_of(data, "topi.nn.flatten")
    if not data.ndim:
        raise DefinitionError(
            "topi.nn.flatten: {data} has no axes, expected at least 1",
            kind="invalid-value", data=data.name,
        )
    return reshape(data, (data.shape[0], product(data.shape[1:])))


def dilate(
    data: te.Tensor, strides: Sequence[int], dilation_value: Operand = 0.0,
    name: str = "DilatedInput",
) -> te.Tensor:
    """Insert gaps between adjacent elements.

    Args:
        data: Input tensor.
        strides: Distance in the result between adjacent elements of each axis.
        dilation_value: Value of the gaps.
        name: Name of the operation.

    Raises:
        DefinitionError: If there is not one number per axis, or if a number is less than 1.

    >>> dilate(te.placeholder((3, 4), name="A"), [2, 1]).shape
    (5, 4)
    """
    where = "topi.nn.dilate"
    data = tensor_of(data, where)
    steps = integers_of(
        as_list(strides, where, "strides"), data.ndim, where, "strides", least=1)
    shape = tuple(
        n if step == 1 else _dilated_extent(n, step) for n, step
        in zip(data.shape, steps, strict=True))
    fill = te.cast(dilation_value, data.dtype)

    def value(*i: te.Expr) -> te.Expr:
        inside = [axis % step == 0 for axis, step in zip(i, steps, strict=True) if step > 1]
        read = data(*(
            axis if step == 1 else axis // step for axis, step in zip(i, steps, strict=True)))
        return te.if_then_else(te.all(*inside), read, fill) if inside else read

    return te.compute(shape, value, name=name, tag="injective,dilate")


def _dilated_extent(extent: Size, step: int) -> Size:
    if equal(extent, 0):
        return 0
    return plus(times(plus(extent, -1), step), 1)


def space_to_depth(data: te.Tensor, block_size: int, layout: str = "NCHW") -> te.Tensor:
    """Move the positions within spatial blocks to the channel axis.

    The position in the block is the outer index of the new channels, the old channel the inner one.

    Args:
        data: Images.
        block_size: Number of rows and columns of a block.
        layout: "NCHW" or "NHWC".

    Raises:
        DefinitionError: If `block_size` does not divide the spatial extents, or if `layout` is
            unknown.

    >>> space_to_depth(te.placeholder((1, 3, 4, 4), name="A"), 2).shape
    (1, 12, 2, 2)
    """
    where = "topi.nn.space_to_depth"
    n, c, h, w, size = _block(data, block_size, layout, where)
    for extent in (h, w):
        _check_divides(extent, size, data, where)
    rows, columns, depth = quotient(h, size), quotient(w, size), times(c, size * size)
    if layout == "NCHW":
        cut = in_blocks(in_blocks(data, 3, size), 2, size)
        return reshape(transpose(cut, (0, 3, 5, 1, 2, 4)), (n, depth, rows, columns))
    cut = in_blocks(in_blocks(data, 2, size), 1, size)
    return reshape(transpose(cut, (0, 1, 3, 2, 4, 5)), (n, rows, columns, depth))


def depth_to_space(
    data: te.Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR"
) -> te.Tensor:
    """Move groups of channels to the positions within spatial blocks.

    Args:
        data: Images.
        block_size: Number of rows and columns of a block.
        layout: "NCHW" or "NHWC".
        mode: Order of the old channels: "DCR" with the position in the block as the outer index,
            "CRD" with this position as the inner index.

    Raises:
        DefinitionError: If the block does not divide the channels, or if `layout` or `mode` is
            unknown.

    >>> depth_to_space(te.placeholder((1, 12, 2, 2), name="A"), 2).shape
    (1, 3, 4, 4)
    """
    where = "topi.nn.depth_to_space"
    validate_choice(mode, ("DCR", "CRD"), where, "mode")
    n, c, h, w, size = _block(data, block_size, layout, where)
    _check_divides(c, size * size, data, where)
    channels = quotient(c, size * size)
    y, x, depth = (0, 1, 2) if mode == "DCR" else (1, 2, 0)
    shape = (n, channels, times(h, size), times(w, size))
    axis = layout.index("C")
    cut = _split_channels(data, axis, size, channels, outside=mode == "DCR")
    if layout == "NCHW":
        return reshape(transpose(cut, (0, 1 + depth, 4, 1 + y, 5, 1 + x)), shape)
    order = (0, 1, 3 + y, 2, 3 + x, 3 + depth)
    return reshape(transpose(cut, order), (n, *shape[2:], channels))


def _split_channels(
    data: te.Tensor, axis: int, size: int, channels: Size, *, outside: bool
) -> te.Tensor:
    """Split the channel axis into block row, block column and channel.

    The channel comes last if `outside` is True, else first.
    """
    shape = (size, size, channels) if outside else (channels, size, size)

    def value(*i: te.Expr) -> te.Expr:
        channel = ravel(i[axis : axis + 3], shape)
        return data(*i[:axis], channel, *i[axis + 3 :])

    return te.compute(
        (*data.shape[:axis], *shape, *data.shape[axis + 1 :]), value, name="T_blocks",
        tag=tag.INJECTIVE)


def _block(
    data: te.Tensor, block_size: int, layout: str, where: str
) -> tuple[Size, Size, Size, Size, int]:
    validate_choice(layout, ("NCHW", "NHWC"), where, "layout")
    images = images_of(data, layout, "NCHW", where)
    n, c, h, w = (data.shape[images.axis(letter)] for letter in "NCHW")
    return n, c, h, w, integer_of(block_size, where, "block_size", least=1)


def _check_divides(extent: Size, size: int, data: te.Tensor, where: str) -> None:
    if isinstance(extent, int) and extent % size:
        raise DefinitionError(
            "{where}: block size {size} does not divide extent {extent} of {data}, shape {shape}; "
            "pad it to a multiple with topi.nn.pad",
            kind="shapes", where=where, data=data.name, shape=shape_text(data.shape), size=size,
            extent=extent,
        )


def space_to_batch_nd(
    data: te.Tensor, block_shape: Sequence[int], pad_before: Sequence[int],
    pad_after: Sequence[int], pad_value: Operand = 0.0,
) -> te.Tensor:
    """Pad the axes after the first and move the positions within blocks to the batch axis.

    Args:
        data: Input tensor, shape (batch, ...).
        block_shape: Extents of a block along the leading axes after the first.
        pad_before: Number of elements before each of these axes.
        pad_after: Number of elements after each of these axes.
        pad_value: Padding value.

    Raises:
        DefinitionError: If the blocks do not divide the padded axes, or if there is not one number
            per axis.

    >>> space_to_batch_nd(te.placeholder((1, 4, 6, 3), name="A"), [2, 3], [0, 0], [0, 0]).shape
    (6, 2, 2, 3)
    """
    where = "topi.nn.space_to_batch_nd"
    data = tensor_of(data, where)
    sizes = _blocks(data, block_shape, where)
    count = len(sizes)
    low = _counts(pad_before, count, where, "pad_before")
    high = _counts(pad_after, count, where, "pad_after")
    zeros = [0] * (data.ndim - 1 - count)
    padded = data
    if any((*low, *high)):
        padded = pad(data, [0, *low, *zeros], [0, *high, *zeros], pad_value)
    for extent, size in zip(padded.shape[1 : count + 1], sizes, strict=True):
        _check_divides(extent, size, padded, where)
    outer = [quotient(n, size) for n, size in zip(padded.shape[1 : count + 1], sizes, strict=True)]
    tail = padded.shape[count + 1 :]
    blocked = padded
    for k in reversed(range(count)):
        blocked = in_blocks(blocked, k + 1, sizes[k])
    order = [
        *(2 + 2 * k for k in range(count)), 0, *(1 + 2 * k for k in range(count)),
        *(1 + 2 * count + k for k in range(len(tail)))]
    permuted = transpose(blocked, order)
    return reshape(permuted, (times(padded.shape[0], _product_of_all(sizes)), *outer, *tail))


def batch_to_space_nd(
    data: te.Tensor, block_shape: Sequence[int], crop_begin_list: Sequence[int],
    crop_end_list: Sequence[int],
) -> te.Tensor:
    """Move batches to the positions within blocks and crop; the inverse of `space_to_batch_nd`.

    Args:
        data: Input tensor, shape (batch, ...).
        block_shape: Extents of a block along the leading axes after the first.
        crop_begin_list: Number of elements cropped before each of these axes.
        crop_end_list: Number of elements cropped after each of these axes.

    Raises:
        DefinitionError: If the blocks do not divide the batch, or if there is not one number per
            axis.

    >>> batch_to_space_nd(te.placeholder((6, 2, 2, 3), name="A"), [2, 3], [0, 1], [0, 0]).shape
    (1, 4, 5, 3)
    """
    where = "topi.nn.batch_to_space_nd"
    data = tensor_of(data, where)
    sizes = _blocks(data, block_shape, where)
    count = len(sizes)
    low = _counts(crop_begin_list, count, where, "crop_begin_list")
    high = _counts(crop_end_list, count, where, "crop_end_list")
    _check_divides(data.shape[0], _product_of_all(sizes), data, where)
    batch = quotient(data.shape[0], _product_of_all(sizes))
    tail = data.shape[count + 1 :]
    cut = _batches(data, sizes, batch)
    order = [count, *(axis for k in range(count) for axis in (count + 1 + k, k)),
             *(2 * count + 1 + k for k in range(len(tail)))]
    extents = [times(n, size) for n, size in zip(data.shape[1 : count + 1], sizes, strict=True)]
    joined = reshape(transpose(cut, order), (batch, *extents, *tail))
    if not any((*low, *high)):
        return joined
    ends = [plus(n, -b) for n, b in zip(extents, high, strict=True)]
    return strided_slice(joined, low, ends, axes=list(range(1, count + 1)))


def _batches(data: te.Tensor, sizes: Sequence[int], batch: Size) -> te.Tensor:
    """Split the batch axis into one axis per block axis and the remaining batch."""
    shape = (*sizes, batch)

    def value(*i: te.Expr) -> te.Expr:
        return data(ravel(i[: len(shape)], shape), *i[len(shape) :])

    return te.compute(
        (*shape, *data.shape[1:]), value, name="T_batches", tag=tag.INJECTIVE)


def _counts(values: Sequence[int], count: int, where: str, name: str) -> tuple[int, ...]:
    return integers_of(as_list(values, where, name), count, where, name, least=0)


def _blocks(data: te.Tensor, block_shape: Sequence[int], where: str) -> tuple[int, ...]:
    requested = as_list(block_shape, where, "block_shape")
    sizes = integers_of(requested, len(requested), where, "block_shape", least=1)
    if len(sizes) >= data.ndim:
        raise DefinitionError(
            "{where}: block_shape {sizes!r} does not match {data}, shape {shape}; pass numbers "
            "for axes after the first",
            kind="shapes", where=where, sizes=sizes, data=data.name, shape=shape_text(data.shape),
        )
    return sizes


def _product_of_all(sizes: Sequence[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


def fifo_buffer(data: te.Tensor, buffer: te.Tensor, axis: int) -> te.Tensor:
    """Append `data` to `buffer` along an axis and drop the same number of leading elements.

    Raises:
        DefinitionError: If `axis` is out of bounds, if the other extents differ, or if `data` is
            longer than `buffer`.

    >>> A, B = te.placeholder((4, 1), name="A"), te.placeholder((4, 5), name="B")
    >>> fifo_buffer(A, B, 1).shape
    (4, 5)
    """
    where = "topi.nn.fifo_buffer"
    data, before = tensor_of(data, where), tensor_of(buffer, where, "buffer")
    dim = axis_of(axis, before.ndim, where)
    fits = data.ndim == before.ndim and not any(
        differ(a, b) for k, (a, b) in enumerate(zip(data.shape, before.shape, strict=True))
        if k != dim)
    new, capacity = data.shape[dim] if fits else 0, before.shape[dim]
    if not fits or (isinstance(new, int) and isinstance(capacity, int) and new > capacity):
        raise DefinitionError(
            "{where}: data has shape {shape} and buffer has shape {before_shape}; the shapes must "
            "be equal, except that data may be shorter along axis {axis}",
            kind="shapes", where=where, shape=shape_text(data.shape),
            before_shape=shape_text(before.shape), axis=dim,
        )
    retained: Any = plus(capacity, -new) if isinstance(new, int) else capacity - new
    return concatenate([part_of(before, dim, new, retained, "T_fifo_kept"), data], dim)


