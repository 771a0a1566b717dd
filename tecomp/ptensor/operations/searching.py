"""Where elements are."""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.errors import ArrayValueError
from tecomp.ptensor.axes import axis_of, without
from tecomp.ptensor.operations.kinds import Kinded
from tecomp.ptensor.promotion import REAL, need_dtype
from tecomp.ptensor.types import PTensorType


@dataclass(frozen=True)
class FindIndex(Kinded):
    """The index of the first greatest or least element; NaN is both.

    Attributes:
        kind: `argmax` or `argmin`.
        axis: along which; None to look at all elements as one row.
        keepdims: whether the axes stay, with extent 1.

    >>> print(FindIndex("argmax", 1).infer(PTensorType((4, 5), "float32")))
    ptensor<4xint64>
    """

    name = "find_index"
    kinds = ("argmax", "argmin")
    axis: int | None = None
    keepdims: bool = False

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The shape without these axes."""
        (x,) = operands
        need_dtype(x.dtype, REAL, self.kind)
        axes = tuple(range(x.rank))
        if self.axis is not None:
            axes = (axis_of(self.axis, x.rank, self.kind),)
        empty = [k for k in axes if x.shape[k] == 0]
        if empty:
            raise ArrayValueError(
                f"{self.kind}: x has shape {x.shape}, and no element along axis {empty[0]}; give "
                "it one at least",
                kind="array-shapes",
            )
        return x.like(without(x.shape, axes, self.keepdims), "int64")
