"""Programs for pending operations at the shapes that they have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tecomp
from tecomp import te
from tecomp.array.counters import counters
from tecomp.array.graph.devices import CPU
from tecomp.array.graph.node import Buffer
from tecomp.array.graph.pending import Pending, Step
from tecomp.array.kernels.kept import made_once
from tecomp.array.kernels.strided import Lies, Turned, lies
from tecomp.array.recent import Recent
from tecomp.ptensor.definitions import define
from tecomp.ptensor.promotion import PART
from tecomp.ptensor.types import PTensorType, Shape
from tecomp.ptensor.values import ComplexTensor, Value, paired, unpaired

_programs: Recent[Any, Any] = Recent(512)


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
    return made_once(_programs, key, _compiled, leaves, work)


Leaf = tuple[PTensorType, Lies | Turned | None]
"""The type of an operand, and where its elements are if they do not follow each other."""


def _given(work: Pending) -> list[tuple[Buffer, Leaf]]:
    """The operands, and how each lies in memory."""
    return [
        (node.data, (node.type, lies(node.data))) for node in work.leaves if node.data is not None
    ]


def as_parts(data: Buffer) -> Buffer:
    """Complex numbers as pairs of real ones."""
    if data.dtype.kind != "c":
        return data
    return data[..., None].view(data.real.dtype)


def _compiled(leaves: Sequence[Leaf], work: Pending) -> Any:
    types = [node.type for node in work.nodes]
    inputs, wanted = defined(leaves, work.steps, work.outputs, types)
    return tecomp.compile(wanted, inputs, types[0].device or CPU, name="array")


def defined(
    leaves: Sequence[Leaf],
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


def _value(tensor: te.Tensor, type: PTensorType, at: Lies | Turned | None) -> Value:
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
