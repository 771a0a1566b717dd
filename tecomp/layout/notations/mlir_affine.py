"""MLIR affine maps."""

from __future__ import annotations

from tecomp.errors import LayoutError
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import Binary, BinOp, Cast, Const, Expr, Var
from tecomp.ir.traversal.rewrite import fold
from tecomp.layout.notations.scanner import Scanner
from tecomp.poly.maps.index_map import IndexMap

_SUM, _PRODUCT, _ATOM = range(3)
_WORDS = {BinOp.MUL: "*", BinOp.FLOORDIV: "floordiv", BinOp.MOD: "mod"}
_OPERATORS = {
    "*": BinOp.MUL, "floordiv": BinOp.FLOORDIV, "mod": BinOp.MOD, "ceildiv": BinOp.FLOORDIV,
}

Text = tuple[str, int]


def map_text(index_map: IndexMap) -> str:
    """Format an index map as an MLIR affine map with dimensions d0, d1 and so on.

    Raises:
        LayoutError: If the map contains an operation that the notation cannot express.

    >>> map_text(IndexMap.from_func(lambda i, j: [(i // 8) * 4 + j, i % 8 - 1]))
    '(d0, d1) -> ((d0 floordiv 8) * 4 + d1, d0 mod 8 - 1)'
    """
    names = {var: f"d{k}" for k, var in enumerate(index_map.initial_indices)}
    results = [
        fold(expr, lambda node, parts: _text(node, parts, names))[0]
        for expr in index_map.final_indices
    ]
    return f"({', '.join(names.values())}) -> ({', '.join(results)})"


def _text(node: Expr, parts: list[Text], names: dict[Var, str]) -> Text:
    match node:
        case Var() if node in names:
            return names[node], _ATOM
        case Const(int() as value):
            return str(int(value)), _ATOM
        case Cast() if node.dtype.is_integer:
            return parts[0]
        case Binary(BinOp.ADD | BinOp.SUB as op, a, b):
            return _sum(op, (a, b), parts)
        case Binary(BinOp.MUL, Const(), _):
            return f"{_parse_within(parts[1])} * {parts[0][0]}", _PRODUCT
        case Binary(op) if op in _WORDS:
            return f"{_parse_within(parts[0])} {_WORDS[op]} {_parse_within(parts[1])}", _PRODUCT
    raise LayoutError(
        "shard layout: `{node}` cannot be written in an affine map; use only +, -, *, floordiv and "
        "mod of indices and constants",
        kind="layout-text", node=node,
    )


def _sum(op: BinOp, operands: tuple[Expr, Expr], parts: list[Text]) -> Text:
    left, right = parts
    b = operands[1]
    if isinstance(b, Const) and int(b.value) < 0:
        op = BinOp.SUB if op is BinOp.ADD else BinOp.ADD
        return f"{left[0]} {'+' if op is BinOp.ADD else '-'} {-int(b.value)}", _SUM
    if op is BinOp.ADD:
        return f"{left[0]} + {right[0]}", _SUM
    return f"{left[0]} - {f'({right[0]})' if right[1] == _SUM else right[0]}", _SUM


def _parse_within(part: Text) -> str:
    text, kind = part
    return text if kind == _ATOM else f"({text})"


def parse_affine_map(scanner: Scanner) -> IndexMap:
    """Parse an affine map at the position of the scanner.

    Raises:
        LayoutError: If there is no valid affine map.

    >>> parse_affine_map(Scanner("(d0, d1) -> (d0 ceildiv 2, -(d1 - 7))", "map"))
    lambda d0, d1: [(d0 + 1) // 2, (d1 - 7) * -1]
    """
    names: dict[str, Var] = {}
    scanner.take("(")
    while not scanner.accept(")"):
        if names:
            scanner.take(",")
        position = scanner.skip()
        name = scanner.word("the name of a dimension")
        if name in names:
            scanner.fail(f"a dimension that is not {name} again", position)
        names[name] = Var(name)
    scanner.take("->")
    scanner.take("(")
    results: list[Expr] = []
    while not scanner.accept(")"):
        if results:
            scanner.take(",")
        results.append(_read_sum(scanner, names, ")"))
    if not results:
        scanner.fail("at least one result")
    return IndexMap(tuple(names.values()), tuple(results))


class _OpenSum:
    """Parser state of a sum inside one pair of parentheses."""

    def __init__(self) -> None:
        self.total: Expr | None = None
        self.product: Expr | None = None
        self.minus = False
        self.negate = 0
        self.word = ""

    def put(self, value: Expr, scanner: Scanner, position: int) -> None:
        """Append the next factor of the current product."""
        if self.negate % 2:
            value = _negate(value)
        self.negate = 0
        if self.product is None:
            self.product = value
        else:
            self.product = _operation(self.word, self.product, value, scanner, position)

    def close(self) -> Expr:
        """Add the current product to the sum, and return the sum."""
        assert self.product is not None
        term, self.product = self.product, None
        if self.total is None:
            self.total = term
        else:
            self.total = Binary(BinOp.SUB if self.minus else BinOp.ADD, self.total, term)
        return self.total


def _read_sum(scanner: Scanner, names: dict[str, Var], end: str) -> Expr:
    """Parse a sum up to a comma or `end`, with an explicit stack of parentheses."""
    levels = [_OpenSum()]
    starts = [scanner.skip()]
    while True:
        level = levels[-1]
        position = scanner.skip()
        if scanner.accept("-"):
            level.negate += 1
            continue
        if scanner.accept("("):
            levels.append(_OpenSum())
            starts.append(position)
            continue
        level.put(_operand(scanner, names), scanner, position)
        while True:
            if _operator(scanner, levels[-1]):
                break
            total = levels[-1].close()
            if len(levels) == 1:
                return total
            scanner.take(end)
            levels.pop()
            levels[-1].put(total, scanner, starts.pop())


def _operator(scanner: Scanner, level: _OpenSum) -> bool:
    """Consume an operator and update the state; return whether there was one."""
    for token in _OPERATORS:
        if scanner.accept(token):
            level.word = token
            return True
    for token in "+-":
        if scanner.accept(token):
            level.close()
            level.minus = token == "-"
            return True
    return False


def _operand(scanner: Scanner, names: dict[str, Var]) -> Expr:
    number = scanner.number_or_none()
    if number is not None:
        return Const(number, INT64)
    position = scanner.skip()
    name = scanner.word("a dimension, a number or (")
    if name not in names:
        scanner.fail(f"one of the dimensions {', '.join(names) or '(there are none)'}", position)
    return names[name]


def _operation(token: str, a: Expr, b: Expr, scanner: Scanner, position: int) -> Expr:
    if token == "*":
        if not (isinstance(a, Const) or isinstance(b, Const)):
            scanner.fail("a number, as one side of * is", position)
        return Binary(BinOp.MUL, a, b)
    if not isinstance(b, Const) or int(b.value) < 1:
        scanner.fail(f"a positive number after {token}", position)
    if token == "ceildiv":
        a = Binary(BinOp.ADD, a, Const(int(b.value) - 1, INT64))
    return Binary(_OPERATORS[token], a, b)


def _negate(value: Expr) -> Expr:
    if isinstance(value, Const):
        return Const(-int(value.value), INT64)
    return Binary(BinOp.MUL, value, Const(-1, INT64))

