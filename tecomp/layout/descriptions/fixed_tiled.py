"""A value with the layout that it has on a device, as RFC 0047 writes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tecomp.drawing.pictured import Pictured
from tecomp.errors import LayoutError
from tecomp.ir.language.given import check_kind
from tecomp.layout.descriptions.layout import Layout
from tecomp.layout.placement.arguments import check_shape, whole_numbers


@dataclass(frozen=True, slots=True)
class FixedTiledLayout(Pictured):
    """A tensor on the host, and the layout that it has on the device.

    A view has a size and strides of its own, and the layout of the tensor that it shows.

    Attributes:
        size: extents of the tensor.
        stride: elements of the host from one index to the next, for each dimension.
        device_layout: where on the device its elements are.

    Raises:
        LayoutError: there is not one stride for each dimension, or the layout is none.

    Source:
        RFC 0047, Tensors with Device-Specific Layouts.

    >>> from tecomp import StickLayout
    >>> tiled = FixedTiledLayout((2, 6), (6, 1), StickLayout((2, 6), "float16"))
    >>> tiled.size, tiled.stride, tiled.padding, tiled.device_layout.device_size
    ((2, 6), (6, 1), None, [1, 64, 64])
    """

    _drawn_by: ClassVar[str] = "layout:drawn_tiled"

    size: tuple[int, ...]
    stride: tuple[int, ...]
    device_layout: Layout

    def __post_init__(self) -> None:
        check_shape(self.size)
        object.__setattr__(self, "size", whole_numbers(self.size, "FixedTiledLayout: the size"))
        object.__setattr__(
            self, "stride", whole_numbers(self.stride, "FixedTiledLayout: the strides")
        )
        if len(self.size) != len(self.stride):
            raise LayoutError(
                f"FixedTiledLayout: size {list(self.size)} has {len(self.size)} dimensions, stride "
                f"{list(self.stride)} has {len(self.stride)}; give one for each",
                kind="wrong-count",
            )
        check_kind(
            self.device_layout, Layout, "FixedTiledLayout: device_layout",
            "make one, such as StickLayout(size, dtype)", LayoutError,
        )

    @property
    def padding(self) -> float | None:
        """What places without an element hold; None if that is not defined."""
        return self.device_layout.pad_value

    def __str__(self) -> str:
        device = self.device_layout
        text = repr(device) if type(device) is not Layout else f"Layout({device.index_map})"
        return (
            f"FixedTiledLayout(size={list(self.size)}, stride={list(self.stride)}, "
            f"device_layout={text})"
        )

    __repr__ = __str__
