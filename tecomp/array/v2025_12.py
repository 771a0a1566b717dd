"""The namespace of version 2025.12 of the standard: multiple results are tuples, not lists.

The other additions since 2024.12 (`broadcast_shapes`, `isin`, `linalg.eig`, `linalg.eigvals`,
several axes of `expand_dims`) are in `tecomp.array` too.
"""

from __future__ import annotations

from tecomp import array as _before
from tecomp.array import Array
from tecomp.array.functions.data_types import Info

__array_api_version__ = "2025.12"


def __getattr__(name: str) -> object:
    return getattr(_before, name)


def __dir__() -> list[str]:
    return sorted({*dir(_before), "broadcast_arrays", "meshgrid"})


def broadcast_arrays(*arrays: Array) -> tuple[Array, ...]:
    """Broadcast arrays to a common shape; see `tecomp.array`.

    >>> import tecomp.array as xp
    >>> len(broadcast_arrays(xp.ones(3), xp.ones((2, 1))))
    2
    """
    return tuple(_before.broadcast_arrays(*arrays))


def meshgrid(*arrays: Array, indexing: str = "xy") -> tuple[Array, ...]:
    """Return coordinate arrays for coordinate vectors; see `tecomp.array`.

    >>> import tecomp.array as xp
    >>> [grid.shape for grid in meshgrid(xp.ones(3), xp.ones(2))]
    [(2, 3), (2, 3)]
    """
    return tuple(_before.meshgrid(*arrays, indexing=indexing))


class _Info(Info):
    def devices(self) -> tuple[str, ...]:  # type: ignore[override]
        """Return the available devices."""
        return tuple(super().devices())


def __array_namespace_info__() -> Info:  # noqa: N807  the standard's name
    """Return the namespace inspection object."""
    return _Info()
