"""Calls of ATen operators with their symbolic sizes, and the table of translations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeAlias

import torch
from torch._decomp import core_aten_decompositions

from tecomp import te, topi


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


Value: TypeAlias = Any
"""Value of a graph: a tensor, a number, a size expression, a list of these, or None."""

DTYPES = {
    torch.bool: "bool", torch.uint8: "uint8", torch.int8: "int8", torch.int16: "int16",
    torch.int32: "int32", torch.int64: "int64", torch.float16: "float16",
    torch.bfloat16: "bfloat16", torch.float32: "float32", torch.float64: "float64",
}


@dataclass(frozen=True)
class AtenCall:
    """Call of an operator.

    Attributes:
        name: Operator with its overload, such as `aten.add.Tensor`.
        operands: Arguments in order, as values of PyTorch's shape propagation.
        results: Results in order, as values of PyTorch's shape propagation.
        used: Numbers of the results that are used.
        sizes: Expressions of symbolic sizes.
    """

    name: str
    operands: Sequence[Any]
    results: Sequence[Any]
    used: frozenset[int] = field(default_factory=frozenset)
    sizes: SymbolicSizes = field(default_factory=SymbolicSizes)

    @property
    def shape(self) -> tuple[Any, ...]:
        """Shape of the first result."""
        return self.sizes.shape(self.results[0])

    @property
    def dtype(self) -> str:
        """Dtype of the first result."""
        return dtype_of(self.results[0])

    def compute(self, element: Callable[..., te.Expr], name: str = "") -> te.Tensor:
        """Define the first result by a function of its index."""
        found: te.Tensor = te.compute(
            self.shape, element, name=name or self.name.split(".")[1])
        return found

    def require(self, condition: object, reason: str) -> None:
        """Raise `UnsupportedError` unless a condition holds."""
        if not condition:
            raise UnsupportedError(reason)


def dtype_of(value: Any) -> str:
    """Return the name of the dtype of a tensor of PyTorch.

    Raises:
        UnsupportedError: If the dtype is not supported.
    """
    if value.dtype not in DTYPES:
        raise UnsupportedError(f"the dtype {value.dtype} is not supported")
    return DTYPES[value.dtype]


Translation: TypeAlias = Callable[..., Any]

OPERATORS: dict[str, Translation] = {}
"""Functions of a call and its arguments, by name of the operator, with or without overload."""


def operator(*names: str) -> Callable[[Translation], Translation]:
    """Register a function as the translation of operators."""
    def register(function: Translation) -> Translation:
        OPERATORS.update({f"aten.{name}": function for name in names})
        return function

    return register


def translation_of(target: Any) -> Translation:
    """Return the translation of an operator of a graph.

    Raises:
        UnsupportedError: If there is none.
    """
    name = str(target)
    found = OPERATORS.get(name) or OPERATORS.get(name.rpartition(".")[0])
    if found is None:
        raise UnsupportedError("the operator is not supported")
    return found


def supported_operators() -> tuple[str, ...]:
    """Return the names of the ATen operators that programs may contain.

    >>> "aten.convolution" in supported_operators()
    True
    """
    return tuple(sorted(OPERATORS))


def as_dtype(x: Any, dtype: str) -> Any:
    """Convert a tensor, a number or a size to a dtype."""
    if isinstance(x, te.Tensor):
        return x if str(x.dtype) == dtype else topi.cast(x, dtype)
    if isinstance(x, bool | int | float):
        return te.const(x, dtype)
    return te.cast(x, dtype)


def axis_of(axis: int, rank: int) -> int:
    """Return an axis as a non-negative number."""
    return axis + rank if axis < 0 else axis


def axes_of(axes: int | Sequence[int] | None, rank: int) -> list[int]:
    """Return axes as non-negative numbers; no axes mean all of them."""
    if axes is None or (not isinstance(axes, int) and not len(axes)):
        return list(range(rank))
    return [axis_of(axis, rank) for axis in ([axes] if isinstance(axes, int) else axes)]


def decompositions() -> dict[Any, Any]:
    """Return PyTorch's decompositions of the operators that have no translation."""
    return {
        target: function for target, function in core_aten_decompositions().items()
        if str(target) not in OPERATORS and str(target).rpartition(".")[0] not in OPERATORS
    }
