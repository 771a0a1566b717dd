"""Check the target's operand constraints for operations and schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from tecomp.compute.define import copy_of, placeholder
from tecomp.compute.extern import ExternOp
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.tensor import Tensor
from tecomp.constraints.operation_view import AnalyzedOperation, OperandUse, computation
from tecomp.constraints.rules import (
    ConstraintFailure,
    dims_of_lanes,
    lane_access,
    lane_reduction,
    memory_rank,
    operand_alignment,
    operand_memory,
    operand_padding,
    operand_rank,
    shared_lanes,
    stick_density,
)
from tecomp.errors import LayoutError
from tecomp.ir.arith.extents import round_up
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.expr import Binary, BinOp, Const, Expr, Var, index_value
from tecomp.layout.core.layout import Layout
from tecomp.layout.core.stick_formats import StickFormat
from tecomp.layout.core.stick_layout import StickLayout
from tecomp.layout.formats.format import Format
from tecomp.lowering.stages.program import inlined_bodies
from tecomp.machine.components import MatmulUnit
from tecomp.machine.descriptor import Target
from tecomp.machine.operand_constraints import (
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
from tecomp.poly.maps.index_map import IndexMap
from tecomp.poly.sets.isl_context import isl_work
from tecomp.poly.sets.to_isl import NotAffine
from tecomp.scheduling.schedule import Schedule
from tecomp.scheduling.state import StageState


def stored_stages(schedule: Schedule) -> Iterator[tuple[ComputeOp, Expr, Mapping[Tensor, Layout]]]:
    """Yield each computed stage that is stored: the operation, its inlined body, and all layouts.

    `te.extern` stages are skipped, because their body is opaque.

    Raises:
        LayoutError: If an extent is not constant.
    """
    state = schedule.state
    layouts: dict[Tensor, Layout] = {}
    for stage in state:
        for op in (stage.op, *(a for a, key in state.aliases.items() if key is stage.key),
                   stage.key):  # fmt: skip
            layouts.update(_layouts(stage, op))
    for key, body in inlined_bodies(state)[0].items():
        compute = state.stage(key).compute
        if not isinstance(compute, ExternOp):
            yield compute, body[0], layouts


def _layouts(stage: StageState, op: Operation) -> dict[Tensor, Layout]:
    found = {}
    for tensor in op.outputs:
        shape = tuple(extent for extent in tensor.shape if isinstance(extent, int))
        if len(shape) < len(tensor.shape):
            raise LayoutError(
                "check_constraints: {tensor} has shape {shape}, but layouts require constant "
                "shapes",
                kind="layout-requirement", tensor=tensor.name, shape=list(tensor.shape),
            )
        base = Layout.row_major(shape, tensor.dtype)
        # A tensor of rank 0 still has one address, but layout maps start with the tensor axes.
        index_map = base.index_map if shape or not stage.layout.maps else IndexMap((), ())
        separators = stage.layout.axis_separators
        for layout_map in stage.layout.maps:
            last = IndexMap(layout_map.initial_indices, layout_map.final_indices, separators)
            index_map = index_map.then(last)
        pad = stage.layout.pad_value
        value = pad.value.value if pad is not None and isinstance(pad.value, Const) else None
        found[tensor] = Layout(
            shape, tensor.dtype, index_map, Format.plain(tensor.dtype),
            None if value is None else float(value), stage.scope,
        )
    return found


@dataclass(frozen=True)
class Violation:
    """Violation of a target rule by an operation.

    Attributes:
        rule: Violated rule of the target; None for a rank that the memory does not support.
        operation: Name of the operation.
        operands: Names of the tensors that violate the rule.
        message: Description with a counterexample.
        relayout: Name of the tensor whose relayout would satisfy the rule; None if no single
            relayout would.
        layout: Layout for this tensor, or None.

    >>> broken = Violation(None, "C", ("A",), "C: A has 2 axes", relayout="A", layout=None)
    >>> broken.rule, broken.operation, broken.operands, broken.relayout, broken.layout
    (None, 'C', ('A',), 'A', None)
    >>> print(broken.message)
    C: A has 2 axes
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


def check_constraints(
    subject: Schedule | Operation | Tensor,
    target: str | Target,
    layouts: Mapping[Tensor, Layout] | None = None,
) -> tuple[Violation, ...]:
    """Return the violations of a target's operand constraints by an operation or a schedule.

    Args:
        subject: Schedule, with its layouts and memory scopes; or a `te.compute` operation or its
            tensor.
        target: Target or its name.
        layouts: Layouts of tensors; they override those of the schedule. Default: row-major.

    Returns:
        Violations in the order of the stages; empty if all constraints are satisfied.

    Raises:
        LayoutError: If a shape is not constant, an argument has the wrong type, or a layout is too
            complex to analyze.
        TargetError: If the target is unknown or lacks a memory.

    Example:
        >>> from tecomp import StickLayout, te
        >>> A, B = (te.placeholder((128, 128), "float16", name=name) for name in "AB")
        >>> C = te.compute((128, 128), lambda i, j: A[i, j] + B[j, i], name="C")
        >>> rows = StickLayout((128, 128), "float16")
        >>> (found,) = check_constraints(C, "stick128", {A: rows, B: rows, C: rows})
        >>> found.operands, found.relayout, found.layout.dim_map
        (('B',), 'B', [0, 1, 0])
    """
    machine = Target.of(target)
    check_kind(
        layouts, Mapping | None, "check_constraints: layouts", "pass one layout per tensor",
        LayoutError,
    )
    explicit = dict(layouts or {})
    for tensor in explicit:
        if not isinstance(tensor, Tensor):
            raise LayoutError(
                "check_constraints: {tensor!r} is not a tensor with a layout",
                kind="invalid-type", tensor=tensor,
            )
    found: list[Violation] = []
    with isl_work("check_constraints", LayoutError):
        for view in _computations(subject, explicit):
            try:
                found += _violations(view, machine)
            except NotAffine as error:
                raise LayoutError(
                    "check_constraints: `{reason}` in {op} or a layout of its operands is not "
                    "affine, so lanes cannot be compared",
                    kind="layout-requirement", reason=error.args[0], op=view.op.name,
                ) from None
    return tuple(found)


def satisfies_constraints(
    view: AnalyzedOperation, target: Target, *, is_alone: bool = False
) -> bool:
    """Return whether the layouts of the operands of an operation satisfy the target's rules.

    Args:
        view: Operation with all of its operands, or with a single input.
        target: Target with the rules.
        is_alone: If True, the operation has a single input, and rules on several inputs are
            skipped.
    """
    return not any(
        next(_decide(rule, view), None) for rule in rules_for(view, target)
        if (_is_about_one_input(rule) if is_alone else isinstance(rule, _ABOUT_LANES))
    )


def rules_for(view: AnalyzedOperation, target: Target) -> tuple[Rule, ...]:
    """Return the rules of a target that apply to an operation.

    The rules for contractions describe matrix units. A contraction in other dtypes is a product of
    vectors, and follows the rules for these if the target has any.
    """
    kind = view.kind
    if kind == "contraction" and not _has_matrix_unit(view, target) and any(
        rule.operation == "vector_product" for rule in target.rules
    ):
        kind = "vector_product"
    return tuple(rule for rule in target.rules if rule.operation == kind)


def _has_matrix_unit(view: AnalyzedOperation, target: Target) -> bool:
    """Return whether a matrix unit supports the dtype of the factors of a contraction."""
    dtypes = {use.tensor.dtype for use in view.inputs}
    units = (unit for unit in target.engine.values() if isinstance(unit, MatmulUnit))
    return len(dtypes) == 1 and any(dtypes <= set(unit.inputs) for unit in units)


def has_roles(rules: Sequence[Rule]) -> bool:
    """Return whether the factors of contractions are `a` and `b` in source order in these rules."""
    return any(isinstance(rule, SharedLanes) and rule.exchange == "refused" for rule in rules)


def _is_about_one_input(rule: Rule) -> bool:
    """Return whether a rule constrains each input independently of the other inputs."""
    if isinstance(rule, OperandAlignment):
        return {"inputs", "out"}.issuperset(rule.operands)
    if isinstance(rule, LaneAccess):
        return rule.operation != "reduction"  # its inputs are compared with each other
    return isinstance(rule, LaneReduction | StickDensity)


def violations_of(view: AnalyzedOperation, target: Target) -> tuple[Violation, ...]:
    """Return the violations of layout rules by an operation, with suggested relayouts.

    Raises:
        LayoutError: If the analysis is too expensive.
    """
    rules = tuple(rule for rule in target.rules if isinstance(rule, _ABOUT_LANES))
    with isl_work("check_constraints", LayoutError):
        return tuple(_broken(view, replace(target, rules=rules)))


def _computations(
    subject: Schedule | Operation | Tensor, layouts: Mapping[Tensor, Layout]
) -> Iterator[AnalyzedOperation]:
    if isinstance(subject, Schedule):
        for op, body, stage_layouts in stored_stages(subject):
            yield computation(op, body, {**stage_layouts, **layouts})
        return
    single = subject.op if isinstance(subject, Tensor) else subject
    if not isinstance(single, ComputeOp):
        raise LayoutError(
            "check_constraints: expected a schedule or a result of te.compute, got {subject!r}",
            kind="invalid-type", subject=subject,
        )
    yield computation(single, single.body[0], layouts)


def _violations(view: AnalyzedOperation, target: Target) -> Iterator[Violation]:
    name = view.op.name
    for use in {use.tensor: use for use in view.uses}.values():
        if (reason := memory_rank(use, target)) is not None:
            yield Violation(None, name, (use.name,), f"{name}: {reason}")
    yield from _broken(view, target)


def _broken(view: AnalyzedOperation, target: Target) -> Iterator[Violation]:
    name = view.op.name
    rules = rules_for(view, target)
    for rule in rules:
        for problem in {p.key: p for p in _problems(rule, view)}.values():
            legal = _find_legal_layout(rule, rules, view, problem, target)
            yield Violation(
                rule, name, problem.names, f"{name}: {problem.reason}",
                *((None, None) if legal is None else (legal[0].name, legal[1])),
            )


def _find_legal_layout(
    rule: Rule, rules: Sequence[Rule], view: AnalyzedOperation, problem: ConstraintFailure,
    target: Target
) -> tuple[Tensor, Layout] | None:
    """Return an operand and a layout that satisfies the rule and that the target can copy to.

    Candidates are ordered by the number of remaining violations, then by the number of elements.
    """
    best: tuple[tuple[int, int], Tensor, Layout] | None = None
    for use in dict.fromkeys(problem.uses):
        for layout in candidates(use, view, rule):
            changed = view.with_layout(use.tensor, layout)
            remaining = _problems(rule, changed)
            if any(other.names == problem.names or use.name in other.names for other in remaining):
                continue
            if use.tensor != view.out.tensor and not _can_copy(use, layout, target):
                continue
            count = sum(len(_problems(other, changed)) for other in rules)
            cost = count, prod(layout.shape)
            if best is None or cost < best[0]:
                best = cost, use.tensor, layout
    return None if best is None else best[1:]


def _can_copy(use: OperandUse, layout: Layout, target: Target) -> bool:
    """Return whether the target's rules permit the copy of an operand to another layout."""
    source = placeholder(use.layout.shape, use.tensor.dtype, use.name)
    copy = copy_of(source)
    assert isinstance(copy.op, ComputeOp)
    analyzed = computation(copy.op, copy.op.body[0], {source: use.layout, copy: layout})
    return not any(_problems(rule, analyzed) for rule in rules_for(analyzed, target))


def _problems(rule: Rule, view: AnalyzedOperation) -> list[ConstraintFailure]:
    return list(_decide(rule, view))


def _decide(rule: Rule, view: AnalyzedOperation) -> Iterator[ConstraintFailure]:
    decide: Callable[[Any, AnalyzedOperation], Iterator[ConstraintFailure]] = _DECIDE[type(rule)]
    return decide(rule, view)


_ABOUT_LANES = (
    LaneAccess, LaneReduction, StickDensity, OperandAlignment, OperandPadding, SharedLanes
)
_DECIDE: dict[type, Callable[[Any, AnalyzedOperation], Iterator[ConstraintFailure]]] = {
    LaneAccess: lane_access,
    SharedLanes: shared_lanes,
    StickDensity: stick_density,
    LaneReduction: lane_reduction,
    OperandRank: operand_rank,
    OperandAlignment: operand_alignment,
    OperandMemory: operand_memory,
    OperandPadding: operand_padding,
}


def candidates(use: OperandUse, view: AnalyzedOperation, rule: Rule) -> Iterator[Layout]:
    """Yield layouts of an operand that may satisfy a rule: other memory, padding or lanes.

    Layouts with lanes along another dimension have the same number of lanes as the current layout.
    """
    layout = use.layout
    if isinstance(rule, OperandMemory):
        yield from (_with(layout, memory=memory) for memory in rule.memories)
    elif isinstance(rule, OperandPadding):
        yield _with(layout, pad_value=view.neutral_in(layout))
        if rule.multiple_bytes is not None:
            yield _pad(use, view, rule)
    else:
        for dim in reversed(range(len(layout.shape))):
            yield _lanes_along(layout, dim)
        if use is view.out and isinstance(layout, StickLayout):
            for dim in range(len(layout.shape)):
                yield _sticks(layout, dim, StickFormat.Sparse)


def _with(layout: Layout, **fields: Any) -> Layout:
    """Return a layout with the same index map and other fields replaced."""
    base = Layout(
        layout.shape, layout.dtype, layout.index_map, layout.storage, layout.pad_value,
        layout.memory, layout.grid_axes,
    )
    return replace(base, **fields)


def _pad(use: OperandUse, view: AnalyzedOperation, rule: OperandPadding) -> Layout:
    """Return the layout with dimensions padded to the rule's multiple and neutral padding values.

    An unmodified dimension in the index map declares the padding as a modulo.
    """
    layout = use.layout
    axes = layout.index_map.initial_indices
    step = max((rule.multiple_bytes or 1) // layout.dtype.bytes, 1)
    rounded = {
        axes[dim]: round_up(layout.shape[dim], step) for dim in dims_of_lanes(use, view, rule)
    }
    results = tuple(
        Binary(BinOp.MOD, expr, index_value(rounded[expr]))
        if isinstance(expr, Var) and expr in rounded else expr
        for expr in layout.index_map.final_indices
    )
    index_map = IndexMap(axes, results, layout.axis_separators)
    return _with(layout, index_map=index_map, pad_value=view.neutral_in(layout))


def _lanes_along(layout: Layout, dim: int) -> Layout:
    """Return a layout with the same number of lanes along another dimension."""
    if isinstance(layout, StickLayout):
        return _sticks(layout, dim, StickFormat.Dense)
    lanes = layout.physical_shape[-1] if layout.physical_shape else 1
    axes = layout.index_map.initial_indices
    others: list[Expr] = [axis for k, axis in enumerate(axes) if k != dim]
    lane = Binary(BinOp.MOD, axes[dim], index_value(lanes))
    index_map = IndexMap(axes, (*others, axes[dim] // lanes, lane), ())
    return Layout(
        layout.shape, layout.dtype, index_map, layout.storage, layout.pad_value, layout.memory
    )


def _sticks(layout: StickLayout, dim: int, form: StickFormat) -> Layout:
    lanes = layout.elems_in_stick
    order = [*(k for k in range(len(layout.shape)) if k != dim), dim]
    size = list(layout.shape)
    if form is StickFormat.Dense:
        size[dim] = round_up(size[dim], lanes)
    return StickLayout(
        size, layout.dtype, order, form, size=layout.shape, stick_bytes=layout.stick_bytes,
        pad_value=layout.pad_value, memory=layout.memory,
    )
