"""Tags of operations, by which a program can tell what kind a stage is; TVM's words."""

from __future__ import annotations

ELEMWISE = "elemwise"
BROADCAST = "broadcast"
INJECTIVE = "injective"
COMM_REDUCE = "comm_reduce"
COMM_REDUCE_IDX = "comm_reduce_idx"


def is_broadcast(tag: str) -> bool:
    """Whether a stage is a formula of elements, of tensors that are broadcast or not.

    >>> is_broadcast("elemwise"), is_broadcast("injective")
    (True, False)
    """
    return tag.startswith((ELEMWISE, BROADCAST))


def is_injective(tag: str) -> bool:
    """Whether each element of a stage is made of one place of what it reads.

    >>> is_injective("elemwise"), is_injective("comm_reduce")
    (True, False)
    """
    return is_broadcast(tag) or tag.startswith(INJECTIVE)
