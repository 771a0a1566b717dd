"""Discrete Fourier transforms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tecomp.errors import ArrayValueError
from tecomp.ptensor.axes import axis_of
from tecomp.ptensor.operations.kinds import Kinded
from tecomp.ptensor.operations.library import LibraryOperation
from tecomp.ptensor.promotion import COMPLEX, PART, WHOLE, need_dtype
from tecomp.ptensor.types import PTensorType, Shape

_REAL = ("float32", "float64")
NORMS = ("backward", "ortho", "forward")

TAKEN: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("fft", "ifft", "fftn", "ifftn"), (*_REAL, *COMPLEX)),
    **dict.fromkeys(("rfft", "rfftn", "ihfft"), _REAL),
    **dict.fromkeys(("irfft", "irfftn", "hfft"), (*_REAL, *COMPLEX)),
}
"""The element types that each transform takes."""


@dataclass(frozen=True)
class Transform(Kinded, LibraryOperation):
    """A discrete Fourier transform along axes.

    Attributes:
        kind: which one.
        sizes: how many elements are transformed along each axis: others are left out, or 0.
        axes: along which, the last of them halved if one side is real.
        norm: which direction is scaled.

    >>> x = PTensorType((4, 10), "float32")
    >>> print(Transform("rfft", (None,), (-1,)).infer(x))
    ptensor<4x6xcomplex64>
    """

    name = "fft"
    counts = True
    kinds = tuple(TAKEN)
    halved: ClassVar[Sequence[str]] = ("rfft", "rfftn", "ihfft")
    real: ClassVar[Sequence[str]] = ("irfft", "irfftn", "hfft")

    sizes: tuple[int | None, ...]
    axes: tuple[int, ...]
    norm: str = "backward"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.norm not in NORMS:
            raise ArrayValueError(
                f"{self.kind}: norm is {self.norm!r}; give one of {', '.join(NORMS)}"
            )
        if len(self.sizes) != len(self.axes):
            raise ArrayValueError(
                f"{self.kind}: s is {self.sizes} for axes {self.axes}; give a size for each axis"
            )

    @property
    def library(self) -> str:  # type: ignore[override]
        """The function that computes it."""
        return f"numpy.fft.{self.kind}"

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """The shape with these sizes; complex numbers, or real ones."""
        (x,) = operands
        need_dtype(x.dtype, TAKEN[self.kind], self.kind)
        parts = PART if self.kind in self.real else WHOLE
        return (x.like(self._shape(x), parts.get(x.dtype, x.dtype)),)

    def _shape(self, x: PTensorType) -> Shape:
        shape = list(x.shape)
        for k, (axis, size) in enumerate(zip(self.axes, self.sizes, strict=True)):
            place = axis_of(axis, x.rank, self.kind)
            is_last = k == len(self.axes) - 1
            grows = is_last and self.kind in self.real
            count = size if size is not None else 2 * (shape[place] - 1) if grows else shape[place]
            if count < 1:
                raise ArrayValueError(
                    f"{self.kind}: {count} elements are transformed along axis {axis} of shape "
                    f"{x.shape}; give one at least"
                )
            shape[place] = count // 2 + 1 if is_last and self.kind in self.halved else count
        return tuple(shape)
