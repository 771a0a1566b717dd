"""Arrays of generated values, computed when they are created."""

from __future__ import annotations

from dataclasses import replace

from tecomp.array.graph.node import Node, empty, materialized_node, record, tracing, type_of
from tecomp.ptensor.devices import CPU, is_apart
from tecomp.ptensor.operations.creation import Creation
from tecomp.ptensor.operations.manipulation import ExtractSlice
from tecomp.ptensor.types import PART, Shape


def create_array(op: Creation, part: tuple[Shape, Shape] | None = None) -> Node:
    """Return the array of a creation operation, computed at once on the CPU.

    The numbers are kernel arguments, so other numbers reuse the kernel.

    Args:
        op: Creation operation.
        part: Extents of the part to create, and its first index along each axis; the whole array if
            None.

    Raises:
        ArrayTypeError: If the operation does not support the dtype.
        ArrayValueError: If the number of elements is not supported.
    """
    ptype = type_of(op)
    if tracing.depth:
        return record(op) if part is None else record(_slice(*part), record(op))
    if is_apart(ptype.device):  # computed on the host and copied to the device on first use
        host_array = create_array(replace(op, device=CPU), part)  # type: ignore[call-arg]
        assert host_array.data is not None
        return materialized_node(host_array.data, ptype if part is None else ptype.like(part[0]))
    if part is not None:
        ptype = ptype.like(part[0])
    result = empty(ptype)
    if ptype.size:
        parts = result[..., None].view(result.real.dtype) if ptype.dtype in PART else result
        first = () if part is None else part[1]
        # Import lazily: only creation functions need the compiler here.
        from tecomp.array.kernels.pointwise_kernels import fill

        fill(op, ptype.dtype, first, parts)
    return materialized_node(result, ptype)


def _slice(extents: Shape, first: Shape) -> ExtractSlice:
    return ExtractSlice(tuple([(k, 1, n) for k, n in zip(first, extents, strict=True)]))
