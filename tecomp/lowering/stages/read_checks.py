"""Out-of-bounds checks for reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import Operation
from tecomp.compute.tensor import TensorLoad
from tecomp.errors import LowerError
from tecomp.ir.arith.constraint_context import ConstraintContext
from tecomp.ir.arith.simplify import bounds, constant_bounds, facts_of
from tecomp.ir.arith.symbolic_bounds import SymbolicBounds
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import BufferLoad, Const, Expr, Var, index_value
from tecomp.ir.nodes.printer import brief
from tecomp.ir.nodes.stmt import Buffer, Extent, Range
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import nodes_of, substitute, top_down
from tecomp.lowering.stages.definition import Definition, TensorRead
from tecomp.lowering.stages.index_expressions import index_of
from tecomp.lowering.stages.program import PreparedSchedule
from tecomp.poly.sets.to_isl import NotAffine, Points, Space, condition_hull, first_point, pw_aff


@dataclass(frozen=True, slots=True)
class IndexCheck:
    """Run-time bounds check of one index of a read: axis, extent and number of the report site."""

    axis: int
    extent: Extent
    site: int


def domain_ranges(program: PreparedSchedule, definition: Definition) -> dict[IterVar, Range]:
    """Return the range of every root axis."""
    shape = program.shape(definition)
    data = {
        axis: Range(Const(0), index_value(extent))
        for axis, extent in zip(definition.axis, shape, strict=True)
    }
    reduced = {
        axis: Range(
            index_value(program.extent(axis.dom.min)), index_value(program.extent(axis.extent))
        )
        for axis in definition.reduce_axis
    }
    return {**data, **reduced}


class BoundsChecker:
    """Classifier of reads: in bounds, out of bounds, or checked at run time.

    Attributes:
        program: Program whose reads are checked.
        evaluated: Points at which some stages are evaluated. Default: the full domain.
        expects_elements: If True, a read that is out of bounds only for empty arguments is checked
            at run time instead of raising an error.
        sites: Source locations that failed run-time checks report, by number.
        checks: Run-time checks of a read, by the id of the read.
    """

    def __init__(
        self,
        program: PreparedSchedule,
        evaluated: Mapping[Operation, Points] | None = None,
        *,
        expects_elements: bool = False,
    ) -> None:
        self.program = program
        self.evaluated = evaluated or {}
        self.expects_elements = expects_elements
        self.sites: list[str] = []
        self.checks: dict[int, tuple[IndexCheck, ...]] = {}

    def run(self) -> None:
        """Classify every read and collect the run-time checks.

        Raises:
            LowerError: If a read can be out of bounds; the message shows the point.
        """
        for definition in self.program.definitions.values():
            if definition.is_opaque:
                continue
            ranges = domain_ranges(self.program, definition)
            domain = _Domain(self.program, ranges, self.evaluated.get(definition.stage.key))
            for read in definition.reads:
                self._check(definition, domain, read)

    def _check(self, definition: Definition, domain: _Domain, read: TensorRead) -> None:
        new_checks = []
        for axis, (index, extent) in enumerate(
            zip(read.load.indices, read.load.tensor.shape, strict=True)
        ):
            limit = self.program.extent(extent)
            if domain.surely_inside(index, limit) or domain.is_inside(index, limit):
                continue
            outside = domain.outside(
                index, limit, read.conditions, expects_elements=self.expects_elements)
            if outside is None:
                site = _site(read.load, axis)
                if site not in self.sites:
                    self.sites.append(site)
                new_checks.append(IndexCheck(axis, limit, self.sites.index(site)))
            for point in outside or ():
                raise _read_outside(definition, read.load, axis, index, point)
        if new_checks:
            known = self.checks.get(id(read.load), ())
            existing = {(check.axis, check.site) for check in known}
            self.checks[id(read.load)] = (
                *known, *(c for c in new_checks if (c.axis, c.site) not in existing)
            )


class _Domain:
    """Points at which one definition is evaluated."""

    def __init__(
        self, program: PreparedSchedule, ranges: Mapping[IterVar, Range], evaluated: Points
        | None = None
    ) -> None:
        self.evaluated = evaluated
        self.products = program.products
        self.sizes = program.integers
        self.extents = program.symbolic_extents
        self.natural = [
            n for p in program.params if isinstance(p, Buffer) for n in p.shape
            if isinstance(n, Expr)
        ]
        self.is_constant = not program.sizes
        self.wide: dict[Var, Expr] = {axis: Var(axis.name) for axis in ranges}
        dims = tuple([v for v in self.wide.values() if isinstance(v, Var)])
        self.ranges = dict(zip(dims, ranges.values(), strict=True))
        self.space = Space(dims, self.sizes)

    @cached_property
    def symbolic(self) -> tuple[SymbolicBounds, ...]:
        """Bounds of indices in terms of sizes, for a domain with points."""
        found = tuple(SymbolicBounds(self.natural, is_grouped=flag) for flag in (False, True))
        for known, (var, span) in product(found, self.ranges.items()):
            known.add_axis(var, self._value(span.min), self._value(span.extent))
        return found

    def _value(self, extent: Extent) -> Expr:
        return substitute(index_value(extent), dict(self.products.values))

    @cached_property
    def points(self) -> Points:
        """Evaluated points as a set, for nonnegative argument extents."""
        box = self.space.box([(r.min, r.extent) for r in self.ranges.values()])
        for extent in self.extents:
            box = box.intersect(condition_hull(extent >= 0, self.space)[0])
        return box if self.evaluated is None else box.intersect(self.evaluated)

    @cached_property
    def filled(self) -> Points:
        """Points for nonempty arguments; reads are required to be in bounds here."""
        full = self.space.box([(r.min, r.extent) for r in self.ranges.values()])
        for extent in self.extents:
            full = full.intersect(condition_hull(extent >= 1, self.space)[0])
        return full

    @cached_property
    def facts(self) -> ConstraintContext:
        """Constraints on axes with constant ranges."""
        return facts_of({
            var: (int(r.min.value), int(r.min.value + r.extent.value) - 1)
            for var, r in self.ranges.items()
            if isinstance(r.min, Const) and isinstance(r.extent, Const)
        })

    def surely_inside(self, index: Expr, extent: Extent) -> bool:
        """Return whether interval arithmetic proves that `index` is in bounds."""
        if not isinstance(extent, int):
            widened = self.wide.get(index) if isinstance(index, Var) else None
            span = self.ranges.get(widened) if isinstance(widened, Var) else None
            return span is not None and structural_equal(span.min, Const(0)) and structural_equal(
                span.extent, extent)
        low, high = constant_bounds(self.facts, _with_loads(index_of(index, self.wide)))
        return low is not None and high is not None and low >= 0 and high < extent

    def is_inside(self, index: Expr, extent: Extent) -> bool:
        """Return whether `index` is in bounds for all sizes, proved with polynomials in sizes."""
        if self.is_constant:
            return False
        widened, limit = index_of(index, self.wide), self._value(extent)
        return any(known.is_inside(widened, limit) for known in self.symbolic)

    def outside(
        self,
        index: Expr,
        extent: Extent,
        conditions: tuple[Expr, ...],
        *,
        expects_elements: bool = False,
    ) -> list[dict[Var, int]] | None:
        """Return an out-of-bounds point, an empty list if none exists, or None.

        None requires a run-time check: the sets are not exact, or `expects_elements` is True and
        such points exist for empty arguments only.
        """
        try:
            value = pw_aff(self.products.named(index_of(index, self.wide)), self.space)
            limit = pw_aff(extent, self.space)
        except NotAffine:
            return None
        zero = pw_aff(0, self.space)
        outside = value.lt_set(zero).union(value.ge_set(limit)).intersect(self.points)
        # A named product depends on its factors, which the sets do not model.
        exact = not self.products.parts
        for condition in conditions:
            hull, is_exact = condition_hull(substitute(condition, self.wide), self.space)
            outside = outside.intersect(hull)
            exact = exact and is_exact
        if outside.is_empty():
            return []
        if expects_elements and outside.intersect(self.filled).is_empty():
            return None
        return [first_point(outside, self.space)] if exact else None


def _with_loads(expr: Expr) -> Expr:
    """Replace each tensor read in an index by a placeholder buffer load."""

    def rule(node: Any) -> Expr | None:
        if not isinstance(node, TensorLoad):
            return None
        return BufferLoad(Buffer(node.tensor.name, (1,), node.dtype), (Const(0, INT64),))

    return top_down(expr, rule)


def _text(expr: Expr) -> str:
    """Return the source text of an index or a read, with integers without their dtype."""
    return re.sub(r"\bint32\((-?\d+)\)", r"\1", brief(expr))


def _site(load: TensorLoad, axis: int) -> str:
    shape = ", ".join(map(str, load.tensor.shape))
    where = f"{load.location.file}:{load.location.line}: " if load.location else ""
    return f"{where}{_text(load)} (axis {axis} of {load.tensor.name}[{shape}])"


def _read_outside(
    definition: Definition,
    load: TensorLoad,
    axis: int,
    index: Expr,
    point: Mapping[Var, int],
) -> LowerError:
    location = ", ".join(f"{var.name} = {value}" for var, value in point.items())
    return LowerError(
        "{stage}: `{load}` reads {tensor}[{shape}] out of bounds: index {axis}, `{index}`, is "
        "{value}{point}; guard the read with te.if_then_else, or change the shape or the index",
        load.location, kind="out-of-bounds-read", stage=definition.stage.name, load=_text(load),
        tensor=load.tensor.name, shape=", ".join(map(str, load.tensor.shape)), axis=axis,
        index=_text(index), value=_value_at(index, point),
        point=f" at {location}" if location else "",
    )


def _value_at(index: Expr, point: Mapping[Var, int]) -> int:
    """Return the value of an affine index at a point."""
    by_name = {var.name: Const(value) for var, value in point.items()}
    values: dict[Var, Expr] = {n: by_name[n.name] for n in nodes_of(Var, index)}
    low, _ = bounds(index_of(index, values), {})
    assert low is not None
    return low
