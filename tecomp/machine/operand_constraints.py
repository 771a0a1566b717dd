"""Vocabulary of operand constraints.

An operation is an innermost computation of one stage:

* `elementwise`: no reduction; every input is read once for an element of the output;
* `contraction`: a sum of products of two inputs, `a` and `b`, which share the reduced axes, and
  have different axes of the result;
* `reduction`: any other reduction;
* `copy`: an elementwise operation that is one read, or, where nothing else will do, one of several
  reads and numbers, as its indices say.

The *lanes* of an operand are the places of its last physical axis: of one stick, of one row of a
tile. A loop variable runs *along* them if consecutive values of it are at consecutive lanes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tecomp.machine.schema import Alignment, Count, MemoryName, Source

Operation = Literal["elementwise", "contraction", "reduction", "copy"]
Operand = Literal["a", "b", "inputs", "out"]
"""`a` and `b` are the factors of a contraction in the order of the expression; `inputs` are all."""


@dataclass(frozen=True, slots=True)
class LaneAccess:
    """What inputs may read while the output moves along its lanes.

    A reduction along the lanes of an input has terms in these lanes: they take the place of the
    output.

    Attributes:
        kind: `lane_access`.
        operation: what it is about.
        allowed: `consecutive`: the next lane of the same stick, the same offset in all sticks;
            `broadcast`: the same element; `lane_broadcast`: the same element, which is in one
            lane of all sticks; `gather`: anything that is known without data.
        source: where the rule comes from.
    """

    kind: Literal["lane_access"]
    operation: Operation
    allowed: tuple[Literal["consecutive", "broadcast", "lane_broadcast", "gather"], ...]
    source: Source


@dataclass(frozen=True, slots=True)
class SharedLanes:
    """Operands have the same axis along their lanes.

    Attributes:
        kind: `shared_lanes`.
        operation: what it is about.
        operands: those that share, where they have lanes at all (a broadcast has none).
        by: `loop`: the same loop variable runs along the lanes of all; `dimension`: the axis has
            the same number in the shapes of the tensors, counted from the last.
        axis: `reduced`: it is an axis that the operation sums over; `kept`: it is none; `any`.
        absent: `allowed`: an operand may have no axis along its lanes; `refused`: not where it has
            several elements along an axis that could lie there, as one element a stick has.
        exchange: `allowed`: where programs are laid out, factors of a product may be `a` and `b`
            in either order, as the product of matrices is that of the transposed ones, transposed;
            `refused`: they are in the order of the expression, if there is a way.
        source: where the rule comes from.
    """

    kind: Literal["shared_lanes"]
    operation: Operation
    operands: tuple[Operand, ...]
    by: Literal["loop", "dimension"]
    source: Source
    axis: Literal["reduced", "kept", "any"] = "any"
    absent: Literal["allowed", "refused"] = "allowed"
    exchange: Literal["allowed", "refused"] = "allowed"


@dataclass(frozen=True, slots=True)
class StickDensity:
    """Sticks of one element stay that, and full ones stay full: lanes and sticks are not exchanged.

    Attributes:
        kind: `stick_density`.
        operation: what it is about.
        source: where the rule comes from.
    """

    kind: Literal["stick_density"]
    operation: Operation
    source: Source


@dataclass(frozen=True, slots=True)
class LaneReduction:
    """What comes of a reduction over the axis along the lanes of an input.

    Attributes:
        kind: `lane_reduction`.
        operation: what it is about.
        result: `sparse`: one element to a stick, in lane 0; `dense`: as any other; `refused`.
        source: where the rule comes from.
    """

    kind: Literal["lane_reduction"]
    operation: Literal["contraction", "reduction"]
    result: Literal["sparse", "dense", "refused"]
    source: Source


@dataclass(frozen=True, slots=True)
class OperandRank:
    """Physical axes that operands have.

    Attributes:
        kind: `operand_rank`.
        operation: what it is about.
        operands: which.
        ranks: that they may have.
        source: where the rule comes from.
    """

    kind: Literal["operand_rank"]
    operation: Operation
    operands: tuple[Operand, ...]
    ranks: tuple[Count, ...]
    source: Source


@dataclass(frozen=True, slots=True)
class OperandAlignment:
    """Where in memory the first lane of an operand may be.

    Attributes:
        kind: `operand_alignment`.
        operation: what it is about.
        operands: which.
        offset_bytes: what the place of lane 0 of the output is a multiple of, in the operand.
        source: where the rule comes from.
    """

    kind: Literal["operand_alignment"]
    operation: Operation
    operands: tuple[Operand, ...]
    offset_bytes: Alignment
    source: Source


@dataclass(frozen=True, slots=True)
class OperandMemory:
    """Memories that operands are in.

    Attributes:
        kind: `operand_memory`.
        operation: what it is about.
        operands: which.
        memories: any of these.
        source: where the rule comes from.
    """

    kind: Literal["operand_memory"]
    operation: Operation
    operands: tuple[Operand, ...]
    memories: tuple[MemoryName, ...]
    source: Source


@dataclass(frozen=True, slots=True)
class OperandPadding:
    """What the padding of operands holds along an axis.

    Attributes:
        kind: `operand_padding`.
        operation: what it is about.
        operands: which.
        axis: along which axes: those that are summed over, or those that are kept.
        value: `neutral`: what adds nothing, such as 0 in a sum; `any`: it is masked.
        multiple_bytes: places along such an axis take a multiple of so many, where it runs along
            the lanes of another input; None for any number.
        source: where the rule comes from.
    """

    kind: Literal["operand_padding"]
    operation: Literal["contraction", "reduction"]
    operands: tuple[Operand, ...]
    axis: Literal["reduced", "kept"]
    value: Literal["neutral", "any"]
    source: Source
    multiple_bytes: Alignment | None = None


Rule = (
    LaneAccess | SharedLanes | StickDensity | LaneReduction | OperandRank | OperandAlignment
    | OperandMemory | OperandPadding
)
