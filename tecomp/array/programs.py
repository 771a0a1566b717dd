"""Programs for pending operations at the shapes that they have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tecomp
from tecomp import te
from tecomp.array.counters import counters
from tecomp.array.graph import Pending, Step
from tecomp.array.node import Buffer, empty
from tecomp.ptensor.definitions import define
from tecomp.ptensor.promotion import PART
from tecomp.ptensor.types import PTensorType
from tecomp.ptensor.values import Complex, ComplexTensor, Value, value_of

_programs: dict[Any, Any] = {}


def run_program(work: Pending) -> None:
    """Compute what is wanted by one program, compiled for these shapes."""
    program = program_of(work)
    arrays = [_as_parts(node.data) for node in work.leaves if node.data is not None]
    outputs = [work.nodes[k] for k in work.outputs]
    buffers = [empty(node.type) for node in outputs]
    counters.called += 1
    program(*arrays, out=[_as_parts(buffer) for buffer in buffers])
    for node, buffer in zip(outputs, buffers, strict=True):
        node.computed(buffer)


def program_of(work: Pending) -> Any:
    """The program for pending operations, compiled when it is first asked for."""
    types = tuple([node.type for node in work.leaves])
    key = types, work.steps, work.outputs
    program = _programs.get(key)
    if program is None:
        results = [node.type for node in work.nodes]
        program = _programs[key] = _compiled(types, work.steps, work.outputs, results)
        counters.compiled += 1
    return program


def _as_parts(data: Buffer) -> Buffer:
    """Complex numbers as pairs of real ones."""
    if data.dtype.kind != "c":
        return data
    whole = data if data.flags.c_contiguous else data.copy()
    return whole[..., None].view(data.real.dtype)


def _compiled(
    leaves: Sequence[PTensorType],
    steps: Sequence[Step],
    outputs: Sequence[int],
    types: Sequence[PTensorType],
) -> Any:
    inputs = [_placeholder(type, f"x{k}") for k, type in enumerate(leaves)]
    at = [_parts(tensor, type) for tensor, type in zip(inputs, leaves, strict=True)]
    values: list[Value] = []
    for (op, operands), result in zip(steps, types, strict=True):
        given = [values[k] if k >= 0 else at[-1 - k] for k in operands]
        kinds = [types[k] if k >= 0 else leaves[-1 - k] for k in operands]
        values.append(define(op, given, kinds, result))
    device = types[0].device or "cpu"
    wanted = [_joined(values[k]) for k in outputs]
    return tecomp.compile(wanted, inputs, device, name="array")


def _placeholder(type: PTensorType, name: str) -> te.Tensor:
    part = PART.get(type.dtype)
    if part is None:
        return te.placeholder(type.shape, type.dtype, name=name)
    return te.placeholder((*type.shape, 2), part, name=name)


def _parts(tensor: te.Tensor, type: PTensorType) -> Value:
    if type.dtype not in PART:
        return tensor
    return value_of(type.shape, lambda *i: Complex(tensor(*i, 0), tensor(*i, 1)), tensor.name)


def _joined(value: Value) -> te.Tensor:
    if not isinstance(value, ComplexTensor):
        return value
    shape = value.re.shape
    return te.compute(
        (*shape, 2),
        lambda *i: te.select(i[-1] == 0, value.re(*i[:-1]), value.im(*i[:-1])),
        name="joined",
    )
