"""Names of kernels in reports: that of their result, with a number where several have the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tecomp.compute.operation import Operation
from tecomp.graph.call import Call


def labels_of(calls: Sequence[Call]) -> Mapping[Operation, str]:
    """What each kernel is called, by its result.

    Args:
        calls: the kernels in order.
    """
    names = Counter(call.group.result.name for call in calls)
    seen = Counter[str]()
    found: dict[Operation, str] = {}
    for call in calls:
        result = call.group.result
        seen[result.name] += 1
        number = f"#{seen[result.name]}" if names[result.name] > 1 else ""
        found[result] = f"{result.name}{number}"
    return found
