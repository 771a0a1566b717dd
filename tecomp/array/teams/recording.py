"""The rules for arrays of teams, in use from when the first of them is made."""

from __future__ import annotations

from collections.abc import Sequence

import tecomp.array.teams.diagonals
import tecomp.array.teams.elementwise
import tecomp.array.teams.lanes
import tecomp.array.teams.manipulation
import tecomp.array.teams.matrices
import tecomp.array.teams.ordering
import tecomp.array.teams.products
import tecomp.array.teams.reductions
import tecomp.array.teams.running
import tecomp.array.teams.searching
import tecomp.array.teams.sets
import tecomp.array.teams.slices  # noqa: F401  these register what they do
from tecomp.array.control.together import is_sent, together
from tecomp.array.graph.evaluate import evaluate
from tecomp.array.graph.node import Teams, serve
from tecomp.array.graph.shared import Shared
from tecomp.array.teams.asking import from_start, places_of
from tecomp.array.teams.libraries import called
from tecomp.array.teams.placing import place
from tecomp.array.teams.putting import put_at
from tecomp.array.teams.queue import explain, is_settled, settle
from tecomp.array.teams.repeating import repeated
from tecomp.array.teams.rules import record_together
from tecomp.array.teams.transfers import like_operands, whole_of


def _settle(xs: Sequence[Shared], at_once: bool) -> None:
    """Wait for messages; who runs the script alone tells others to compute the same."""
    if not is_sent() or not all(map(is_settled, xs)):
        (_compute_together if at_once else _settle_together)(tuple(xs))


def compute_parts(xs: Sequence[Shared]) -> None:
    """Wait for messages, and compute the parts of arrays meanwhile."""
    settle(xs, then=True)


_settle_together = together(settle, others=evaluate)
_compute_together = together(compute_parts, others=evaluate)

serve(Teams(
    together(record_together), whole_of, together(like_operands), together(called),
    together(places_of), together(from_start), together(put_at), together(repeated),
    together(place), explain, _settle,
))
