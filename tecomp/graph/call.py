"""One kernel of a program, in the order in which they run."""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.compute.tensor import Tensor
from tecomp.driver.parts import Part
from tecomp.graph.groups import Group


@dataclass(frozen=True, slots=True)
class Call:
    """One kernel of a program, in the order in which they run.

    Attributes:
        group: the operations that it computes.
        part: its code; equal groups have the same.
        packed: the constants that it takes in an order of its own, with the shape in memory of what
            is made of each; computed once.
        is_relayout: whether it copies a value to another layout, and computes nothing.
    """

    group: Group
    part: Part
    packed: tuple[tuple[Tensor, tuple[int, ...]], ...] = ()
    is_relayout: bool = False
