"""Reads expressions of hybrid functions."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Any, Protocol

from tecomp.compute import logic
from tecomp.compute.builder import Operand
from tecomp.compute.hybrid.names import FUNCTIONS
from tecomp.compute.hybrid.source import Source
from tecomp.compute.intrinsics import power
from tecomp.errors import TecompError
from tecomp.ir.language.expr import Expr
from tecomp.ir.language.text import counted


@dataclass(frozen=True, slots=True)
class Array:
    """Memory, or a part of it: the first axes have these indices."""

    operand: Operand
    indices: tuple[Any, ...] = ()

    @property
    def shape(self) -> tuple[Any, ...]:
        """Extents of the other axes."""
        return self.operand.shape[len(self.indices) :]


@dataclass(frozen=True, slots=True)
class Variable:
    """A local variable that gets values more than once."""

    operand: Operand


class Names(Protocol):
    """What expressions ask their function for."""

    @property
    def source(self) -> Source:
        """The text, which refuses what cannot be."""

    def look_up(self, node: ast.Name) -> Any:
        """What a name stands for."""

    def call(self, function: Any, arguments: Sequence[Any]) -> Any:
        """What another hybrid function returns."""


def _power(a: Any, b: Any) -> Any:
    both = isinstance(a, int | float) and isinstance(b, int | float)
    return a**b if both else power(a, b)


_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = MappingProxyType({
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.Pow: _power,
})
_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = MappingProxyType({
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
})
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = MappingProxyType({
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
})
_OUTSIDE = (
    "is outside of the subset of expressions; there are numbers, elements, shapes, arithmetic, "
    "conditions and functions"
)
_MOST_BITS = 1024
"""Of an integer that is known here, which is as many as the greatest float has."""


def evaluate(names: Names, node: ast.expr, *, is_target: bool = False) -> Any:
    """What an expression stands for.

    Raises:
        DefinitionError: it is outside of the subset.
    """
    if isinstance(node, ast.Subscript):
        base, index = evaluate(names, node.value), evaluate(names, node.slice)
        return _item(names, node, base, index, is_target=is_target)
    rule = _RULES.get(type(node))
    if rule is None:
        names.source.refuse(node, _OUTSIDE)
    return rule(names, node)


def _constant(names: Names, node: ast.Constant) -> Any:
    if not isinstance(node.value, int | float | str):
        names.source.refuse(node, _OUTSIDE)
    return node.value


def _name(names: Names, node: ast.Name) -> Any:
    found = names.look_up(node)
    return found.operand[0] if isinstance(found, Variable) else found


def _entries(names: Names, node: ast.Tuple | ast.List) -> Any:
    return tuple(evaluate(names, part) for part in node.elts)


def _unary(names: Names, node: ast.UnaryOp) -> Any:
    given = evaluate(names, node.operand)
    if isinstance(node.op, ast.Not):
        return not given if isinstance(given, bool | int) else logic.logical_not(given)
    return _applied(names, node, _UNARY[type(node.op)], given)


def _boolean(names: Names, node: ast.BoolOp) -> Any:
    parts = [evaluate(names, part) for part in node.values]
    return _joined(parts, is_all=isinstance(node.op, ast.And))


def _choice(names: Names, node: ast.IfExp) -> Any:
    test = evaluate(names, node.test)
    if isinstance(test, bool | int):
        return evaluate(names, node.body if test else node.orelse)
    return logic.if_then_else(test, evaluate(names, node.body), evaluate(names, node.orelse))


def _operated(names: Names, node: ast.BinOp) -> Any:
    a, b = evaluate(names, node.left), evaluate(names, node.right)
    if isinstance(a, Array) or isinstance(b, Array):
        names.source.refuse(node, "computes with whole tensors; write it for an element")
    function = _BINARY.get(type(node.op))
    if function is None:
        names.source.refuse(node, _OUTSIDE)
    if isinstance(a, int) and isinstance(b, int) and _bits(node.op, a, b) > _MOST_BITS:
        names.source.refuse(
            node, f"is an integer of more than {_MOST_BITS} bits; write one that a type holds")
    return _applied(names, node, function, a, b)


def _joined(parts: list[Any], *, is_all: bool) -> Any:
    """`a and b`, `a or b`; parts that are known here are decided."""
    known = [part for part in parts if isinstance(part, bool | int)]
    open_parts = [part for part in parts if not isinstance(part, bool | int)]
    decided = any(not part for part in known) if is_all else any(known)
    if decided or not open_parts:
        return is_all != decided
    return logic.all(*open_parts) if is_all else logic.any(*open_parts)


def _compared(names: Names, node: ast.Compare) -> Any:
    values = [evaluate(names, part) for part in (node.left, *node.comparators)]
    parts = []
    for op, a, b in zip(node.ops, values, values[1:], strict=False):
        function = _COMPARED.get(type(op))
        if function is None:
            names.source.refuse(node, _OUTSIDE)
        parts.append(_applied(names, node, function, a, b))
    return _joined(parts, is_all=True) if len(parts) > 1 else parts[0]


def _item(names: Names, node: ast.expr, base: Any, index: Any, *, is_target: bool) -> Any:
    if isinstance(base, tuple | list) and isinstance(index, tuple):
        for each in index:
            base = _item(names, node, base, each, is_target=is_target)
        return base
    if isinstance(base, tuple | list):
        if isinstance(index, bool) or not isinstance(index, int):
            names.source.refuse(
                node, "has an index that is not known here; take a number, or const_range")
        if not -len(base) <= index < len(base):
            names.source.refuse(node, f"has {len(base)} entries, and is asked for {index}")
        return base[index]
    if not isinstance(base, Array):
        names.source.refuse(node, "is an element of what is no tensor and no list; index those")
    more = index if isinstance(index, tuple) else (index,)
    place = Array(base.operand, (*base.indices, *more))
    rank = len(base.operand.shape)
    if len(place.indices) > rank:
        names.source.refuse(node, f"has {len(place.indices)} indices for {rank} axes")
    return place if is_target or len(place.indices) < rank else base.operand[place.indices]


def _field(names: Names, node: ast.Attribute) -> Any:
    base = evaluate(names, node.value)
    if node.attr == "dtype" and isinstance(base, Expr):
        return str(base.dtype)
    if node.attr not in ("shape", "dtype") or not isinstance(base, Array):
        names.source.refuse(node, "is no shape or dtype of a tensor; there is nothing else of it")
    return base.shape if node.attr == "shape" else str(base.operand.dtype)


def _call(names: Names, node: ast.Call) -> Any:
    function = node.func
    if not isinstance(function, ast.Name) or node.keywords:
        names.source.refuse(node, _OUTSIDE)
    arguments = [evaluate(names, part) for part in node.args]
    if function.id == "len" and len(arguments) == 1:
        return _length(names, node, arguments[0])
    known = FUNCTIONS.get(function.id)
    if known is not None:
        if any(isinstance(each, Array) for each in arguments):
            names.source.refuse(node, "takes numbers and no whole tensors")
        _check_count(names, node, known)
        return _applied(names, node, known, *arguments)
    if function.id in ("output_tensor", "allocate"):
        names.source.refuse(node, "has no name; assign it to one")
    found = names.look_up(function)
    if not hasattr(found, "source"):
        names.source.refuse(
            node, "calls what is no hybrid function; decorate it with te.hybrid.script")
    return names.call(found, arguments)


def _applied(names: Names, node: ast.expr, function: Callable[..., Any], *values: Any) -> Any:
    """What a function gives; texts, lists and numbers known here are Python's to compute with."""
    try:
        return function(*values)
    except TecompError:
        raise
    except (ArithmeticError, TypeError, ValueError) as error:
        names.source.refuse(node, f"has no value ({error}); write what Python can compute")


def _check_count(names: Names, node: ast.Call, function: Callable[..., Any]) -> None:
    """Refuse a call with more or fewer arguments than the function takes."""
    known = list(signature(function).parameters.values())
    least = sum(each.default is Parameter.empty for each in known)
    if not least <= len(node.args) <= len(known):
        names.source.refuse(
            node, f"takes {counted(len(known), 'argument')}, and is given {len(node.args)}; give "
            "as many as it takes"
        )


def _bits(op: ast.operator, a: int, b: int) -> int:
    """As many as a power or a shift of integers has at least, before it is computed."""
    if isinstance(op, ast.Pow):
        return (a.bit_length() - 1) * b
    return a.bit_length() + b if isinstance(op, ast.LShift) else 0


def _length(names: Names, node: ast.expr, given: Any) -> Any:
    if isinstance(given, Array):
        return given.shape[0]
    if isinstance(given, tuple | list):
        return len(given)
    names.source.refuse(node, "is the length of what is no tensor and no list; give one")


_RULES: Mapping[type[ast.expr], Callable[[Names, Any], Any]] = MappingProxyType({
    ast.Constant: _constant, ast.Name: _name, ast.Tuple: _entries, ast.List: _entries,
    ast.BinOp: _operated, ast.UnaryOp: _unary, ast.BoolOp: _boolean, ast.Compare: _compared,
    ast.IfExp: _choice, ast.Attribute: _field, ast.Call: _call,
})
