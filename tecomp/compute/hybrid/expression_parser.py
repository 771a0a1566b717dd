"""Evaluate expressions of hybrid functions to IR expressions and Python values."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Any, NoReturn, Protocol

import numpy as np

from tecomp.compute import elementwise, intrinsics, operators, reduce
from tecomp.compute.expr_like import value_of
from tecomp.compute.intrinsics import cast, power
from tecomp.compute.shape_validation import dtype_of
from tecomp.compute.statement_builder import Operand
from tecomp.errors import DefinitionError, TecompError
from tecomp.ir.nodes.dtype import SCALARS, DType
from tecomp.ir.nodes.expr import Expr
from tecomp.ir.nodes.printer import format_count
from tecomp.operations.elementwise import elementwise_in
from tecomp.operations.formulas import NumpyAlgebra
from tecomp.operations.rows import Op

LOOPS: Mapping[str, str] = MappingProxyType({
    "range": "serial", "serial": "serial", "parallel": "parallel", "vectorize": "vectorize",
    "unroll": "unroll", "bind": "serial", "const_range": "const",
})
"""Loop kind of each loop function; loops bound to threads run sequentially."""

_TYPES = tuple(name for name in SCALARS if hasattr(np, name))


def ceil_div(a: Any, b: Any) -> Any:
    """Return `a / b` rounded up."""
    return (a + b - 1) // b


def likely(condition: Any) -> Any:
    """Return the condition unchanged; the branch hint has no effect."""
    return condition


def _conversion(name: str) -> Callable[[Any], Any]:
    return lambda value: cast(value_of(value), DType(name))


FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    **{name: getattr(elementwise, name) for name in elementwise.__all__},
    "abs": intrinsics.abs, "popcount": intrinsics.popcount, "power": power,
    **{name: _conversion(name) for name in _TYPES},
    "min": lambda a, b: reduce.min(a, b), "max": lambda a, b: reduce.max(a, b),
    "ceil_div": ceil_div, "likely": likely,
    "max_num_threads": lambda allow_none=True: 1,
})
"""Functions that a hybrid definition can call."""


def _zeros(shape: Any, dtype: object = "float32", scope: str = "global") -> np.ndarray[Any, Any]:
    return np.zeros(shape, dtype_of(dtype, "te.hybrid").numpy)


def _threads(tag: str, extent: int) -> range:
    return range(extent)


def _popcount(value: Any) -> int:
    return int(value).bit_count()


def _compute_formula(row: Op, *operands: Any) -> Any:
    """Compute the formula of a row; cases that the operands do not select may overflow."""
    assert row.formula is not None
    with np.errstate(all="ignore"):
        return row.formula(NumpyAlgebra(), *operands)[()]


PYTHON: Mapping[str, Any] = MappingProxyType({
    **dict.fromkeys(("serial", "parallel", "vectorize", "unroll", "const_range"), range),
    **{name: getattr(np, name) for name in _TYPES if name != "bool"},
    **{
        name: getattr(np, row.numpy_name)
        for name, row in elementwise_in("te").items() if row.numpy_name
    },
    **{
        name: partial(_compute_formula, row)
        for name, row in elementwise_in("te").items() if row.formula and not row.numpy_name
    },
    "power": np.power,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": math.erf,
    "popcount": _popcount,
    "bind": _threads,
    "output_tensor": _zeros,
    "allocate": _zeros,
    "ceil_div": ceil_div,
    "likely": likely,
    "max_num_threads": lambda allow_none=True: 1,
})
"""Python implementations of the hybrid names, besides `range`, `len`, `min` and `max`."""


@dataclass(frozen=True, slots=True)
class HybridSource:
    """Source of a hybrid function.

    Attributes:
        name: Name of the function.
        tree: Syntax tree of the definition.
        text: Source text.
        first: Number of its first line in the file.
        known: Values of global and captured names.
    """

    name: str
    tree: ast.FunctionDef
    text: str
    first: int
    known: Mapping[str, Any]

    def refuse(self, node: ast.AST, template: str, /, **parameters: Any) -> NoReturn:
        """Raise an error at a node, with its line and source text.

        Raises:
            DefinitionError: Always.
        """
        line = self.first + getattr(node, "lineno", 1) - 1
        part = (ast.get_source_segment(self.text, node) or "").partition("\n")[0]
        raise DefinitionError(
            "te.hybrid {function}, line {line}: `{source}` " + template,
            kind="hybrid", function=self.name, line=line, source=part, **parameters,
        )


@dataclass(frozen=True, slots=True)
class HybridArray:
    """Array, or the subarray at the given indices of the leading axes."""

    operand: Operand
    indices: tuple[Any, ...] = ()

    @property
    def shape(self) -> tuple[Any, ...]:
        """Extents of the remaining axes."""
        return self.operand.shape[len(self.indices) :]


@dataclass(frozen=True, slots=True)
class Variable:
    """Local variable that is assigned more than once, stored in memory of one element."""

    operand: Operand


class NameResolver(Protocol):
    """Interface to the enclosing function that the evaluation of expressions needs."""

    @property
    def source(self) -> HybridSource:
        """Source of the function, for error messages."""

    def look_up(self, node: ast.Name) -> Any:
        """Return the value of a name."""

    def call(self, function: Any, arguments: Sequence[Any]) -> Any:
        """Call another hybrid function, and return its results."""


def _power(a: Any, b: Any) -> Any:
    are_numbers = isinstance(a, int | float) and isinstance(b, int | float)
    return a**b if are_numbers else power(a, b)


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
    "is not supported; supported expressions are numbers, elements, shapes, arithmetic, conditions "
    "and functions"
)
_MAX_BITS = 1024
"""Maximum size of an integer constant in bits, about the exponent range of float64."""


def evaluate_node(names: NameResolver, node: ast.expr, *, is_target: bool = False) -> Any:
    """Evaluate an expression of a hybrid function.

    Raises:
        DefinitionError: If the expression is outside of the supported subset.
    """
    if isinstance(node, ast.Subscript):
        base, index = evaluate_node(names, node.value), evaluate_node(names, node.slice)
        return _item(names, node, base, index, is_target=is_target)
    rule = _RULES.get(type(node))
    if rule is None:
        names.source.refuse(node, _OUTSIDE)
    return rule(names, node)


def _constant(names: NameResolver, node: ast.Constant) -> Any:
    if not isinstance(node.value, int | float | str):
        names.source.refuse(node, _OUTSIDE)
    return node.value


def _name(names: NameResolver, node: ast.Name) -> Any:
    found = names.look_up(node)
    return found.operand[0] if isinstance(found, Variable) else found


def _entries(names: NameResolver, node: ast.Tuple | ast.List) -> Any:
    return tuple(evaluate_node(names, part) for part in node.elts)


def _unary(names: NameResolver, node: ast.UnaryOp) -> Any:
    operand = evaluate_node(names, node.operand)
    if isinstance(node.op, ast.Not):
        return not operand if isinstance(operand, bool | int) else operators.logical_not(operand)
    return _apply(names, node, _UNARY[type(node.op)], operand)


def _boolean(names: NameResolver, node: ast.BoolOp) -> Any:
    parts = [evaluate_node(names, part) for part in node.values]
    return _combine_conditions(parts, is_all=isinstance(node.op, ast.And))


def _choice(names: NameResolver, node: ast.IfExp) -> Any:
    test = evaluate_node(names, node.test)
    if isinstance(test, bool | int):
        return evaluate_node(names, node.body if test else node.orelse)
    return operators.if_then_else(
        test, evaluate_node(names, node.body), evaluate_node(names, node.orelse)
    )


def _apply_operator(names: NameResolver, node: ast.BinOp) -> Any:
    a, b = evaluate_node(names, node.left), evaluate_node(names, node.right)
    if isinstance(a, HybridArray) or isinstance(b, HybridArray):
        names.source.refuse(node, "computes with whole tensors; write it per element")
    function = _BINARY.get(type(node.op))
    if function is None:
        names.source.refuse(node, _OUTSIDE)
    if isinstance(a, int) and isinstance(b, int) and _bits(node.op, a, b) > _MAX_BITS:
        names.source.refuse(
            node,
            "is an integer of more than {most_bits} bits; use one that a dtype can represent",
            most_bits=_MAX_BITS,
        )
    return _apply(names, node, function, a, b)


def _combine_conditions(parts: list[Any], *, is_all: bool) -> Any:
    """Return the conjunction or disjunction of conditions; constant operands are folded."""
    known = [part for part in parts if isinstance(part, bool | int)]
    open_parts = [part for part in parts if not isinstance(part, bool | int)]
    decided = any(not part for part in known) if is_all else any(known)
    if decided or not open_parts:
        return is_all != decided
    return operators.all(*open_parts) if is_all else operators.any(*open_parts)


def _compare(names: NameResolver, node: ast.Compare) -> Any:
    values = [evaluate_node(names, part) for part in (node.left, *node.comparators)]
    parts = []
    for op, a, b in zip(node.ops, values, values[1:], strict=False):
        function = _COMPARED.get(type(op))
        if function is None:
            names.source.refuse(node, _OUTSIDE)
        parts.append(_apply(names, node, function, a, b))
    return _combine_conditions(parts, is_all=True) if len(parts) > 1 else parts[0]


def _item(names: NameResolver, node: ast.expr, base: Any, index: Any, *, is_target: bool) -> Any:
    if isinstance(base, tuple | list) and isinstance(index, tuple):
        for entry in index:
            base = _item(names, node, base, entry, is_target=is_target)
        return base
    if isinstance(base, tuple | list):
        if isinstance(index, bool) or not isinstance(index, int):
            names.source.refuse(
                node, "has an index that is not constant; use an integer, or const_range")
        if not -len(base) <= index < len(base):
            names.source.refuse(
                node,
                "has {base_count} entries; index {index} is out of bounds",
                base_count=len(base), index=index,
            )
        return base[index]
    if not isinstance(base, HybridArray):
        names.source.refuse(node, "indexes a value that is neither a tensor nor a list; index one "
                                  "of these")
    new_indices = index if isinstance(index, tuple) else (index,)
    element = HybridArray(base.operand, (*base.indices, *new_indices))
    rank = len(base.operand.shape)
    if len(element.indices) > rank:
        names.source.refuse(
            node,
            "has {index_count} indices for {rank} axes",
            index_count=len(element.indices), rank=rank,
        )
    return element if is_target or len(element.indices) < rank else base.operand[element.indices]


def _field(names: NameResolver, node: ast.Attribute) -> Any:
    base = evaluate_node(names, node.value)
    if node.attr == "dtype" and isinstance(base, Expr):
        return str(base.dtype)
    if node.attr not in ("shape", "dtype") or not isinstance(base, HybridArray):
        names.source.refuse(node, "is not supported; only the shape and the dtype of a tensor are "
                                  "available")
    return base.shape if node.attr == "shape" else str(base.operand.dtype)


def _call(names: NameResolver, node: ast.Call) -> Any:
    function = node.func
    if not isinstance(function, ast.Name) or node.keywords:
        names.source.refuse(node, _OUTSIDE)
    arguments = [evaluate_node(names, part) for part in node.args]
    if function.id == "len" and len(arguments) == 1:
        value = arguments[0]
        if isinstance(value, HybridArray):
            return value.shape[0]
        if isinstance(value, tuple | list):
            return len(value)
        names.source.refuse(
            node, "is the length of a value that is neither a tensor nor a list; pass one of these")
    known = FUNCTIONS.get(function.id)
    if known is not None:
        if any(isinstance(argument, HybridArray) for argument in arguments):
            names.source.refuse(node, "expects numbers, not whole tensors; pass elements")
        _check_count(names, node, known)
        return _apply(names, node, known, *arguments)
    if function.id in ("output_tensor", "allocate"):
        names.source.refuse(node, "is not assigned; assign it to a name")
    found = names.look_up(function)
    if not hasattr(found, "source"):
        names.source.refuse(
            node,
            "calls a function that is not a hybrid function; decorate it with te.hybrid.script",
        )
    return names.call(found, arguments)


def _apply(names: NameResolver, node: ast.expr, function: Callable[..., Any], *values: Any) -> Any:
    """Apply a function to values, and turn Python errors into errors at the node."""
    try:
        return function(*values)
    except TecompError:
        raise
    except (ArithmeticError, TypeError, ValueError) as error:
        names.source.refuse(
            node,
            "cannot be evaluated ({reason}); use an expression that Python can evaluate",
            reason=error,
        )


def _check_count(names: NameResolver, node: ast.Call, function: Callable[..., Any]) -> None:
    """Raise if a call has a wrong number of arguments.

    Raises:
        DefinitionError: If the function does not take this number of arguments.
    """
    known = list(signature(function).parameters.values())
    min_args = sum(parameter.default is Parameter.empty for parameter in known)
    if not min_args <= len(node.args) <= len(known):
        names.source.refuse(
            node,
            "takes {known_count}, got {arg_count}; pass that many",
            known_count=format_count(len(known), "argument"), arg_count=len(node.args),
        )


def _bits(op: ast.operator, a: int, b: int) -> int:
    """Estimate the size in bits of an integer power or shift before it is computed."""
    if isinstance(op, ast.Pow):
        return (a.bit_length() - 1) * b
    return a.bit_length() + b if isinstance(op, ast.LShift) else 0


_RULES: Mapping[type[ast.expr], Callable[[NameResolver, Any], Any]] = MappingProxyType({
    ast.Constant: _constant, ast.Name: _name, ast.Tuple: _entries, ast.List: _entries,
    ast.BinOp: _apply_operator, ast.UnaryOp: _unary, ast.BoolOp: _boolean, ast.Compare: _compare,
    ast.IfExp: _choice, ast.Attribute: _field, ast.Call: _call,
})
