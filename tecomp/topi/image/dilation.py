"""Dilation of images by a relief: the greatest sum of an element of a window and the relief's."""

from __future__ import annotations

from typing import Any

from tecomp import DefinitionError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.topi.extents import equal
from tecomp.topi.windows import images_of, windows_of

Numbers = Any


def dilation2d_nchw(
    input: te.Tensor, filter: te.Tensor, stride: Numbers, padding: Numbers, dilations: Numbers,
    out_dtype: str | None = None,
) -> te.Tensor:
    """The greatest sum of an element of each window and the relief, for images (n, c, h, w).

    Args:
        input: images, around which there are zeros.
        filter: a relief (c, h, w) for each channel.
        stride: from one window to the next.
        padding: zeros around the images: in the forms of `topi.nn.conv`.
        dilations: from one element of a window to the next.
        out_dtype: the type in which sums are made; that of `input` if None.

    Raises:
        DefinitionError: the channels differ, a window does not fit, or a number is too small.

    >>> X, W = te.placeholder((1, 3, 8, 8), name="X"), te.placeholder((3, 3, 3), name="W")
    >>> dilation2d_nchw(X, W, 1, 1, 1).shape
    (1, 3, 8, 8)
    """
    return _dilated(input, filter, stride, padding, dilations, out_dtype, "NCHW", "CHW", "nchw")


def dilation2d_nhwc(
    input: te.Tensor, filter: te.Tensor, stride: Numbers, padding: Numbers, dilations: Numbers,
    out_dtype: str | None = None,
) -> te.Tensor:
    """The greatest sum of an element of each window and the relief, for images (n, h, w, c).

    Args:
        input: images (n, h, w, c), around which there are zeros.
        filter: a relief (h, w, c) for each channel.
        stride: from one window to the next.
        padding: zeros around the images: one number, one for each axis, all before and all after,
            `VALID` or `SAME`.
        dilations: from one element of a window to the next.
        out_dtype: the type in which sums are made; that of `input` if None.

    Raises:
        DefinitionError: the channels differ, a window does not fit, or a number is too small.

    >>> X, W = te.placeholder((1, 8, 8, 3), name="X"), te.placeholder((3, 3, 3), name="W")
    >>> dilation2d_nhwc(X, W, 1, "VALID", 2).shape
    (1, 4, 4, 3)
    """
    return _dilated(input, filter, stride, padding, dilations, out_dtype, "NHWC", "HWC", "nhwc")


def _dilated(
    data: te.Tensor, relief: te.Tensor, stride: Numbers, padding: Numbers, dilations: Numbers,
    out_dtype: str | None, layout: str, relief_layout: str, order: str,
) -> te.Tensor:
    name = f"dilation2d_{order}"
    where = f"topi.image.{name}"
    images = images_of(data, layout, layout, where, "input")
    filters = images_of(relief, relief_layout, relief_layout, where, "filter")
    channel, of_relief = images.axis("C"), filters.axis("C")
    given, own = images.tensor.shape[channel], filters.tensor.shape[of_relief]
    if not equal(given, own):
        raise DefinitionError(
            f"{where}: {data.name}, shape {shape_text(data.shape)} as {layout}, has {given} "
            f"channels, and {relief.name}, shape {shape_text(relief.shape)} as {relief_layout}, "
            f"{own}; make them equal",
            kind="shapes",
        )
    windows = windows_of(images, filters.extents, stride, dilations, padding, where)
    taps, dtype = windows.taps(), out_dtype or data.dtype

    def value(*i: te.Expr) -> te.Expr:
        at, place = windows.element(i, taps), [*i[: relief.ndim]]
        inside: list[te.Expr] = []
        for k, axis in enumerate(images.spatial):
            place[filters.spatial[k]] = taps[k]
            if windows.before[k] or windows.after[k]:
                at[axis] = at[axis] - windows.before[k]
                inside += [at[axis] >= 0, at[axis] < images.extents[k]]
        place[of_relief] = i[channel]
        element = te.cast(data(*at), dtype)
        if inside:
            element = te.if_then_else(te.all(*inside), element, te.const(0, dtype))
        return te.max(element + te.cast(relief(*place), dtype), axis=list(taps))

    return te.compute(tuple(windows.shape(where)), value, name=name, tag=name)
