"""Run a recursion that is written with `yield` on a stack of its own.

A pass that must know what encloses a node reads best as a recursion, but trees nest deeper than
Python's stack. Written as a generator it says `result = yield task(child)` where it would call.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias

Task: TypeAlias = "Generator[Any, Any, Any]"


def run(
    task: Task,
    start: Callable[[Any], Task] | None = None,
    known: Callable[[Any], Any] | None = None,
) -> Any:
    """The value that `task` returns.

    Args:
        task: what to run.
        start: gives the task for what a task yields, where that is none itself.
        known: gives the result for what a task yields; None where it has to be found.

    >>> def depth(n):
    ...     return 0 if n == 0 else 1 + (yield depth(n - 1))
    >>> run(depth(100_000))
    100000
    """
    stack = [task]
    value: Any = None
    while stack:
        try:
            wanted = stack[-1].send(value)
        except StopIteration as end:
            stack.pop()
            value = end.value
            continue
        value = None if known is None else known(wanted)
        if value is None:
            stack.append(wanted if start is None else start(wanted))
    return value
