"""Stages with user-provided statements (`te.extern`).

Calls of external functions require row-major memory. Operands in another layout are copied to such
memory before the statements (inputs) or from such memory after the statements (outputs).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tecomp.compute.extern import ExternOp
from tecomp.errors import LowerError
from tecomp.ir.nodes.expr import BufferLoad, Expr, Var
from tecomp.ir.nodes.stmt import (
    Allocate,
    ArrayArgument,
    Buffer,
    BufferStore,
    CallingConvention,
    ExternCall,
    For,
    Stmt,
    loops_over_elements,
    seq,
)
from tecomp.ir.traversal.rewrite import bottom_up, nodes_of, substitute, walk
from tecomp.lowering.stages.definition import Definition
from tecomp.lowering.stages.index_expressions import index_of
from tecomp.lowering.stages.program import PreparedSchedule
from tecomp.scheduling.state import Inline, StageState


def check_inputs(program: PreparedSchedule) -> None:
    """Check that the inputs of `te.extern` stages have memory.

    Raises:
        LowerError: If an input is inlined.
    """
    for definition in program.definitions.values():
        op = definition.stage.op
        for tensor in op.inputs if isinstance(op, ExternOp) else ():
            stage = program.state.stage(tensor.op)
            if isinstance(stage.attach, Inline):
                raise LowerError(
                    "s[{stage}].compute_inline: {op} is a te.extern, whose statements read "
                    "{stage} from memory; do not inline it",
                    kind="requires-storage", stage=stage.name, op=op.name,
                )


def extern_statement(program: PreparedSchedule, definition: Definition) -> Stmt | None:
    """Return the statements of a `te.extern` on its actual buffers; None for any other stage."""
    op = definition.stage.op
    if not isinstance(op, ExternOp):
        return None
    operands = list(_unlaid_buffers(program, definition, op))
    buffers = {
        declared.data: buffer if copy is None else copy
        for declared, (buffer, copy) in zip(op.buffers, operands, strict=True)
    }
    sizes: dict[Var, Expr] = dict(program.sizes)
    buffers |= {
        node.buffer.data: _substitute_sizes(node.buffer, sizes)
        for node in nodes_of(Allocate, op.statement)
    }
    body = _rewrite_to_buffers(substitute(op.statement, sizes), buffers)
    count = len(op.inputs)
    before = [_copy_loops(buffer, copy) for buffer, copy in operands[:count] if copy is not None]
    after = [_copy_loops(copy, buffer) for buffer, copy in operands[count:] if copy is not None]
    body = seq(*before, body, *after)
    for _, copy in operands:
        if copy is not None:
            body = Allocate(copy, body)
    return body


@dataclass(frozen=True, slots=True)
class _Taken:
    """Data variables of call operands: of all calls, and of calls of C functions."""

    any: frozenset[Var]
    by_address: frozenset[Var]

    def needs_copy(self, declared: Buffer, stage: StageState) -> bool:
        """Return whether the layout of an operand differs from the layout that a call requires."""
        if stage.layout.maps or stage.layout.axis_separators:
            return declared.data in self.any
        return bool(stage.aligns) and declared.data in self.by_address


def _unlaid_buffers(
    program: PreparedSchedule, definition: Definition, op: ExternOp
) -> Iterator[tuple[Buffer, Buffer | None]]:
    """Yield the buffer of each operand, with the buffer of its copy if calls require one."""
    all_data: set[Var] = set()
    by_address: set[Var] = set()
    for node in walk(op.statement):
        if isinstance(node, ExternCall):
            data = {array.element.buffer.data for array in node.arrays}
            all_data |= data
            by_address |= data if node.convention is CallingConvention.C else set()
    requirements = _Taken(frozenset(all_data), frozenset(by_address))
    stages = [*(program.state.stage(t.op) for t in op.inputs),
              *(definition.stage for _ in definition.buffers)]  # fmt: skip
    actual = [*(program.buffer_of(tensor) for tensor in op.inputs), *definition.buffers]
    for declared, stage, buffer in zip(op.buffers, stages, actual, strict=True):
        copy = Buffer(f"{buffer.name}.plain", buffer.shape, buffer.dtype)
        yield buffer, copy if requirements.needs_copy(declared, stage) else None


def _rewrite_to_buffers(statement: Stmt, buffers: Mapping[Var, Buffer]) -> Stmt:
    """Rewrite the statements to the actual buffers, with indices as function indices."""

    def rule(node: Any) -> Any:
        match node:
            case BufferLoad(buffer, indices):
                return BufferLoad(buffers.get(buffer.data, buffer), tuple(map(_index, indices)))
            case BufferStore(buffer, value, indices):
                actual = buffers.get(buffer.data, buffer)
                return BufferStore(actual, value, tuple(map(_index, indices)))
            case Allocate(buffer, body):
                return Allocate(buffers[buffer.data], body)
            case For():
                return replace(node, min=_index(node.min), extent=_index(node.extent))
            case ArrayArgument():
                return replace(node, shape=tuple(map(_index, node.shape)))
            case ExternCall() if node.multiply_adds is not None:
                return replace(node, multiply_adds=_index(node.multiply_adds))
        return None

    return bottom_up(statement, rule)


def _substitute_sizes(buffer: Buffer, sizes: Mapping[Var, Expr]) -> Buffer:
    """Substitute the function sizes in the shape of a buffer that the statements allocate."""
    shape = (n if isinstance(n, int) else _index(substitute(n, sizes)) for n in buffer.shape)
    return replace(buffer, shape=tuple(shape))


def _copy_loops(source: Buffer, target: Buffer) -> Stmt:
    """Return loops that copy every element."""
    variables = tuple(Var(f"i{k}") for k in range(len(source.shape)))
    copy = BufferStore(target, BufferLoad(source, variables), variables)
    return loops_over_elements(variables, source.shape, copy)


def _index(expr: Expr) -> Expr:
    return index_of(expr, {})
