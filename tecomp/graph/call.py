"""One kernel of a program, in the order in which they run."""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.compute.tensor import Tensor
from tecomp.driver.parts import Part
from tecomp.graph.groups import Group


@dataclass(frozen=True, slots=True)
class Packed:
    """What is made once of constants, in the order of a kernel.

    Attributes:
        source: the first constant that it follows from.
        shape: in memory, one extent for each axis of its layout.
        bytes: of it.
    """

    source: Tensor
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class Call:
    """One kernel of a program, in the order in which they run.

    Attributes:
        group: the operations that it computes.
        part: its code; equal groups have the same.
        packed: the constants that it takes in an order of its own.
        is_relayout: whether it copies a value to another layout, and computes nothing.
    """

    group: Group
    part: Part
    packed: tuple[Packed, ...] = ()
    is_relayout: bool = False
