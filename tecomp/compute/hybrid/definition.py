"""What a hybrid function defines: a `te.compute` where its loops are one, else a `te.extern`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tecomp.compute.builder import Operand
from tecomp.compute.define import compute
from tecomp.compute.extern import extern
from tecomp.compute.hybrid.statements import Reader
from tecomp.compute.hybrid.values import Array
from tecomp.compute.intrinsics import cast as cast_value
from tecomp.compute.ir_builder import IRBuilder
from tecomp.compute.logic import if_then_else
from tecomp.compute.tensor import Tensor
from tecomp.errors import DefinitionError
from tecomp.ir.algebra.simplify import simplify
from tecomp.ir.language.equal import same
from tecomp.ir.language.expr import BufferLoad, Cast, Const, Expr, Var, const, index_value, is_const
from tecomp.ir.language.stmt import (
    Buffer,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    Let,
    Stmt,
    over_elements,
    seq,
)
from tecomp.ir.traversal.rewrite import bottom_up, substitute, walk


def defined(function: Any, arguments: Sequence[Any]) -> Any:
    """The tensor that a function defines for tensors, numbers and lists of them; or a list.

    Raises:
        DefinitionError: something in the function is outside of the subset.
    """
    inputs, reader, returned = _read_once(function, arguments, ())
    if reader.changed:
        changed = [t for t, operand in inputs.items()
                   if any(operand.buffer is each for each in reader.changed)]  # fmt: skip
        inputs, reader, returned = _read_once(function, arguments, changed)
    statement = reader.builder.get()
    outputs = [each.operand.buffer for each in returned]
    missing = [b.name for b in reader.outputs if all(b is not each for each in outputs)]
    if missing:
        raise DefinitionError(
            f"te.hybrid {function.source.name}: {missing[0]} is an output_tensor and not returned; "
            "return it, or allocate it",
            kind="hybrid",
        )
    if any(all(b is not each for each in reader.outputs) for b in outputs):
        raise DefinitionError(
            f"te.hybrid {function.source.name}: it returns what is no output_tensor of its own; "
            "copy that to one, element by element",
            kind="hybrid",
        )
    made = _plain(statement, outputs, inputs)
    return made if made is not None else _opaque(function.source.name, statement, outputs, inputs)


def _read_once(
    function: Any, arguments: Sequence[Any], changed: Sequence[Tensor]
) -> tuple[dict[Tensor, Operand], Reader, list[Array]]:
    """The inputs of a function, what read it, and what it returns.

    Inputs that are `changed` are copied first: the arrays of a caller stay as they are.
    """
    inputs: dict[Tensor, Operand] = {}
    copies: dict[Tensor, Operand] = {}
    reader = Reader(function.source, IRBuilder())

    def argument(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return tuple(map(argument, value))
        if not isinstance(value, Tensor):
            is_index = isinstance(value, Const) and value.dtype == "int64"
            return int(value.value) if is_index else value
        if value not in inputs:
            buffer = Buffer(value.name, value.shape, value.dtype, "")
            inputs[value] = Operand(buffer, is_input=True)
            if any(value == each for each in changed):
                copies[value] = _copied(inputs[value], reader.builder)
        return Array(copies.get(value, inputs[value]))

    returned = reader.run([argument(each) for each in arguments])
    return inputs, reader, returned


def _copied(given: Operand, builder: IRBuilder) -> Operand:
    memory: Operand = builder.allocate(str(given.dtype), given.shape, given.name).operand
    variables = tuple(Var(f"i{k}") for k in range(len(given.shape)))
    element = BufferLoad(given.buffer, variables)
    builder.emit(over_elements(
        variables, given.buffer.shape, BufferStore(memory.buffer, element, variables)))
    return memory


def _plain(
    statement: Stmt, outputs: Sequence[Buffer], inputs: Mapping[Tensor, Operand]
) -> Tensor | None:
    """A `te.compute` for loops that store each element of one tensor once; None for all else."""
    if len(outputs) != 1:
        return None
    (out,) = outputs
    loops, body = _loops(statement)
    if any(loop.kind is not ForKind.SERIAL or not is_const(loop.min, 0) for loop in loops):
        return None
    found = _stored(body, out)
    if found is None:
        return None
    indices, value = found
    by_var = {loop.loop_var: loop for loop in loops}
    axes = [_variable(index) for index in indices]
    if len(loops) != len(axes) or set(by_var) != set(axes) or any(
        isinstance(node, BufferLoad) and node.buffer.data is out.data for node in walk(value)
    ):
        return None
    extents = zip(axes, out.shape, strict=True)
    if not all(same(simplify(by_var[var].extent), simplify(index_value(n)))
               for var, n in extents if var is not None):
        return None
    variables = [var for var in axes if var is not None]
    tensors = {operand.buffer.data: tensor for tensor, operand in inputs.items()}
    # The axes of the tensor are its loops; their order is the schedule's.
    made: Tensor = compute(
        out.shape,
        lambda *own: cast_value(_read(value, dict(zip(variables, own, strict=True)), tensors),
                                out.dtype),
        name=out.name, varargs_names=[var.name for var in variables],
    )
    return made


def _loops(statement: Stmt) -> tuple[list[For], Stmt]:
    loops: list[For] = []
    while isinstance(statement, For):
        loops.append(statement)
        statement = statement.body
    return loops, statement


def _variable(index: Expr) -> Var | None:
    while isinstance(index, Cast):
        index = index.value
    return index if isinstance(index, Var) else None


def _stored(body: Stmt, out: Buffer) -> tuple[tuple[Expr, ...], Expr] | None:
    """The one place that a statement stores to in any case, and the value."""
    match body:
        case BufferStore(buffer, value, indices) if buffer.data is out.data:
            return indices, value
        case Let(var, value, inner):
            found = _stored(inner, out)
            return None if found is None else (found[0], substitute(found[1], {var: value}))
        case IfThenElse(condition, then, other) if other is not None:
            first, second = _stored(then, out), _stored(other, out)
            if first is None or second is None or not all(
                same(a, b) for a, b in zip(first[0], second[0], strict=True)
            ):
                return None
            return first[0], if_then_else(condition, first[1], second[1])
    return None


def _read(value: Expr, axes: Mapping[Var, Expr], tensors: Mapping[Var, Tensor]) -> Expr:
    """A value in terms of axes and elements of tensors."""

    def rule(node: Any) -> Any:
        match node:
            case Cast(_, Var() as var) if var in axes and node.dtype == axes[var].dtype:
                return axes[var]
            case BufferLoad(buffer, indices):
                return tensors[buffer.data][tuple(map(_index, indices))]
        return None

    return substitute(bottom_up(value, rule), dict(axes))


def _index(index: Expr) -> Expr:
    """An index in the type that it was written in."""
    return index.value if isinstance(index, Cast) and index.value.dtype.is_integer else index


def _opaque(
    name: str, statement: Stmt, outputs: Sequence[Buffer], inputs: Mapping[Tensor, Operand]
) -> Any:
    """A `te.extern`; results that are read before they are stored begin as zeros, as in Python."""
    read = {node.buffer.data for node in walk(statement) if isinstance(node, BufferLoad)}
    zeros = [_zeros(out) for out in outputs if out.data in read]
    whole = seq(*zeros, statement)

    def statements(ins: Sequence[Operand], outs: Sequence[Operand]) -> Stmt:
        own = [*(operand.buffer for operand in inputs.values()), *outputs]
        places = {mine.data: given.buffer for mine, given in zip(own, [*ins, *outs], strict=True)}

        def rule(node: Any) -> Any:
            match node:
                case BufferLoad(buffer, indices) if buffer.data in places:
                    return BufferLoad(places[buffer.data], indices)
                case BufferStore(buffer, value, indices) if buffer.data in places:
                    return BufferStore(places[buffer.data], value, indices)
            return None

        made: Stmt = bottom_up(whole, rule)
        return made

    made = extern(
        [out.shape for out in outputs], list(inputs), statements,
        name=outputs[0].name if len(outputs) == 1 else name,
        dtype=[out.dtype for out in outputs],
    )
    return made


def _zeros(out: Buffer) -> Stmt:
    variables = tuple(Var(f"i{k}") for k in range(len(out.shape)))
    return over_elements(variables, out.shape, BufferStore(out, const(0, out.dtype), variables))

