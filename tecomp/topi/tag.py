"""Operation tags, with TVM's names; they classify stages by access pattern."""

from __future__ import annotations

ELEMWISE = "elemwise"
BROADCAST = "broadcast"
INJECTIVE = "injective"
COMM_REDUCE = "comm_reduce"
COMM_REDUCE_IDX = "comm_reduce_idx"


def is_broadcast(tag: str) -> bool:
    """Return whether a stage is an element-wise or broadcasting operation.

    >>> is_broadcast("elemwise"), is_broadcast("injective")
    (True, False)
    """
    return tag.startswith((ELEMWISE, BROADCAST))


def is_injective(tag: str) -> bool:
    """Return whether each element of a stage is computed from one element of each input.

    >>> is_injective("elemwise"), is_injective("comm_reduce")
    (True, False)
    """
    return is_broadcast(tag) or tag.startswith(INJECTIVE)
