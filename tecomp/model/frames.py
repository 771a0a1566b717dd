"""Loops and conditions around a place of a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tecomp.ir.expr import Expr, Var


@dataclass(frozen=True, slots=True)
class Round:
    """A loop around a place; `is_alone` if there is one statement inside."""

    var: Var
    min: Expr
    extent: Expr
    thread: str
    is_alone: bool = True


@dataclass(frozen=True, slots=True)
class Where:
    """A condition that has to hold."""

    condition: Expr


Frame: TypeAlias = "Round | Where"
