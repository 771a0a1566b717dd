"""Printed expressions and arguments as text that runs with `te` alone."""

from __future__ import annotations

import ast
import re
from typing import Any

_TYPE = re.compile(r"(?:bfloat|float|u?int)\d+(?:x\d+)?")


def te_text(printed: str) -> str:
    """A printed expression or lambda as te code: typed literals and functions by their te names.

    >>> te_text("lambda i, j: [j // 4, AXIS_SEPARATOR, i, j % 4]")
    'lambda i, j: [j // 4, te.AXIS_SEPARATOR, i, j % 4]'
    >>> te_text('exp(cast("float32", i)) + float32(0.5)')
    "te.exp(te.cast(i, 'float32')) + te.const(0.5, 'float32')"
    >>> te_text("i > 2 and not j == 0")
    'te.all(i > 2, te.logical_not(j == 0))'
    """
    tree = ast.parse(printed, mode="eval")
    for node in ast.walk(tree):
        _with_functions(node)
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name(name), [value]) if _TYPE.fullmatch(name):
                node.func = _te("const")
                node.args = [_number(value), ast.Constant(name)]
            case ast.Call(ast.Name("cast"), [kind, value]):
                node.func = _te("cast")
                node.args = [value, kind]
            case ast.Call(ast.Name(name)):
                node.func = _te(name)
            case ast.Name("AXIS_SEPARATOR"):
                node.id = "te.AXIS_SEPARATOR"
    return ast.unparse(tree)


def float_text(value: float) -> str:
    """A float as Python writes it; inf and nan, which have no literal, by their names."""
    text = repr(value)
    return text if text.strip("-")[0].isdigit() else f"float({text!r})"


def _with_functions(node: ast.AST) -> None:
    """Put functions for the words `and`, `or` and `not` that are directly inside a node.

    Python would ask what they stand between for truth values.
    """
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            value[:] = [_as_function(each) for each in value]
        elif isinstance(value, ast.expr):
            setattr(node, name, _as_function(value))


def _as_function(node: Any) -> Any:
    match node:
        case ast.BoolOp(ast.And(), values):
            return ast.Call(ast.Name("all"), values, [])
        case ast.BoolOp(ast.Or(), values):
            return ast.Call(ast.Name("any"), values, [])
        case ast.UnaryOp(ast.Not(), value):
            return ast.Call(ast.Name("logical_not"), [value], [])
    return node


def _te(name: str) -> ast.expr:
    return ast.Attribute(ast.Name("te"), name)


def _number(value: ast.expr) -> ast.expr:
    """`"inf"` and `"nan"` as numbers."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return ast.Call(ast.Name("float"), [value], [])
    return value
