"""Formulas of functions, written once for NumPy arrays and for vectors of the code generator.

A formula gets an algebra, which supplies what is not an operator of its values, and the operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np


class Algebra(Protocol):
    """Functions of one type of values: numbers of float32 or float64."""

    def is_double(self, x: Any) -> bool:
        """Return whether a value has dtype float64."""

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        """Select `a` where the condition holds, and `b` elsewhere."""

    def polynomial(self, x: Any, coefficients: Sequence[float]) -> Any:
        """Compute the polynomial with the sum of `coefficients[k] * x**k`."""

    def log(self, x: Any) -> Any:
        """Compute the natural logarithm."""

    def sqrt(self, x: Any) -> Any:
        """Compute the square root."""


class NumpyAlgebra:
    """Functions of NumPy arrays.

    >>> float(NumpyAlgebra().polynomial(np.array(2.0), (1.0, 0.0, 3.0)))
    13.0
    """

    def is_double(self, x: Any) -> bool:
        """Return whether an array has dtype float64."""
        return bool(np.asarray(x).dtype == np.float64)

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        """Select elements of `a` where the condition holds, and of `b` elsewhere."""
        return np.where(condition, a, b)

    def polynomial(self, x: Any, coefficients: Sequence[float]) -> Any:
        """Compute a polynomial by Horner's rule."""
        total = np.full_like(x, coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = total * x + np.asarray(coefficient, total.dtype)
        return total

    def log(self, x: Any) -> Any:
        """Compute the natural logarithm."""
        return np.log(x)

    def sqrt(self, x: Any) -> Any:
        """Compute the square root."""
        return np.sqrt(x)
