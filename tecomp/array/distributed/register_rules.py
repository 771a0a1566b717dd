"""Import and enable all sharding rules."""

from __future__ import annotations

from collections.abc import Sequence

import tecomp.array.distributed.elementwise
import tecomp.array.distributed.linear_algebra
import tecomp.array.distributed.manipulation
import tecomp.array.distributed.reductions
import tecomp.array.distributed.sorting
import tecomp.array.distributed.timeline  # noqa: F401  imports register the rules
from tecomp.array.distributed.elementwise import choose_sharding
from tecomp.array.distributed.gather_scatter import (
    normalize_distributed_indices,
    places_of,
    scatter_to_owners,
)
from tecomp.array.distributed.linear_algebra import apply_library_operation
from tecomp.array.distributed.manipulation import repeat_sharded
from tecomp.array.distributed.message_queue import explain, flush_messages, is_settled
from tecomp.array.distributed.sharding_rules import (
    gather_elements,
    record_distributed,
    shard_like_operands,
)
from tecomp.array.graph.evaluate import evaluate
from tecomp.array.graph.node import DistributedHooks, ShardedNode, register_distributed_hooks
from tecomp.array.single_controller.protocol import collective, is_sent


def _settle(xs: Sequence[ShardedNode], at_once: bool) -> None:
    """Wait for messages; a single controller makes the workers compute the same arrays."""
    if not is_sent() or not all(map(is_settled, xs)):
        (_compute_together if at_once else _settle_together)(tuple(xs))


def compute_parts(xs: Sequence[ShardedNode]) -> None:
    """Wait for messages, and compute the shards of arrays meanwhile."""
    flush_messages(xs, then=True)


_settle_together = collective(flush_messages, others=evaluate)
_compute_together = collective(compute_parts, others=evaluate)

register_distributed_hooks(DistributedHooks(
    collective(record_distributed), gather_elements, collective(shard_like_operands),
    collective(apply_library_operation),
    collective(places_of), collective(normalize_distributed_indices), collective(scatter_to_owners),
    collective(repeat_sharded),
    collective(choose_sharding), explain, _settle,
))
