"""Names for the parts of extents that no set can compute from sizes, such as `n * m`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tecomp.ir.language.equal import same
from tecomp.ir.language.expr import Binary, BinOp, Const, Expr, Var
from tecomp.ir.language.text import take_name
from tecomp.ir.traversal.rewrite import bottom_up, free_variables, substitute
from tecomp.poly.sets.affine import NotAffine, Space, pw_aff

_BY_CONSTANTS = (BinOp.MUL, BinOp.FLOORDIV, BinOp.MOD)
_BITS = (BinOp.BITAND, BinOp.BITOR, BinOp.BITXOR, BinOp.SHL, BinOp.SHR)


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
        var = Var(take_name("size", taken), node.dtype)
        value = substitute(node, dict(products.values))
        products = Products({**products.parts, var: node}, {**products.values, var: value})
        return var

    for extent in extents:
        bottom_up(extent, rule)
    return products


def _is_product(node: Any) -> bool:
    """Whether a node multiplies or divides by what is no number, or combines bits."""
    if not isinstance(node, Binary) or not node.dtype.is_integer:
        return False
    if node.op in _BITS:
        return not _is_affine(node)
    if node.op not in _BY_CONSTANTS:
        return False
    constant = [isinstance(operand, Const) for operand in (node.a, node.b)]
    return not (any(constant) if node.op is BinOp.MUL else constant[1])


def _is_affine(node: Expr) -> bool:
    try:
        pw_aff(node, Space((), tuple(free_variables(node))))
    except NotAffine:
        return False
    return True


def _same_product(a: Expr, b: Expr) -> bool:
    assert isinstance(a, Binary)
    assert isinstance(b, Binary)
    swapped = a.op is b.op is BinOp.MUL and same(a.a, b.b) and same(a.b, b.a)
    return swapped or same(a, b)
