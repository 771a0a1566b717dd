"""Extents of tensors as users see them: ints that have a `value`, as those of TVM have."""

from __future__ import annotations

from tecomp.ir.language.stmt import Extent


class Known(int):
    """An extent that is known; an int in all that it does.

    >>> Known(8), Known(8).value
    (8, 8)
    """

    __slots__ = ()

    @property
    def value(self) -> int:
        """The int."""
        return int(self)


def known(shape: tuple[Extent, ...]) -> tuple[Extent, ...]:
    """The shape, of which all extents that are known say their value."""
    return tuple(Known(extent) if isinstance(extent, int) else extent for extent in shape)
