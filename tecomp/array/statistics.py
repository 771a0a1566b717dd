"""Counters of compiled kernels, calls, transfers and device costs."""

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


@dataclass
class Counters:
    """How often what was done.

    Attributes:
        compiled: kernels and programs that were compiled, or found on disk.
        called: calls of them.
        libraries: calls of functions of libraries, by name.
        gathered: arrays of teams of which every process got all elements, by what asked for them.
        exchanges: rounds in which this process sent messages to others, or got some.
        overlapped: exchanges that were on their way while this process computed what does not
            need them.
        messages: that it sent in these.
        collectives: messages that all processes of a team take part in.
        sent: bytes that this process sent, or gave to collectives, by what for.
    """

    compiled: int = 0
    called: int = 0
    libraries: Counter[str] = field(default_factory=Counter)
    gathered: Counter[str] = field(default_factory=Counter)
    exchanges: int = 0
    overlapped: int = 0
    messages: int = 0
    collectives: int = 0
    sent: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        lines = [f"{self.compiled} kernels compiled, {self.called} calls of kernels"]
        lines += [f"{count} calls of {name}" for name, count in sorted(self.libraries.items())]
        gathered = sorted(self.gathered.items())
        lines += [f"{count} arrays gathered for {why}" for why, count in gathered]
        if self.exchanges or self.collectives:
            lines.append(
                f"{self.exchanges} exchanges with {self.messages} messages, "
                f"{self.collectives} collectives"
            )
        if self.overlapped:
            lines.append(f"{self.overlapped} exchanges while something was computed")
        lines += [f"{count} bytes sent, {why}" for why, count in sorted(self.sent.items())]
        return "\n".join(lines)


counters = Counters()
"""Those of this process."""
