"""What arrays on devices cost: programs that ran there, and copies from the host and to it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Costs:
    """What was done on one device.

    Attributes:
        programs: that ran, with how often.
        copies_from_host: arrays that were brought there.
        bytes_from_host: with their padding.
        copies_to_host: arrays that were read.
        bytes_to_host: with their padding.
        libraries: calls of functions of libraries, which run on the host, by name.
        relayouts: copies to layouts that were asked for, of `restickify` and `relayout_to`.
    """

    programs: Counter[Any] = field(default_factory=Counter)
    copies_from_host: int = 0
    bytes_from_host: int = 0
    copies_to_host: int = 0
    bytes_to_host: int = 0
    libraries: Counter[str] = field(default_factory=Counter)
    relayouts: int = 0

    def from_host(self, count: int) -> None:
        """One more array was brought there."""
        self.copies_from_host += 1
        self.bytes_from_host += count

    def to_host(self, count: int) -> None:
        """One more array was read."""
        self.copies_to_host += 1
        self.bytes_to_host += count


costs: dict[str, Costs] = {}
"""Those of this process since the last reset, by device."""


def costs_of(device: str | None) -> Costs:
    """Those of a device."""
    return costs.setdefault(str(device), Costs())
