"""What kernels pass on to each other, in which layouts, as a report says it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tecomp.compute.tensor import Tensor
from tecomp.graph.call import Call
from tecomp.graph.candidates import is_one_to_a_row
from tecomp.graph.groups import border_of
from tecomp.graph.labels import labels_of
from tecomp.graph.outcome import Layouts
from tecomp.graph.report import EdgeReport, Kind, RelayoutReport
from tecomp.graph.sizes import bytes_of
from tecomp.layout.descriptions.layout import Layout


def edges_of(
    inputs: Sequence[Tensor], outputs: Sequence[Tensor], calls: Sequence[Call],
    stored: Mapping[Tensor, Layout],
) -> tuple[EdgeReport, ...]:
    """The values that kernels read and make, in the order in which there are.

    Args:
        inputs: what the caller passes.
        outputs: what it gets.
        calls: the kernels in order.
        stored: the layouts of values that are not in the order of NumPy.
    """
    found: dict[object, EdgeReport] = {}
    labels = labels_of(calls)

    def enter(x: Tensor, kind: Kind, made_by: str = "") -> None:
        layout = stored.get(x)
        found[x] = EdgeReport(
            x.name, kind, made_by, (), bytes_of(x, stored), _text(layout),
            layout is not None and is_one_to_a_row(layout),
        )

    def read(key: object, name: str) -> None:
        found[key] = replace(found[key], read_by=(*found[key].read_by, name))

    for x in inputs:
        enter(x, "input")
    for call in calls:
        name = labels[call.group.result]
        packed = {each.source for each in call.packed}
        for x in border_of(call.group):
            if x not in found and x not in packed:
                enter(x, "constant")  # What nobody makes or passes is known.
            if x not in packed:
                read(x, name)
        for each in call.packed:
            text, key = f"laid out once, as {list(each.shape)}", (each.source, each.shape)
            made = EdgeReport(each.source.name, "constant", "", (), each.bytes, text)
            found.setdefault(key, made)
            read(key, name)
        for x in call.group.result.outputs:
            enter(x, "output" if x in outputs else "copy" if call.is_relayout else "value", name)
    return tuple(found.values())


def relayouts_of(layouts: Layouts | None) -> Iterator[RelayoutReport]:
    """The copies from one layout to another."""
    for copy in layouts.relayouts if layouts else ():
        readers = tuple(op.name for op in copy.readers)
        yield RelayoutReport(
            copy.tensor.name, readers, _text(copy.source), _text(copy.layout), copy.elements,
            copy.nbytes,
        )


def _text(layout: Layout | None) -> str:
    if layout is None:
        return "as in NumPy"
    text = layout.index_map.formula
    return text if layout.pad_value is None else f"{text}, {layout.pad_value:g} in padding"
