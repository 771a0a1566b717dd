"""Counters of compiled kernels, calls, transfers and device costs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class DeviceCosts:
    """Activity on one device.

    Attributes:
        programs: Number of runs of each program.
        copies_from_host: Number of arrays copied from the host.
        bytes_from_host: Bytes copied from the host, with padding.
        copies_to_host: Number of arrays copied to the host.
        bytes_to_host: Bytes copied to the host, with padding.
        libraries: Number of calls of each library function, which run on the host, by name.
        relayouts: Number of explicit copies to other layouts, by `restickify` and `relayout_to`.
    """

    programs: Counter[Any] = field(default_factory=Counter)
    copies_from_host: int = 0
    bytes_from_host: int = 0
    copies_to_host: int = 0
    bytes_to_host: int = 0
    libraries: Counter[str] = field(default_factory=Counter)
    relayouts: int = 0

    def from_host(self, count: int) -> None:
        """Count the copy of one array of `count` bytes from the host."""
        self.copies_from_host += 1
        self.bytes_from_host += count

    def to_host(self, count: int) -> None:
        """Count the copy of one array of `count` bytes to the host."""
        self.copies_to_host += 1
        self.bytes_to_host += count


costs: dict[str, DeviceCosts] = {}
"""Activity of this process since the last reset, by device."""


def costs_of(device: str | None) -> DeviceCosts:
    """Return the activity record of a device."""
    return costs.setdefault(str(device), DeviceCosts())


@dataclass
class Counters:
    """Counters of compilation, calls and communication.

    Attributes:
        compiled: Number of kernels and programs that were compiled or loaded from disk.
        called: Number of kernel calls and programs.
        libraries: Number of calls of each library function, by name.
        gathered: Number of distributed arrays that were replicated on all ranks, by cause.
        exchanges: Number of rounds in which this process sent or received messages.
        overlapped: Number of exchanges that overlapped with independent computation of this
            process.
        messages: Number of messages that this process sent in exchanges.
        collectives: Number of collectives in which this process took part.
        sent: Bytes that this process sent or passed to collectives, by purpose.
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
        lines = [f"{self.compiled} kernels compiled, {self.called} kernel calls"]
        lines += [f"{count} calls of {name}" for name, count in sorted(self.libraries.items())]
        gathered = sorted(self.gathered.items())
        lines += [f"{count} arrays gathered for {reason}" for reason, count in gathered]
        if self.exchanges or self.collectives:
            lines.append(
                f"{self.exchanges} exchanges with {self.messages} messages, "
                f"{self.collectives} collectives"
            )
        if self.overlapped:
            lines.append(f"{self.overlapped} exchanges overlapped with computation")
        lines += [f"{count} bytes sent, {reason}" for reason, count in sorted(self.sent.items())]
        return "\n".join(lines)


counters = Counters()
"""Counters of this process."""
