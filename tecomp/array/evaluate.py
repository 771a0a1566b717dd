"""Compute what was recorded."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.array.graph import Pending, pending
from tecomp.array.kernels import run
from tecomp.array.node import Buffer, Node, empty
from tecomp.array.programs import run_program
from tecomp.array.recipes import recipe_of
from tecomp.errors import ArrayTypeError


def evaluate(nodes: Sequence[Node]) -> None:
    """Compute nodes, and what else was recorded on the way to them and can still be asked for."""
    missing = [node for node in nodes if node.data is None]
    if not missing:
        return
    work = pending(missing)
    if any(node.data is None for node in work.leaves):  # an argument of what is recorded
        raise ArrayTypeError(
            "jit: the value of an element is asked for, and there is none while a function is "
            "recorded; use where in place of if, or ask outside of the function"
        )
    compute(work)


def compute(work: Pending) -> None:
    """Compute pending operations on arrays that are there."""
    outputs = [work.nodes[place] for place in work.outputs]
    if not any(node.type.size for node in outputs):
        for node in outputs:
            node.computed(empty(node.type))
        return
    recipe = recipe_of(work)
    if recipe is None:
        run_program(work)
    else:
        run(recipe, work)


def data_of(node: Node) -> Buffer:
    """The elements of a node, computed if they are not yet."""
    if node.data is None:
        evaluate((node,))
    data = node.data
    assert data is not None
    return data
