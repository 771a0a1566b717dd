"""Loops and conditions around a place of a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tecomp.ir.language.expr import Expr, Var


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop around a place.

    Attributes:
        var: its variable.
        min: the first value of that.
        extent: the trip count.
        thread: the axis of the grid that it is bound to.
        is_alone: whether there is one statement inside.
        is_parallel: whether cores share its iterations.
    """

    var: Var
    min: Expr
    extent: Expr
    thread: str
    is_alone: bool = True
    is_parallel: bool = False


@dataclass(frozen=True, slots=True)
class Where:
    """A condition that has to hold."""

    condition: Expr


Frame: TypeAlias = "Loop | Where"
