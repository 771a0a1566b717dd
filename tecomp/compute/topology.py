"""Which operation is computed before which."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.compute.operation import Operation


def post_order(outputs: Sequence[Operation]) -> tuple[Operation, ...]:
    """`outputs` and all that they read, each once, producers before consumers.

    A loop and not a recursion: a chain of operations may be long.
    """
    done: dict[Operation, None] = {}
    todo: list[tuple[Operation, bool]] = [(op, False) for op in reversed(outputs)]
    while todo:
        op, entered = todo.pop()
        if op in done:
            continue
        if entered:
            done[op] = None
        else:
            todo.append((op, True))
            todo.extend((tensor.op, False) for tensor in reversed(op.input_tensors))
    return tuple(done)
