"""Transposed convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp import DefinitionError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.topi import tag
from tecomp.topi.extents import Size, equal, is_multiple, plus, quotient, times
from tecomp.topi.nn.convolution_definition import Numbers, define_convolution
from tecomp.topi.validation import integer_of, integers_of
from tecomp.topi.windows import SPATIAL, Images, images_of, paddings


def _define_transposed(
    data: te.Tensor, kernel: te.Tensor, strides: Numbers, padding: Numbers,
    out_dtype: str | None, output_padding: Numbers, groups: int, space: str, name: str,
) -> te.Tensor:
    """Define a transposed convolution as a convolution of dilated images with flipped filters."""
    where = f"topi.nn.{name}"
    images = images_of(data, f"NC{space}", f"NC{space}", where)
    filters = images_of(kernel, f"IO{space}", f"IO{space}", where, "kernel")
    count = len(space)
    steps = integers_of(strides, count, where, "strides", least=1)
    tail = integers_of(output_padding, count, where, "output_padding", least=0)
    parts = integer_of(groups, where, "groups", least=1)
    for k in range(count):
        if tail[k] >= steps[k]:
            raise DefinitionError(
                "{where}: output_padding must be less than strides along each axis, got "
                "output_padding={output_padding} and strides={steps}",
                kind="invalid-value", where=where, output_padding=tail, steps=steps,
            )
    image_c, kernel_c = data.shape[1], kernel.shape[0]
    if not equal(image_c, kernel_c) or not is_multiple(kernel_c, parts):
        multiple = "" if isinstance(kernel_c, int) else f", such as {parts} * n"
        raise DefinitionError(
            "{where}: {data}, shape {shape}, has {channel_count} channels, but {kernel}, shape "
            "{kernel_shape}, expects {expected_count} in {parts} groups; make them equal, and a "
            "multiple of the number of groups{multiple}",
            kind="shapes", where=where, data=data.name, shape=shape_text(data.shape),
            channel_count=image_c,
            kernel=kernel.name, kernel_shape=shape_text(kernel.shape), expected_count=kernel_c,
            parts=parts,
            multiple=multiple,
        )
    before, after = paddings(padding, filters.extents, where)
    low = [plus(size, -1 - a) for size, a in zip(filters.extents, before, strict=True)]
    high = [plus(size, -1 - b + m) for size, b, m in zip(filters.extents, after, tail, strict=True)]
    image = _insert_zeros(images, steps, low, high)
    return define_convolution(
        image, _flip_filters(filters, parts), 1, 0, 1, parts, f"NC{space}", f"OI{space}",
        out_dtype or data.dtype, name)


def _insert_zeros(
    images: Images, steps: Sequence[int], low: Sequence[Size], high: Sequence[Size]
) -> te.Tensor:
    """Insert zeros between the elements of images and around the images."""
    x = images.tensor
    shape = list(x.shape)
    for k, axis in enumerate(images.spatial):
        dilated = plus(times(plus(shape[axis], -1), steps[k]), 1)
        shape[axis] = plus(plus(dilated, low[k]), high[k])

    def value(*i: te.Expr) -> te.Expr:
        index, inside = list(i), []
        for k, axis in enumerate(images.spatial):
            position = i[axis] if equal(low[k], 0) else i[axis] - low[k]
            index[axis] = position if steps[k] == 1 else position // steps[k]
            inside += [position >= 0, index[axis] < x.shape[axis]]
            inside += [] if steps[k] == 1 else [position % steps[k] == 0]
        return te.if_then_else(te.all(*inside), x(*index), te.const(0, x.dtype))

    return te.compute(tuple(shape), value, name="data_dilate_pad", tag=tag.INJECTIVE)


def _flip_filters(filters: Images, parts: int) -> te.Tensor:
    """Return filters (i, o, ...) as (o, i, ...) per group, with reversed taps."""
    x = filters.tensor
    group_inputs, group_outputs = quotient(x.shape[0], parts), x.shape[1]

    def value(o: te.Expr, i: te.Expr, *taps: te.Expr) -> te.Expr:
        reverse = (n - 1 - tap for n, tap in zip(filters.extents, taps, strict=True))
        if parts == 1:
            return x(i, o, *reverse)
        return x(o // group_outputs * group_inputs + i, o % group_outputs, *reverse)

    shape = (times(group_outputs, parts), group_inputs, *filters.extents)
    return te.compute(shape, value, name="kernel_transform", tag=tag.INJECTIVE)


def conv1d_transpose_ncw(
    data: te.Tensor, kernel: te.Tensor, stride: Numbers, padding: Numbers, out_dtype: str | None,
    output_padding: Numbers,
) -> te.Tensor:
    """Compute the one-dimensional transposed convolution, layouts NCW and IOW.

    Args:
        data: Sequences (n, i, w).
        kernel: Filters (i, o, w).
        stride: Upsampling factor: distance in the result between adjacent input elements.
        padding: Elements cropped from the result: one number, the numbers before and after, "VALID"
            or "SAME".
        out_dtype: Result and accumulation dtype; the dtype of `data` if None. float16 and bfloat16
            accumulate in float32.
        output_padding: Additional elements at the end of the result, less than the stride.

    Raises:
        DefinitionError: If shapes or numbers do not match.

    >>> X, W = te.placeholder((1, 3, 5), name="X"), te.placeholder((3, 8, 3), name="W")
    >>> conv1d_transpose_ncw(X, W, 2, 1, "float32", 1).shape
    (1, 8, 10)
    """
    return _define_transposed(
        data, kernel, stride, padding, out_dtype, output_padding, 1, "W", "conv1d_transpose_ncw")


def group_conv1d_transpose_ncw(
    data: te.Tensor, kernel: te.Tensor, stride: Numbers, padding: Numbers, out_dtype: str | None,
    output_padding: Numbers, groups: int,
) -> te.Tensor:
    """Compute the one-dimensional grouped transposed convolution, layouts NCW and IOW.

    Args:
        data: Sequences (n, i, w).
        kernel: Filters (i, o, w), where o counts the output channels of one group.
        stride: Upsampling factor: distance in the result between adjacent input elements.
        padding: Elements cropped from the result: one number, the numbers before and after, "VALID"
            or "SAME".
        out_dtype: Result and accumulation dtype; the dtype of `data` if None. float16 and bfloat16
            accumulate in float32.
        output_padding: Additional elements at the end of the result, less than the stride.
        groups: Number of channel groups; each output channel reads one group.

    Raises:
        DefinitionError: If shapes or numbers do not match.

    >>> X = te.placeholder((1, 4, 16), name="X")
    >>> W = te.placeholder((4, 3, 3), name="W")
    >>> group_conv1d_transpose_ncw(X, W, 1, 0, None, 0, 2).shape
    (1, 6, 18)
    """
    return _define_transposed(
        data, kernel, stride, padding, out_dtype, output_padding, groups, "W",
        "group_conv1d_transpose_ncw")


def conv2d_transpose_nchw(
    Input: te.Tensor, Filter: te.Tensor, strides: Numbers, padding: Numbers, out_dtype: str | None,
    output_padding: Numbers,
) -> te.Tensor:
    """Compute the two-dimensional transposed convolution, layouts NCHW and IOHW.

    Args:
        Input: Images (n, i, h, w).
        Filter: Filters (i, o, h, w).
        strides: Upsampling factor: distance in the result between adjacent input elements; one
            number, or one per axis.
        padding: Elements cropped from the result: one number, one per axis, all before and then all
            after, "VALID" or "SAME".
        out_dtype: Result and accumulation dtype; the dtype of `Input` if None. float16 and bfloat16
            accumulate in float32.
        output_padding: Additional elements at the end of the result, less than the stride: one
            number, or one per axis.

    Raises:
        DefinitionError: If shapes or numbers do not match.

    >>> X, W = te.placeholder((1, 3, 5, 5), name="X"), te.placeholder((3, 8, 3, 3), name="W")
    >>> conv2d_transpose_nchw(X, W, (2, 2), (1, 1), "float32", (0, 0)).shape
    (1, 8, 9, 9)
    """
    return _define_transposed(
        Input, Filter, strides, padding, out_dtype, output_padding, 1, "HW",
        "conv2d_transpose_nchw")


def group_conv2d_transpose_nchw(
    data: te.Tensor, kernel: te.Tensor, stride: Numbers, padding: Numbers, out_dtype: str | None,
    output_padding: Numbers, groups: int,
) -> te.Tensor:
    """Compute the two-dimensional grouped transposed convolution, layouts NCHW and IOHW.

    Args:
        data: Images (n, i, h, w).
        kernel: Filters (i, o, h, w), where o counts the output channels of one group.
        stride: Upsampling factor: distance in the result between adjacent input elements; one
            number, or one per axis.
        padding: Elements cropped from the result: one number, one per axis, all before and then all
            after, "VALID" or "SAME".
        out_dtype: Result and accumulation dtype; the dtype of `data` if None. float16 and bfloat16
            accumulate in float32.
        output_padding: Additional elements at the end of the result, less than the stride: one
            number, or one per axis.
        groups: Number of channel groups; each output channel reads one group.

    Raises:
        DefinitionError: If shapes or numbers do not match.

    >>> X = te.placeholder((1, 4, 8, 8), name="X")
    >>> W = te.placeholder((4, 3, 3, 3), name="W")
    >>> group_conv2d_transpose_nchw(X, W, 1, 0, None, 0, 2).shape
    (1, 6, 10, 10)
    """
    return _define_transposed(
        data, kernel, stride, padding, out_dtype, output_padding, groups, "HW",
        "group_conv2d_transpose_nchw")


def conv3d_transpose_ncdhw(
    Input: te.Tensor, Filter: te.Tensor, strides: Numbers, padding: Numbers, out_dtype: str | None,
    output_padding: Numbers,
) -> te.Tensor:
    """Compute the three-dimensional transposed convolution, layouts NCDHW and IODHW.

    Args:
        Input: Volumes (n, i, d, h, w).
        Filter: Filters (i, o, d, h, w).
        strides: Upsampling factor: distance in the result between adjacent input elements; one
            number, or one per axis.
        padding: Elements cropped from the result: one number, one per axis, all before and then all
            after, "VALID" or "SAME".
        out_dtype: Result and accumulation dtype; the dtype of `Input` if None. float16 and bfloat16
            accumulate in float32.
        output_padding: Additional elements at the end of the result, less than the stride: one
            number, or one per axis.

    Raises:
        DefinitionError: If shapes or numbers do not match.

    >>> X = te.placeholder((1, 4, 4, 8, 8), name="X")
    >>> W = te.placeholder((4, 3, 3, 3, 3), name="W")
    >>> conv3d_transpose_ncdhw(X, W, 1, 0, None, 0).shape
    (1, 3, 6, 10, 10)
    """
    return _define_transposed(
        Input, Filter, strides, padding, out_dtype, output_padding, 1, SPATIAL,
        "conv3d_transpose_ncdhw")


def group_conv3d_transpose_ncdhw(
    data: te.Tensor, kernel: te.Tensor, strides: Numbers, padding: Numbers, out_dtype: str | None,
    output_padding: Numbers, groups: int,
) -> te.Tensor:
    """Compute the three-dimensional grouped transposed convolution, layouts NCDHW and IODHW.

    Args:
        data: Volumes (n, i, d, h, w).
        kernel: Filters (i, o, d, h, w), where o counts the output channels of one group.
        strides: Upsampling factor: distance in the result between adjacent input elements; one
            number, or one per axis.
        padding: Elements cropped from the result: one number, one per axis, all before and then all
            after, "VALID" or "SAME".
        out_dtype: Result and accumulation dtype; the dtype of `data` if None. float16 and bfloat16
            accumulate in float32.
        output_padding: Additional elements at the end of the result, less than the stride: one
            number, or one per axis.
        groups: Number of channel groups; each output channel reads one group.

    Raises:
        DefinitionError: If shapes or numbers do not match.

    >>> X = te.placeholder((1, 4, 4, 8, 8), name="X")
    >>> W = te.placeholder((4, 3, 3, 3, 3), name="W")
    >>> group_conv3d_transpose_ncdhw(X, W, 1, 0, None, 0, 2).shape
    (1, 6, 6, 10, 10)
    """
    return _define_transposed(
        data, kernel, strides, padding, out_dtype, output_padding, groups, SPATIAL,
        "group_conv3d_transpose_ncdhw")
