"""Stages that are statements of the user's: on the buffers that the schedule gives them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tecomp.compute.extern import ExternOp
from tecomp.errors import LowerError
from tecomp.ir.language.expr import BufferLoad, Expr, Var
from tecomp.ir.language.stmt import BufferStore, For, Stmt
from tecomp.ir.traversal.rewrite import bottom_up, substitute
from tecomp.lowering.stages.definition import Definition
from tecomp.lowering.stages.index import index_of
from tecomp.lowering.stages.program import Program
from tecomp.scheduling.state import Inline


def check_inputs(program: Program) -> None:
    """What statements read has memory.

    Raises:
        LowerError: an input is inlined.
    """
    for definition in program.definitions.values():
        op = definition.stage.op
        for tensor in op.inputs if isinstance(op, ExternOp) else ():
            stage = program.state.stage(tensor.op)
            if isinstance(stage.attach, Inline):
                raise LowerError(
                    f"s[{stage.name}].compute_inline: {op.name} is a te.extern, whose statements "
                    f"read {stage.name} from memory; do not inline it"
                )


def opaque(program: Program, definition: Definition) -> Stmt | None:
    """The statements of a `te.extern`, on its memory; None for any other stage."""
    op = definition.stage.op
    if not isinstance(op, ExternOp):
        return None
    actual = [*(program.buffer_of(tensor) for tensor in op.inputs), *definition.buffers]
    places = {own.data: real for own, real in zip(op.buffers, actual, strict=True)}

    def rule(node: Any) -> Any:
        match node:
            case BufferLoad(buffer, indices):
                return BufferLoad(places.get(buffer.data, buffer), tuple(map(_index, indices)))
            case BufferStore(buffer, value, indices):
                real = places.get(buffer.data, buffer)
                return BufferStore(real, value, tuple(map(_index, indices)))
            case For():
                return replace(node, min=_index(node.min), extent=_index(node.extent))
        return None

    sizes: dict[Var, Expr] = dict(program.sizes)
    return bottom_up(substitute(op.statement, sizes), rule)


def _index(expr: Expr) -> Expr:
    return index_of(expr, {})
