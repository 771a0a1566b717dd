"""`explain`: what would run for an array."""

from __future__ import annotations

import typing
from importlib import import_module

from tecomp.array.arrays import Array, node_of
from tecomp.array.graph.evaluate import computable
from tecomp.array.graph.node import teams
from tecomp.array.graph.shared import Shared, parts_of
from tecomp.ptensor.types import check_together

if typing.TYPE_CHECKING:
    from tecomp.array.kernels.explained import Explanation


def explain(*arrays: Array) -> Explanation:
    """What would run to compute arrays; nothing does.

    Of arrays of a team it is what this process would compute of its part. What that waits for is
    sent, so that all processes have to call it.

    Args:
        arrays: that are not computed yet.

    Returns:
        What prints as the operations, what they are lowered to, and schedule, loops and cost of
        each kernel; the parts of it are its attributes.

    Raises:
        ArrayTypeError: something is no array, or an argument of a function that `jit` records.
        DeviceMismatchError: arrays live on different devices.
        TeamMismatchError: arrays belong to different teams.

    >>> import tecomp.array as xp
    >>> x = xp.arange(6, dtype="float32")
    >>> explain(x * x).function.body[-1].op
    ElementwiseBinaryOp(kind='multiply')
    """
    nodes = [node_of(array, "explain") for array in arrays]
    if nodes:
        check_together([node.type for node in nodes], "explain")
    shared = [node for node in nodes if isinstance(node, Shared)]
    messages = teams().explain(shared) if shared else ()
    work = computable(parts_of(nodes))
    # Loaded now: who computes arrays does not wait for what explains them.
    explained = import_module("tecomp.array.kernels.explained")
    found: Explanation = explained.explanation_of(work, messages)
    return found
