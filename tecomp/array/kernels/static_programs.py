"""Programs compiled for fixed shapes, on the host and on devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tecomp
from tecomp import te
from tecomp.array.graph.locking import placing
from tecomp.array.graph.node import Buffer, Node, empty
from tecomp.array.graph.pending import Pending, Step
from tecomp.array.kernels.device_storage import (
    Stored,
    alternatives,
    brought,
    default_layout,
    kept_layouts,
    known,
    parts_of,
    stored_of,
)
from tecomp.array.kernels.kernel import made_once
from tecomp.array.kernels.view_normalization import Lies, PermutedArray, lies
from tecomp.array.lru_cache import Recent
from tecomp.array.statistics import costs_of, counters
from tecomp.errors import LayoutError
from tecomp.layout.core.layout import Layout
from tecomp.ptensor.devices import CPU, target_of
from tecomp.ptensor.te_definitions import define
from tecomp.ptensor.types import PART, PTensorType, Shape
from tecomp.ptensor.values import ComplexTensor, Value, paired, unpaired

_host_programs: Recent[Any, Any] = Recent(512)


def run_program(work: Pending) -> None:
    """Compute what is wanted by one program, compiled for these shapes."""
    program = program_of(work)
    arrays = [
        as_parts(data if at is None else at.memory(data)) for data, (_, at) in _given(work)
    ]
    outputs = [work.nodes[k] for k in work.outputs]
    buffers = [work.memory(place) for place in work.outputs]
    counters.called += 1
    program(*arrays, out=[as_parts(buffer) for buffer in buffers])
    for node, buffer in zip(outputs, buffers, strict=True):
        node.computed(buffer)


def program_of(work: Pending) -> Any:
    """The program for pending operations, compiled when it is first asked for."""
    leaves = tuple([leaf for _, leaf in _given(work)])
    key = leaves, work.steps, work.outputs
    return made_once(_host_programs, key, _compile_host, leaves, work)


HostLeaf = tuple[PTensorType, Lies | PermutedArray | None]
"""The type of an operand, and where its elements are if they do not follow each other."""


def _given(work: Pending) -> list[tuple[Buffer, HostLeaf]]:
    """The operands, and how each lies in memory."""
    return [
        (node.data, (node.type, lies(node.data))) for node in work.leaves if node.data is not None
    ]


def as_parts(data: Buffer) -> Buffer:
    """Complex numbers as pairs of real ones."""
    if data.dtype.kind != "c":
        return data
    return data[..., None].view(data.real.dtype)


def _compile_host(leaves: Sequence[HostLeaf], work: Pending) -> Any:
    types = [node.type for node in work.nodes]
    inputs, wanted = defined(leaves, work.steps, work.outputs, types)
    return tecomp.compile(wanted, inputs, types[0].device or CPU, name="array")


def defined(
    leaves: Sequence[HostLeaf],
    steps: Sequence[Step],
    outputs: Sequence[int],
    types: Sequence[PTensorType],
) -> tuple[list[te.Tensor], list[te.Tensor]]:
    """Pending operations as tensors: what stands for the leaves, and what is wanted."""
    inputs = [
        _placeholder(type.shape if at is None else at.extents(type.shape), type.dtype, f"x{k}")
        for k, (type, at) in enumerate(leaves)
    ]
    at = [_value(tensor, *leaf) for tensor, leaf in zip(inputs, leaves, strict=True)]
    values: list[Value] = []
    for (op, operands), result in zip(steps, types, strict=True):
        given = [values[k] if k >= 0 else at[-1 - k] for k in operands]
        kinds = [types[k] if k >= 0 else leaves[-1 - k][0] for k in operands]
        values.append(define(op, given, kinds, result))
    wanted: list[te.Tensor] = []
    for k in outputs:
        tensor = _joined(values[k])
        # What only passes elements on is given already, or is another result too.
        is_there = any(tensor is other for other in (*inputs, *wanted))
        wanted.append(_copy(tensor) if is_there else tensor)
    return inputs, wanted


def _copy(tensor: te.Tensor) -> te.Tensor:
    return te.compute(tensor.shape, lambda *i: tensor(*i), name="copy")


def _placeholder(shape: Shape, dtype: str, name: str) -> te.Tensor:
    part = PART.get(dtype)
    if part is None:
        return te.placeholder(shape, dtype, name=name)
    return te.placeholder((*shape, 2), part, name=name)


def _value(tensor: te.Tensor, type: PTensorType, at: Lies | PermutedArray | None) -> Value:
    """What an operand is, as it lies in memory; of complex numbers each part alone.

    So each is a view of memory, which whatever reads it reads in its place.
    """
    if at is None:
        return unpaired(tensor) if type.dtype in PART else tensor

    def view(*part: int) -> te.Tensor:
        made: te.Tensor = te.compute(
            type.shape,
            lambda *i: tensor(*at.place(i), *part), name=tensor.name)
        return made

    return ComplexTensor(view(0), view(1)) if type.dtype in PART else view()


def _joined(value: Value) -> te.Tensor:
    return paired(value, "joined") if isinstance(value, ComplexTensor) else value


_device_programs: Recent[Any, PlacedProgram] = Recent(512)
_relayouts: Recent[Any, Any] = Recent(512)

DeviceLeaf = tuple[PTensorType, "Lies | PermutedArray | Layout | None"]
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
    passed = as_parts(where.memory(data) if isinstance(where, Lies | PermutedArray) else data)
    costs_of(node.type.device).from_host(passed.nbytes)
    return passed


def _where(node: Node) -> Lies | PermutedArray | Layout | None:
    """Where an operand is; numbers, and what one number is repeated to, are in the host."""
    if node.stored is not None:
        return node.stored.layout
    assert node.data is not None
    at = lies(node.data)
    if at is not None and 0 in node.data.strides:
        return at
    if not (node.type.shape and node.type.size):
        return at
    return node.home or default_layout(node.type)


def placed_program_of(work: Pending) -> PlacedProgram:
    """The program for pending operations, compiled when it is first asked for."""
    leaves = tuple([(node.type, _where(node)) for node in work.leaves])
    key = leaves, work.steps, work.outputs
    return made_once(_device_programs, key, _compile_device, leaves, work)


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


def _compile_device(leaves: Sequence[DeviceLeaf], work: Pending) -> PlacedProgram:
    """A program that leaves as much on the device as it can.

    A machine may have no way from the layouts that arrays have to those in which it computes: then
    the host brings them there.
    """
    types = [node.type for node in work.nodes]
    target = target_of(str(types[0].device))
    plain = [(type, at if isinstance(at, Lies | PermutedArray) else None) for type, at in leaves]
    kept = _kept(leaves, work)
    refused: LayoutError | None = None
    for reads, writes, keeps in (
        (True, True, True), (True, True, False), (False, True, False), (False, False, False),
    ):
        if keeps and not kept:
            continue
        inputs, wanted = defined(plain, work.steps, work.outputs, types)
        there: dict[te.Tensor, Any] = {
            x: at for x, (_, at) in zip(inputs, leaves, strict=True)
            if isinstance(at, Layout) and reads
        }
        packed = [*there, *(wanted if writes else ())]
        if keeps:
            there |= {wanted[k]: layouts for k, layouts in kept.items()}
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


def _kept(leaves: Sequence[DeviceLeaf], work: Pending) -> dict[int, list[Layout]]:
    """Return the layouts that results may have, where an operand has one of its own.

    The first is preferred. Layouts that the machine knows need no entry: the compiler chooses among
    them, with the fewest relayouts.
    """
    types = [node.type for node in work.nodes]
    placed = [(type, at if isinstance(at, Layout) else None) for type, at in leaves]
    found = kept_layouts(placed, work.steps, types)
    kept: dict[int, list[Layout]] = {}
    for k, place in enumerate(work.outputs):
        layout = found[place]
        if layout is not None and (layouts := alternatives(types[place], layout)):
            kept[k] = layouts
    return kept
