"""Define convolutions of any rank, layout, stride, dilation, padding and number of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tecomp import DefinitionError, te
from tecomp.errors import safe_str
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.schedules.common import wide_type
from tecomp.topi.extents import Size, equal, quotient, times
from tecomp.topi.nn.pad import pad_images
from tecomp.topi.validation import integer_of
from tecomp.topi.windows import SPATIAL, Images, images_of, windows_of

Numbers = Any
"""One number for all axes, or a list with one number per axis."""


def define_convolution(
    data: te.Tensor, kernel: te.Tensor, strides: Numbers, padding: Numbers, dilation: Numbers,
    groups: int, data_layout: str, kernel_layout: str, out_dtype: str | None, name: str,
    tag: str = "",
) -> te.Tensor:
    """Define the convolution of images with filters in the given layouts.

    Layouts are strings of letters: N, C and (D, H, W) for images, O, I and (D, H, W) for filters.
    With blocked channels, c counts the channels within a block of C, and i and o count the channels
    within blocks of I and O.
    """
    where = f"topi.nn.{name}"
    space = [letter for letter in SPATIAL if letter in safe_str(data_layout)]
    blocks = ["c"] if "c" in safe_str(data_layout) else []
    images = images_of(data, data_layout, "".join(["NC", *space, *blocks]), where)
    letters = ["OI", *space, *("io" if blocks else "")]
    filters = images_of(kernel, kernel_layout, "".join(letters), where, "kernel")
    parts = integer_of(groups, where, "groups", least=1)
    windows = windows_of(images, filters.extents, strides, dilation, padding, where, "strides")
    _check_channels(images, filters, parts, where)
    shape = windows.shape(where)
    shape[images.axis("C")] = filters.extent("O")
    if blocks:
        shape[images.axis("c")] = filters.extent("o")
    image = pad_images(images, windows.before, windows.after, te.const(0, data.dtype))
    taps = windows.taps()
    depth, group_outputs = filters.extent("I"), quotient(filters.extent("O"), parts)
    channel = te.reduce_axis((0, depth), name="ic_outer" if blocks else "c")
    lanes = [te.reduce_axis((0, filters.extent("i")), name="ic_inner") for _ in blocks]

    def pair(*i: te.Expr) -> tuple[te.Expr, te.Expr]:
        out = i[images.axis("C")]
        index = windows.element(i, taps)
        filter_index: dict[str, te.Expr] = dict(zip(space, taps, strict=True))
        index[images.axis("C")] = channel if parts == 1 else out // group_outputs * depth + channel
        filter_index |= {"O": out, "I": channel}
        for lane in lanes:
            index[images.axis("c")] = lane
            filter_index |= {"i": lane, "o": i[images.axis("c")]}
        return image(*index), filters.tensor(*(filter_index[letter] for letter in filters.layout))

    axes = [channel, *taps, *lanes] if blocks else [*taps, channel]
    return define_sum_of_products(tuple(shape), pair, axes, data, out_dtype, name, tag)


def define_sum_of_products(
    shape: tuple[Size, ...], pair: Any, axes: Sequence[te.IterVar], data: te.Tensor,
    out_dtype: str | None, name: str, tag: str = "",
) -> te.Tensor:
    """Define the sum of products, accumulated in the wide dtype and cast to the result dtype."""
    dtype = out_dtype or ("int32" if data.dtype.is_bool else data.dtype)
    wide_dtype = wide_type(dtype)

    def total(*i: te.Expr) -> te.Expr:
        value, weight = pair(*i)
        return te.sum(te.cast(value, wide_dtype) * te.cast(weight, wide_dtype), axis=list(axes))

    if wide_dtype == dtype:
        return te.compute(shape, total, name=name, tag=tag)
    inner = te.compute(shape, total, name=f"{name}_sum", tag=tag)
    return te.compute(shape, lambda *i: te.cast(inner(*i), dtype), name=name)


def _check_channels(images: Images, filters: Images, parts: int, where: str) -> None:
    """Raise if images and filters have different numbers of channels.

    Raises:
        DefinitionError: If the numbers of channels differ, or if `parts` does not divide the output
            channels.
    """
    if "c" in images.layout:
        _check_blocks(images, filters, where)
        return
    in_channels, depth, total = images.extent("C"), filters.extent("I"), filters.extent("O")
    uneven = isinstance(total, int) and total % parts
    if uneven or not equal(in_channels, times(depth, parts)):
        raise DefinitionError(
            "{where}: {tensor}, shape {shape} as {layout}, has {channel_count} channels, but "
            "{tensor_name}, shape {tensor_shape} as {filters_layout}, has {depth} input channels "
            "per group and {total} output channels for {parts} groups; the input channels must be "
            "groups * input channels per group, and the output channels a multiple of groups",
            kind="shapes", where=where, tensor=images.tensor.name,
            shape=shape_text(images.tensor.shape), layout=images.layout, channel_count=in_channels,
            tensor_name=filters.tensor.name, tensor_shape=shape_text(filters.tensor.shape),
            filters_layout=filters.layout, depth=depth, total=total, parts=parts,
        )


def _check_blocks(images: Images, filters: Images, where: str) -> None:
    """Raise if images and filters have different channel blocks.

    Raises:
        DefinitionError: If the number or size of the blocks differs.
    """
    actual, expected = [images.extent(x) for x in "Cc"], [filters.extent(x) for x in "Ii"]
    if all(equal(a, b) for a, b in zip(actual, expected, strict=True)):
        return
    raise DefinitionError(
        "{where}: {tensor}, shape {shape} as {layout}, has {block_count} blocks of {block_size} "
        "channels, but {tensor_name}, shape {tensor_shape} as {filters_layout}, expects "
        "{expected_count} blocks of {expected_size}; make them equal",
        kind="shapes", where=where, tensor=images.tensor.name,
        shape=shape_text(images.tensor.shape), layout=images.layout, block_count=actual[0],
        block_size=actual[1], tensor_name=filters.tensor.name,
        tensor_shape=shape_text(filters.tensor.shape), filters_layout=filters.layout,
        expected_count=expected[0], expected_size=expected[1],
    )


def define_depthwise_convolution(
    data: te.Tensor, kernel: te.Tensor, stride: Numbers, padding: Numbers, dilation: Numbers,
    data_layout: str, kernel_layout: str, out_dtype: str | None, name: str,
) -> te.Tensor:
    """Define a depthwise convolution; I is the image channel, O the filter of that channel."""
    where = f"topi.nn.{name}"
    images = images_of(data, data_layout, "NCHW", where)
    filters = images_of(kernel, kernel_layout, "OIHW", where, "Filter")
    windows = windows_of(images, filters.extents, stride, dilation, padding, where)
    filter_c, image_c = filters.tensor.shape[filters.axis("I")], data.shape[images.axis("C")]
    if not equal(filter_c, image_c):
        raise DefinitionError(
            "{where}: {data}, shape {shape} as {data_layout}, has {channel_count} channels, but "
            "{kernel}, shape {kernel_shape}, has filters for {filter_count}; pass filters for "
            "each channel",
            kind="shapes", where=where, data=data.name, shape=shape_text(data.shape),
            data_layout=data_layout, channel_count=image_c, kernel=kernel.name,
            kernel_shape=shape_text(kernel.shape), filter_count=filter_c,
        )
    multiplier = filters.tensor.shape[filters.axis("O")]
    shape = windows.shape(where)
    shape[images.axis("C")] = times(image_c, multiplier)
    image = pad_images(images, windows.before, windows.after, te.const(0, data.dtype))
    taps = windows.taps()

    def pair(*i: te.Expr) -> tuple[te.Expr, te.Expr]:
        out = i[images.axis("C")]
        image_index, filter_index = windows.element(i, taps), list(i)
        channel = out if equal(multiplier, 1) else out // multiplier
        image_index[images.axis("C")] = filter_index[filters.axis("I")] = channel
        filter_index[filters.axis("O")] = te.const(0) if equal(multiplier, 1) else out % multiplier
        for axis, tap in zip(filters.spatial, taps, strict=True):
            filter_index[axis] = tap
        return image(*image_index), filters.tensor(*filter_index)

    return define_sum_of_products(tuple(shape), pair, taps, data, out_dtype, name, name)
