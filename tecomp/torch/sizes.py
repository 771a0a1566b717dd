"""Symbolic sizes of PyTorch as expressions of sizes of tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import torch

from tecomp import te


class UnsupportedError(Exception):
    """Operator or size without a translation; the text states the reason."""


@dataclass
class SymbolicSizes:
    """Expressions of symbolic sizes.

    Attributes:
        variables: Size variable, or function of size variables, of symbols and sums of symbols.
        is_open: Whether unknown symbols get variables on their first use.
        is_of_example: Whether sizes are those of the example inputs.
    """

    variables: dict[Any, Any] = field(default_factory=dict)
    is_open: bool = False
    is_of_example: bool = False

    def declare(self, extents: Iterable[Any]) -> None:
        """Create variables for extents of inputs that are symbols, or sums with one new symbol."""
        nodes = [n.node for n in extents if isinstance(n, torch.SymInt)]
        expressions = sorted({x.expr for x in nodes}, key=lambda x: not x.is_Symbol)
        for expression in expressions:
            unknown = [x for x in expression.free_symbols if x not in self.variables]
            if len(unknown) != 1:
                continue
            (symbol,) = unknown
            rest = expression - symbol
            if symbol in rest.free_symbols:
                continue
            variable = te.var(str(symbol), "int64")
            self.variables[expression] = variable
            if rest != 0:
                self.variables[symbol] = variable - self._convert(rest)

    def shape(self, value: Any) -> tuple[Any, ...]:
        """Return the shape of a tensor of PyTorch."""
        return tuple([self.size(n) for n in value.shape])

    def size(self, extent: Any) -> Any:
        """Return a size of PyTorch as an integer or an expression.

        Raises:
            UnsupportedError: If the size depends on a symbol that is no extent of an input, or its
                expression has no translation.
        """
        if not isinstance(extent, torch.SymInt):
            return extent
        if self.is_of_example:
            return int(extent.node.hint)
        return self._convert(extent.node.expr)

    def _convert(self, expression: Any) -> Any:
        if expression in self.variables:
            return self.variables[expression]
        if expression.is_Integer:
            return int(expression)
        if expression.is_Symbol:
            if not self.is_open:
                raise UnsupportedError(f"the size {expression} is no extent of an input")
            self.variables[expression] = te.var(str(expression), "int64")
            return self.variables[expression]
        operands = [self._convert(x) for x in expression.args]
        kind = type(expression).__name__
        if kind == "Pow" and isinstance(operands[1], int) and operands[1] > 0:
            return reduce(lambda a, b: a * b, [operands[0]] * operands[1])
        if kind not in _FUNCTIONS:
            raise UnsupportedError(f"the size {expression} has no translation")
        return reduce(_FUNCTIONS[kind], operands)


def _ceil_div(a: Any, b: Any) -> Any:
    return (a + b - 1) // b


def _lesser(a: Any, b: Any) -> Any:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else te.min(a, b)


def _greater(a: Any, b: Any) -> Any:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else te.max(a, b)


_FUNCTIONS: Mapping[str, Any] = {
    "Add": lambda a, b: a + b, "Mul": lambda a, b: a * b, "FloorDiv": lambda a, b: a // b,
    "CleanDiv": lambda a, b: a // b, "CeilDiv": _ceil_div, "Mod": lambda a, b: a % b,
    "PythonMod": lambda a, b: a % b, "Min": _lesser, "Max": _greater,
}
"""Functions of sizes, by the class of the expression in sympy or PyTorch."""
