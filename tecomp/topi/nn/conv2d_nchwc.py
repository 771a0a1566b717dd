"""conv2d_NCHWc."""

from __future__ import annotations

from tecomp import DefinitionError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.topi.extents import Size, equal
from tecomp.topi.nn.convolution import Numbers, summed
from tecomp.topi.nn.pad import surrounded
from tecomp.topi.windows import images_of, windows_of


def conv2d_NCHWc(  # noqa: N802  (the name that TVM has)
    data: te.Tensor, kernel: te.Tensor, stride: Numbers, padding: Numbers, dilation: Numbers,
    layout: str, out_layout: str, out_dtype: str | None = "float32",
) -> te.Tensor:
    """The convolution of images (n, C, h, w, c) with filters (O, I, h, w, i, o).

    Args:
        data: images, with c channels in each of C blocks.
        kernel: filters, with blocks of i of their channels and of o of the results'.
        stride: from one window to the next.
        padding: zeros around the images: in the forms of `conv`.
        dilation: from one element of a window to the next.
        layout: `NCHW8c` for blocks of 8 channels.
        out_layout: the same of the result.
        out_dtype: type of the result; that of `data` if None.

    Returns:
        The result (n, O, h, w, o).

    Raises:
        DefinitionError: the blocks differ, a window does not fit, or a number is too small.

    >>> X = te.placeholder((1, 2, 8, 8, 4), name="X")
    >>> W = te.placeholder((3, 2, 3, 3, 4, 16), name="W")
    >>> conv2d_NCHWc(X, W, 1, 1, 1, "NCHW4c", "NCHW16c").shape
    (1, 3, 8, 8, 16)
    """
    where = "topi.nn.conv2d_NCHWc"
    images = images_of(data, "NCHWc", "NCHWc", where)
    filters = images_of(kernel, "OIHWio", "OIHWio", where, "kernel")
    _check_block(layout, data.shape[4], where, "layout")
    _check_block(out_layout, kernel.shape[5], where, "out_layout")
    if not equal(data.shape[1], kernel.shape[1]) or not equal(data.shape[4], kernel.shape[4]):
        raise DefinitionError(
            f"{where}: {data.name}, shape {shape_text(data.shape)} as NCHWc, has {data.shape[1]} "
            f"blocks of {data.shape[4]} channels, and {kernel.name}, shape "
            f"{shape_text(kernel.shape)} as OIHWio, takes {kernel.shape[1]} of {kernel.shape[4]}; "
            "make them equal",
            kind="shapes",
        )
    windows = windows_of(images, filters.extents, stride, dilation, padding, where)
    image = surrounded(images, windows.before, windows.after, te.const(0, data.dtype))
    block = te.reduce_axis((0, data.shape[1]), name="ic_outer")
    inner = te.reduce_axis((0, data.shape[4]), name="ic_inner")
    taps = windows.taps()
    n, _, height, width, _ = windows.shape(where)

    def pair(*i: te.Expr) -> tuple[te.Expr, te.Expr]:
        _, *at, _ = windows.element(i, taps)
        return image(i[0], block, *at[1:], inner), kernel(i[1], block, *taps, inner, i[4])

    shape = (n, kernel.shape[0], height, width, kernel.shape[5])
    return summed(shape, pair, [block, *taps, inner], data, out_dtype, "conv2d_NCHWc",
                  "conv2d_NCHWc")


def _check_block(layout: object, block: Size, where: str, what: str) -> None:
    wanted = f"NCHW{block}c"
    if isinstance(block, int) and layout != wanted:
        raise DefinitionError(
            f"{where}: {what} is {layout!r}, and there are blocks of {block} channels; write "
            f"{wanted!r}",
            kind="shapes",
        )
