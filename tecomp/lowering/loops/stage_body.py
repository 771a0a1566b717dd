"""Stage bodies: stores and reduction updates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tecomp.compute.iter_var import IterVar
from tecomp.compute.reduce import Reduce
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import TensorLoad
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
from tecomp.ir.nodes.stmt import BufferStore, For, ForKind, IfThenElse, Let, Stmt, seq
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import children, substitute
from tecomp.lowering.loops.cse import eliminate_common_subexpressions
from tecomp.lowering.stages.definition import Definition
from tecomp.lowering.stages.index_expressions import value_of
from tecomp.lowering.stages.program import PreparedSchedule
from tecomp.lowering.stages.read_checks import IndexCheck


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
