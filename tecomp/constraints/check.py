"""Rules of a machine about operands, decided for an operation or for all of a schedule.

A rule asks how lanes of operands go together: isl says whether consecutive lanes of the result read
consecutive lanes of one stick, one element, or anything else. What does not keep a rule is told
with points that show it and, where another layout of one operand would do, with that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tecomp.compute.axis import IterVar
from tecomp.compute.define import compute, placeholder
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.tensor import Tensor
from tecomp.constraints.candidates import candidates, dims_of_lanes
from tecomp.constraints.operation import Computation, Use, computation, padded_along, places_along
from tecomp.constraints.scheduled import scheduled
from tecomp.errors import LayoutError
from tecomp.ir.expr import Expr, Var
from tecomp.ir.given import check_kind
from tecomp.ir.rewrite import free_variables
from tecomp.layout.descriptions.layout import Layout
from tecomp.machine.descriptor import Target
from tecomp.machine.rules import (
    LaneAccess,
    LaneReduction,
    OperandAlignment,
    OperandMemory,
    OperandPadding,
    OperandRank,
    Rule,
    SharedLanes,
    StickDensity,
)
from tecomp.poly.affine import NotAffine
from tecomp.poly.context import isl_work
from tecomp.poly.lanes import (
    has_lanes,
    not_alone,
    not_broadcast,
    not_consecutive,
    unaligned,
)
from tecomp.poly.tiles import values_at
from tecomp.scheduling.schedule import Schedule


@dataclass(frozen=True)
class Violation:
    """A rule that an operation does not keep.

    Attributes:
        rule: of the target; None for the rank of a memory.
        operation: the name of what is computed.
        operands: the names of the tensors that do not go together.
        message: what is wrong, with a point that shows it.
        relayout: the tensor, by name, whose other layout would mend it; None if none would do
            alone.
        layout: that layout.
    """

    rule: Rule | None
    operation: str
    operands: tuple[str, ...]
    message: str
    relayout: str | None = None
    layout: Layout | None = None

    def __str__(self) -> str:
        if self.relayout is None or self.layout is None:
            return self.message
        return f"{self.message}; {self.relayout} as {self.layout.index_map} would do"


@dataclass(frozen=True)
class _Problem:
    """What a rule finds: the operands, and why."""

    uses: tuple[Use, ...]
    why: str

    @property
    def key(self) -> tuple[object, ...]:
        """What two that say the same have in common."""
        return self.names, self.why

    @property
    def names(self) -> tuple[str, ...]:
        """Of the tensors."""
        return tuple(dict.fromkeys(use.name for use in self.uses))


def check_constraints(
    what: Schedule | Operation | Tensor,
    target: str | Target,
    layouts: Mapping[Tensor, Layout] | None = None,
) -> tuple[Violation, ...]:
    """What a target's rules say against the operands of an operation, or of all of a schedule.

    Args:
        what: a schedule, with the layouts and memories that it says; or an operation or its tensor.
        target: the machine.
        layouts: of tensors; more than what a schedule says. Others lie in the order of NumPy.

    Raises:
        LayoutError: a shape is not known, or a layout cannot be decided about.
        TargetError: there is no such target, or it has no such memory.

    Example:
        >>> from tecomp import StickLayout, te
        >>> A, B = (te.placeholder((128, 128), "float16", name=name) for name in "AB")
        >>> C = te.compute((128, 128), lambda i, j: A[i, j] + B[j, i], name="C")
        >>> rows = StickLayout((128, 128), "float16")
        >>> (found,) = check_constraints(C, "stick128", {A: rows, B: rows, C: rows})
        >>> found.operands, found.relayout, found.layout.dim_map
        (('B',), 'B', [0, 1, 0])
    """
    machine = target if isinstance(target, Target) else Target.load(target)
    check_kind(
        layouts, Mapping | None, "check_constraints: layouts", "give a layout for each tensor",
        LayoutError,
    )
    given = dict(layouts or {})
    for tensor in given:
        if not isinstance(tensor, Tensor):
            raise LayoutError(f"check_constraints: {tensor!r} is no tensor that has a layout")
    found: list[Violation] = []
    with isl_work("check_constraints", LayoutError):
        for each in _computations(what, given):
            try:
                found += _violations(each, machine)
            except NotAffine as error:
                raise LayoutError(
                    f"check_constraints: `{error.args[0]}` in {each.op.name} or a layout of its "
                    "operands is no affine function, so lanes cannot be compared"
                ) from None
    return tuple(found)


def _computations(
    what: Schedule | Operation | Tensor, layouts: Mapping[Tensor, Layout]
) -> Iterator[Computation]:
    if isinstance(what, Schedule):
        for op, body, own in scheduled(what):
            yield computation(op, body, {**own, **layouts})
        return
    single = what.op if isinstance(what, Tensor) else what
    if not isinstance(single, ComputeOp):
        raise LayoutError(
            f"check_constraints: expected a schedule or what te.compute gives, got {what!r}"
        )
    yield computation(single, single.body[0], layouts)


def _violations(each: Computation, target: Target) -> Iterator[Violation]:
    name = each.op.name
    for use in {use.tensor: use for use in each.uses}.values():
        if (why := _rank(use, target)) is not None:
            yield Violation(None, name, (use.name,), f"{name}: {why}")
    rules = [rule for rule in target.rules if rule.operation == each.kind]
    for rule in rules:
        for problem in {p.key: p for p in _problems(rule, each)}.values():
            mended = _mended(rule, rules, each, problem, target)
            yield Violation(
                rule, name, problem.names, f"{name}: {problem.why}",
                *((None, None) if mended is None else (mended[0].name, mended[1])),
            )


def _mended(
    rule: Rule, rules: Sequence[Rule], each: Computation, problem: _Problem, target: Target
) -> tuple[Tensor, Layout] | None:
    """The layout of one operand that would do, and that the machine can bring it to.

    Of several the one that leaves the fewest other problems, and then that of fewest elements.
    """
    best: tuple[tuple[int, int], Tensor, Layout] | None = None
    for use in dict.fromkeys(problem.uses):
        for layout in candidates(use, each, rule):
            changed = each.with_layout(use.tensor, layout)
            left = _problems(rule, changed)
            if any(other.names == problem.names or use.name in other.names for other in left):
                continue
            if use.tensor != each.out.tensor and not _can_copy(use, layout, target):
                continue
            count = sum(len(_problems(other, changed)) for other in rules)
            cost = count, prod(layout.shape)
            if best is None or cost < best[0]:
                best = cost, use.tensor, layout
    return None if best is None else best[1:]


def _can_copy(use: Use, layout: Layout, target: Target) -> bool:
    """Whether the machine's rules let it bring an operand to another layout."""
    source = placeholder(use.layout.shape, use.tensor.dtype, use.name)
    copy = compute(use.layout.shape, lambda *i: source[i if i else ()], name="copy")
    assert isinstance(copy, Tensor)
    assert isinstance(copy.op, ComputeOp)
    moved = computation(copy.op, copy.op.body[0], {source: use.layout, copy: layout})
    return not any(
        _problems(rule, moved) for rule in target.rules if rule.operation == moved.kind
    )


def _problems(rule: Rule, each: Computation) -> list[_Problem]:
    decide: Callable[[Any, Computation], Iterator[_Problem]] = _DECIDE[type(rule)]
    return list(decide(rule, each))


def _lane_access(rule: LaneAccess, each: Computation) -> Iterator[_Problem]:
    for use in each.inputs:
        if (text := _read_across_lanes(use, each)) is not None:
            yield _Problem((use,), text)
            return
    if "gather" in rule.allowed:
        return
    kept = len(each.op.axis)
    for use in each.inputs:
        pair = not_consecutive(each.out.places, use.places, kept)
        if pair is None and "consecutive" in rule.allowed:
            continue
        if "broadcast" in rule.allowed and has_lanes(each.out.places, kept):
            other = not_broadcast(each.out.places, use.places, kept)
            if other is None:
                continue
            pair = pair or other
        if pair is not None:
            yield _Problem((use,), _lanes_text(use, each, pair))


def _read_across_lanes(use: Use, each: Computation) -> str | None:
    """What is wrong where data say which lane is read, or what each of the lanes reads."""
    lane = free_variables(use.places.exprs[-1]) if use.places.exprs else set()
    along = [axis for k, axis in enumerate(each.op.axis) if each.out.places.runs_along(k)]
    for unknown in each.unknown:
        if not any(unknown.var in free_variables(index) for index in use.indices):
            continue
        if unknown.var in lane:
            return f"which lane of {use.name} it reads is known from `{unknown.var.name}` only"
        used = {var for index in unknown.load.indices for var in free_variables(index)}
        if any(axis in used for axis in along):
            return (
                f"each of its lanes reads from another place of {use.name}, known from "
                f"`{unknown.var.name}` only"
            )
    return None


def _lanes_text(
    use: Use, each: Computation, pair: tuple[Mapping[Var, int], Mapping[Var, int]]
) -> str:
    out = each.out
    ours, theirs = (
        [_place(values_at(u.places.exprs, out.places.space, p)) for p in pair]
        for u in (out, use)
    )
    return (
        f"its elements at {_point(pair[0])} and {_point(pair[1])} are at {ours[0]} and {ours[1]}, "
        f"and those of {use.name} that they read at {theirs[0]} and {theirs[1]}, which are neither "
        "the next lane of one stick, at one offset in all sticks, nor one element"
    )


def _shared_lanes(rule: SharedLanes, each: Computation) -> Iterator[_Problem]:
    uses = [use for operand in rule.operands for use in each.named(operand)]
    reduced = set(each.op.reduce_axis)
    wanted = _wanted(rule, each, uses)
    found = []
    for use in uses:
        if wanted and rule.absent == "refused" and (pair := _sparse_along(use, wanted)) is not None:
            yield _Problem((use,), (
                f"{_one_to_a_stick(use, pair)}; it takes full sticks of {_names(wanted)}, and no "
                "copy makes those of others, so compute it in full sticks"
                if use is not each.out else
                f"{_one_to_a_stick(use, pair)}; it has to have {_names(wanted)} along its lanes"
            ))
            continue
        loops = [axis for k, axis in enumerate(each.axes) if use.places.runs_along(k)]
        dims = [dim - len(use.layout.shape) for dim in use.dims_along_lanes()]
        if rule.axis != "any" and any((axis in reduced) != (rule.axis == "reduced")
                                      for axis in loops):  # fmt: skip
            kind = "sums over" if rule.axis == "reduced" else "keeps"
            yield _Problem((use,), (
                f"{use.name} has {_names(loops)} along its lanes, and it has to be an axis that "
                f"{each.op.name} {kind}"
            ))
            continue
        found.append((use, [a.name for a in loops] if rule.by == "loop" else dims))
    present = [(use, axes) for use, axes in found if axes]
    if len({tuple(axes) for _, axes in present}) <= 1:
        return
    what = "axis" if rule.by == "loop" else "dimension"
    texts = [f"{use.name} has {what} {', '.join(map(str, axes))}" for use, axes in present]
    yield _Problem(
        tuple(use for use, _ in present),
        f"{' and '.join(texts)} along its lanes; they have to be one",
    )


def _wanted(rule: SharedLanes, each: Computation, uses: Sequence[Use]) -> list[IterVar]:
    """The axes of several elements, of the kind that a rule names, that all of its operands use."""
    if rule.axis == "any":
        return []
    axes = each.op.reduce_axis if rule.axis == "reduced" else each.op.axis
    return [
        axis for axis in axes
        if all(axis in _several(use) for use in uses)
    ]


def _several(use: Use) -> set[Var]:
    """The axes along which an operand has several elements."""
    extents = dict(zip(use.places.axes, use.places.extents, strict=True))
    used = {var for index in use.indices for var in free_variables(index)}
    return {var for var in used if extents.get(var, 1) > 1}


def _is_sparse(use: Use) -> bool:
    """Whether each stick holds one of several elements."""
    lanes = use.layout.physical_shape[-1] if use.layout.physical_shape else 1
    return lanes > 1 and bool(_several(use)) and not _along(use)


def _along(use: Use) -> list[Var]:
    """The axes along the lanes of an operand."""
    return [axis for k, axis in enumerate(use.places.axes) if use.places.runs_along(k)]


def _sparse_along(
    use: Use, axes: Sequence[Var]
) -> tuple[Mapping[Var, int], Mapping[Var, int]] | None:
    """Two neighbours along the first of some axes, if each stick holds one element."""
    if not axes or not _is_sparse(use):
        return None
    first = dict.fromkeys(use.places.axes, 0)
    return first, {**first, axes[0]: 1}


def _one_to_a_stick(use: Use, pair: tuple[Mapping[Var, int], Mapping[Var, int]]) -> str:
    first, second = (
        _place(values_at(use.places.exprs, use.places.space, point)) for point in pair
    )
    return (
        f"{use.name} has one element to a stick: those at {_point(pair[0])} and {_point(pair[1])} "
        f"are at {first} and {second}"
    )


def _stick_density(rule: StickDensity, each: Computation) -> Iterator[_Problem]:
    for use in each.inputs:
        sparse, full = (use, each.out) if _is_sparse(use) else (each.out, use)
        axes = [axis for axis in _along(full) if axis in _several(sparse) & _several(full)]
        if (pair := _sparse_along(sparse, axes)) is None:
            continue
        makes = "gathers elements of several sticks into one" if sparse is use else (
            "scatters the elements of one stick to several")
        yield _Problem((use, each.out), (
            f"{_one_to_a_stick(sparse, pair)}, and {full.name} has {_names(axes)} along its lanes; "
            f"nothing {makes}, so compute both in full sticks"
        ))


def _lane_reduction(rule: LaneReduction, each: Computation) -> Iterator[_Problem]:
    kept = len(each.op.axis)
    along = [
        use for use in each.inputs
        if any(use.places.runs_along(k) for k in range(kept, len(each.axes)))
    ]
    if not along or rule.result == "dense":
        return
    name = along[0].name
    if rule.result == "refused":
        yield _Problem((along[0],), f"it reduces along the lanes of {name}, which is not done")
        return
    pair = not_alone(each.out.places)
    if pair is None:
        return
    first, second = (
        _place(values_at(each.out.places.exprs, each.out.places.space, point)) for point in pair
    )
    yield _Problem((each.out,), (
        f"it reduces along the lanes of {name}, so that each stick of {each.out.name} has one "
        f"element, in lane 0; those at {_point(pair[0])} and {_point(pair[1])} are at {first} and "
        f"{second}"
    ))


def _operand_rank(rule: OperandRank, each: Computation) -> Iterator[_Problem]:
    for operand in rule.operands:
        for use in each.named(operand):
            rank = len(use.layout.memory_shape)
            if rank not in rule.ranks:
                ranks = " or ".join(map(str, rule.ranks))
                yield _Problem((use,), f"{use.name} has {rank} physical axes instead of {ranks}")


def _rank(use: Use, target: Target) -> str | None:
    memory = target.memory(use.layout.memory)
    rank = len(use.layout.memory_shape)
    if rank == memory.rank:
        return None
    return (
        f"{use.name} has {rank} physical axes, and memory `{memory.name}` of target {target.name} "
        f"takes {memory.rank}; use {memory.rank - 1} AXIS_SEPARATOR in its layout"
    )


def _operand_alignment(rule: OperandAlignment, each: Computation) -> Iterator[_Problem]:
    kept = len(each.op.axis)
    for operand in rule.operands:
        for use in each.named(operand):
            offset = use.byte_offset
            together = any(
                use.places.runs_along(k) and each.out.places.runs_along(k) for k in range(kept)
            )
            if offset is None or not together:
                continue
            point = unaligned(each.out.places, offset, rule.offset_bytes)
            if point is not None:
                at = values_at([offset], each.out.places.space, point)[0]
                yield _Problem((use,), (
                    f"lane 0 of {each.out.name} at {_point(point)} has byte {at} of {use.name}, "
                    f"which is no multiple of {rule.offset_bytes}"
                ))


def _operand_memory(rule: OperandMemory, each: Computation) -> Iterator[_Problem]:
    for operand in rule.operands:
        for use in each.named(operand):
            if use.layout.memory not in rule.memories:
                yield _Problem((use,), (
                    f"{use.name} is in memory {use.layout.memory}, and has to be in "
                    f"{' or '.join(rule.memories)}"
                ))


def _operand_padding(rule: OperandPadding, each: Computation) -> Iterator[_Problem]:
    if rule.value == "any":
        return
    neutral = each.neutral
    wanted = set(each.op.reduce_axis if rule.axis == "reduced" else each.op.axis)
    for operand in rule.operands:
        for use in each.named(operand):
            dims = [d for d, index in enumerate(use.indices) if _uses(index, wanted)]
            if (text := _no_multiple(rule, use, each)) is not None:
                yield _Problem((use,), f"{text}, and has to be padded with {neutral}")
                continue
            if any(padded_along(use.layout, d) for d in dims) and use.layout.pad_value != neutral:
                yield _Problem((use,), (
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


def _uses(index: Expr, axes: set[IterVar]) -> bool:
    return any(var in axes for var in free_variables(index))


def _names(axes: Sequence[Var]) -> str:
    return ", ".join(axis.name for axis in axes)


def _place(place: Sequence[int]) -> str:
    return f"[{', '.join(map(str, place))}]"


def _point(point: Mapping[Var, int]) -> str:
    return "(" + ", ".join(f"{var.name}={value}" for var, value in point.items()) + ")"


_DECIDE: dict[type, Callable[[Any, Computation], Iterator[_Problem]]] = {
    LaneAccess: _lane_access,
    SharedLanes: _shared_lanes,
    StickDensity: _stick_density,
    LaneReduction: _lane_reduction,
    OperandRank: _operand_rank,
    OperandAlignment: _operand_alignment,
    OperandMemory: _operand_memory,
    OperandPadding: _operand_padding,
}
