"""Element-wise formulas, shared by all libraries: `m` provides the functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Formula = Callable[..., Any]


def _gelu(m: Any, x: Any) -> Any:
    return 0.5 * x * (1.0 + m.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


FORMULAS: dict[str, Formula] = {
    "relu": lambda m, x: m.maximum(x, 0.0),
    "leaky_relu": lambda m, x: m.where(x > 0.0, x, 0.1 * x),
    "tanh": lambda m, x: m.tanh(x),
    "sigmoid": lambda m, x: 1.0 / (1.0 + m.exp(-x)),
    "silu": lambda m, x: x / (1.0 + m.exp(-x)),
    "gelu": _gelu,
    "gauss": lambda m, x: m.exp(-x * x),
    "root": lambda m, x: m.sqrt(m.abs(x) + 1e-3),
    "log1p": lambda m, x: m.log(m.abs(x) + 1.0),
    "affine": lambda m, x: x * 1.5 - 0.25,
    "clip": lambda m, x: m.minimum(m.maximum(x, -1.0), 1.0),
    "square": lambda m, x: x * x,
    "sine": lambda m, x: m.sin(x),
    "positive": lambda m, x: m.where(x > 0.0, 1.0, 0.0),
    "add": lambda m, x, y: x + y,
    "subtract": lambda m, x, y: x - y,
    "multiply": lambda m, x, y: x * y,
    "maximum": lambda m, x, y: m.maximum(x, y),
    "divide": lambda m, x, y: x / (m.abs(y) + 0.5),
    "gate": lambda m, x, y: x * (1.0 / (1.0 + m.exp(-y))),
    "choose": lambda m, x, y: m.where(x > y, x - y, 0.5 * y),
    "scale_shift": lambda m, x, g, b: x * g + b,
    "mix": lambda m, x, y, t: x + m.tanh(t) * (y - x),
}
"""Formulas by name, with one operand per argument after `m`. Results stay small."""
