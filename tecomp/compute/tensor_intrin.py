"""Declarations of tensor intrinsics: a definition, and statements that implement it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, get_args

from tecomp.compute.extern import ALIGNMENT, check_without_gaps
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.reduce import Reduce
from tecomp.compute.shape_validation import name_of
from tecomp.compute.statement_builder import Operand, check_scope, check_statement
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.compute.tensor_intrin_call import Check, TensorIntrin, check_statements, length
from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir.extern.registry import get_global_func
from tecomp.ir.nodes.argument_checks import (
    as_int,
    check_function,
    check_kind,
    check_list,
    dictionary_of,
    is_one_of,
)
from tecomp.ir.nodes.expr import Expr, Var
from tecomp.ir.nodes.stmt import Buffer, ExternCall, Stmt
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import nodes_of, walk

__all__ = [
    "Check", "TensorIntrin", "check_tensor_intrin", "decl_tensor_intrin", "length",
]  # fmt: skip

Statements: TypeAlias = "Stmt | tuple[Stmt | None, Stmt | None, Stmt | None]"


def decl_tensor_intrin(
    op: Operation | Tensor,
    fcompute: Callable[..., Statements],
    name: str = "tensor_intrin",
    binds: Mapping[Tensor, Buffer] | None = None,
    scalar_params: Sequence[Var] | None = None,
    default_buffer_params: Mapping[str, str] | None = None,
    *,
    unit: str = "",
    mode: str = "",
    check: Check = "now",
) -> TensorIntrin:
    """Declare a tensor intrinsic, with which `s[T].tensorize` can replace loops.

    Args:
        op: Definition: a `te.compute` of placeholders. Symbolic extents are bound to constants by
            each use of the intrinsic, and the statements are then checked for these extents.
        fcompute: Function that is called once with a list of input operands, a list of output
            operands and, if there are any, the list of scalar parameters. It returns the statement
            that computes the tile, or `(body, reset, update)` for a reduction with split loops:
            `body` computes the tile from scratch, `reset` stores the initial value, and `update`
            accumulates the tile into the output. Each of them may be None, but not both `body` and
            `update`.
        name: Name in error messages.
        binds: `te.decl_buffer` with the required memory, for tensors of `op`.
        scalar_params: Variables in `op` that are scalar parameters of the intrinsic.
        default_buffer_params: `{"scope": name}` for the operands not in `binds`. `offset_factor`
            and `data_alignment` are accepted without effect, because offsets and alignment come
            from the schedule.
        unit: Unit of the target's engine that executes the intrinsic, such as `matmul`, from which
            `kernel.report()` takes the cycles. For a copy, the link.
        mode: Mode of the unit, such as a fidelity, by its name in the `cycles` of the unit.
            Default: the default mode of the operand dtypes.
        check: Time at which the statements are run in the interpreter on random values and compared
            with `op`. `now`: in this call, if all called functions are registered. `later`: by
            `te.check_tensor_intrin`, for libraries with many intrinsics that check them in their
            tests. `never`: for statements that only the hardware can execute.

    Raises:
        DefinitionError: If `op` is not a computation of placeholders, `fcompute` accesses anything
            except its operands, or its statements do not compute the definition.
        TypeMismatchError: If `fcompute` does not return statements.

    Example:
        >>> from tecomp import te
        >>> a = te.placeholder((16,), name="a")
        >>> b = te.compute((16,), lambda i: a[i] * 2.0, name="b")
        >>> def twice(ins, outs):
        ...     return te.for_range(0, 16, lambda i: outs[0].store(i, ins[0][i] + ins[0][i]))
        >>> te.decl_tensor_intrin(b.op, twice, name="twice")
        TensorIntrin(twice: b[i] = a[i] * float32(2.0))
    """
    name = name_of(name, "te.decl_tensor_intrin")
    where = f"te.decl_tensor_intrin {name}"
    compute = _check_definition(op, where)
    for text, option in ((unit, "unit"), (mode, "mode")):
        check_kind(text, str, f"{where}: {option}", "give a text", TypeMismatchError)
    if not is_one_of(check, get_args(Check)):
        raise DefinitionError(
            "{where}: check must be 'now', 'later' or 'never', got {check!r}",
            kind="unknown-choice", where=where, check=check,
        )
    tensors = (*compute.input_tensors, *compute.outputs)
    scopes = _scopes(tensors, binds, default_buffer_params, where)
    buffers = tuple(
        Buffer(t.name, t.shape, t.dtype, scope)
        for t, scope in zip(tensors, scopes, strict=True)
    )
    scalars = _scalars(scalar_params, where)
    returned = _call_user_function(fcompute, buffers, len(compute.input_tensors), scalars, where)
    body, reset, update = _statements(returned, where)
    intrin = TensorIntrin(
        name, compute, buffers, scalars, body, reset, update, scopes, unit, mode, check)
    for statement in filter(None, (body, reset, update)):
        check_statement(
            statement, buffers, (*scalars, *intrin.sizes), where, "declare it in scalar_params")
    if check == "now" and not intrin.sizes and _is_known(body, reset, update):
        check_tensor_intrin(intrin)
    return intrin


def _call_user_function(
    fcompute: Callable[..., Statements], buffers: Sequence[Buffer], count: int,
    scalars: Sequence[Var], where: str,
) -> Statements:
    """Call the user function with operands, the first `count` of which are inputs."""
    check_function(
        fcompute, 3 if scalars else 2, f"{where}: fcompute", "pass a function of the inputs and "
        f"the outputs{' and the scalar parameters' if scalars else ''}", TypeMismatchError,
    )
    operands = [Operand(buffer) for buffer in buffers]
    return fcompute(operands[:count], operands[count:], *([list(scalars)] if scalars else []))


def _is_known(*statements: Stmt | None) -> bool:
    """Return whether all functions that the statements call are registered, and thus can run."""
    calls = nodes_of(ExternCall, *filter(None, statements))
    return all(get_global_func(call.function, allow_missing=True) is not None for call in calls)


def _scopes(
    tensors: Sequence[Tensor], binds: object, default: object, where: str
) -> tuple[str, ...]:
    """Return the required memory of each operand.

    Raises:
        DefinitionError: If `binds` names a tensor that is not an operand, a buffer has other than
            contiguous strides, or a parameter is unknown or invalid.
        TypeMismatchError: If `binds` or `default` is not a dictionary of the expected types.
    """
    params = dictionary_of(
        default, str, str | int, f"{where}: default_buffer_params",
        'pass {"scope": name}', TypeMismatchError,
    )
    if unknown := sorted(set(params) - {"scope", *ALIGNMENT}):
        raise DefinitionError(
            "{where}: default_buffer_params {unknown} is not supported; strides and offsets are "
            "set by the schedule, specify only scope",
            kind="intrinsic", where=where, unknown=", ".join(unknown),
        )
    declared = dictionary_of(
        binds, Tensor, Buffer, f"{where}: binds",
        "pass a dictionary with a te.decl_buffer for each tensor", TypeMismatchError,
    )
    if strange := [t.name for t in declared if not any(t == tensor for tensor in tensors)]:
        owner = tensors[-1].op.name
        raise DefinitionError(
            "{where}: binds contains {strange}, which is not a tensor of {owner}",
            kind="intrinsic", where=where, strange=strange[0], owner=owner,
        )
    for buffer in declared.values():
        check_without_gaps(buffer, f"{where}: binds: {buffer.name}")
    for name in ALIGNMENT:
        number = as_int(params.get(name, 1))
        if number is None or number < 1:
            raise DefinitionError(
                "{where}: default_buffer_params: {name} must be a positive integer, got {param!r}",
                kind="intrinsic", where=where, name=name, param=params[name],
            )
    scope = params.get("scope", "")
    check_scope(scope, f"{where}: default_buffer_params")
    return tuple(declared[t].scope if t in declared else scope for t in tensors)


def check_tensor_intrin(intrin: TensorIntrin) -> None:
    """Run the statements of an intrinsic on random values, and compare with its definition.

    Raises:
        DefinitionError: If the results differ, or the extents of the intrinsic are symbolic.
        TypeMismatchError: If `intrin` is not an intrinsic.

    >>> from tecomp import te
    >>> a = te.placeholder((4,), name="a")
    >>> b = te.compute((4,), lambda i: a[i] * 2.0, name="b")
    >>> twice = te.decl_tensor_intrin(b.op, lambda ins, outs: te.for_range(
    ...     0, 4, lambda i: outs[0].store(i, ins[0][i] + ins[0][i])), name="twice", check="later")
    >>> te.check_tensor_intrin(twice)
    """
    check_kind(
        intrin, TensorIntrin, "te.check_tensor_intrin: the intrinsic",
        "pass an intrinsic from te.decl_tensor_intrin", TypeMismatchError,
    )
    if intrin.sizes:
        raise DefinitionError(
            "te.check_tensor_intrin: {intrin} has symbolic extents; it is checked at each use, "
            "with the constant extents there",
            kind="intrinsic", intrin=intrin.name,
        )
    check_statements(intrin)


def _scalars(value: object, where: str) -> tuple[Var, ...]:
    scalars: Any = () if value is None else value
    check_list(
        scalars, Var, f"{where}: scalar_params", "pass a list of te.var variables",
        TypeMismatchError,
    )
    return tuple(scalars)


def _check_definition(op: object, where: str) -> ComputeOp:
    compute = op.op if isinstance(op, Tensor) else op
    if not isinstance(compute, ComputeOp):
        raise DefinitionError(
            "{where}: expected the operation of a te.compute, got {op!r}",
            kind="intrinsic", where=where, op=op,
        )
    if compute.num_outputs > 1:
        raise DefinitionError(
            "{where}: {compute} has {num_outputs} outputs; an intrinsic must have one",
            kind="intrinsic", where=where, compute=compute.name, num_outputs=compute.num_outputs,
        )
    for tensor in compute.input_tensors:
        if isinstance(tensor.op, ComputeOp):
            raise DefinitionError(
                "{where}: {compute} reads {tensor}, which is a computed tensor; write the "
                "intrinsic as one te.compute of placeholders",
                kind="intrinsic", where=where, compute=compute.name, tensor=tensor.name,
            )
    extents = [axis.extent for axis in (*compute.axis, *compute.reduce_axis)]
    sizes = [n for tensor in compute.input_tensors for n in tensor.shape]
    if not extents or any(isinstance(n, int) and n < 1 for n in (*extents, *sizes)):
        raise DefinitionError(
            "{where}: the extents of {compute} are {extents}; extents of an intrinsic must be "
            "positive integers, or variables with such values",
            kind="intrinsic", where=where, compute=compute.name, extents=list(extents),
        )
    _check_reads(compute, where)
    first = compute.body[0]
    if isinstance(first, Reduce) and (
        first.init or first.invariants or not _is_true(first.condition)
    ):
        raise DefinitionError(
            "{where}: the reduction of an intrinsic must not have where= or init=, and its reducer "
            "must use only the values that it combines; remove everything else",
            kind="intrinsic", where=where,
        )
    return compute


def _check_reads(compute: ComputeOp, where: str) -> None:
    for tensor in compute.input_tensors:
        found: list[TensorLoad] = []
        for node in walk(*compute.body):
            is_read = isinstance(node, TensorLoad) and node.tensor == tensor
            if is_read and not any(structural_equal(node, other) for other in found):
                found.append(node)
        if len(found) > 1:
            raise DefinitionError(
                "{where}: {compute} reads {tensor} at {found_count} different indices; use "
                "separate placeholders",
                kind="intrinsic", where=where, compute=compute.name, tensor=tensor.name,
                found_count=len(found),
            )


def _is_true(condition: Expr) -> bool:
    return getattr(condition, "value", None) is True


def _statements(returned: object, where: str) -> tuple[Stmt | None, Stmt | None, Stmt | None]:
    parts = returned if isinstance(returned, tuple) else (returned, None, None)
    if len(parts) != 3 or not all(part is None or isinstance(part, Stmt) for part in parts):
        raise TypeMismatchError(
            "{where}: fcompute must return a statement, or (body, reset, update), got {value!r}",
            kind="intrinsic", where=where, value=returned,
        )
    body, reset, update = parts
    if body is None and update is None:
        raise DefinitionError(
            "{where}: fcompute returned neither a body nor an update",
            kind="intrinsic", where=where,
        )
    return body, reset, update
