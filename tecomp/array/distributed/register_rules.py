"""Import and enable all sharding rules."""

from __future__ import annotations

from collections.abc import Sequence

import tecomp.array.distributed.elementwise
import tecomp.array.distributed.linear_algebra
import tecomp.array.distributed.manipulation
import tecomp.array.distributed.reductions
import tecomp.array.distributed.sorting
import tecomp.array.distributed.timeline  # noqa: F401  imports register the rules
from tecomp.array.distributed.elementwise import place
from tecomp.array.distributed.gather_scatter import from_start, places_of, put_at
from tecomp.array.distributed.linear_algebra import called
from tecomp.array.distributed.manipulation import repeated
from tecomp.array.distributed.message_queue import explain, is_settled, settle
from tecomp.array.distributed.sharding_rules import like_operands, record_together, whole_of
from tecomp.array.graph.evaluate import evaluate
from tecomp.array.graph.node import Shared, Teams, serve
from tecomp.array.single_controller.protocol import is_sent, together


def _settle(xs: Sequence[Shared], at_once: bool) -> None:
    """Wait for messages; a single controller makes the workers compute the same arrays."""
    if not is_sent() or not all(map(is_settled, xs)):
        (_compute_together if at_once else _settle_together)(tuple(xs))


def compute_parts(xs: Sequence[Shared]) -> None:
    """Wait for messages, and compute the shards of arrays meanwhile."""
    settle(xs, then=True)


_settle_together = together(settle, others=evaluate)
_compute_together = together(compute_parts, others=evaluate)

serve(Teams(
    together(record_together), whole_of, together(like_operands), together(called),
    together(places_of), together(from_start), together(put_at), together(repeated),
    together(place), explain, _settle,
))
