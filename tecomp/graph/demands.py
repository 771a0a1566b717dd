"""What a caller says that has to be so of layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tecomp.compute.tensor import Tensor
from tecomp.constraints.wishes import Hint, asked_of
from tecomp.errors import LayoutError
from tecomp.graph.candidates import Wanted, has_layouts
from tecomp.graph.dag import Graph
from tecomp.layout.descriptions.layout import Layout
from tecomp.machine.descriptor import Target


@dataclass(frozen=True, slots=True)
class Demand:
    """What has to be so of a value.

    Attributes:
        tensor: the value.
        text: who says so.
        wanted: the layouts that it may have.
        axis: the one along its lanes, if that is all that is said.
    """

    tensor: Tensor
    text: str
    wanted: Wanted = "default"
    axis: int | None = None


def demands_of(
    graph: Graph, target: Target, given: Mapping[Tensor, Wanted], hints: Sequence[Hint]
) -> list[Demand]:
    """What the caller says that has to be so, of the values of the program."""
    every = dict.fromkeys((*graph.inputs, *graph.constants, *graph.computed))
    found = []
    for op in graph.operations:
        wanted = asked_of(op)
        if isinstance(wanted, Layout) or (wanted is not None and has_layouts(target)):
            said = {"axis": wanted} if isinstance(wanted, int) else {"wanted": wanted}
            found.append(Demand(op.output(0), f"the copy {op.name}", **said))
    for x, asked in given.items():
        found.append(Demand(graph.of(x), f"the layout of {x.name}", asked))
    for each in hints:
        x = graph.of(each.tensor)
        if x not in every:
            raise LayoutError(
                f"hints: {each.tensor.name} has a hint, and is no value of the program; these are "
                f"{', '.join(x.name for x in every)}",
                kind="demand",
            )
        if each.is_hard:
            found.append(Demand(x, str(each), axis=each.stick))
    for demand in found:
        if demand.tensor not in every:
            raise LayoutError(
                f"layouts: {demand.tensor.name} is given a layout, and is no value of the program; "
                f"these are {', '.join(x.name for x in every)}",
                kind="demand",
            )
    return found
