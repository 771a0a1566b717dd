"""Vocabulary of operand constraints.

An operation is the innermost computation of one stage:

* `elementwise`: no reduction; every input is read once per output element;
* `contraction`: a sum of products of two inputs, `a` and `b`, which share the reduced axes and
  have different axes of the result;
* `vector_product`: a contraction of factors whose dtypes no matrix unit of the target supports, so
  that vectors compute it; without rules for it, the rules for contractions apply;
* `reduction`: any other reduction;
* `copy`: an element-wise operation that consists of one read or, as a last resort, that selects
  between several reads and constants by conditions on indices.

The *lanes* of an operand are the positions along its last physical axis: within a stick, or
within a row of a tile. A loop variable runs *along* the lanes if consecutive values access
consecutive lanes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tecomp.machine.schema import Alignment, Count, MemoryName, Source

Operation = Literal["elementwise", "contraction", "vector_product", "reduction", "copy"]
Operand = Literal["a", "b", "inputs", "out"]
"""`a` and `b` are the factors of a contraction in the order of the expression; `inputs` are all."""


@dataclass(frozen=True, slots=True)
class LaneAccess:
    """Permitted accesses of inputs while the output advances along its lanes.

    If a reduction runs along the lanes of an input, the terms of the reduction take the place of
    the output.

    Attributes:
        kind: `lane_access`.
        operation: Constrained operation.
        allowed: `consecutive`: the next lane of the same stick, at the same offset in all sticks;
            `broadcast`: the same element; `lane_broadcast`: the same element, which is in the same
            lane of all sticks; `gather`: any data-independent access.
        source: Source of the rule.
    """

    kind: Literal["lane_access"]
    operation: Operation
    allowed: tuple[Literal["consecutive", "broadcast", "lane_broadcast", "gather"], ...]
    source: Source


@dataclass(frozen=True, slots=True)
class SharedLanes:
    """Requirement that operands have the same axis along their lanes.

    Attributes:
        kind: `shared_lanes`.
        operation: Constrained operation.
        operands: Operands that share the axis, if they have lanes (a broadcast has none).
        by: `loop`: the same loop variable runs along the lanes of all; `dimension`: the axis has
            the same number in the tensor shapes, counted from the last.
        axis: `reduced`: the axis is a reduction axis of the operation; `kept`: it is not; `any`.
        absent: `allowed`: an operand may have no axis along its lanes; `refused`: it may not if it
            has several elements along an axis that could be there, as in sticks of one element.
        exchange: `allowed`: layout assignment may exchange the factors `a` and `b` of a product,
            because a matrix product is the transpose of the product of the transposed factors;
            `refused`: the order of the expression is kept if that is feasible.
        source: Source of the rule.
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
    """Requirement that sticks stay sparse or dense: lanes and sticks are not exchanged.

    Attributes:
        kind: `stick_density`.
        operation: Constrained operation.
        source: Source of the rule.
    """

    kind: Literal["stick_density"]
    operation: Operation
    source: Source


@dataclass(frozen=True, slots=True)
class LaneReduction:
    """Result of a reduction over the axis along the lanes of an input.

    Attributes:
        kind: `lane_reduction`.
        operation: Constrained operation.
        result: `sparse`: one element per stick, in lane 0; `dense`: as any other result; `refused`.
        source: Source of the rule.
    """

    kind: Literal["lane_reduction"]
    operation: Literal["contraction", "reduction"]
    result: Literal["sparse", "dense", "refused"]
    source: Source


@dataclass(frozen=True, slots=True)
class OperandRank:
    """Supported numbers of physical axes of operands.

    Attributes:
        kind: `operand_rank`.
        operation: Constrained operation.
        operands: Constrained operands.
        ranks: Supported numbers of physical axes.
        source: Source of the rule.
    """

    kind: Literal["operand_rank"]
    operation: Operation
    operands: tuple[Operand, ...]
    ranks: tuple[Count, ...]
    source: Source


@dataclass(frozen=True, slots=True)
class OperandAlignment:
    """Alignment of the first lane of operands.

    Attributes:
        kind: `operand_alignment`.
        operation: Constrained operation.
        operands: Constrained operands.
        offset_bytes: Alignment of the operand address that corresponds to lane 0 of the output.
        source: Source of the rule.
    """

    kind: Literal["operand_alignment"]
    operation: Operation
    operands: tuple[Operand, ...]
    offset_bytes: Alignment
    source: Source


@dataclass(frozen=True, slots=True)
class OperandMemory:
    """Supported memories of operands.

    Attributes:
        kind: `operand_memory`.
        operation: Constrained operation.
        operands: Constrained operands.
        memories: Supported memories.
        source: Source of the rule.
    """

    kind: Literal["operand_memory"]
    operation: Operation
    operands: tuple[Operand, ...]
    memories: tuple[MemoryName, ...]
    source: Source


@dataclass(frozen=True, slots=True)
class OperandPadding:
    """Requirement on the padding of operands along some axes.

    Attributes:
        kind: `operand_padding`.
        operation: Constrained operation.
        operands: Constrained operands.
        axis: Constrained axes: `reduced` axes or `kept` axes.
        value: `neutral`: the neutral element of the reduction, such as 0 in a sum; `any`: padding
            is masked.
        multiple_bytes: Byte multiple to which such an axis is padded if it runs along the lanes of
            another input; None for any size.
        source: Source of the rule.
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
