"""How fast one core of a processor computes and reads: what a roofline is drawn with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from tecomp.errors import TargetError
from tecomp.machine.fields import DTypeName, Rate, Source
from tecomp.machine.read import check_fields


@dataclass(frozen=True, slots=True)
class Rates:
    """What one core of a processor does in a second, measured or taken from a manual.

    Attributes:
        read_bytes_per_second: bytes that it reads in a second: of each of the caches
            `core.cache_bytes`, in their order, and at last of memory.
        flops: operations in a second with vectors, by the type of their elements; a fused product
            and sum are two.
        scalar_flops: the same of one element at a time.
        source: where the numbers come from.

    >>> rates = Rates((2e11, 3e10), {"float32": 1e11}, source="a manual")
    >>> rates.read_bytes_per_second, rates.flops["float32"], dict(rates.scalar_flops)
    ((200000000000.0, 30000000000.0), 100000000000.0, {})
    >>> rates.source, rates.levels
    ('a manual', ('L1', 'memory'))
    """

    read_bytes_per_second: tuple[Rate, ...]
    flops: Mapping[DTypeName, Rate]
    scalar_flops: Mapping[DTypeName, Rate] = field(default_factory=dict)
    source: Source = ""

    def __post_init__(self) -> None:
        check_fields(self)
        for near, far in pairwise(self.read_bytes_per_second):
            if near < far:
                raise TargetError(
                    f"read_bytes_per_second has {near:g} before {far:g}, but a cache is no slower "
                    "than what lies behind it; list the caches first, the smallest one of all, and "
                    "memory at last"
                )
        for dtype, scalar in self.scalar_flops.items():
            vector = self.flops.get(dtype, scalar)
            if scalar > vector:
                raise TargetError(
                    f"scalar_flops has {scalar:g} for {dtype}, but flops {vector:g}; vectors are "
                    "no slower than single elements"
                )

    @property
    def levels(self) -> tuple[str, ...]:
        """What the caches are called, and memory behind them.

        >>> Rates((3.0, 2.0, 1.0), {}).levels
        ('L1', 'L2', 'memory')
        """
        caches = range(1, len(self.read_bytes_per_second))
        return (*(f"L{k}" for k in caches), "memory")
