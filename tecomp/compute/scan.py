"""Recurrences: `te.scan`, whose steps depend on earlier steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

from tecomp.compute.iter_var import IterKind, IterVar, make_axis
from tecomp.compute.operation import ComputeOp, PlaceholderOp
from tecomp.compute.shape_validation import attributes_of, name_of
from tecomp.compute.tensor import Tensor, TensorLoad, access
from tecomp.compute.tvm_compat import tag_of
from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.ir.nodes.expr import BinOp, Expr, as_expr, binary, const, if_then_else, logical_and
from tecomp.ir.nodes.printer import NEWLINE, ParenthesizedOperand, Pieces, PrintedName
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import walk
from tecomp.source_locations import user_location


@dataclass(frozen=True, slots=True, eq=False)
class ScanOp(ComputeOp):
    """Recurrence: output k is `start[k]` in the initial steps and `body[k]` in all other steps.

    The first axis counts the steps after the initial ones. The tensors that `body` reads access
    earlier steps of the outputs through the placeholders `states`.

    Attributes:
        start: Expressions of the initial steps, one per output.
        states: State placeholders, one per output.

    >>> from tecomp import te
    >>> X, state = te.placeholder((5, 4), name="X"), te.placeholder((5, 4), name="state")
    >>> first = te.compute((1, 4), lambda _, i: X[0, i], name="first")
    >>> step = te.compute((5, 4), lambda t, i: state[t - 1, i] + X[t, i], name="step")
    >>> op = te.scan(first, step, state, inputs=[X], name="sums").op
    >>> op.scan_axis, op.spatial_axis_, op.states, op.start
    (t, (i,), (Tensor(state, shape=(5, 4), dtype=float32),), (first[t, i],))
    >>> op.shape, op.shapes
    ((5, 4), ((5, 4),))
    """

    start: tuple[Expr, ...] = field(kw_only=True)
    states: tuple[Tensor, ...] = field(kw_only=True)

    def __post_init__(self) -> None:
        ComputeOp.__post_init__(self)
        nodes = walk(*self.start, *self.body)
        reads = (node.tensor for node in nodes if isinstance(node, TensorLoad))
        object.__setattr__(self, "input_tensors", tuple(dict.fromkeys(reads)))

    def rewritten(self, change: Callable[[Expr], Expr]) -> ScanOp:
        """Return the operation with `change` applied to the bodies and initial expressions."""
        return replace(
            self, body=tuple(map(change, self.body)), start=tuple(map(change, self.start)))

    @property
    def shape(self) -> tuple[Extent, ...]:
        """Number of all steps, followed by the maximum extents of one step over the outputs."""
        return (self.states[0].shape[0], *(axis.extent for axis in self.axis[1:]))

    @property
    def shapes(self) -> tuple[tuple[Extent, ...], ...]:
        """Shape of each output."""
        return tuple(state.shape for state in self.states)

    def inside(self, k: int) -> Expr | None:
        """Return the condition under which output k has an element, or None if it is always true.

        >>> from tecomp import te
        >>> X, state = te.placeholder((5, 4), name="X"), te.placeholder((5, 4), name="state")
        >>> first = te.compute((1, 4), lambda _, i: X[0, i], name="first")
        >>> step = te.compute((5, 4), lambda t, i: state[t - 1, i] + X[t, i], name="step")
        >>> print(te.scan(first, step, state, name="sums").op.inside(0))
        None
        """
        return _inside(self.axis, self.states[k].shape)

    @property
    def scan_axis(self) -> IterVar:
        """Axis of the steps that are computed from earlier steps."""
        return self.axis[0]

    @property
    def spatial_axis_(self) -> tuple[IterVar, ...]:
        """Axes of one step, under the name that TVM uses."""
        return self.axis[1:]

    def print_tokens(self) -> Pieces:
        """Yield the printed text: `S[t] = init[t] if t < 1 else update[t] with state = S`."""
        for k, (tensor, start) in enumerate(zip(self.outputs, self.start, strict=True)):
            if k:
                yield NEWLINE
            yield from access(tensor, self.axis)
            first = self.scan_axis.dom.min
            yield " = "
            yield ParenthesizedOperand(start)
            yield f" if {self.scan_axis.name} < {getattr(first, 'value', first)} else "
            yield ParenthesizedOperand(self.body[k])
            yield " with "
            yield PrintedName(self.states[k])
            yield " = "
            yield PrintedName(tensor)


@overload
def scan(
    init: Tensor,
    update: Tensor,
    state_placeholder: Tensor,
    inputs: Tensor | Sequence[Tensor] | None = None,
    name: str = "scan",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Tensor: ...


# A list of length 1 gives a tensor, as in TVM, so the return type is Any.
@overload
def scan(
    init: Sequence[Tensor],
    update: Sequence[Tensor],
    state_placeholder: Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor] | None = None,
    name: str = "scan",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Any: ...


def scan(
    init: Tensor | Sequence[Tensor],
    update: Tensor | Sequence[Tensor],
    state_placeholder: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor] | None = None,
    name: str = "scan",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Any:
    """Define a recurrence along the first axis, whose steps depend on earlier steps.

    Step t is `init[t]` for the steps that `init` contains, and `update[t]` for all later steps.
    The stages that compute `update` read steps before t through the state placeholder.

    Args:
        init: Initial steps: a tensor with at least one step, or a list of tensors.
        update: Tensor of the update rule, with the shape of the result; or a list of tensors.
        state_placeholder: Placeholder of the result, with its shape and dtype; or a list.
        inputs: Tensors that the update reads. Optional, because they are derived from `update`.
        name: Name of the result in printed text.
        tag: Text stored with the operation. Default: the tag of the enclosing `te.tag_scope`.
        attrs: Attributes stored with the operation.

    Returns:
        The result, or a list of tensors if there are several states.

    Raises:
        DefinitionError: If the tensors do not match in number, shape or dtype, a state is not a
            placeholder, or a state placeholder is given twice.
        TypeMismatchError: If an argument is not a tensor.

    Example:
        >>> from tecomp import te
        >>> X = te.placeholder((9, 4), name="X")
        >>> state = te.placeholder((9, 4), name="state")
        >>> init = te.compute((1, 4), lambda _, i: X[0, i])
        >>> update = te.compute((9, 4), lambda t, i: state[t - 1, i] + X[t, i])
        >>> te.scan(init, update, state, [X], name="S")
        Tensor(S, shape=(9, 4), dtype=float32)
    """
    name = name_of(name, "te.scan")
    where = f"te.scan {name}"
    starts, rules = _tensors(init, "init", where), _tensors(update, "update", where)
    states = _tensors(state_placeholder, "state_placeholder", where)
    if inputs is not None:
        _tensors(inputs, "inputs", where)
    _check_counts(starts, rules, states, where)
    for parts in zip(starts, rules, states, strict=True):
        _check_types(*parts, where)
        _check_shapes(*parts, states[0], where)
    for start in starts[1:]:
        if not _are_equal_shapes(start.shape[:1], starts[0].shape[:1]):
            raise DefinitionError(
                "{where}: {start} has {extent} steps and {start_name} {other_extent}; the states "
                "of a scan must have the same number of initial steps",
                kind="scan", where=where, start=starts[0].name, extent=starts[0].shape[0],
                start_name=start.name, other_extent=start.shape[0],
            )
    axis = tuple(_axes(starts[0], rules))
    location = user_location()

    def steps_of(tensors: Sequence[Tensor]) -> tuple[Expr, ...]:
        return tuple(
            _where_it_is(TensorLoad(tensor, axis, location), _inside(axis, state.shape))
            for tensor, state in zip(tensors, states, strict=True)
        )

    outputs = ScanOp(
        name, axis, steps_of(rules), tag_of(tag, where), attributes_of(attrs, where), location,
        start=steps_of(starts), states=states,
    ).outputs
    return outputs[0] if len(outputs) == 1 else list(outputs)


def _axes(start: Tensor, rules: Sequence[Tensor]) -> Iterator[IterVar]:
    """Yield the axes of a scan, named as in the first update, with the maximum extents."""
    rule = rules[0]
    names = [axis.name for axis in rule.op.axis] or [f"i{k}" for k in range(rule.ndim)]
    first, steps = start.shape[0], rule.shape[0]
    yield make_axis(names[0], first, steps - first, IterKind.SCAN)
    for k, name in enumerate(names[1:], 1):
        yield make_axis(name, 0, _longest([tensor.shape[k] for tensor in rules]), IterKind.DATA)


def _longest(extents: Sequence[Extent]) -> Extent:
    longest = extents[0]
    for extent in extents[1:]:
        if isinstance(longest, int) and isinstance(extent, int):
            longest = max(longest, extent)
        elif not _are_equal_shapes([longest], [extent]):
            longest = binary(BinOp.MAX, as_expr(longest), as_expr(extent))
    return longest


def _inside(axis: Sequence[IterVar], shape: Sequence[Extent]) -> Expr | None:
    """Return the condition that an element of a step is within `shape`, or None if it always is."""
    shorter = [
        iter_var < extent for iter_var, extent in zip(axis[1:], shape[1:], strict=True)
        if not _are_equal_shapes([iter_var.extent], [extent])
    ]
    return logical_and(*shorter) if shorter else None


def _where_it_is(element: Expr, inside: Expr | None) -> Expr:
    return element if inside is None else if_then_else(inside, element, const(0, element.dtype))


def _tensors(value: object, subject: str, where: str) -> tuple[Tensor, ...]:
    tensors = tuple(value) if isinstance(value, list | tuple) else (value,)
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeMismatchError(
                "{where}: {subject} is {tensor!r} ({type}); pass a tensor, or a list of tensors",
                kind="invalid-type", where=where, subject=subject, tensor=tensor,
                type=type(tensor).__name__,
            )
    return tensors


def _check_counts(
    starts: Sequence[Tensor], rules: Sequence[Tensor], states: Sequence[Tensor], where: str
) -> None:
    if not starts or not len(starts) == len(rules) == len(states):
        raise DefinitionError(
            "{where}: got {start_count} init, {rule_count} update and {state_count} "
            "state_placeholder tensors; pass one of each per state",
            kind="scan", where=where, start_count=len(starts), rule_count=len(rules),
            state_count=len(states),
        )
    if len(set(states)) < len(states):
        raise DefinitionError(
            "{where}: duplicate state_placeholder; create one per state",
            kind="scan", where=where,
        )
    for state in states:
        if not isinstance(state.op, PlaceholderOp):
            raise DefinitionError(
                "{where}: state_placeholder {state} is a computed tensor; create it with "
                "te.placeholder, and read it in the update",
                kind="scan", where=where, state=state.name,
            )


def _check_types(start: Tensor, rule: Tensor, state: Tensor, where: str) -> None:
    if not start.dtype == rule.dtype == state.dtype:
        raise DefinitionError(
            "{where}: {start} is {dtype}, {rule} is {rule_dtype} and {state} is {state_dtype}; a "
            "state must have one dtype, convert with .astype",
            kind="scan", where=where, start=start.name, dtype=start.dtype, rule=rule.name,
            rule_dtype=rule.dtype, state=state.name, state_dtype=state.dtype,
        )


def _check_shapes(
    start: Tensor, rule: Tensor, state: Tensor, other: Tensor, where: str
) -> None:
    if not rule.ndim:
        raise DefinitionError(
            "{where}: {rule} has no axes; the first axis of a scan counts its steps",
            kind="scan", where=where, rule=rule.name,
        )
    if not _are_equal_shapes(rule.shape, state.shape):
        raise DefinitionError(
            "{where}: {rule} has shape {shape} and {state} {state_shape}; both must have all steps "
            "of the result",
            kind="scan", where=where, rule=rule.name, shape=shape_text(rule.shape),
            state=state.name, state_shape=shape_text(state.shape),
        )
    if state.ndim != other.ndim or not _are_equal_shapes(state.shape[:1], other.shape[:1]):
        raise DefinitionError(
            "{where}: {state} has shape {shape} and {other} {other_shape}; the states of a scan "
            "must have the same number of axes and of steps",
            kind="scan", where=where, state=state.name, shape=shape_text(state.shape),
            other=other.name, other_shape=shape_text(other.shape),
        )
    if not start.ndim or not _are_equal_shapes(start.shape[1:], rule.shape[1:]):
        raise DefinitionError(
            "{where}: {start} has shape {shape}, which does not match a step of {rule}, of shape "
            "{rule_shape}; pass the first steps of that shape as init",
            kind="scan", where=where, start=start.name, shape=shape_text(start.shape),
            rule=rule.name, rule_shape=shape_text(rule.shape),
        )
    first, steps = start.shape[0], rule.shape[0]
    if isinstance(first, int) and isinstance(steps, int) and first > steps:
        raise DefinitionError(
            "{where}: {start} has {first} steps, which exceeds the {steps} of the result; pass "
            "only the first steps as init",
            kind="scan", where=where, start=start.name, first=first, steps=steps,
        )


def _are_equal_shapes(left: Sequence[Extent], right: Sequence[Extent]) -> bool:
    return len(left) == len(right) and all(
        structural_equal(as_expr(a), as_expr(b)) for a, b in zip(left, right, strict=True)
    )
