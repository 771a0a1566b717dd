"""Arrays of numbers, which kernels make as soon as they are asked for."""

from __future__ import annotations

from importlib import import_module

from tecomp.array.node import Node, empty, leaf, record, tracing, type_of
from tecomp.ptensor.operations.creation import Creation
from tecomp.ptensor.promotion import PART


def created(op: Creation) -> Node:
    """What an operation makes of numbers: at once, if the processor does it.

    Numbers are no part of the kernel, so that nothing is compiled for others.

    Raises:
        ArrayTypeError: it makes no such elements.
        ArrayValueError: there is no such number of elements.
    """
    type = type_of(op)
    if tracing.depth or type.device not in (None, "cpu"):
        return record(op)
    result = empty(type)
    if type.size:
        parts = result[..., None].view(result.real.dtype) if type.dtype in PART else result
        # Loaded now: who makes no arrays of numbers does not wait for the compiler.
        import_module("tecomp.array.number_kernels").fill(op, type.dtype, parts)
    return leaf(result, type)
