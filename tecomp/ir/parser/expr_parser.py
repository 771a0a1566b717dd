"""Parse printed expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, NoReturn, TypeAlias

from tecomp.errors import DefinitionError, ParseError
from tecomp.ir.nodes.dtype import BOOL, HANDLE, INT64, SCALARS, DType
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    CmpOp,
    Compare,
    Const,
    Expr,
    Not,
    Ramp,
    Select,
    Var,
    const,
)
from tecomp.ir.nodes.operators import INTRINSICS, result_type
from tecomp.ir.nodes.printer import truncate
from tecomp.ir.nodes.stmt import Buffer
from tecomp.ir.traversal.rewrite import fold

Plan: TypeAlias = "tuple[list[ast.expr], Callable[..., Expr]]"

_BINARY: dict[type[ast.operator], BinOp] = {
    ast.Add: BinOp.ADD,
    ast.Sub: BinOp.SUB,
    ast.Mult: BinOp.MUL,
    ast.Div: BinOp.DIV,
    ast.FloorDiv: BinOp.FLOORDIV,
    ast.Mod: BinOp.MOD,
    ast.BitAnd: BinOp.BITAND,
    ast.BitOr: BinOp.BITOR,
    ast.BitXor: BinOp.BITXOR,
    ast.LShift: BinOp.SHL,
    ast.RShift: BinOp.SHR,
}
_COMPARE: dict[type[ast.cmpop], CmpOp] = {
    ast.Eq: CmpOp.EQ,
    ast.NotEq: CmpOp.NE,
    ast.Lt: CmpOp.LT,
    ast.LtE: CmpOp.LE,
    ast.Gt: CmpOp.GT,
    ast.GtE: CmpOp.GE,
}


@dataclass
class ParseContext:
    """Parser context: text, and the variables and buffers that names denote at the current node.

    Attributes:
        text: Text to parse.
        names: Variables and buffers in scope, by name.
        parts: Named shared subexpressions of the current statement, by name.
    """

    text: str
    names: dict[str, Var | Buffer] = field(default_factory=dict)
    parts: dict[str, Expr] = field(default_factory=dict)

    def refuse(self, node: ast.AST, template: str, /, **parameters: Any) -> NoReturn:
        """Raise a ParseError that locates `node` in the text.

        Raises:
            ParseError: Always.
        """
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        part = ast.get_source_segment(self.text, node) or ""
        # `col_offset` counts UTF-8 bytes, the message counts characters.
        before = self.text.splitlines()[line - 1].encode()[:column].decode()
        raise ParseError(
            "line {line}, column {column}: " + template + ": `{source}`",
            line=line, column=len(before) + 1, source=truncate(part), **parameters,
        )

    @contextmanager
    def bound(self, new: dict[str, Var | Buffer]) -> Iterator[None]:
        """Add names to the scope within a `with` block."""
        old = self.names
        self.names = {**old, **new}
        try:
            yield
        finally:
            self.names = old

    def variable(self, node: ast.expr) -> Var:
        """Return the variable that a name denotes."""
        found = self._keyword_value(node)
        return found if isinstance(found, Var) else self.refuse(
            node, "expected a variable, got a buffer")

    def buffer(self, node: ast.expr) -> Buffer:
        """Return the buffer that a name denotes."""
        found = self._keyword_value(node)
        return found if isinstance(found, Buffer) else self.refuse(node, "expected a buffer")

    def _keyword_value(self, node: ast.expr) -> Var | Buffer:
        if not isinstance(node, ast.Name):
            self.refuse(node, "expected a name")
        if node.id not in self.names:
            self.refuse(node, "name is not defined in this scope")
        return self.names[node.id]

    def dtype(self, node: ast.expr) -> DType:
        """Return the dtype that a string literal names."""
        try:
            return DType(self.string(node))
        except DefinitionError as error:
            self.refuse(node, "{reason}", reason=error.message)

    def string(self, node: ast.expr) -> str:
        """Return the value of a string literal."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        self.refuse(node, "expected a string")

    def integer(self, node: ast.expr) -> int:
        """Return the value of an integer literal."""
        value = self.number(node)
        return value if type(value) is int else self.refuse(node, "expected an integer")

    def number(self, node: ast.expr) -> float | int | bool:
        """Return the value of a number or boolean literal, possibly with a minus sign."""
        sign = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
        inner = node.operand if isinstance(node, ast.UnaryOp) and sign else node
        if not isinstance(inner, ast.Constant) or not isinstance(inner.value, int | float):
            self.refuse(node, "expected a number")
        return -inner.value if sign else inner.value

    def arguments(
        self, call: ast.Call, lower: int, upper: int | None = None, keywords: tuple[str, ...] = ()
    ) -> dict[str, ast.expr]:
        """Check the arguments of a call and return its keyword arguments.

        Args:
            call: Call node.
            lower: Minimum number of positional arguments.
            upper: Maximum number of positional arguments. Default: `lower`.
            keywords: Names of the accepted keyword arguments.
        """
        if not lower <= len(call.args) <= (lower if upper is None else upper):
            self.refuse(
                call,
                "expected {minimum} arguments, got {arg_count}",
                minimum=lower, arg_count=len(call.args),
            )
        for keyword in call.keywords:
            if keyword.arg not in keywords:
                self.refuse(call, "unexpected argument {arg}", arg=keyword.arg)
        return {str(keyword.arg): keyword.value for keyword in call.keywords}


def parse_expr(source: ParseContext, root: ast.expr) -> Expr:
    """Build the expression that a Python syntax tree denotes.

    Raises:
        ParseError: If the tree does not denote an expression, or dtypes do not match.
    """
    plans: dict[int, Plan] = {}

    def parts(node: ast.expr) -> list[ast.expr]:
        if id(node) not in plans:
            plan = _PLANS.get(type(node))
            if plan is None:
                source.refuse(node, "unsupported expression")
            plans[id(node)] = plan(source, node)
        return plans[id(node)][0]

    def build(node: ast.expr, operands: list[Expr]) -> Expr:
        try:
            return plans[id(node)][1](*operands)
        except DefinitionError as error:
            source.refuse(node, "{reason}", reason=error.message)

    return fold(root, build, parts)


def _leaf(value: Expr) -> Plan:
    return [], lambda: value


def _constant(source: ParseContext, node: ast.Constant) -> Plan:
    if type(node.value) not in (bool, int):
        source.refuse(node, "literals other than int64 and bool must be written with their dtype")
    return _leaf(_literal(source, node, BOOL if isinstance(node.value, bool) else INT64))


def _literal(source: ParseContext, node: ast.expr, dtype: DType) -> Expr:
    infinite = isinstance(node, ast.Constant) and node.value in ("inf", "-inf", "nan")
    value = float(source.string(node)) if infinite else source.number(node)
    if isinstance(value, float) and dtype.is_float and dtype.lanes == 1:
        return Const(value, dtype)  # no range check: passes may produce infinity
    try:
        return const(value, dtype)
    except DefinitionError as error:
        source.refuse(node, "{reason}", reason=error.message)


def _name(source: ParseContext, node: ast.Name) -> Plan:
    part = source.parts.get(node.id)
    return _leaf(source.variable(node) if part is None else part)


def _part(source: ParseContext, node: ast.NamedExpr) -> Plan:
    """Parse a shared subexpression that is named for later uses."""
    if node.target.id in source.names:
        source.refuse(node, "name is already defined in this scope")

    def build(value: Expr) -> Expr:
        source.parts[node.target.id] = value
        return value

    return [node.value], build


def _attribute(source: ParseContext, node: ast.Attribute) -> Plan:
    if node.attr != "data":
        source.refuse(node, "unknown attribute of a buffer")
    return _leaf(source.buffer(node.value).data)


def _unary(source: ParseContext, node: ast.UnaryOp) -> Plan:
    if isinstance(node.op, ast.Not):
        return [node.operand], Not
    if isinstance(node.op, ast.USub):
        source.integer(node)
        return _leaf(_literal(source, node, INT64))
    source.refuse(node, "unsupported operator")


def _check_same_dtype(source: ParseContext, node: ast.expr, *operands: Expr) -> None:
    types = [operand.dtype for operand in operands]
    if any(dtype != types[0] for dtype in types):
        source.refuse(node, "operand dtypes {types} do not match", types=" and ".join(types))


def _binary(source: ParseContext, node: ast.BinOp) -> Plan:
    op = _BINARY.get(type(node.op))
    if op is None:
        source.refuse(node, "unsupported operator")
    return [node.left, node.right], partial(_parse_two, source, node, op)


def _parse_two(source: ParseContext, node: ast.expr, op: BinOp, a: Expr, b: Expr) -> Expr:
    _check_same_dtype(source, node, a, b)
    return Binary(op, a, b)


def _logic(source: ParseContext, node: ast.BoolOp) -> Plan:
    op = BinOp.AND if isinstance(node.op, ast.And) else BinOp.OR
    return node.values, lambda *values: reduce(partial(_parse_two, source, node, op), values)


def _comparison(source: ParseContext, node: ast.Compare) -> Plan:
    op = _COMPARE.get(type(node.ops[0]))
    if op is None or len(node.ops) > 1:
        source.refuse(node, "expected one comparison of numbers")

    def build(a: Expr, b: Expr) -> Expr:
        _check_same_dtype(source, node, a, b)
        return Compare(op, a, b)

    return [node.left, node.comparators[0]], build


def index_nodes(node: ast.Subscript) -> list[ast.expr]:
    """Return the indices of a subscript; `[()]` has none."""
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _element(source: ParseContext, node: ast.Subscript) -> Plan:
    buffer = source.buffer(node.value)
    return index_nodes(node), lambda *indices: BufferLoad(buffer, indices)


def _call(source: ParseContext, node: ast.Call) -> Plan:
    if isinstance(node.func, ast.Attribute) and node.func.attr == "load":
        return _masked_load(source, node, node.func.value)
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name in _FORMS:
        return _FORMS[name](source, node)
    if name == "call" and node.args:
        return _intrinsic(source, node, source.string(node.args[0]), node.args[1:])
    if name in INTRINSICS:
        return _intrinsic(source, node, name, node.args)
    if name.split("x")[0] in SCALARS:
        source.arguments(node, 1)
        dtype = source.dtype(ast.copy_location(ast.Constant(name), node.func))
        return _leaf(_literal(source, node.args[0], dtype))
    source.refuse(node.func, "unknown function")


def _masked_load(source: ParseContext, node: ast.Call, name: ast.expr) -> Plan:
    mask = source.arguments(node, 0, len(node.args), ("where",)).get("where")
    buffer = source.buffer(name)
    if mask is None:
        source.refuse(node, "load requires where=")
    return [*node.args, mask], lambda *values: BufferLoad(buffer, values[:-1], values[-1])


def _intrinsic(source: ParseContext, node: ast.Call, name: str, inner: list[ast.expr]) -> Plan:
    dtype_node = source.arguments(node, 0, len(node.args), ("dtype",)).get("dtype")
    explicit = None if dtype_node is None else source.dtype(dtype_node)

    def build(*values: Expr) -> Expr:
        dtype = explicit or result_type(name, [value.dtype for value in values])
        if dtype is None:
            source.refuse(node, "dtype of this call cannot be inferred; pass dtype=")
        return Call(name, values, dtype)

    return list(inner), build


def _extremum(source: ParseContext, node: ast.Call) -> Plan:
    source.arguments(node, 2)
    op = BinOp(node.func.id if isinstance(node.func, ast.Name) else "")
    return node.args, partial(_parse_two, source, node, op)


def _cast(source: ParseContext, node: ast.Call) -> Plan:
    source.arguments(node, 2)
    dtype = source.dtype(node.args[0])
    return node.args[1:], lambda value: Cast(dtype, value)


def _select(source: ParseContext, node: ast.Call) -> Plan:
    source.arguments(node, 3)

    def build(condition: Expr, a: Expr, b: Expr) -> Expr:
        _check_same_dtype(source, node, a, b)
        return Select(condition, a, b)

    return node.args, build


def _ramp(source: ParseContext, node: ast.Call) -> Plan:
    source.arguments(node, 3)
    lanes = source.integer(node.args[2])
    return node.args[:2], lambda base, stride: Ramp(base, stride, lanes)


def _broadcast(source: ParseContext, node: ast.Call) -> Plan:
    source.arguments(node, 2)
    lanes = source.integer(node.args[1])
    return node.args[:1], lambda value: Broadcast(value, lanes)


_FORMS: dict[str, Callable[[ParseContext, ast.Call], Plan]] = {
    "min": _extremum,
    "max": _extremum,
    "cast": _cast,
    "select": _select,
    "ramp": _ramp,
    "broadcast": _broadcast,
}
_PLANS: dict[type[ast.expr], Callable[[ParseContext, Any], Plan]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.NamedExpr: _part,
    ast.Attribute: _attribute,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.BoolOp: _logic,
    ast.Compare: _comparison,
    ast.Subscript: _element,
    ast.Call: _call,
}


def parse_buffer(source: ParseContext, name: str, node: ast.expr, data: Var
        | None = None) -> Buffer:
    """Parse a `Buffer(...)` declaration; `data` is its memory unless specified there."""
    if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "Buffer"):
        source.refuse(node, "expected Buffer(...)")
    known = ("scope", "axis_separators", "strides", "data", "flat", "elem_offset")
    kwargs = source.arguments(node, 2, None, known)
    address = parse_expr(source, kwargs["data"]) if "data" in kwargs else data
    if address is not None and not isinstance(address, Var):
        source.refuse(node, "data= must be an address")
    try:
        return Buffer(
            name,
            _extents(source, node.args[1]),
            source.dtype(node.args[0]),
            source.string(kwargs["scope"]) if "scope" in kwargs else "global",
            tuple(map(source.integer, entries(source, kwargs.get("axis_separators")))),
            _extents(source, kwargs["strides"]) if "strides" in kwargs else None,
            Var(name, HANDLE) if address is None else address,
            "flat" in kwargs and _truth(source, kwargs["flat"]),
            parse_expr(source, kwargs["elem_offset"]) if "elem_offset" in kwargs else 0,
        )
    except ParseError:
        raise
    except DefinitionError as error:
        source.refuse(node, "{reason}", reason=error.message)


def _truth(source: ParseContext, node: ast.expr) -> bool:
    value = source.number(node)
    return value if type(value) is bool else source.refuse(node, "expected True or False")


def _extents(source: ParseContext, node: ast.expr) -> tuple[int | Expr, ...]:
    values = (parse_expr(source, entry) for entry in entries(source, node))
    return tuple(int(v.value) if isinstance(v, Const) else v for v in values)


def entries(source: ParseContext, node: ast.expr | None) -> list[ast.expr]:
    """Return the entries of a tuple or list node; an empty list for None."""
    if node is None:
        return []
    if not isinstance(node, ast.Tuple | ast.List):
        source.refuse(node, "expected a tuple")
    return node.elts
