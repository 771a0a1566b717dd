"""`te.hybrid.script`: a Python function that defines tensors, or runs on arrays."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType
from typing import Any

import numpy as np

from tecomp.compute.hybrid.definition import defined
from tecomp.compute.hybrid.names import PYTHON
from tecomp.compute.hybrid.source import Source
from tecomp.compute.tensor import Tensor
from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir.language.expr import Expr


class HybridFunction:
    """A function that `te.hybrid.script` has made.

    Called with tensors it defines tensors, called with arrays it computes them, as Python.
    """

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self._source: Source | None = None
        update_wrapper(self, function)

    @property
    def source(self) -> Source:
        """The text, as a syntax tree.

        Raises:
            DefinitionError: there is no text.
        """
        if self._source is None:
            self._source = _source(self.function)
        return self._source

    def __call__(self, *args: Any) -> Any:
        """The tensors that it defines, for tensors; the arrays that it computes, for arrays.

        Raises:
            DefinitionError: something in it is outside of the subset; says which line.
            TypeMismatchError: there are neither tensors nor arrays, and Python does not run it.
        """
        if any(map(_is_symbolic, args)):
            return defined(self, args)
        try:
            return self._python()(*args)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            if any(map(_is_array, args)):
                raise
            given = ", ".join(map(repr, args))
            raise TypeMismatchError(
                f"te.hybrid {self.function.__name__}: called with ({given}) it runs as Python, "
                f"which says: {error}; give tensors to define tensors, or arrays",
                kind="hybrid",
            ) from error

    def _python(self) -> Callable[..., Any]:
        """The function as Python runs it, which knows the names of hybrid functions."""
        known = {**self.function.__globals__, **PYTHON}
        return FunctionType(
            self.function.__code__, known, self.function.__name__, self.function.__defaults__,
            self.function.__closure__,
        )


def script(pyfunc: Callable[..., Any]) -> HybridFunction:
    """Make a function that defines tensors by loops over elements; also as a decorator.

    Its text is read when it is called with tensors, `te.var` sizes or `te.const` numbers: loops
    (`range`, `parallel`, `vectorize`, `unroll`, `bind`; `const_range` is written out), `if`,
    assignments to elements of `output_tensor(shape, dtype)` and `allocate(shape, dtype, scope)`,
    local variables, arithmetic, and mathematical functions. It returns its output tensors. An input
    that it stores to is copied first. Called with NumPy arrays, Python runs it; only then it looks
    at `assert`.

    A function whose loops store each element of one tensor once gives a `te.compute`, whose axes
    are its loops. All others give a `te.extern`: it has no loops that a schedule could change.

    Raises:
        TypeMismatchError: it is no Python function.

    Example:
        >>> from tecomp import te
        >>> @te.hybrid.script
        ... def outer(a, b):
        ...     c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
        ...     for i in range(a.shape[0]):
        ...         for j in range(b.shape[0]):
        ...             c[i, j] = a[i] * b[j]
        ...     return c
        >>> a, b = te.placeholder((3,), name="a"), te.placeholder((4,), name="b")
        >>> outer(a, b)
        Tensor(c, shape=(3, 4), dtype=float32)
    """
    if not isinstance(pyfunc, FunctionType):
        raise TypeMismatchError(
            f"te.hybrid.script: the function is {pyfunc!r}; give a Python function", kind="hybrid"
        )
    return HybridFunction(pyfunc)


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_symbolic, value))
    return isinstance(value, Tensor | Expr)


def _is_array(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_array, value))
    return isinstance(value, np.ndarray)


def _source(function: FunctionType) -> Source:
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise DefinitionError(
            f"te.hybrid {function.__name__}: its text is not there to be read; write it in a file",
            kind="hybrid",
        ) from None
    text = textwrap.dedent("".join(lines))
    try:
        tree: ast.stmt | None = ast.parse(text).body[0]
    except SyntaxError:
        # A lambda has the lines of what is around it.
        tree = None
    if not isinstance(tree, ast.FunctionDef):
        raise DefinitionError(
            f"te.hybrid {function.__name__}: it is no `def`; write a function with statements",
            kind="hybrid",
        )
    outside = inspect.getclosurevars(function)
    known = {
        name: value for name, value in {**outside.globals, **outside.nonlocals}.items()
        if isinstance(value, bool | int | float | str | tuple | list | np.generic | HybridFunction)
    }
    return Source(function.__name__, tree, text, first, known)
