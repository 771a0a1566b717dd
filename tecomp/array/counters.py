"""What was done for arrays in this process: kernels compiled and called, libraries called."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


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
