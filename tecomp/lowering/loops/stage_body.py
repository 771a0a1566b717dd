"""Bodies of stages: stores, reduction updates, and user-provided statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tecomp.compute.extern import ExternOp
from tecomp.compute.iter_var import IterVar
from tecomp.compute.reduce import Reduce
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import TensorLoad
from tecomp.errors import LowerError
from tecomp.ir.nodes.dtype import BOOL
from tecomp.ir.nodes.expr import (
    BinOp,
    BufferLoad,
    Call,
    CmpOp,
    Compare,
    Const,
    Expr,
    Var,
    binary,
    index_value,
    logical_and,
)
from tecomp.ir.nodes.stmt import (
    Allocate,
    ArrayArgument,
    Buffer,
    BufferStore,
    CallingConvention,
    ExternCall,
    For,
    ForKind,
    IfThenElse,
    Let,
    Stmt,
    loops_over_elements,
    seq,
)
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import bottom_up, children, nodes_of, substitute, walk
from tecomp.lowering.loops.cse import eliminate_common_subexpressions
from tecomp.lowering.stages.definition import Definition
from tecomp.lowering.stages.index_expressions import index_of, value_of
from tecomp.lowering.stages.program import PreparedSchedule
from tecomp.lowering.stages.read_checks import IndexCheck
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


@dataclass(frozen=True)
class StageBody:
    """Builder of the innermost statements of one stage.

    Attributes:
        program: Program that provides the buffers.
        definition: Definition of the stage.
        checks: Run-time index checks by the id of the read.
        stored: Store predicate on the axes. Default: elements are always stored.
        tested: Terms of the reduction condition that the loops do not enforce. Default: the whole
            condition.
    """

    program: PreparedSchedule
    definition: Definition
    checks: Mapping[int, tuple[IndexCheck, ...]]
    stored: Expr | None = None
    tested: tuple[Expr, ...] | None = None

    def initial(self, roots: Mapping[IterVar, Expr]) -> Stmt:
        """Store the initial value of a reduction, or the initial steps of a scan."""
        reduce = self.definition.reduce
        if reduce is None:
            return self._first_steps(roots)
        start = reduce.init or reduce.identity
        return self._store([self._value(value, roots) for value in start], roots)

    def _first_steps(self, roots: Mapping[IterVar, Expr]) -> Stmt:
        axis = self.definition.axis[0]
        step = Var(axis.name)
        values = {**roots, axis: step}
        store = self._store([self._value(e, values) for e in self.definition.start], values)
        extent, steps = self.definition.first_step, self.program.shape(self.definition)[0]
        if not (isinstance(extent, int) and isinstance(steps, int)):
            extent = binary(BinOp.MIN, index_value(extent), index_value(steps))
        return For(step, Const(0), index_value(extent), ForKind.SERIAL, store)

    def update(self, roots: Mapping[IterVar, Expr], *, starts: bool = False) -> Stmt:
        """Store the element, or combine one value into the accumulator.

        Args:
            roots: Values of the root axes.
            starts: Whether the first step uses the initial value instead of the accumulator. When
                combining partial results, the first step stores the first partial result.
        """
        reduce = self.definition.reduce
        if reduce is None:
            return self._store(self._values(self.definition.body, roots), roots)
        if not starts:
            return self._combine(reduce, roots)
        first = logical_and(
            *(Compare(CmpOp.EQ, roots[axis], index_value(self.program.extent(axis.dom.min)))
              for axis in reduce.axis)
        )
        if combines_partial_results(self.program, self.definition):
            begin = self._store(self._values(reduce.source, roots), roots)
            return IfThenElse(first, begin, self._combine(reduce, roots))
        (identity,) = (self._value(value, roots) for value in reduce.identity)
        (new,) = (self._value(value, roots) for value in reduce.source)
        (result,) = self._results(reduce, roots)
        (left,), (right,) = reduce.combiner.lhs, reduce.combiner.rhs
        begin = self._store([substitute(result, {left: identity, right: new})], roots)
        return IfThenElse(first, begin, self._combine(reduce, roots))

    def _combine(self, reduce: Reduce, roots: Mapping[IterVar, Expr]) -> Stmt:
        combiner = reduce.combiner
        indices = self._indices(roots)
        old = [BufferLoad(buffer, indices) for buffer in self.definition.buffers]
        new = self._values(reduce.source, roots)
        # Bind the operands, so that a combiner with several results computes each of them once.
        lets: list[tuple[Var, Expr]] = []
        if len(combiner.result) > 1:
            lets = [
                (Var(var.name, value.dtype), value)
                for var, value in zip((*combiner.lhs, *combiner.rhs), (*old, *new), strict=True)
            ]
            old_new: list[Expr] = [var for var, _ in lets]
        else:
            old_new = [*old, *new]
        operands = dict(zip((*combiner.lhs, *combiner.rhs), old_new, strict=True))
        results = [substitute(result, operands) for result in self._results(reduce, roots)]
        statement = self._store(results, roots)
        for var, value in reversed(lets):
            statement = Let(var, value, statement)
        tested = (reduce.condition,) if self.tested is None else self.tested
        condition = self._value(logical_and(*tested), roots)
        if isinstance(condition, Const) and condition.value is True:
            return statement
        return IfThenElse(condition, statement)

    def _results(self, reduce: Reduce, roots: Mapping[IterVar, Expr]) -> tuple[Expr, ...]:
        """Return the combiner results in terms of the operand variables."""
        combiner = reduce.combiner
        if not reduce.invariants:
            return combiner.result
        known = dict(zip(combiner.invariants, self._values(reduce.invariants, roots), strict=True))
        return tuple(substitute(result, known) for result in combiner.result)

    def _store(self, values: list[Expr], roots: Mapping[IterVar, Expr]) -> Stmt:
        indices = self._indices(roots)
        lets, named = eliminate_common_subexpressions(values)
        statement = seq(
            *(
                self._where_it_is(k, BufferStore(buffer, value, indices), roots)
                for k, (buffer, value) in enumerate(
                    zip(self.definition.buffers, named, strict=True))
            )
        )
        for var, value in reversed(lets):
            statement = Let(var, value, statement)
        if self.stored is None:
            return statement
        return IfThenElse(self._value(self.stored, roots), statement)

    def _where_it_is(self, k: int, store: Stmt, roots: Mapping[IterVar, Expr]) -> Stmt:
        """Guard a store to output k, which may have fewer elements than other scan outputs."""
        op = self.definition.stage.op
        inside = op.inside(k) if isinstance(op, ScanOp) else None
        if inside is None:
            return store
        return IfThenElse(self._value(substitute(inside, dict(self.program.sizes)), roots), store)

    def _indices(self, roots: Mapping[IterVar, Expr]) -> tuple[Expr, ...]:
        return tuple([roots[axis] for axis in self.definition.axis])

    def _value(self, expr: Expr, roots: Mapping[IterVar, Expr]) -> Expr:
        return value_of(expr, roots, self._load)

    def _values(self, exprs: tuple[Expr, ...], roots: Mapping[IterVar, Expr]) -> list[Expr]:
        """Rewrite several values at once, preserving shared subexpressions."""
        combined = self._value(Call("tuple", exprs, exprs[0].dtype), roots)
        return list(children(combined))

    def _load(self, load: TensorLoad, indices: tuple[Expr, ...]) -> BufferLoad:
        buffer = self.program.buffer_of(load.tensor)
        checks = [
            Call(
                "check_index",
                (indices[c.axis], index_value(c.extent), Const(c.site)),
                BOOL,
            )
            for c in self.checks.get(id(load), ())
        ]
        return BufferLoad(buffer, indices, logical_and(*checks) if checks else None)


def combines_partial_results(program: PreparedSchedule, definition: Definition) -> bool:
    """Return whether a reduction reads the results of a stage with the same reducer.

    Such partial results include the identity already, so the first one can be stored unchanged. For
    a reducer of several values only the identities must agree: its combiner may also order the
    partial results.
    """
    reduce = definition.reduce
    if reduce is None or reduce.init or reduce.invariants:
        return False
    loads = [value for value in reduce.source if isinstance(value, TensorLoad)]
    if [load.tensor.value_index for load in loads] != [*range(len(reduce.source))]:
        return False
    producer, *others = {program.producer(load.tensor) for load in loads}
    source = program.definitions.get(producer)
    if others or source is None or source.reduce is None or source.reduce.init:
        return False
    combiner, other = reduce.combiner, source.reduce.combiner
    if len(combiner.result) > 1:
        return structural_equal(combiner.identity, other.identity)
    return structural_equal(combiner, other)
