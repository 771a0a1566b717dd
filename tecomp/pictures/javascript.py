"""Index expressions as JavaScript, with constants that a reader may change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tecomp.errors import InternalError
from tecomp.ir.language.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Not,
    Select,
    Var,
)
from tecomp.ir.language.operators import BinOp
from tecomp.ir.traversal.rewrite import children, free_variables, post_order

_OPERATORS = {
    BinOp.ADD: "{0}+{1}", BinOp.SUB: "{0}-{1}", BinOp.MUL: "{0}*{1}",
    BinOp.FLOORDIV: "fd({0},{1})",
    BinOp.MOD: "fm({0},{1})", BinOp.MIN: "Math.min({0},{1})", BinOp.MAX: "Math.max({0},{1})",
    BinOp.AND: "({0}&&{1})", BinOp.OR: "({0}||{1})", BinOp.BITAND: "bits({0},'&',{1})",
    BinOp.BITOR: "bits({0},'|',{1})", BinOp.BITXOR: "bits({0},'^',{1})",
    BinOp.SHL: "{0}*2**{1}", BinOp.SHR: "fd({0},2**{1})",
}


@dataclass
class Sizes:
    """The constants by which indices are divided.

    Attributes:
        found: for each constant and the indices that it divides, its number.
    """

    found: dict[tuple[int, tuple[str, ...]], int] = field(default_factory=dict)

    def number(self, value: int, names: tuple[str, ...]) -> int:
        """The same for divisions and remainders of the same indices by the same constant."""
        return self.found.setdefault((value, names), len(self.found))


def function_text(
    name: str, variables: Sequence[Var], results: Sequence[Expr], sizes: Sizes | None = None
) -> str:
    """A function of JavaScript from a list of indices, and one of sizes, to a list of results.

    Args:
        name: of the function.
        variables: what the indices are.
        results: what it gives.
        sizes: where the constants that a reader may change are noted; None to keep all.

    Raises:
        InternalError: a part is no operation that index maps have.
    """
    known: dict[int, str] = {}
    places = {variable: f"x[{k}]" for k, variable in enumerate(variables)}
    lines: list[str] = []
    for node in post_order(*results):
        text = _text(node, known, places, sizes)
        if isinstance(node, Var | Const):
            known[id(node)] = text
            continue
        known[id(node)] = f"t{len(lines)}"
        lines.append(f"const t{len(lines)}={text};")
    given = ",".join(known[id(node)] for node in results)
    return f"function {name}(x,c){{{''.join(lines)}return [{given}];}}"


def _text(
    node: Expr, known: Mapping[int, str], places: Mapping[Var, str], sizes: Sizes | None
) -> str:
    parts = [known[id(part)] for part in children(node)]
    match node:
        case Var():
            return places[node]
        case Const():
            return f"({int(node.value)})"
        case Binary(op, a, b) if op in _OPERATORS:
            divides = op in (BinOp.FLOORDIV, BinOp.MOD) and isinstance(b, Const)
            if sizes is not None and divides and isinstance(b, Const) and b.value > 1:
                names = tuple(variable.name for variable in free_variables(a))
                parts[1] = f"c[{sizes.number(int(b.value), names)}]"
            return _OPERATORS[op].format(*parts)
        case Cast():
            return f"Number({parts[0]})"
        case Compare():
            return f"({parts[0]}{node.op.value}{parts[1]})"
        case Not():
            return f"!{parts[0]}"
        case Select() | Call("if_then_else"):
            return f"({parts[0]}?{parts[1]}:{parts[2]})"
        case Call("abs"):
            return f"Math.abs({parts[0]})"
    raise InternalError(f"explore: `{node}` is no operation of index maps")
