"""Double buffers: what the next iteration of a loop needs is computed before this one's is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NoReturn

from tecomp.compute.axis import IterVar
from tecomp.errors import LowerError
from tecomp.ir.algebra.simplify import Ranges
from tecomp.ir.language.expr import BufferLoad, Const, Var, index_value, logical_and
from tecomp.ir.language.stmt import (
    Allocate,
    Buffer,
    BufferRealize,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    PrimFunc,
    Range,
    SeqStmt,
    Stmt,
    seq,
)
from tecomp.ir.traversal.rewrite import substitute, walk
from tecomp.lowering.stages.definition import Definition
from tecomp.lowering.stages.kinds import loop_kinds
from tecomp.lowering.stages.program import Program
from tecomp.lowering.storage.across import across_iterations, allocated_around, regions_of, replaced
from tecomp.lowering.storage.allocations import Indices, from_start, local_buffer, rebased
from tecomp.lowering.storage.buffers import extent_variables
from tecomp.scheduling.state import At


def check_doubled(program: Program) -> None:
    """Stages with a double buffer are computed inside loops that run one iteration after another.

    Raises:
        LowerError: one is not, or its memory is the caller's.
    """
    for stage in program.state:
        if not stage.is_doubled:
            continue
        where = f"s[{stage.name}].double_buffer"
        if not isinstance(stage.attach, At):
            raise LowerError(
                f"{where}: {stage.name} is not computed inside a loop, so there is no next "
                "iteration to compute it for; use compute_at",
                kind="between-iterations",
            )
        if program.definitions[stage.key].is_argument:
            raise LowerError(
                f"{where}: the caller passes the memory of {stage.name}, which has one copy; "
                "leave it out of the arguments",
                kind="between-iterations",
            )
        parent, axis = program.state.stage(stage.attach.stage), stage.attach.axis
        kind = loop_kinds(parent).get(axis)
        if kind in (ForKind.PARALLEL, ForKind.VECTORIZED):
            raise LowerError(
                f"{where}: the iterations of {axis.name} of {parent.name} run at the same time, so "
                "none comes next; compute it in a loop inside of that one",
                kind="between-iterations",
            )


def loop_ahead(definition: Definition, loops: Mapping[IterVar, Var]) -> Var | None:
    """The loop whose next iteration a stage is computed for; None if it is not, or has no next."""
    stage = definition.stage
    if not stage.is_doubled or not isinstance(stage.attach, At):
        return None
    return loops.get(stage.attach.axis)


def double_buffers(func: PrimFunc) -> PrimFunc:
    """Give every region that is realized `ahead` of a loop two copies, used in turn.

        for i in range(n):                       with Allocate(... (2, 8)) as P:
            with BufferRealize(..., ahead=i):        if n > 0: P[0] = f(0)
                P = f(i)                   ->        for i in range(n):
                C[i] = g(P)                              if i + 1 < n: P[(i + 1) % 2] = f(i + 1)
                                                         C[i] = g(P[i % 2])

    Raises:
        LowerError: what computes the region reads something that the same loop computes.
    """
    return across_iterations(func, "ahead", _pipelined)


def _pipelined(node: Stmt, ranges: Ranges) -> Stmt | None:
    if not isinstance(node, For):
        return None
    buffers: list[Buffer] = []
    first: list[Stmt] = []
    loop = node
    while found := next(regions_of(loop, "ahead"), None):
        realize, conditions = found
        inside = {**ranges, loop.loop_var: (loop.min, loop.min + loop.extent - 1)}
        local = _twice(local_buffer(realize, inside))
        place = _in_turn(realize.bounds, loop.loop_var)
        body = rebased(realize.body, realize.buffer, local, place)
        produce, rest = _parts(body, local.data)
        _check(loop, realize, local, produce, rest)
        guarded = IfThenElse(logical_and(*conditions), produce) if conditions else produce
        following = loop.loop_var + 1
        ahead = IfThenElse(following < loop.min + loop.extent,
                           substitute(guarded, {loop.loop_var: following}))
        buffers.append(local)
        first.append(IfThenElse(loop.extent > 0, substitute(guarded, {loop.loop_var: loop.min})))
        # What comes next is computed whether or not this iteration has a use for its own part.
        around = replaced(loop.body, realize, rest)
        loop = replace(loop, body=seq(ahead, around))
    return allocated_around(buffers, seq(*first, loop)) if buffers else None


def _twice(local: Buffer) -> Buffer:
    """A buffer with one more axis, the first, which is the copy."""
    strides = local.strides
    if strides is not None:
        whole = index_value(strides[0]) * local.shape[0]
        strides = (int(whole.value) if isinstance(whole, Const) else whole, *strides)
    separators = tuple(separator + 1 for separator in local.axis_separators)
    return replace(local, shape=(2, *local.shape), strides=strides, axis_separators=separators)


def _in_turn(bounds: tuple[Range, ...], loop: Var) -> Callable[[Indices], Indices]:
    """Where the copy of one iteration of `loop` has an element of a region."""
    place = from_start(bounds)
    return lambda indices: (loop % 2, *place(indices))


def _parts(body: Stmt, data: Var) -> tuple[Stmt, Stmt]:
    """What computes the region of memory `data`, and what comes after that."""
    stmts = body.stmts if isinstance(body, SeqStmt) else (body,)
    last = max((k for k, stmt in enumerate(stmts) if data in _written(stmt)), default=-1) + 1
    return seq(*stmts[:last]), seq(*stmts[last:])


def _check(loop: For, realize: BufferRealize, local: Buffer, produce: Stmt, rest: Stmt) -> None:
    """Refuse what would be read before it is computed.

    Raises:
        LowerError: there is something.
    """
    name = realize.buffer.name
    outside = replaced(loop.body, realize, rest)
    made = _written(outside) | {
        n.buffer.data for n in walk(outside) if isinstance(n, Allocate | BufferRealize)
    }
    for node in walk(produce):
        if isinstance(node, BufferLoad) and node.buffer.data in made:
            _refuse(name, f"it reads {node.buffer.name}, which the same loop computes; compute "
                          f"that inside of {name}, or further out")
    if loop.loop_var in extent_variables(local):
        _refuse(name, "how much memory it needs depends on the iteration")


def _refuse(name: str, why: str) -> NoReturn:
    raise LowerError(
        f"s[{name}].double_buffer: {name} cannot be computed an iteration ahead: {why}",
        kind="between-iterations",
    )


def _written(root: Stmt) -> set[Var]:
    return {node.buffer.data for node in walk(root) if isinstance(node, BufferStore)}
