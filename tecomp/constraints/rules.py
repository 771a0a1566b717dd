"""Decide the constraints on lanes and operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tecomp.compute.iter_var import IterVar
from tecomp.constraints.operation_view import (
    AnalyzedOperation,
    OperandUse,
    has_padding_along,
    physical_extent_along,
)
from tecomp.ir.nodes.expr import Expr, Var
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.machine.descriptor import Target
from tecomp.machine.operand_constraints import (
    LaneAccess,
    LaneReduction,
    OperandAlignment,
    OperandMemory,
    OperandPadding,
    OperandRank,
    SharedLanes,
    StickDensity,
)
from tecomp.poly.accesses.lane_access import (
    LaneAddresses,
    Pair,
    find_stick_conflict,
    find_unaligned_point,
    has_lanes,
    has_one_element_per_stick,
    not_broadcast,
    not_consecutive,
    not_in_one_lane,
)
from tecomp.poly.accesses.tiles import values_at


@dataclass(frozen=True)
class ConstraintFailure:
    """Operands that violate a rule, and the reason.

    Attributes:
        uses: Operands.
        reason_or_text: Reason, or a function that formats it on demand.
    """

    uses: tuple[OperandUse, ...]
    reason_or_text: str | Callable[[], str]

    @property
    def reason(self) -> str:
        """Reason for the violation."""
        return (
            self.reason_or_text if isinstance(self.reason_or_text, str) else self.reason_or_text()
        )

    @property
    def key(self) -> tuple[object, ...]:
        """Key that is equal for violations with the same operands and reason."""
        return self.names, self.reason

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tensors, without duplicates."""
        return tuple(dict.fromkeys(use.name for use in self.uses))


def format_axes(axes: Sequence[Var]) -> str:
    """Format the names of axes."""
    return ", ".join(axis.name for axis in axes)


def at_place(index: Sequence[int]) -> str:
    """Format a physical index for messages."""
    return f"[{', '.join(map(str, index))}]"


def at_point(point: Mapping[Var, int]) -> str:
    """Format an index with the names of its axes for messages."""
    return "(" + ", ".join(f"{var.name}={value}" for var, value in point.items()) + ")"


def format_two_indices(pair: Pair) -> str:
    """Format two indices for messages."""
    return f"{at_point(pair[0])} and {at_point(pair[1])}"


def lane_access(rule: LaneAccess, view: AnalyzedOperation) -> Iterator[ConstraintFailure]:
    """Check that the lanes of the result access each input as the rule allows.

    The terms of a reduction have the lanes of an input, and all other inputs must match that input.
    The result has no lanes if the reduction runs along them. Otherwise the result has the lanes of
    the terms, and may have a dtype of another size.
    """
    for use in view.inputs:
        if (text := _read_across_lanes(use, view)) is not None:
            yield ConstraintFailure((use,), text)
            return
    if "gather" in rule.allowed:
        return
    is_reduction = view.kind == "reduction"
    if is_reduction:
        reduced = reduced_along_lanes(view)
        models = reduced or [use for use in view.inputs if _lane_axes(use)]
        if (problem := _terms_across_lanes(rule, view, models)) is not None:
            yield problem
        if reduced or problem is not None:
            return
    for use in view.inputs:
        pair = _across_lanes(rule, view.out.addresses, use.addresses, len(view.op.axis))
        if pair is not None and not (is_reduction and _is_converted(use, view.out)):
            yield ConstraintFailure((use,), partial(_lanes_text, rule, use, view, pair))


def _is_converted(use: OperandUse, out: OperandUse) -> bool:
    """Return whether an operand has the lanes of the result, in sticks of another size."""
    sizes = {operand.layout.physical_shape[-1:] for operand in (use, out)}
    return len(sizes) > 1 and bool(_lane_axes(use)) and _lane_axes(use) == _lane_axes(out)


def _across_lanes(
    rule: LaneAccess, lanes: LaneAddresses, read: LaneAddresses, n_kept: int
) -> Pair | None:
    """Return two points that show that the lanes read an operand in a forbidden way, or None."""
    pair = not_consecutive(lanes, read, n_kept)
    if pair is None and "consecutive" in rule.allowed:
        return None
    if has_lanes(lanes, n_kept):
        other = _not_repeated(rule, lanes, read, n_kept)
        if other is None and {"broadcast", "lane_broadcast"} & set(rule.allowed):
            return None
        pair = pair or other
    return pair


def _not_repeated(
    rule: LaneAccess, lanes: LaneAddresses, read: LaneAddresses, n_kept: int
) -> Pair | None:
    """Return two points that show that the lanes do not read one element as required, or None."""
    pair = not_broadcast(lanes, read, n_kept)
    if pair is None and "broadcast" not in rule.allowed:
        return not_in_one_lane(read)
    return pair


def reduced_along_lanes(view: AnalyzedOperation) -> list[OperandUse]:
    """Return the inputs with a reduced axis along their lanes."""
    n_result = len(view.op.axis)
    return [
        use for use in view.inputs
        if any(use.addresses.runs_along(k) for k in range(n_result, len(view.axes)))
    ]


def _terms_across_lanes(
    rule: LaneAccess, view: AnalyzedOperation, models: Sequence[OperandUse]
) -> ConstraintFailure | None:
    """Return the inputs of a reduction whose lanes do not match, or None.

    An input in `models` defines the lanes of the terms; if all other inputs match any of these,
    there is no problem.
    """
    first: ConstraintFailure | None = None
    for model in models:
        terms = _terms_like(model.addresses, len(view.axes))
        pairs = (
            (use, _across_lanes(rule, terms, use.addresses, len(view.axes)))
            for use in view.inputs if use is not model
        )
        found = next(((use, pair) for use, pair in pairs if pair is not None), None)
        if found is None:
            return None
        use, pair = found
        uses = model, use
        first = first or ConstraintFailure(uses, partial(_terms_text, rule, uses, terms, pair))
    return first


def _terms_like(addresses: LaneAddresses, n_axes: int) -> LaneAddresses:
    """Return the accesses of the reduction terms: one per point, with the lanes of an operand."""

    def terms() -> LaneAddresses:
        lane_axes = addresses.parts[-1][1]
        others = (axis for axis in addresses.axes[:n_axes] if axis not in lane_axes)
        return LaneAddresses(addresses.axes, addresses.extents, (*others, *addresses.exprs))

    return addresses.get_or_compute(("terms", n_axes), terms)


def _read_across_lanes(use: OperandUse, view: AnalyzedOperation) -> str | None:
    """Return the problem if lane accesses are data-dependent, else None."""
    lane = free_variables(use.addresses.exprs[-1]) if use.addresses.exprs else set()
    lane_axes = [axis for k, axis in enumerate(view.op.axis) if view.out.addresses.runs_along(k)]
    for unknown in view.unknown:
        if not any(unknown.var in free_variables(index) for index in use.indices):
            continue
        if unknown.var in lane:
            return f"which lane of {use.name} it reads depends on `{unknown.var.name}` only"
        used = {var for index in unknown.load.indices for var in free_variables(index)}
        if any(axis in used for axis in lane_axes):
            return (
                f"each of its lanes reads a different address of {use.name}, which "
                f"depends on `{unknown.var.name}` only"
            )
    return None


def _lanes_text(rule: LaneAccess, use: OperandUse, view: AnalyzedOperation, pair: Pair) -> str:
    out = view.out
    writes, reads = _places_at(out, pair), _places_at(use, pair)
    return (
        f"its elements at {format_two_indices(pair)} are at {writes[0]} and {writes[1]}, "
        f"and those of {use.name} that they read at {reads[0]} and {reads[1]}, which are neither "
        "the next lane of one stick, at one offset in all sticks, nor one element"
        + _one_lane_text(rule, out.addresses, use.addresses, len(view.op.axis))
    )


def _terms_text(
    rule: LaneAccess, uses: tuple[OperandUse, OperandUse], terms: LaneAddresses, pair: Pair
) -> str:
    model, use = uses
    ref, other = _places_at(model, pair), _places_at(use, pair)
    return (
        f"its terms at {format_two_indices(pair)} read {model.name} at {ref[0]} and {ref[1]}, "
        "and "
        f"{use.name} at {other[0]} and {other[1]}; operands of a reduction along lanes must read "
        "the next lane of one stick, at one offset in all sticks, or one element"
        + _one_lane_text(rule, terms, use.addresses, len(terms.axes))
    )


def _places_at(use: OperandUse, pair: Pair) -> list[str]:
    return [at_place(values_at(use.addresses.exprs, use.addresses.space, point)) for point in pair]


def _one_lane_text(rule: LaneAccess, lanes: LaneAddresses, read: LaneAddresses, n_kept: int) -> str:
    is_broadcast = not_broadcast(lanes, read, n_kept) is None and "lane_broadcast" in rule.allowed
    return " in one lane of all sticks" if is_broadcast else ""


def shared_lanes(rule: SharedLanes, view: AnalyzedOperation) -> Iterator[ConstraintFailure]:
    """Check that operands have the same axis, or the same dimension, along their lanes."""
    uses = [use for operand in rule.operands for use in view.named(operand)]
    reduced = set(view.op.reduce_axis)
    needed = _constrained_axes(rule, view, uses)
    found = []
    for use in uses:
        if needed and rule.absent == "refused" and (pair := _sparse_along(use, needed)) is not None:
            yield ConstraintFailure((use,), partial(_absent_text, use, pair, needed, view))
            continue
        loops = [axis for k, axis in enumerate(view.axes) if use.addresses.runs_along(k)]
        dims = _dimensions(use, view)
        if rule.axis != "any" and any((axis in reduced) != (rule.axis == "reduced")
                                      for axis in loops):  # fmt: skip
            kind = "sums over" if rule.axis == "reduced" else "keeps"
            yield ConstraintFailure((use,), (
                f"{use.name} has {format_axes(loops)} along its lanes, but it must be an axis "
                "that "
                f"{view.op.name} {kind}"
            ))
            continue
        found.append((use, [a.name for a in loops] if rule.by == "loop" else dims))
    present = [(use, axes) for use, axes in found if axes]
    if len({tuple(axes) for _, axes in present}) <= 1:
        return
    noun = "axis" if rule.by == "loop" else "dimension"
    texts = [f"{use.name} has {noun} {', '.join(map(str, axes))}" for use, axes in present]
    yield ConstraintFailure(
        tuple(use for use, _ in present),
        f"{' and '.join(texts)} along its lanes; they must be the same",
    )


def _absent_text(
    use: OperandUse, pair: Pair, needed: Sequence[IterVar],
    view: AnalyzedOperation,
) -> str:
    text = _one_to_a_stick(use, pair)
    if use is view.out:
        return f"{text}; it must have {format_axes(needed)} along its lanes"
    return (
        f"{text}; it requires full sticks of {format_axes(needed)}, which no relayout "
        "produces, so compute it in full sticks"
    )


def _dimensions(use: OperandUse, view: AnalyzedOperation) -> list[int]:
    """Return the dimensions along the lanes of an operand, counted from the last.

    Dimensions of a contraction factor are numbered as in a matrix product, regardless of their
    order in the tensor: the reduced axis is the last dimension of `a` and the second last of `b`.
    """
    if view.kind != "contraction" or use is view.out:
        return [dim - len(use.layout.shape) for dim in use.dims_along_lanes()]
    is_first = use is view.inputs[0]
    reduced = set(view.op.reduce_axis)
    shared_vars = set.intersection(*(
        {var for index in operand.indices for var in free_variables(index)}
        for operand in view.inputs
    ))
    found = []
    for axis in _lane_axes(use):
        if axis not in reduced and axis in shared_vars:
            found.append(-3)
        else:
            found.append(-1 if (axis in reduced) == is_first else -2)
    return found


def _constrained_axes(
    rule: SharedLanes, view: AnalyzedOperation, uses: Sequence[OperandUse]
) -> list[IterVar]:
    """Return the axes of the kind a rule names along which every operand has several elements."""
    if rule.axis == "any":
        return []
    axes = view.op.reduce_axis if rule.axis == "reduced" else view.op.axis
    return [
        axis for axis in axes
        if all(axis in _several(use) for use in uses)
    ]


def _several(use: OperandUse) -> set[Var]:
    """Return the axes along which an operand has several elements."""
    extents = dict(zip(use.addresses.axes, use.addresses.extents, strict=True))
    used = {var for index in use.indices for var in free_variables(index)}
    return {var for var in used if extents.get(var, 1) > 1}


def _is_sparse(use: OperandUse) -> bool:
    """Return whether each stick contains only one of several elements.

    In a dense stick, an axis runs along the lanes, possibly backwards or with a stride.
    """
    lanes = use.layout.physical_shape[-1] if use.layout.physical_shape else 1
    return lanes > 1 and bool(_several(use)) and not _lane_axes(use) and has_one_element_per_stick(
        use.addresses)


def _lane_axes(use: OperandUse) -> list[Var]:
    """Return the axes along the lanes of an operand."""
    return [axis for k, axis in enumerate(use.addresses.axes) if use.addresses.runs_along(k)]


def _sparse_along(
    use: OperandUse, axes: Sequence[Var]
) -> tuple[Mapping[Var, int], Mapping[Var, int]] | None:
    """Return two neighbours along the first axis if each stick has one element, else None."""
    if not axes or not _is_sparse(use):
        return None
    first = dict.fromkeys(use.addresses.axes, 0)
    return first, {**first, axes[0]: 1}


def _one_to_a_stick(use: OperandUse, pair: Pair) -> str:
    first, second = (
        at_place(values_at(use.addresses.exprs, use.addresses.space, point)) for point in pair
    )
    return (
        f"{use.name} has one element per stick: those at {format_two_indices(pair)} "
        f"are at {first} and {second}"
    )


def stick_density(rule: StickDensity, view: AnalyzedOperation) -> Iterator[ConstraintFailure]:
    """Check that inputs and result are either all dense or all have one element per stick."""
    for use in view.inputs:
        sparse, full = (use, view.out) if _is_sparse(use) else (view.out, use)
        axes = [axis for axis in _lane_axes(full) if axis in _several(sparse) & _several(full)]
        if (pair := _sparse_along(sparse, axes)) is None:
            continue
        makes = "gathers elements of several sticks into one" if sparse is use else (
            "scatters the elements of one stick to several")
        yield ConstraintFailure(
            (use, view.out), partial(_density_text, sparse, pair, full, axes, makes)
        )


def _density_text(
    sparse: OperandUse, pair: Pair, full: OperandUse,
    axes: Sequence[Var], makes: str,
) -> str:
    return (
        f"{_one_to_a_stick(sparse, pair)}, and {full.name} has {format_axes(axes)} along its "
        "lanes; "
        f"nothing {makes}, so compute both in full sticks"
    )


def lane_reduction(rule: LaneReduction, view: AnalyzedOperation) -> Iterator[ConstraintFailure]:
    """Check the result of a reduction along lanes."""
    reduced = reduced_along_lanes(view)
    if not reduced or rule.result == "dense":
        return
    name = reduced[0].name
    if rule.result == "refused":
        yield ConstraintFailure(
            (reduced[0],), f"it reduces along the lanes of {name}, which is not supported"
        )
        return
    pair = find_stick_conflict(view.out.addresses)
    if pair is None:
        return
    first, second = (
        at_place(values_at(view.out.addresses.exprs, view.out.addresses.space, point))
        for point in pair
    )
    yield ConstraintFailure((view.out,), (
        f"it reduces along the lanes of {name}, so that each stick of {view.out.name} has one "
        f"element, in lane 0; those at {format_two_indices(pair)} are at {first} and "
        f"{second}"
    ))


def operand_alignment(rule: OperandAlignment, view: AnalyzedOperation) -> Iterator[
        ConstraintFailure]:
    """Check that the element that lane 0 of the result reads has an aligned byte offset."""
    n_result = len(view.op.axis)
    for operand in rule.operands:
        for use in view.named(operand):
            offset, residual = use.byte_offset(), use.byte_offset(rule.offset_bytes)
            same_lanes = any(
                use.addresses.runs_along(k) and view.out.addresses.runs_along(k)
                for k in range(n_result)
            )
            if offset is None or residual is None or not same_lanes:
                continue
            point = find_unaligned_point(view.out.addresses, residual, rule.offset_bytes)
            if point is not None:
                pos = values_at([offset], view.out.addresses.space, point)[0]
                yield ConstraintFailure((use,), (
                    f"lane 0 of {view.out.name} at {at_point(point)} has byte {pos} of {use.name}, "
                    f"which is not a multiple of {rule.offset_bytes}"
                ))


def operand_rank(rule: OperandRank, view: AnalyzedOperation) -> Iterator[ConstraintFailure]:
    """Check the number of physical axes of operands."""
    for operand in rule.operands:
        for use in view.named(operand):
            rank = len(use.layout.memory_shape)
            if rank not in rule.ranks:
                ranks = " or ".join(map(str, rule.ranks))
                yield ConstraintFailure(
                    (use,), f"{use.name} has {rank} physical axes instead of {ranks}"
                )


def memory_rank(use: OperandUse, target: Target) -> str | None:
    """Return the problem if the memory of an operand does not support its rank, else None."""
    memory = target.memory(use.layout.memory)
    rank = len(use.layout.memory_shape)
    if memory.takes(rank):
        return None
    return (
        f"{use.name} has {rank} physical axes, but memory `{memory.name}` of target {target.name} "
        f"takes {memory.rank}; use {memory.rank - 1} AXIS_SEPARATOR in its layout"
    )


def operand_memory(rule: OperandMemory, view: AnalyzedOperation) -> Iterator[ConstraintFailure]:
    """Check the memories of operands."""
    for operand in rule.operands:
        for use in view.named(operand):
            if use.layout.memory not in rule.memories:
                yield ConstraintFailure((use,), (
                    f"{use.name} is in memory {use.layout.memory}, but must be in "
                    f"{' or '.join(rule.memories)}"
                ))


def operand_padding(rule: OperandPadding, view: AnalyzedOperation) -> Iterator[ConstraintFailure]:
    """Check that the padding of operands contains values that do not affect the result."""
    if rule.value == "any":
        return
    rule_axes = set(view.op.reduce_axis if rule.axis == "reduced" else view.op.axis)
    for operand in rule.operands:
        for use in view.named(operand):
            neutral = view.neutral_in(use.layout)
            dims = [d for d, index in enumerate(use.indices) if _is_along(index, rule_axes)]
            if (text := _no_multiple(rule, use, view)) is not None:
                yield ConstraintFailure((use,), f"{text}, and must be padded with {neutral}")
                continue
            if any(has_padding_along(use.layout, d) for d
                    in dims) and use.layout.pad_value != neutral:
                yield ConstraintFailure((use,), (
                    f"the padding of {use.name} along dimension {dims[0]} holds "
                    f"{'undefined data' if use.layout.pad_value is None else use.layout.pad_value}"
                    f", but must hold {neutral}"
                ))


def _no_multiple(rule: OperandPadding, use: OperandUse, view: AnalyzedOperation) -> str | None:
    """Return the problem if a dimension is not padded to the required multiple, else None."""
    if rule.multiple_bytes is None:
        return None
    for dim in dims_of_lanes(use, view, rule):
        count = physical_extent_along(use.layout, dim)
        size = None if count is None else count * use.layout.dtype.bytes
        if size is None or size % rule.multiple_bytes == 0 or use.layout.shape[dim] == 1:
            continue
        last = [0] * len(use.layout.shape)
        last[dim] = use.layout.shape[dim] - 1
        return (
            f"{use.name} has {count} places along dimension {dim}, {size} bytes, the last with "
            f"element {tuple(last)}; that is not a multiple of {rule.multiple_bytes}"
        )
    return None


def _is_along(index: Expr, axes: set[IterVar]) -> bool:
    """Return whether an index depends on variables in `axes` only.

    An index that also depends on other axes, such as that of a sliding window, has no padding along
    `axes`.
    """
    used = free_variables(index)
    return bool(used) and all(var in axes for var in used)


def dims_of_lanes(use: OperandUse, view: AnalyzedOperation, rule: OperandPadding) -> list[int]:
    """Return the dimensions of an operand along rule axes that are lanes of another operand."""
    rule_axes = set(view.op.reduce_axis if rule.axis == "reduced" else view.op.axis)
    lanes = {
        axis for other in view.inputs if other is not use
        for k, axis in enumerate(view.axes) if axis in rule_axes and other.addresses.runs_along(k)
    }
    return [
        dim for dim, index in enumerate(use.indices)
        if any(var in lanes for var in free_variables(index))
    ]
