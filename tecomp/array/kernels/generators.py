"""Arrays of generated values, computed when requested."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

from tecomp.array.graph.node import Node, empty, leaf, record, tracing, type_of
from tecomp.ptensor.devices import CPU, is_apart
from tecomp.ptensor.operations.creation import Creation
from tecomp.ptensor.operations.manipulation import ExtractSlice
from tecomp.ptensor.types import PART, Shape


def created(op: Creation, part: tuple[Shape, Shape] | None = None) -> Node:
    """What an operation makes of numbers: at once, if the processor does it.

    Numbers are no part of the kernel, so that nothing is compiled for others.

    Args:
        op: Operation.
        part: the extents of the part that is made, and its first index along each axis; if None,
            all is made.

    Raises:
        ArrayTypeError: it makes no such elements.
        ArrayValueError: there is no such number of elements.
    """
    type = type_of(op)
    if tracing.depth:
        return record(op) if part is None else record(_slice(*part), record(op))
    if is_apart(type.device):  # the host makes it, and brings it there when it is read
        made = created(replace(op, device=CPU), part)  # type: ignore[call-arg]
        assert made.data is not None
        return leaf(made.data, type if part is None else type.like(part[0]))
    if part is not None:
        type = type.like(part[0])
    result = empty(type)
    if type.size:
        parts = result[..., None].view(result.real.dtype) if type.dtype in PART else result
        first = () if part is None else part[1]
        # Loaded now: who makes no arrays of numbers does not wait for the compiler.
        import_module("tecomp.array.kernels.pointwise_kernels").fill(op, type.dtype, first, parts)
    return leaf(result, type)


def _slice(extents: Shape, first: Shape) -> ExtractSlice:
    return ExtractSlice(tuple([(k, 1, n) for k, n in zip(first, extents, strict=True)]))
