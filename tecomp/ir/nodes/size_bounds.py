"""Declared values of size variables."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SizeBounds:
    """Declared values of a size variable.

    >>> bounds = SizeBounds(minimum=1, maximum=4096, multiple=16)
    >>> bounds.admits(32), bounds.admits(24), bounds.admits(8192)
    (True, False, False)

    Attributes:
        minimum: Minimum.
        maximum: Maximum; None if there is none.
        multiple: Divisor of all values.
    """

    minimum: int = 0
    maximum: int | None = None
    multiple: int = 1

    def __post_init__(self) -> None:
        # Entries of the kernel cache are not trusted: native checks divide by `multiple`.
        numbers = (self.minimum, self.multiple, self.minimum if self.maximum is None else
            self.maximum)
        if any(type(number) is not int or abs(number) >= 1 << 63 for number in numbers):
            raise TypeError(f"bounds of sizes are 64-bit integers, got {numbers}")
        if self.multiple < 1:
            raise ValueError(f"sizes are multiples of a positive integer, got {self.multiple}")

    def __str__(self) -> str:
        texts = [f">= {self.minimum}"] if self.minimum else []
        texts += [] if self.maximum is None else [f"<= {self.maximum}"]
        texts += [f"a multiple of {self.multiple}"] if self.multiple > 1 else []
        return " and ".join(texts)

    def admits(self, value: int) -> bool:
        """Return whether a value is within the bounds."""
        is_small = self.maximum is None or value <= self.maximum
        return value >= self.minimum and is_small and value % self.multiple == 0
