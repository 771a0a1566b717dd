"""Sliding windows of convolutions and pools: layouts, strides, dilation and padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tecomp import DefinitionError, te
from tecomp.errors import safe_str
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.topi.extents import Size, minus, plus, quotient
from tecomp.topi.validation import check_rank, integers_of, tensor_of

SPATIAL = "DHW"


@dataclass(frozen=True)
class Images:
    """Tensor of images with a layout.

    Attributes:
        tensor: Tensor of the images.
        layout: Layout string with one letter per axis.
        spatial: Axes along which windows move, in the order D, H, W.
    """

    tensor: te.Tensor
    layout: str
    spatial: tuple[int, ...]

    def axis(self, letter: str) -> int:
        """Return the axis with this letter."""
        return self.layout.index(letter)

    def extent(self, letter: str) -> Size:
        """Return the extent of the axis with this letter."""
        return self.tensor.shape[self.axis(letter)]

    @property
    def extents(self) -> tuple[Size, ...]:
        """Extents of the spatial axes."""
        return tuple(self.tensor.shape[k] for k in self.spatial)


def images_of(
    data: te.Tensor, layout: object, letters: str, where: str, name: str = "data"
) -> Images:
    """Return a tensor with its layout after validation.

    Args:
        data: Tensor.
        layout: Layout string with one letter per axis, in any order.
        letters: Required letters.
        where: Name of the caller, for messages.
        name: Name of the argument, for messages.

    Raises:
        DefinitionError: If the letters of the layout differ from `letters`, or if the rank of the
            tensor differs from their number.
    """
    data = tensor_of(data, where, name)
    if sorted(safe_str(layout)) != sorted(letters):
        raise DefinitionError(
            "{where}: the layout of {subject} is {layout!r}; write each of the letters {letters} "
            "once, in the order of the axes",
            kind="duplicate-argument", where=where, subject=name, layout=layout, letters=letters,
        )
    text = str(layout)
    check_rank(data, len(text), where, name, text)
    return Images(data, text, tuple(text.index(x) for x in SPATIAL if x in text))


def paddings(
    padding: Any, reaches: Sequence[Size], where: str
) -> tuple[list[int], list[int]]:
    """Return the padding before and after each axis, in elements.

    Args:
        padding: One number for all sides; one number per axis; all numbers before and then all
            after; "VALID" for no padding; "SAME" for padding that keeps the extent at stride 1.
        reaches: Extents of a window including dilation.
        where: Name of the caller, for messages.

    Raises:
        DefinitionError: If `padding` has none of these forms.
    """
    count = len(reaches)
    if isinstance(padding, str):
        if padding == "VALID":
            return [0] * count, [0] * count
        if padding == "SAME" and all(isinstance(reach, int) for reach in reaches):
            total = [reach - 1 for reach in reaches if isinstance(reach, int)]
            return [(n + 1) // 2 for n in total], [n // 2 for n in total]
        raise DefinitionError(
            "{where}: padding {padding!r} is not valid for windows of {reaches}; pass 'VALID', "
            "'SAME' (constant windows only), or numbers of elements",
            kind="shapes", where=where, padding=padding, reaches=shape_text(reaches),
        )
    if isinstance(padding, list | tuple) and len(padding) == 2 * count and count:
        all_sides = integers_of(padding, 2 * count, where, "padding", least=0)
        return list(all_sides[:count]), list(all_sides[count:])
    per_axis = integers_of(padding, count, where, "padding", least=0)
    return list(per_axis), list(per_axis)


@dataclass(frozen=True)
class SlidingWindows:
    """Sliding windows over images.

    Attributes:
        images: Images that the windows read.
        sizes: Extents of a window in elements.
        steps: Strides between windows.
        dilations: Dilation: distances between the elements of a window.
        before: Padding before the images.
        after: Padding after the images.
    """

    images: Images
    sizes: Sequence[Size]
    steps: Sequence[int]
    dilations: Sequence[int]
    before: Sequence[int]
    after: Sequence[int]

    @property
    def reaches(self) -> list[Size]:
        """Extents of a window including dilation."""
        return [_reach(size, gap) for size, gap in zip(self.sizes, self.dilations, strict=True)]

    def padded_extent(self, k: int) -> Size:
        """Return the extent of spatial axis `k` including padding."""
        return plus(self.images.extents[k], self.before[k] + self.after[k])

    def shape(self, where: str) -> list[Size]:
        """Return the image shape with the number of windows as extent of each spatial axis.

        Raises:
            DefinitionError: If a window is larger than the padded images.
        """
        shape = list(self.images.tensor.shape)
        for k, axis in enumerate(self.images.spatial):
            extent, window = self.padded_extent(k), self.reaches[k]
            shape[axis] = _count_of(extent, window, self.steps[k], where, self.images)
        return shape

    def taps(self) -> list[te.IterVar]:
        """Return the reduction axes over the elements of a window."""
        return taps_of(self.sizes)

    def element(self, position: Sequence[te.Expr], taps: Sequence[te.Expr]) -> list[te.Expr]:
        """Return the index of a window element in the padded images."""
        index = list(position)
        for k, axis in enumerate(self.images.spatial):
            index[axis] = position[axis] * self.steps[k] + taps[k] * self.dilations[k]
        return index


def windows_of(
    images: Images, sizes: Sequence[Size], stride: Any, dilation: Any, padding: Any, where: str,
    stride_name: str = "stride",
) -> SlidingWindows:
    """Build sliding windows from validated arguments.

    Raises:
        DefinitionError: If an argument does not have one number per axis, or if a number is too
            small.
    """
    count = len(images.spatial)
    steps = integers_of(stride, count, where, stride_name, least=1)
    dilations = integers_of(dilation, count, where, "dilation", least=1)
    reaches = [_reach(size, gap) for size, gap in zip(sizes, dilations, strict=True)]
    return SlidingWindows(images, sizes, steps, dilations, *paddings(padding, reaches, where))


def taps_of(sizes: Sequence[Size]) -> list[te.IterVar]:
    """Return reduction axes over the elements of a window."""
    names = "qrs"[3 - len(sizes) :]
    return [te.reduce_axis((0, size), name=name) for size, name in zip(sizes, names, strict=True)]


def _reach(size: Size, dilation: int) -> Size:
    """Return the extent of a window including dilation."""
    if isinstance(size, int):
        return (size - 1) * dilation + 1
    return size if dilation == 1 else plus(minus(size, 1) * dilation, 1)


def _count_of(extent: Size, window: Size, stride: int, where: str, images: Images) -> Size:
    """Return the number of windows that fit into an extent.

    Raises:
        DefinitionError: If the window is known to be larger than the extent.
    """
    if isinstance(extent, int) and isinstance(window, int) and extent < window:
        raise DefinitionError(
            "{where}: a window spans {window} elements, but {tensor}, shape {shape} as {layout}, "
            "has {extent} including padding; increase the padding, or use a smaller window",
            kind="shapes", where=where, window=window, tensor=images.tensor.name,
            shape=shape_text(images.tensor.shape), layout=images.layout, extent=extent,
        )
    return plus(quotient(minus(extent, window), stride), 1)
