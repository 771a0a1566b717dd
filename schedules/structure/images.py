"""Windows that slide over images: which elements they have, how many there are, what is around."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tecomp import te
from tecomp.schedules.structure.sizes import Size

Pair: TypeAlias = "int | tuple[int, int]"
"""Numbers down and across; one number stands for both."""


def pair(value: Pair) -> tuple[int, int]:
    """Numbers down and across."""
    return value if isinstance(value, tuple) else (value, value)


@dataclass(frozen=True)
class Sliding:
    """How windows move over images.

    Attributes:
        first: the axis of an image that counts rows; the next one counts columns.
        sizes: rows and columns of a window.
        steps: from one window to the next.
        pads: rows and columns around the image, on each side.
        apart: from one element of a window to the next.
    """

    first: int
    sizes: tuple[Size, Size]
    steps: tuple[int, int]
    pads: tuple[int, int]
    apart: tuple[int, int]

    def shape(self, X: te.Tensor) -> list[Size]:
        """The shape of images with places of windows in place of rows and columns.

        >>> sliding = Sliding(1, (3, 3), steps=(2, 2), pads=(1, 1), apart=(1, 1))
        >>> sliding.shape(te.placeholder((1, 56, 56, 64), name="X"))
        [1, 28, 28, 64]
        """
        shape = list(X.shape)
        for k in range(2):
            reach = self.apart[k] * (self.sizes[k] - 1) + 1
            extent = shape[self.first + k] + (2 * self.pads[k] - reach)
            shape[self.first + k] = extent // self.steps[k] + 1
        return shape

    def element(self, place: Sequence[te.Expr], taps: Sequence[te.Expr]) -> list[te.Expr]:
        """The index of an element of a window in an image with its padding.

        Args:
            place: the index of the window, with those of other axes.
            taps: the index of the element in the window.
        """
        at = list(place)
        for k in range(2):
            at[self.first + k] = at[self.first + k] * self.steps[k] + taps[k] * self.apart[k]
        return at

    def padded(self, X: te.Tensor, around: te.Expr) -> te.Tensor:
        """Images with a value around them; the images themselves where nothing is around."""
        if not any(self.pads):
            return X
        rows, columns = self.first, self.first + 1
        shape = list(X.shape)
        for axis, pad in zip((rows, columns), self.pads, strict=True):
            shape[axis] = shape[axis] + 2 * pad

        def value(*i: te.Expr) -> te.Expr:
            at = list(i)
            at[rows : columns + 1] = i[rows] - self.pads[0], i[columns] - self.pads[1]
            inside = te.all(*(
                condition for axis in (rows, columns)
                for condition in (at[axis] >= 0, at[axis] < X.shape[axis])
            ))
            return te.if_then_else(inside, X(*at), around)

        return te.compute(tuple(shape), value, name=f"{X.name}_padded")
