"""Elementwise operations on arrays of a team: recorded, and computed where they are read."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.array.graph.shared import Shared
from tecomp.array.teams.placing import later
from tecomp.array.teams.rules import rule
from tecomp.ptensor.operations.elementwise import Cast, Elementwise, Where
from tecomp.ptensor.types import PTensorType


@rule.register(Elementwise)
@rule.register(Cast)
@rule.register(Where)
def _(op: Elementwise | Cast | Where, xs: Sequence[Shared], type: PTensorType) -> Shared:
    return later(op, xs, type)
