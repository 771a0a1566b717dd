"""Compute what was recorded."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.array.graph import pending
from tecomp.array.node import Buffer, Node
from tecomp.array.programs import run_program


def evaluate(nodes: Sequence[Node]) -> None:
    """Compute nodes, and what else was recorded on the way to them and can still be asked for."""
    missing = [node for node in nodes if node.data is None]
    if missing:
        run_program(pending(missing))


def data_of(node: Node) -> Buffer:
    """The elements of a node, computed if they are not yet."""
    if node.data is None:
        evaluate((node,))
    data = node.data
    assert data is not None
    return data
