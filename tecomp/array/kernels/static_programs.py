"""Programs compiled for fixed shapes, on the host and on devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tecomp
from tecomp import te
from tecomp.array.graph.node import Buffer, Node, empty
from tecomp.array.graph.pending import PendingGraph, Step, placing
from tecomp.array.kernels.device_storage import (
    DeviceBuffer,
    alternatives,
    copy_to_device,
    default_layout,
    device_buffer_of,
    device_storage_layout,
    inherited_layouts,
    parts_of,
)
from tecomp.array.kernels.kernel import memoized
from tecomp.array.kernels.view_normalization import PermutedArray, StridedArray, describe_strides
from tecomp.array.statistics import costs_of, counters
from tecomp.caches import LRUCache
from tecomp.errors import LayoutError
from tecomp.graph.layout_demands import is_near
from tecomp.layout.core.layout import Layout
from tecomp.ptensor.devices import CPU, target_of
from tecomp.ptensor.te_definitions import define
from tecomp.ptensor.types import PART, PTensorType, Shape
from tecomp.ptensor.values import ComplexTensor, Value, deinterleave_complex, interleave_complex

_host_programs: LRUCache[Any, Any] = LRUCache("array.host_programs")


def run_program(work: PendingGraph) -> None:
    """Evaluate pending operations with one host program, compiled for their shapes."""
    program = program_of(work)
    arrays = [
        as_parts(data if view is None else view.memory(data)) for data, (_, view)
        in _operands_with_order(work)
    ]
    outputs = [work.nodes[k] for k in work.outputs]
    buffers = [work.memory(position) for position in work.outputs]
    counters.called += 1
    program(*arrays, out=[as_parts(buffer) for buffer in buffers])
    for node, buffer in zip(outputs, buffers, strict=True):
        node.computed(buffer)


def program_of(work: PendingGraph) -> Any:
    """Return the host program for pending operations, compiled on first use."""
    leaves = tuple([leaf for _, leaf in _operands_with_order(work)])
    key = leaves, work.steps, work.outputs
    return memoized(_host_programs, key, _compile_host, leaves, work)


HostLeaf = tuple[PTensorType, StridedArray | PermutedArray | None]
"""Type of an operand, and its memory order if it is not contiguous row-major."""


def _operands_with_order(work: PendingGraph) -> list[tuple[Buffer, HostLeaf]]:
    """Return the operands with their memory order."""
    return [
        (node.data, (node.type, describe_strides(node.data))) for node in work.leaves
        if node.data is not None
    ]


def as_parts(data: Buffer) -> Buffer:
    """View complex numbers as pairs of real numbers."""
    if data.dtype.kind != "c":
        return data
    return data[..., None].view(data.real.dtype)


def _compile_host(leaves: Sequence[HostLeaf], work: PendingGraph) -> Any:
    types = [node.type for node in work.nodes]
    inputs, outputs = define_program(leaves, work.steps, work.outputs, types)
    return tecomp.compile(outputs, inputs, types[0].device or CPU, name="array")


def define_program(
    leaves: Sequence[HostLeaf],
    steps: Sequence[Step],
    outputs: Sequence[int],
    types: Sequence[PTensorType],
) -> tuple[list[te.Tensor], list[te.Tensor]]:
    """Define pending operations as tensors; return the inputs and the outputs."""
    inputs = [
        _placeholder(
            ptype.shape if view is None else view.extents(ptype.shape), ptype.dtype, f"x{k}"
        )
        for k, (ptype, view) in enumerate(leaves)
    ]
    leaf_values = [_value(tensor, *leaf) for tensor, leaf in zip(inputs, leaves, strict=True)]
    values: list[Value] = []
    for (op, operands), result in zip(steps, types, strict=True):
        operand_values = [values[k] if k >= 0 else leaf_values[-1 - k] for k in operands]
        kinds = [types[k] if k >= 0 else leaves[-1 - k][0] for k in operands]
        values.append(define(op, operand_values, kinds, result))
    results: list[te.Tensor] = []
    for k in outputs:
        value = values[k]
        tensor = interleave_complex(value, "joined") if isinstance(value, ComplexTensor) else value
        # An identity copy is either an input or another output.
        is_there = any(tensor is other for other in (*inputs, *results))
        results.append(_copy(tensor) if is_there else tensor)
    return inputs, results


def _copy(tensor: te.Tensor) -> te.Tensor:
    return te.compute(tensor.shape, lambda *i: tensor(*i), name="copy")


def _placeholder(shape: Shape, dtype: str, name: str) -> te.Tensor:
    part = PART.get(dtype)
    if part is None:
        return te.placeholder(shape, dtype, name=name)
    return te.placeholder((*shape, 2), part, name=name)


def _value(
    tensor: te.Tensor, ptype: PTensorType, storage: StridedArray | PermutedArray | None
) -> Value:
    """Return an operand in its logical shape as a view of its memory; complex ones as two parts.

    Readers inline the view.
    """
    if storage is None:
        return deinterleave_complex(tensor) if ptype.dtype in PART else tensor

    def view(*part: int) -> te.Tensor:
        result: te.Tensor = te.compute(
            ptype.shape,
            lambda *i: tensor(*storage.index_of(i), *part), name=tensor.name)
        return result

    return ComplexTensor(view(0), view(1)) if ptype.dtype in PART else view()


_device_programs: LRUCache[Any, DeviceProgram] = LRUCache("array.device_programs")
_relayouts: LRUCache[Any, Any] = LRUCache("array.relayouts")

DeviceLeaf = tuple[PTensorType, "StridedArray | PermutedArray | Layout | None"]
"""Type of an operand, and its device layout, or its memory order on the host."""


@dataclass(frozen=True, slots=True)
class DeviceProgram:
    """Program for arrays on a device.

    Attributes:
        program: Compiled program.
        is_read_there: Whether operands are read in device memory; otherwise, the host passes them.
        layouts: Layouts of the results; None for results that are returned to the host.
    """

    program: Any
    is_read_there: bool
    layouts: tuple[Layout | None, ...]


def run_placed(work: PendingGraph) -> None:
    """Evaluate pending operations on the device of the arrays; the results stay there."""
    with placing:
        compiled = placed_program_of(work)
        outputs = [work.nodes[k] for k in work.outputs]
        device = outputs[0].type.device
        args = [_argument(node, compiled) for node in work.leaves]
        counters.called += 1
        costs_of(device).programs[compiled.program] += 1
        found = compiled.program(*args)
        results = found if isinstance(found, tuple) else (found,)
        for node, layout, data in zip(outputs, compiled.layouts, results, strict=True):
            if layout is None:
                _store_host_result(node, data)
            else:
                node.placed(DeviceBuffer(node.type, layout, data, compiled.program))


def _store_host_result(node: Node, data: Buffer) -> None:
    """Store a result that the program returned to the host."""
    costs_of(node.type.device).to_host(data.nbytes)
    buffer = empty(node.type)
    as_parts(buffer)[...] = data
    node.computed(buffer)


def _argument(node: Node, compiled: DeviceProgram) -> Buffer:
    where = _where(node)
    if isinstance(where, Layout) and compiled.is_read_there:
        return device_buffer_of(node).data
    data = device_buffer_of(node).elements() if node.data is None else node.data
    parts = as_parts(where.memory(data) if isinstance(where, StridedArray | PermutedArray)
        else data)
    costs_of(node.type.device).from_host(parts.nbytes)
    return parts


def _where(node: Node) -> StridedArray | PermutedArray | Layout | None:
    """Return the layout or memory order of an operand; broadcast numbers stay on the host."""
    if node.stored is not None:
        return node.stored.layout
    assert node.data is not None
    view = describe_strides(node.data)
    if view is not None and 0 in node.data.strides:
        return view
    if not (node.type.shape and node.type.size):
        return view
    return node.home or default_layout(node.type)


def placed_program_of(work: PendingGraph) -> DeviceProgram:
    """Return the device program for pending operations, compiled on first use."""
    leaves = tuple([(node.type, _where(node)) for node in work.leaves])
    key = leaves, work.steps, work.outputs
    return memoized(_device_programs, key, _compile_device, leaves, work)


def relayout_buffer(found: DeviceBuffer, layout: Layout) -> DeviceBuffer:
    """Relayout elements on the device, or on the host if the device cannot."""
    ptype, target = found.type, device_storage_layout(found.type, layout)
    if target == found.layout:
        return found
    try:
        key = ptype, found.layout, target
        program = memoized(_relayouts, key, _relayout, ptype, found.layout, target)
    except LayoutError:
        return copy_to_device(found.elements(), ptype, target)
    counters.called += 1
    costs = costs_of(ptype.device)
    costs.programs[program] += 1
    costs.relayouts += 1
    return DeviceBuffer(ptype, target, program(found.data), program)


def _relayout(ptype: PTensorType, source: Layout, layout: Layout) -> Any:
    shape, dtype = parts_of(ptype)
    x = te.placeholder(shape, dtype, name="x")
    y = te.compute(shape, lambda *i: x(*i), name="relaid")
    return tecomp.compile(
        y, [x], target_of(str(ptype.device)), layouts={x: source, y: layout}, packed=[x, y],
        name="relayout",
    )


def _compile_device(leaves: Sequence[DeviceLeaf], work: PendingGraph) -> DeviceProgram:
    """Compile a program that keeps as many operands and results on the device as possible.

    A machine may not support a relayout from the operand layouts to the layouts in which it
    computes; in that case, the host converts the operands.
    """
    types = [node.type for node in work.nodes]
    target = target_of(str(types[0].device))
    host_leaves = [
        (ptype, storage if isinstance(storage, StridedArray | PermutedArray) else None)
        for ptype, storage in leaves
    ]
    inherited = _inheritable_layouts(leaves, work)
    refused: LayoutError | None = None
    for reads, writes, inherits in (
        (True, True, True), (True, True, False), (False, True, False), (False, False, False),
    ):
        if inherits and not inherited:
            continue
        inputs, results = define_program(host_leaves, work.steps, work.outputs, types)
        assigned: dict[te.Tensor, Any] = {
            x: at for x, (_, at) in zip(inputs, leaves, strict=True)
            if isinstance(at, Layout) and reads
        }
        packed = [*assigned, *(results if writes else ())]
        if inherits:
            assigned |= {
                results[k]: layouts[0] if is_near(layouts[0], target) else layouts
                for k, layouts in inherited.items()
            }
        try:
            program = tecomp.compile(
                results, inputs, target, layouts=assigned, packed=packed, name="array")
        except LayoutError as error:
            refused = refused or error
            continue
        layouts = program.packed
        return DeviceProgram(program, reads, tuple([layouts.get(x) for x in results]))
    assert refused is not None
    raise refused


def _inheritable_layouts(
    leaves: Sequence[DeviceLeaf], work: PendingGraph
) -> dict[int, list[Layout]]:
    """Return the layouts that results may have if an operand has a non-default layout.

    The first is preferred. Layouts that the machine knows need no entry, because the compiler
    chooses among them with the fewest relayouts.
    """
    types = [node.type for node in work.nodes]
    device_leaves = [(ptype, at if isinstance(at, Layout) else None) for ptype, at in leaves]
    found = inherited_layouts(device_leaves, work.steps, types)
    inheritable: dict[int, list[Layout]] = {}
    for k, position in enumerate(work.outputs):
        layout = found[position]
        if layout is not None and (layouts := alternatives(types[position], layout)):
            inheritable[k] = layouts
    return inheritable
