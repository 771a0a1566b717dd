"""Convolutions with TVM's names, for one to three spatial dimensions."""

from __future__ import annotations

from tecomp import DefinitionError, te
from tecomp.errors import safe_str
from tecomp.topi.nn.convolution_definition import (
    Numbers,
    define_convolution,
    define_depthwise_convolution,
)
from tecomp.topi.windows import SPATIAL, Images, images_of


def _kernel_layout(data_layout: str, kernel_layout: str) -> str:
    """Return the filter layout, by default with channels last if the data has channels last."""
    is_default = kernel_layout is None or (isinstance(kernel_layout, str) and not kernel_layout)
    if not is_default:
        return kernel_layout
    layout = safe_str(data_layout)
    space = "".join(letter for letter in SPATIAL if letter in layout)
    return f"{space}IO" if layout.endswith("C") else f"OI{space}"


def conv(
    inp: te.Tensor, filt: te.Tensor, stride: Numbers, padding: Numbers, dilation: Numbers,
    groups: int, data_layout: str, kernel_layout: str = "", out_dtype: str | None = None,
    auto_scheduler_rewritten_layout: str | None = None, meta_schedule_original_shape: object = None,
    auto_scheduler_should_rewrite_layout: bool = False,
) -> te.Tensor:
    """Compute the convolution of images with filters, in any layout.

    Args:
        inp: Images.
        filt: Filters.
        stride: Distance between adjacent windows, in elements: one number, or one per axis.
        padding: Zero padding: one number, one per axis, all before and then all after, "VALID" or
            "SAME".
        dilation: Distance between adjacent filter taps, in elements: one number, or one per axis.
        groups: Number of channel groups; each output channel reads one group.
        data_layout: Layout of the images with the letters N and C, and one to three of D, H and W.
        kernel_layout: Layout of the filters with the letters O and I for output and input channels,
            and the spatial letters. Default: OI before the spatial letters, or IO after them for
            channels-last data.
        out_dtype: Result and accumulation dtype. Default: the dtype of `inp`. float16 and bfloat16
            accumulate in float32.
        auto_scheduler_rewritten_layout: Ignored.
        meta_schedule_original_shape: Ignored.
        auto_scheduler_should_rewrite_layout: Ignored.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.

    >>> X, W = te.placeholder((1, 3, 9, 9), name="X"), te.placeholder((8, 3, 3, 3), name="W")
    >>> conv(X, W, 2, 1, 1, 1, "NCHW").shape
    (1, 8, 5, 5)
    """
    return define_convolution(
        inp, filt, stride, padding, dilation, groups, data_layout,
        _kernel_layout(data_layout, kernel_layout), out_dtype, "conv")


def conv1d(
    data: te.Tensor, kernel: te.Tensor, strides: Numbers = 1, padding: Numbers = "VALID",
    dilation: Numbers = 1, groups: int = 1, data_layout: str = "NCW", kernel_layout: str = "",
    out_dtype: str | None = None,
) -> te.Tensor:
    """Compute the one-dimensional convolution, in any layout.

    Args:
        data: Sequences.
        kernel: Filters.
        strides: Distance between adjacent windows, in elements.
        padding: Zero padding: one number, the padding before and after, "VALID" or "SAME".
        dilation: Distance between adjacent filter taps, in elements.
        groups: Number of channel groups; each output channel reads one group.
        data_layout: Layout of the data with the letters N, C and W in any order.
        kernel_layout: Layout of the filters with the letters O and I for output and input channels,
            and W. Default: OI before the spatial letters, or IO after them for channels-last data.
        out_dtype: Result and accumulation dtype. Default: the dtype of `data`. float16 and bfloat16
            accumulate in float32.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.

    >>> X, W = te.placeholder((1, 3, 9), name="X"), te.placeholder((8, 3, 3), name="W")
    >>> conv1d(X, W).shape
    (1, 8, 7)
    """
    return define_convolution(
        data, kernel, strides, padding, dilation, groups, data_layout,
        _kernel_layout(data_layout, kernel_layout), out_dtype, "conv1d")


def conv1d_ncw(
    data: te.Tensor, kernel: te.Tensor, strides: Numbers = 1, padding: Numbers = "VALID",
    dilation: Numbers = 1, out_dtype: str | None = None,
) -> te.Tensor:
    """Compute the one-dimensional convolution, layouts NCW and OIW.

    Args:
        data: Sequences (n, c, w).
        kernel: Filters (o, i, w).
        strides: Distance between adjacent windows, in elements.
        padding: Zero padding: one number, the padding before and after, "VALID" or "SAME".
        dilation: Distance between adjacent filter taps, in elements.
        out_dtype: Result and accumulation dtype. Default: the dtype of `data`. float16 and bfloat16
            accumulate in float32.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.

    >>> conv1d_ncw(te.placeholder((1, 3, 16), name="X"), te.placeholder((8, 3, 3), name="W")).shape
    (1, 8, 14)
    """
    return define_convolution(
        data, kernel, strides, padding, dilation, 1, "NCW", "OIW", out_dtype, "conv1d_ncw")


def conv1d_nwc(
    data: te.Tensor, kernel: te.Tensor, strides: Numbers = 1, padding: Numbers = "VALID",
    dilation: Numbers = 1, out_dtype: str | None = None,
) -> te.Tensor:
    """Compute the one-dimensional convolution, layouts NWC and WIO.

    Args:
        data: Sequences (n, w, c).
        kernel: Filters (w, i, o).
        strides: Distance between adjacent windows, in elements.
        padding: Zero padding: one number, the padding before and after, "VALID" or "SAME".
        dilation: Distance between adjacent filter taps, in elements.
        out_dtype: Result and accumulation dtype. Default: the dtype of `data`. float16 and bfloat16
            accumulate in float32.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.

    >>> conv1d_nwc(te.placeholder((1, 16, 3), name="X"), te.placeholder((3, 3, 8), name="W")).shape
    (1, 14, 8)
    """
    return define_convolution(
        data, kernel, strides, padding, dilation, 1, "NWC", "WIO", out_dtype, "conv1d_nwc")


def group_conv1d_ncw(
    data: te.Tensor, kernel: te.Tensor, strides: Numbers = 1, padding: Numbers = "VALID",
    dilation: Numbers = 1, groups: int = 1, out_dtype: str | None = None,
) -> te.Tensor:
    """Compute the one-dimensional grouped convolution, layouts NCW and OIW.

    Args:
        data: Sequences (n, c, w).
        kernel: Filters (o, i, w), where i counts the channels of one group.
        strides: Distance between adjacent windows, in elements.
        padding: Zero padding: one number, the padding before and after, "VALID" or "SAME".
        dilation: Distance between adjacent filter taps, in elements.
        groups: Number of channel groups; each output channel reads one group.
        out_dtype: Result and accumulation dtype. Default: the dtype of `data`. float16 and bfloat16
            accumulate in float32.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.

    >>> X = te.placeholder((1, 4, 16), name="X")
    >>> W = te.placeholder((8, 2, 3), name="W")
    >>> group_conv1d_ncw(X, W, 1, 1, 1, 2).shape
    (1, 8, 16)
    """
    return define_convolution(
        data, kernel, strides, padding, dilation, groups, "NCW", "OIW", out_dtype,
        "group_conv1d_ncw")


def group_conv1d_nwc(
    data: te.Tensor, kernel: te.Tensor, strides: Numbers = 1, padding: Numbers = "VALID",
    dilation: Numbers = 1, groups: int = 1, out_dtype: str | None = None,
) -> te.Tensor:
    """Compute the one-dimensional grouped convolution, layouts NWC and WIO.

    Args:
        data: Sequences (n, w, c).
        kernel: Filters (w, i, o), where i counts the channels of one group.
        strides: Distance between adjacent windows, in elements.
        padding: Zero padding: one number, the padding before and after, "VALID" or "SAME".
        dilation: Distance between adjacent filter taps, in elements.
        groups: Number of channel groups; each output channel reads one group.
        out_dtype: Result and accumulation dtype. Default: the dtype of `data`. float16 and bfloat16
            accumulate in float32.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.

    >>> X = te.placeholder((1, 16, 4), name="X")
    >>> W = te.placeholder((3, 2, 8), name="W")
    >>> group_conv1d_nwc(X, W, 1, 1, 1, 2).shape
    (1, 16, 8)
    """
    return define_convolution(
        data, kernel, strides, padding, dilation, groups, "NWC", "WIO", out_dtype,
        "group_conv1d_nwc")


def conv2d(
    input: te.Tensor, filter: te.Tensor, strides: Numbers, padding: Numbers, dilation: Numbers,
    data_layout: str = "NCHW", kernel_layout: str = "", out_dtype: str | None = None,
) -> te.Tensor:
    """Compute the two-dimensional convolution, in any layout.

    Args:
        input: Images.
        filter: Filters.
        strides: Distance between adjacent windows, in elements: one number, or one per axis.
        padding: Zero padding: one number, one per axis, all before and then all after, "VALID" or
            "SAME".
        dilation: Distance between adjacent filter taps, in elements: one number, or one per axis.
        data_layout: Layout of the images with the letters N, C, H and W in any order.
        kernel_layout: Layout of the filters with the letters O and I for output and input channels,
            and H and W. Default: OI before the spatial letters, or IO after them for channels-last
            data.
        out_dtype: Result and accumulation dtype. Default: the dtype of `input`. float16 and
            bfloat16 accumulate in float32.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.

    >>> X, W = te.placeholder((1, 9, 9, 3), name="X"), te.placeholder((3, 3, 3, 8), name="W")
    >>> conv2d(X, W, 1, "SAME", 1, "NHWC").shape
    (1, 9, 9, 8)
    """
    return define_convolution(
        input, filter, strides, padding, dilation, 1, data_layout,
        _kernel_layout(data_layout, kernel_layout), out_dtype, "conv2d")


def conv2d_nchw(
    Input: te.Tensor, Filter: te.Tensor, stride: Numbers, padding: Numbers, dilation: Numbers,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Compute the two-dimensional convolution, layouts NCHW and OIHW.

    Args:
        Input: Images (n, c, h, w).
        Filter: Filters (o, i, h, w).
        stride: Distance between adjacent windows, in elements: one number, or one per axis.
        padding: Zero padding: one number, one per axis, all before and then all after, "VALID" or
            "SAME".
        dilation: Distance between adjacent filter taps, in elements: one number, or one per axis.
        out_dtype: Result and accumulation dtype. Default: the dtype of `Input`. float16 and
            bfloat16 accumulate in float32.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.

    >>> X = te.placeholder((1, 3, 16, 16), name="X")
    >>> W = te.placeholder((8, 3, 3, 3), name="W")
    >>> conv2d_nchw(X, W, 1, 1, 1).shape
    (1, 8, 16, 16)
    """
    return define_convolution(
        Input, Filter, stride, padding, dilation, 1, "NCHW", "OIHW", out_dtype, "conv2d_nchw",
        "conv2d_nchw")


def conv2d_nhwc(
    Input: te.Tensor, Filter: te.Tensor, stride: Numbers, padding: Numbers, dilation: Numbers,
    out_dtype: str | None = "float32", auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: object = None,
) -> te.Tensor:
    """Compute the two-dimensional convolution, layouts NHWC and HWIO.

    Args:
        Input: Images (n, h, w, c).
        Filter: Filters (h, w, i, o).
        stride: Distance between adjacent windows, in elements: one number, or one per axis.
        padding: Zero padding: one number, one per axis, all before and then all after, "VALID" or
            "SAME".
        dilation: Distance between adjacent filter taps, in elements: one number, or one per axis.
        out_dtype: Result and accumulation dtype; the dtype of `Input` if None. float16 and bfloat16
            accumulate in float32.
        auto_scheduler_rewritten_layout: Ignored.
        meta_schedule_original_shape: Ignored.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.

    >>> X = te.placeholder((1, 16, 16, 3), name="X")
    >>> W = te.placeholder((3, 3, 3, 8), name="W")
    >>> conv2d_nhwc(X, W, 1, 1, 1).shape
    (1, 16, 16, 8)
    """
    return define_convolution(
        Input, Filter, stride, padding, dilation, 1, "NHWC", "HWIO", out_dtype, "conv2d_nhwc",
        "conv2d_nhwc")


def conv2d_hwcn(
    Input: te.Tensor, Filter: te.Tensor, stride: Numbers, padding: Numbers, dilation: Numbers,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Compute the two-dimensional convolution, layouts HWCN and HWIO.

    Args:
        Input: Images (h, w, c, n).
        Filter: Filters (h, w, i, o).
        stride: Distance between adjacent windows, in elements: one number, or one per axis.
        padding: Zero padding: one number, one per axis, all before and then all after, "VALID" or
            "SAME".
        dilation: Distance between adjacent filter taps, in elements: one number, or one per axis.
        out_dtype: Result and accumulation dtype. Default: the dtype of `Input`. float16 and
            bfloat16 accumulate in float32.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.

    >>> X = te.placeholder((16, 16, 3, 1), name="X")
    >>> W = te.placeholder((3, 3, 3, 8), name="W")
    >>> conv2d_hwcn(X, W, 1, 1, 1).shape
    (16, 16, 8, 1)
    """
    return define_convolution(
        Input, Filter, stride, padding, dilation, 1, "HWCN", "HWIO", out_dtype, "conv2d_hwcn",
        "conv2d_hwcn")


def group_conv2d_nchw(
    Input: te.Tensor, Filter: te.Tensor, stride: Numbers, padding: Numbers, dilation: Numbers,
    groups: int, out_dtype: str | None = None,
) -> te.Tensor:
    """Compute the two-dimensional grouped convolution, layouts NCHW and OIHW.

    Args:
        Input: Images (n, c, h, w).
        Filter: Filters (o, i, h, w), where i counts the channels of one group.
        stride: Distance between adjacent windows, in elements: one number, or one per axis.
        padding: Zero padding: one number, one per axis, all before and then all after, "VALID" or
            "SAME".
        dilation: Distance between adjacent filter taps, in elements: one number, or one per axis.
        groups: Number of channel groups; each output channel reads one group.
        out_dtype: Result and accumulation dtype. Default: the dtype of `Input`. float16 and
            bfloat16 accumulate in float32.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.

    >>> X = te.placeholder((1, 4, 16, 16), name="X")
    >>> W = te.placeholder((8, 2, 3, 3), name="W")
    >>> group_conv2d_nchw(X, W, 1, 1, 1, 2).shape
    (1, 8, 16, 16)
    """
    return define_convolution(
        Input, Filter, stride, padding, dilation, groups, "NCHW", "OIHW", out_dtype,
        "group_conv2d_nchw", "group_conv2d_nchw")


def group_conv2d_nhwc(
    Input: te.Tensor, Filter: te.Tensor, stride: Numbers, padding: Numbers, dilation: Numbers,
    groups: int, out_dtype: str | None = None,
) -> te.Tensor:
    """Compute the two-dimensional grouped convolution, layouts NHWC and HWIO.

    Args:
        Input: Images (n, h, w, c).
        Filter: Filters (h, w, i, o), where i counts the channels of one group.
        stride: Distance between adjacent windows, in elements: one number, or one per axis.
        padding: Zero padding: one number, one per axis, all before and then all after, "VALID" or
            "SAME".
        dilation: Distance between adjacent filter taps, in elements: one number, or one per axis.
        groups: Number of channel groups; each output channel reads one group.
        out_dtype: Result and accumulation dtype. Default: the dtype of `Input`. float16 and
            bfloat16 accumulate in float32.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.

    >>> X = te.placeholder((1, 16, 16, 4), name="X")
    >>> W = te.placeholder((3, 3, 2, 8), name="W")
    >>> group_conv2d_nhwc(X, W, 1, 1, 1, 2).shape
    (1, 16, 16, 8)
    """
    return define_convolution(
        Input, Filter, stride, padding, dilation, groups, "NHWC", "HWIO", out_dtype,
        "group_conv2d_nhwc", "group_conv2d_nhwc")


def conv2d_NCHWc(  # noqa: N802  (TVM's name)
    data: te.Tensor, kernel: te.Tensor, stride: Numbers, padding: Numbers, dilation: Numbers,
    layout: str, out_layout: str, out_dtype: str | None = "float32",
) -> te.Tensor:
    """Compute the two-dimensional convolution with blocked channels, layouts NCHWc and OIHWio.

    Args:
        data: Images (n, C, h, w, c) with C blocks of c channels.
        kernel: Filters (O, I, h, w, i, o) with blocks of i input channels and o output channels.
        stride: Distance between adjacent windows, in elements: one number, or one per axis.
        padding: Zero padding: one number, one per axis, all before and then all after, "VALID" or
            "SAME".
        dilation: Distance between adjacent filter taps, in elements: one number, or one per axis.
        layout: Layout of the images, "NCHW8c" for blocks of 8 channels.
        out_layout: Layout of the result, in the same form.
        out_dtype: Result and accumulation dtype; the dtype of `data` if None. float16 and bfloat16
            accumulate in float32.

    Returns:
        Result (n, O, h, w, o).

    Raises:
        DefinitionError: If the channel blocks do not match, if a window exceeds the padded images,
            or if a number is too small.

    >>> X = te.placeholder((1, 2, 8, 8, 4), name="X")
    >>> W = te.placeholder((3, 2, 3, 3, 4, 16), name="W")
    >>> conv2d_NCHWc(X, W, 1, 1, 1, "NCHW4c", "NCHW16c").shape
    (1, 3, 8, 8, 16)
    """
    where = "topi.nn.conv2d_NCHWc"
    _check_block(layout, images_of(data, "NCHWc", "NCHWc", where), "c", where, "layout")
    filters = images_of(kernel, "OIHWio", "OIHWio", where, "kernel")
    _check_block(out_layout, filters, "o", where, "out_layout")
    return define_convolution(
        data,
        kernel,
        stride,
        padding,
        dilation,
        1,
        "NCHWc",
        "OIHWio",
        out_dtype,
        "conv2d_NCHWc",
        "conv2d_NCHWc",
    )


def _check_block(layout: object, images: Images, letter: str, where: str, name: str) -> None:
    block = images.extent(letter)
    expected = f"NCHW{block}c"
    if isinstance(block, int) and layout != expected:
        raise DefinitionError(
            "{where}: {subject} is {layout!r}, but the tensor has blocks of {block} channels; pass "
            "{expected!r}",
            kind="shapes", where=where, subject=name, layout=layout, block=block, expected=expected,
        )


def conv3d_ncdhw(
    Input: te.Tensor, Filter: te.Tensor, stride: Numbers, padding: Numbers, dilation: Numbers,
    groups: int, out_dtype: str | None = None,
) -> te.Tensor:
    """Compute the three-dimensional convolution, layouts NCDHW and OIDHW.

    Args:
        Input: Volumes (n, c, d, h, w).
        Filter: Filters (o, i, d, h, w), where i counts the channels of one group.
        stride: Distance between adjacent windows, in elements: one number, or one per axis.
        padding: Zero padding: one number, one per axis, all before and then all after, "VALID" or
            "SAME".
        dilation: Distance between adjacent filter taps, in elements: one number, or one per axis.
        groups: Number of channel groups; each output channel reads one group.
        out_dtype: Result and accumulation dtype. Default: the dtype of `Input`. float16 and
            bfloat16 accumulate in float32.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.

    >>> X, W = te.placeholder((1, 3, 5, 5, 5), name="X"), te.placeholder((8, 3, 3, 3, 3), name="W")
    >>> conv3d_ncdhw(X, W, 1, 0, 1, 1).shape
    (1, 8, 3, 3, 3)
    """
    return define_convolution(
        Input, Filter, stride, padding, dilation, groups, "NCDHW", "OIDHW", out_dtype,
        "conv3d_ncdhw")


def conv3d_ndhwc(
    Input: te.Tensor, Filter: te.Tensor, stride: Numbers, padding: Numbers, dilation: Numbers,
    groups: int, out_dtype: str | None = "float32", auto_scheduler_rewritten_layout: str = "",
    meta_schedule_origin_shape: object = None,
) -> te.Tensor:
    """Compute the three-dimensional convolution, layouts NDHWC and DHWIO.

    Args:
        Input: Volumes (n, d, h, w, c).
        Filter: Filters (d, h, w, i, o), where i counts the channels of one group.
        stride: Distance between adjacent windows, in elements: one number, or one per axis.
        padding: Zero padding: one number, one per axis, all before and then all after, "VALID" or
            "SAME".
        dilation: Distance between adjacent filter taps, in elements: one number, or one per axis.
        groups: Number of channel groups; each output channel reads one group.
        out_dtype: Result and accumulation dtype; the dtype of `Input` if None. float16 and bfloat16
            accumulate in float32.
        auto_scheduler_rewritten_layout: Ignored.
        meta_schedule_origin_shape: Ignored.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.

    >>> X = te.placeholder((1, 4, 8, 8, 3), name="X")
    >>> W = te.placeholder((3, 3, 3, 3, 8), name="W")
    >>> conv3d_ndhwc(X, W, 1, 1, 1, 1).shape
    (1, 4, 8, 8, 8)
    """
    return define_convolution(
        Input, Filter, stride, padding, dilation, groups, "NDHWC", "DHWIO", out_dtype,
        "conv3d_ndhwc")


def depthwise_conv2d_nchw(
    Input: te.Tensor, Filter: te.Tensor, stride: Numbers, padding: Numbers, dilation: Numbers,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Compute the depthwise convolution, layout NCHW: each channel has filters of its own.

    Args:
        Input: Images (n, c, h, w).
        Filter: Filters (c, each, h, w), where `each` is the number of filters per channel.
        stride: Distance between adjacent windows, in elements: one number, or one per axis.
        padding: Zero padding: one number, one per axis, all before and then all after, "VALID" or
            "SAME".
        dilation: Distance between adjacent filter taps, in elements: one number, or one per axis.
        out_dtype: Result and accumulation dtype. Default: the dtype of `Input`. float16 and
            bfloat16 accumulate in float32.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.

    >>> X, W = te.placeholder((1, 8, 9, 9), name="X"), te.placeholder((8, 2, 3, 3), name="W")
    >>> depthwise_conv2d_nchw(X, W, 1, 1, 1).shape
    (1, 16, 9, 9)
    """
    return define_depthwise_convolution(
        Input, Filter, stride, padding, dilation, "NCHW", "IOHW", out_dtype,
        "depthwise_conv2d_nchw")


def depthwise_conv2d_nhwc(
    Input: te.Tensor, Filter: te.Tensor, stride: Numbers, padding: Numbers, dilation: Numbers,
    kernel_layout: str = "HWOI", out_dtype: str | None = None,
) -> te.Tensor:
    """Compute the depthwise convolution, layout NHWC: each channel has filters of its own.

    Args:
        Input: Images (n, h, w, c).
        Filter: Filters (h, w, c, each), or (h, w, each, c) for the layout HWIO, where `each` is the
            number of filters per channel.
        stride: Distance between adjacent windows, in elements: one number, or one per axis.
        padding: Zero padding: one number, one per axis, all before and then all after, "VALID" or
            "SAME".
        dilation: Distance between adjacent filter taps, in elements: one number, or one per axis.
        kernel_layout: "HWOI" or "HWIO".
        out_dtype: Result and accumulation dtype. Default: the dtype of `Input`. float16 and
            bfloat16 accumulate in float32.

    Raises:
        DefinitionError: If shapes, layouts or numbers do not match.

    >>> X, W = te.placeholder((1, 9, 9, 8), name="X"), te.placeholder((3, 3, 8, 2), name="W")
    >>> depthwise_conv2d_nhwc(X, W, 1, 1, 1).shape
    (1, 9, 9, 16)
    """
    # TVM names the image channels O and the filters per channel I; `_depthwise` does the reverse.
    order = {"HWOI": "HWIO", "HWIO": "HWOI"}.get(safe_str(kernel_layout), kernel_layout)
    return define_depthwise_convolution(
        Input, Filter, stride, padding, dilation, "NHWC", order, out_dtype, "depthwise_conv2d_nhwc")
