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
    """

    compiled: int = 0
    called: int = 0
    libraries: Counter[str] = field(default_factory=Counter)
    gathered: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        lines = [f"{self.compiled} kernels compiled, {self.called} calls of kernels"]
        lines += [f"{count} calls of {name}" for name, count in sorted(self.libraries.items())]
        gathered = sorted(self.gathered.items())
        lines += [f"{count} arrays gathered for {why}" for why, count in gathered]
        return "\n".join(lines)


counters = Counters()
"""Those of this process."""
