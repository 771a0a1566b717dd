"""Programs for arrays on devices, which leave them there: in layouts that the compiler chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tecomp
from tecomp import te
from tecomp.array.costs import costs_of
from tecomp.array.counters import counters
from tecomp.array.graph.devices import target_of
from tecomp.array.graph.node import Buffer, Node, empty
from tecomp.array.graph.pending import Pending
from tecomp.array.graph.waiting import placing
from tecomp.array.kernels.kept import made_once
from tecomp.array.kernels.programs import as_parts, defined
from tecomp.array.kernels.stored import Stored, brought, default_layout, known, parts_of, stored_of
from tecomp.array.kernels.strided import Lies, Turned, lies
from tecomp.array.recent import Recent
from tecomp.errors import LayoutError
from tecomp.layout.descriptions.layout import Layout
from tecomp.ptensor.types import PTensorType

_programs: Recent[Any, PlacedProgram] = Recent(512)
_relayouts: Recent[Any, Any] = Recent(512)

Leaf = tuple[PTensorType, "Lies | Turned | Layout | None"]
"""The type of an operand, and where it is: on the device in a layout, or else in the host."""


@dataclass(frozen=True, slots=True)
class PlacedProgram:
    """A program for arrays on a device.

    Attributes:
        program: that was compiled.
        is_read_there: whether operands on the device are read there; else the host passes them.
        layouts: of the results; None for what the host gets.
    """

    program: Any
    is_read_there: bool
    layouts: tuple[Layout | None, ...]


def run_placed(work: Pending) -> None:
    """Compute what is wanted on the device of the arrays, where it stays."""
    with placing:
        _run(work)


def _run(work: Pending) -> None:
    made = placed_program_of(work)
    outputs = [work.nodes[k] for k in work.outputs]
    device = outputs[0].type.device
    given = [_argument(node, made) for node in work.leaves]
    counters.called += 1
    costs_of(device).programs[made.program] += 1
    found = made.program(*given)
    results = found if isinstance(found, tuple) else (found,)
    for node, layout, data in zip(outputs, made.layouts, results, strict=True):
        if layout is None:
            _returned(node, data)
        else:
            node.placed(Stored(node.type, layout, data, made.program))


def _returned(node: Node, data: Buffer) -> None:
    """Keep a result that the program brought to the host."""
    costs_of(node.type.device).to_host(data.nbytes)
    buffer = empty(node.type)
    as_parts(buffer)[...] = data
    node.computed(buffer)


def _argument(node: Node, made: PlacedProgram) -> Buffer:
    where = _where(node)
    if isinstance(where, Layout) and made.is_read_there:
        return stored_of(node).data
    data = stored_of(node).elements() if node.data is None else node.data
    passed = as_parts(where.memory(data) if isinstance(where, Lies | Turned) else data)
    costs_of(node.type.device).from_host(passed.nbytes)
    return passed


def _where(node: Node) -> Lies | Turned | Layout | None:
    """Where an operand is; numbers, and what one number is repeated to, are in the host."""
    if node.stored is not None:
        return node.stored.layout
    assert node.data is not None
    at = lies(node.data)
    if at is not None and 0 in node.data.strides:
        return at
    return default_layout(node.type) if node.type.shape and node.type.size else at


def placed_program_of(work: Pending) -> PlacedProgram:
    """The program for pending operations, compiled when it is first asked for."""
    leaves = tuple([(node.type, _where(node)) for node in work.leaves])
    key = leaves, work.steps, work.outputs
    return made_once(_programs, key, _compiled, leaves, work)


def relaid(found: Stored, layout: Layout) -> Stored:
    """Elements in another layout: copied on the device, or by the host if that cannot be."""
    type, wanted = found.type, known(found.type, layout)
    if wanted == found.layout:
        return found
    try:
        key = type, found.layout, wanted
        program = made_once(_relayouts, key, _relayout, type, found.layout, wanted)
    except LayoutError:
        return brought(found.elements(), type, wanted)
    counters.called += 1
    costs = costs_of(type.device)
    costs.programs[program] += 1
    costs.relayouts += 1
    return Stored(type, wanted, program(found.data), program)


def _relayout(type: PTensorType, source: Layout, layout: Layout) -> Any:
    shape, dtype = parts_of(type)
    x = te.placeholder(shape, dtype, name="x")
    y = te.compute(shape, lambda *i: x(*i), name="relaid")
    return tecomp.compile(
        y, [x], target_of(str(type.device)), layouts={x: source, y: layout}, packed=[x, y],
        name="relayout",
    )


def _compiled(leaves: Sequence[Leaf], work: Pending) -> PlacedProgram:
    """A program that leaves as much on the device as it can.

    A machine may have no way from the layouts that arrays have to those in which it computes: then
    the host brings them there.
    """
    types = [node.type for node in work.nodes]
    target = target_of(str(types[0].device))
    plain = [(type, at if isinstance(at, Lies | Turned) else None) for type, at in leaves]
    refused: LayoutError | None = None
    for reads, writes in ((True, True), (False, True), (False, False)):
        inputs, wanted = defined(plain, work.steps, work.outputs, types)
        there = {
            x: at for x, (_, at) in zip(inputs, leaves, strict=True)
            if isinstance(at, Layout) and reads
        }
        packed = [*there, *(wanted if writes else ())]
        try:
            program = tecomp.compile(
                wanted, inputs, target, layouts=there, packed=packed, name="array")
        except LayoutError as error:
            refused = refused or error
            continue
        layouts = program.packed
        return PlacedProgram(program, reads, tuple([layouts.get(x) for x in wanted]))
    assert refused is not None
    raise refused
