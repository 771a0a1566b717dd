"""The size variables of a program, and names for the products of sizes that extents are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tecomp.compute.extern import ExternOp
from tecomp.compute.nodes import distinct_nodes
from tecomp.compute.operation import ComputeOp
from tecomp.compute.reduce import Reduce
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor
from tecomp.errors import LowerError
from tecomp.ir.dtype import INT64
from tecomp.ir.equal import same
from tecomp.ir.expr import Binary, BinOp, Const, Expr, Var
from tecomp.ir.rewrite import bottom_up, free_variables, substitute, walk
from tecomp.ir.stmt import Extent
from tecomp.ir.text import identifier, take_name
from tecomp.scheduling.state import Split, StageState, State, Transform

_BY_CONSTANTS = (BinOp.MUL, BinOp.FLOORDIV, BinOp.MOD)


@dataclass(frozen=True, slots=True)
class Products:
    """Parts of extents that no set can compute from sizes, such as `n * m`, each with a variable.

    Sets know of such a variable no more than that it is some number, the same one everywhere.

    Attributes:
        parts: variable -> the part, in terms of sizes and of variables before it.
        values: variable -> its part, in terms of sizes alone.
    """

    parts: Mapping[Var, Expr] = field(default_factory=dict)
    values: Mapping[Var, Expr] = field(default_factory=dict)

    @property
    def variables(self) -> tuple[Var, ...]:
        """All variables."""
        return tuple(self.parts)

    def named(self, extent: Expr) -> Expr:
        """`extent` with variables in the place of the parts."""
        return bottom_up(extent, self._named) if self.parts else extent

    def _named(self, node: Any) -> Expr | None:
        if not _is_product(node):
            return None
        found = (var for var, part in self.parts.items() if _same_product(part, node))
        return next(found, None)


def products_of(extents: Iterable[Expr], sizes: Iterable[Var]) -> Products:
    """The products in `extents`, which are in terms of `sizes`.

    >>> n, m = Var("n"), Var("m")
    >>> products = products_of([n * m // 4, m * n], [n, m])
    >>> products.values
    {size: n * m}
    """
    taken = {var.name for var in sizes}
    products = Products()

    def rule(node: Any) -> Expr | None:
        nonlocal products
        if not _is_product(node):
            return None
        if (known := products.named(node)) is not node:
            return known
        var = Var(take_name("size", taken), INT64)
        value = substitute(node, dict(products.values))
        products = Products({**products.parts, var: node}, {**products.values, var: value})
        return var

    for extent in extents:
        bottom_up(extent, rule)
    return products


def _is_product(node: Any) -> bool:
    """Whether a node multiplies or divides by what is no number."""
    if not (isinstance(node, Binary) and node.op in _BY_CONSTANTS):
        return False
    constant = [isinstance(operand, Const) for operand in (node.a, node.b)]
    return not (any(constant) if node.op is BinOp.MUL else constant[1])


def _same_product(a: Expr, b: Expr) -> bool:
    assert isinstance(a, Binary)
    assert isinstance(b, Binary)
    turned = a.op is b.op is BinOp.MUL and same(a.a, b.b) and same(a.b, b.a)
    return turned or same(a, b)


def extents_of(stage: StageState) -> list[Extent]:
    """The extents of the axes of a stage, and where they begin."""
    found: list[Extent] = [*stage.op.shape]
    if isinstance(stage.op, ComputeOp):
        found += [n for axis in stage.op.reduce_axis for n in (axis.dom.min, axis.extent)]
    changed = (r for r in stage.relations if isinstance(r, Transform))
    return [*found, *(axis.extent for relation in changed for axis in relation.after)]


def sizes_of(state: State, arguments: Sequence[Tensor | Var]) -> dict[Var, Var]:
    """A variable of the function for each size variable of the computation."""
    found: dict[Var, None] = {a: None for a in arguments if isinstance(a, Var)}
    bound = set(found)
    taken: set[str] = set()
    for argument in arguments:
        for extent in argument.shape if isinstance(argument, Tensor) else ():
            variables = _variables(extent)
            found.update(dict.fromkeys(variables))
            bound.update(variables)
    for stage in state:
        used = dict.fromkeys((*_defined(stage), *_scheduled(stage)))
        for var in used:
            if var not in bound:
                raise LowerError(
                    f"lower: {stage.name} depends on {var.name}, which no argument determines; "
                    f"add {var.name} itself to the arguments"
                )
        found.update(used)
    types = {var: INT64 if var.dtype.is_integer else var.dtype for var in found}
    return {var: Var(take_name(identifier(var.name), taken), types[var]) for var in found}


def _defined(stage: StageState) -> list[Var]:
    """The variables in the definition of a stage that are no axes of it."""
    found = [var for extent in stage.op.shape for var in _variables(extent)]
    if isinstance(stage.op, ComputeOp):
        for axis in stage.op.reduce_axis:
            found += [*_variables(axis.extent), *_variables(axis.dom.min)]
        bound = {*stage.op.axis, *stage.op.reduce_axis, *_bound_by_reducer(stage)}
        start = stage.op.start if isinstance(stage.op, ScanOp) else ()
        nodes = distinct_nodes(*stage.op.body, *start)
        found += [node for node in nodes if type(node) is Var and node not in bound]
    if isinstance(stage.op, ExternOp):
        found += free_variables(stage.op.statement)
    return found


def _scheduled(stage: StageState) -> list[Var]:
    """The variables in factors of splits and in values of padding."""
    found = [
        var
        for relation in stage.relations
        if isinstance(relation, Split)
        for extent in (relation.factor, relation.nparts)
        if extent is not None
        for var in _variables(extent)
    ]
    pad = stage.layout.pad_value
    return [*found, *(free_variables(pad) if pad is not None else ())]


def _bound_by_reducer(stage: StageState) -> set[Var]:
    first = stage.compute.body[0]
    return set(first.combiner.bound()) if isinstance(first, Reduce) else set()


def _variables(extent: Extent) -> list[Var]:
    return [] if isinstance(extent, int) else [n for n in walk(extent) if isinstance(n, Var)]
