"""`Source`: a module as LLVM IR, and which of LLVM's passes have something to do there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Passes(Enum):
    """How many of LLVM's passes pay for a function."""

    NONE = auto()
    """It only hands over what it is given: instructions one by one, in a fifth of the time."""
    FEW = auto()
    """Registers out of memory: nothing else was left to do."""
    LOOPS = auto()
    """Those that work on loops, besides."""
    ALL = auto()
    """Nearly all: its loops were left plain, to be made vectors."""


@dataclass(frozen=True, slots=True)
class Source:
    """A module, before LLVM's own passes.

    Attributes:
        text: LLVM IR.
        plain_loops: names of the functions that need all passes, which see the whole module.
        loop_work: names of the functions that need the passes for loops.
        inlined: names of the functions that become part of their callers.
        handed_over: names of the functions that only hand over what they are given.
    """

    text: str
    plain_loops: tuple[str, ...] = ()
    loop_work: tuple[str, ...] = ()
    inlined: tuple[str, ...] = ()
    handed_over: tuple[str, ...] = ()
