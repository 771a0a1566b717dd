"""Rules about operands by themselves: their rank, memory and padding."""

from __future__ import annotations

from collections.abc import Iterator

from tecomp.compute.axis import IterVar
from tecomp.constraints.candidates import dims_of_lanes
from tecomp.constraints.operation import Computation, Use, padded_along, places_along
from tecomp.constraints.problem import Problem
from tecomp.ir.language.expr import Expr
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.machine.descriptor import Target
from tecomp.machine.rules import (
    OperandMemory,
    OperandPadding,
    OperandRank,
)


def operand_rank(rule: OperandRank, each: Computation) -> Iterator[Problem]:
    """Operands have some number of physical axes."""
    for operand in rule.operands:
        for use in each.named(operand):
            rank = len(use.layout.memory_shape)
            if rank not in rule.ranks:
                ranks = " or ".join(map(str, rule.ranks))
                yield Problem((use,), f"{use.name} has {rank} physical axes instead of {ranks}")


def memory_rank(use: Use, target: Target) -> str | None:
    """What is wrong with the number of physical axes for the memory that an operand is in."""
    memory = target.memory(use.layout.memory)
    rank = len(use.layout.memory_shape)
    if memory.takes(rank):
        return None
    return (
        f"{use.name} has {rank} physical axes, and memory `{memory.name}` of target {target.name} "
        f"takes {memory.rank}; use {memory.rank - 1} AXIS_SEPARATOR in its layout"
    )


def operand_memory(rule: OperandMemory, each: Computation) -> Iterator[Problem]:
    """Operands are in some memories."""
    for operand in rule.operands:
        for use in each.named(operand):
            if use.layout.memory not in rule.memories:
                yield Problem((use,), (
                    f"{use.name} is in memory {use.layout.memory}, and has to be in "
                    f"{' or '.join(rule.memories)}"
                ))


def operand_padding(rule: OperandPadding, each: Computation) -> Iterator[Problem]:
    """Places without an element hold what changes no result."""
    if rule.value == "any":
        return
    wanted = set(each.op.reduce_axis if rule.axis == "reduced" else each.op.axis)
    for operand in rule.operands:
        for use in each.named(operand):
            neutral = each.neutral_in(use.layout)
            dims = [d for d, index in enumerate(use.indices) if _is_along(index, wanted)]
            if (text := _no_multiple(rule, use, each)) is not None:
                yield Problem((use,), f"{text}, and has to be padded with {neutral}")
                continue
            if any(padded_along(use.layout, d) for d in dims) and use.layout.pad_value != neutral:
                yield Problem((use,), (
                    f"the padding of {use.name} along dimension {dims[0]} holds "
                    f"{'nothing known' if use.layout.pad_value is None else use.layout.pad_value}, "
                    f"and has to hold {neutral}"
                ))


def _no_multiple(rule: OperandPadding, use: Use, each: Computation) -> str | None:
    """What is wrong with the number of places along a dimension, where a rule wants a multiple."""
    if rule.multiple_bytes is None:
        return None
    for dim in dims_of_lanes(use, each, rule):
        places = places_along(use.layout, dim)
        size = None if places is None else places * use.layout.dtype.bytes
        if size is None or size % rule.multiple_bytes == 0 or use.layout.shape[dim] == 1:
            continue
        last = [0] * len(use.layout.shape)
        last[dim] = use.layout.shape[dim] - 1
        return (
            f"{use.name} has {places} places along dimension {dim}, {size} bytes, the last with "
            f"element {tuple(last)}; that is no multiple of {rule.multiple_bytes}"
        )
    return None


def _is_along(index: Expr, axes: set[IterVar]) -> bool:
    """Whether an index goes on only with some axes: a window beside others has no padding there."""
    used = free_variables(index)
    return bool(used) and all(var in axes for var in used)
