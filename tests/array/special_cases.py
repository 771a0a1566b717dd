"""Special cases of floating-point functions from the standard, as table rows.

A row holds for every operand that matches its patterns. A pattern is a number, which matches only
itself (zeros have signs), or a set of numbers. A result is a number, a set, or a rule that computes
the result from the operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import pi
from typing import Any, TypeAlias

import numpy as np

from tests.strategies.elements import Data


@dataclass(frozen=True)
class Some:
    """Set of the numbers for which `holds` is True."""

    text: str
    holds: Callable[[Data], Data]

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Rule:
    """Result that is computed from the operands."""

    text: str
    of: Callable[..., Data]

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Unsigned:
    """Result with an unspecified sign."""

    value: float


Pattern: TypeAlias = float | Some
Result: TypeAlias = float | bool | Some | Rule | Unsigned
Row: TypeAlias = tuple[tuple[Pattern, ...], tuple[Result, ...]]

INF, NAN = float("inf"), float("nan")

ANY = Some("any", lambda x: np.ones(x.shape, bool))
NUMBER = Some("not NaN", lambda x: ~np.isnan(x))
FINITE = Some("finite", np.isfinite)
NONZERO = Some("finite and not 0", lambda x: np.isfinite(x) & (x != 0))
NOT_0 = Some("not 0", lambda x: x != 0)
NOT_1 = Some("not 1", lambda x: x != 1)
POSITIVE = Some("above 0", lambda x: x > 0)
NEGATIVE = Some("below 0", lambda x: x < 0)
PLUS = Some("finite, above 0", lambda x: np.isfinite(x) & (x > 0))
MINUS = Some("finite, below 0", lambda x: np.isfinite(x) & (x < 0))
SIGNED_PLUS = Some("finite, sign +", lambda x: np.isfinite(x) & ~np.signbit(x))
INFINITE = Some("infinite", np.isinf)
ZERO = Some("a zero", lambda x: x == 0)
WHOLE = Some("an integer", lambda x: np.isfinite(x) & (x == np.trunc(x)))
BROKEN = Some("no integer", lambda x: np.isfinite(x) & (x != np.trunc(x)))
LARGE = Some("of size above 1", lambda x: abs(x) > 1)
SMALL = Some("of size below 1", lambda x: abs(x) < 1)
UNITS = Some("of size 1", lambda x: abs(x) == 1)
ABOVE_1 = Some("above 1", lambda x: x > 1)
BELOW_1 = Some("below 1", lambda x: x < 1)
BELOW_MINUS_1 = Some("below -1", lambda x: x < -1)
TIES = Some("between two integers", lambda x: abs(_finite(x) - np.trunc(_finite(x))) == 0.5)


def _finite(x: Data) -> Data:
    return np.where(np.isfinite(x), x, 0)


def _is_odd(x: Data) -> Any:
    return abs(np.fmod(_finite(x), 2)) == 1


ODD_PLUS = Some("odd, above 0", lambda x: _is_odd(x) & (x > 0))
ODD_MINUS = Some("odd, below 0", lambda x: _is_odd(x) & (x < 0))
EVEN_PLUS = Some("not odd, above 0", lambda x: ~_is_odd(x) & (x > 0))
EVEN_MINUS = Some("not odd, below 0", lambda x: ~_is_odd(x) & (x < 0))

NAN_PLUS = Some("NaN with sign +", lambda x: np.isnan(x) & ~np.signbit(x))
NAN_MINUS = Some("NaN with sign -", lambda x: np.isnan(x) & np.signbit(x))

MADE_PLUS = Some("sign +", lambda x: ~np.signbit(x) & ~np.isnan(x))
MADE_MINUS = Some("sign -", lambda x: np.signbit(x) & ~np.isnan(x))

X1 = Rule("the first", lambda x, *_: x)
X2 = Rule("the second", lambda _, y: y)
EVEN_NEIGHBOUR = Rule("the even one", lambda x: 2 * np.round(x / 2))
SIZE_PLUS = Rule("the first with sign +", lambda x, _: abs(x))
SIZE_MINUS = Rule("the first with sign -", lambda x, _: -abs(x))


Line: TypeAlias = tuple[Pattern | Result, ...]
"""Patterns of all operands, followed by the result."""


def rows_of(table: Mapping[str, Sequence[Line]], arity: int) -> dict[str, list[Row]]:
    """Split each line into operand patterns and results, by the number of operands."""
    return {
        name: [(line[:arity], line[arity:]) for line in lines]  # type: ignore[misc]
        for name, lines in table.items()
    }


_SAME: list[Line] = [(NAN, NAN), (0.0, 0.0), (-0.0, -0.0)]
_WHOLE: list[Line] = [*_SAME, (INF, INF), (-INF, -INF), (WHOLE, X1)]
_LOGARITHM: list[Line] = [(NAN, NAN), (NEGATIVE, NAN), (0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF)]

_UNARY: dict[str, list[Line]] = {
    "abs": [(NAN, NAN), (-0.0, 0.0), (-INF, INF)],
    "acos": [(NAN, NAN), (ABOVE_1, NAN), (BELOW_MINUS_1, NAN), (1.0, 0.0)],
    "acosh": [(NAN, NAN), (BELOW_1, NAN), (1.0, 0.0), (INF, INF)],
    "asin": [*_SAME, (ABOVE_1, NAN), (BELOW_MINUS_1, NAN)],
    "asinh": [*_SAME, (INF, INF), (-INF, -INF)],
    "atan": [*_SAME, (INF, pi / 2), (-INF, -pi / 2)],
    "atanh": [*_SAME, (ABOVE_1, NAN), (BELOW_MINUS_1, NAN), (1.0, INF), (-1.0, -INF)],
    "ceil": _WHOLE,
    "cos": [(NAN, NAN), (0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "cosh": [(NAN, NAN), (0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF)],
    "exp": [(NAN, NAN), (0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0)],
    "expm1": [*_SAME, (INF, INF), (-INF, -1.0)],
    "floor": _WHOLE,
    "isfinite": [(NAN, False), (INF, False), (-INF, False), (FINITE, True)],
    "isinf": [(NAN, False), (INF, True), (-INF, True), (FINITE, False)],
    "isnan": [(NAN, True), (NUMBER, False)],
    "log": _LOGARITHM,
    "log1p": [*_SAME, (BELOW_MINUS_1, NAN), (-1.0, -INF), (INF, INF)],
    "log2": _LOGARITHM,
    "log10": _LOGARITHM,
    "reciprocal": [(NAN, NAN), (0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, -0.0)],
    "round": [*_WHOLE, (TIES, EVEN_NEIGHBOUR)],
    "sign": [(NAN, NAN), (NEGATIVE, -1.0), (-0.0, 0.0), (0.0, 0.0), (POSITIVE, 1.0)],
    "signbit": [
        *((0.0, False), (-0.0, True), (INF, False), (-INF, True), (PLUS, False), (MINUS, True)),
        *((NAN_PLUS, False), (NAN_MINUS, True)),
    ],
    "sin": [*_SAME, (INF, NAN), (-INF, NAN)],
    "sinh": [*_SAME, (INF, INF), (-INF, -INF)],
    "sqrt": [*_SAME, (NEGATIVE, NAN), (INF, INF)],
    "tan": [*_SAME, (INF, NAN), (-INF, NAN)],
    "tanh": [*_SAME, (INF, 1.0), (-INF, -1.0)],
    "trunc": _WHOLE,
}

UNARY = rows_of(_UNARY, 1)
"""Special cases of functions of one real number."""

_NANS: list[Line] = [(NAN, ANY, NAN), (ANY, NAN, NAN)]
_QUOTIENT: list[Line] = [
    *_NANS,
    (INFINITE, INFINITE, NAN), (ZERO, ZERO, NAN),
    (0.0, POSITIVE, 0.0), (-0.0, POSITIVE, -0.0), (0.0, NEGATIVE, -0.0), (-0.0, NEGATIVE, 0.0),
    (POSITIVE, 0.0, INF), (POSITIVE, -0.0, -INF), (NEGATIVE, 0.0, -INF), (NEGATIVE, -0.0, INF),
    (INF, PLUS, INF), (INF, MINUS, -INF), (-INF, PLUS, -INF), (-INF, MINUS, INF),
]
_SMALL_QUOTIENT: list[Line] = [
    (PLUS, INF, 0.0), (PLUS, -INF, -0.0), (MINUS, INF, -0.0), (MINUS, -INF, 0.0),
]

_BINARY: dict[str, list[Line]] = {
    "add": [
        *_NANS,
        (INF, -INF, NAN), (-INF, INF, NAN), (INF, INF, INF), (-INF, -INF, -INF),
        (INF, FINITE, INF), (-INF, FINITE, -INF), (FINITE, INF, INF), (FINITE, -INF, -INF),
        (-0.0, -0.0, -0.0), (-0.0, 0.0, 0.0), (0.0, -0.0, 0.0), (0.0, 0.0, 0.0),
        (ZERO, NONZERO, X2), (NONZERO, ZERO, X1), (2.5, -2.5, 0.0), (-2.5, 2.5, 0.0),
    ],
    "atan2": [
        *_NANS,
        (POSITIVE, 0.0, pi / 2), (POSITIVE, -0.0, pi / 2), (0.0, POSITIVE, 0.0), (0.0, 0.0, 0.0),
        (0.0, -0.0, pi), (0.0, NEGATIVE, pi), (-0.0, POSITIVE, -0.0), (-0.0, 0.0, -0.0),
        (-0.0, -0.0, -pi), (-0.0, NEGATIVE, -pi),
        (NEGATIVE, 0.0, -pi / 2), (NEGATIVE, -0.0, -pi / 2),
        (PLUS, INF, 0.0), (PLUS, -INF, pi), (MINUS, INF, -0.0), (MINUS, -INF, -pi),
        (INF, FINITE, pi / 2), (-INF, FINITE, -pi / 2), (INF, INF, pi / 4),
        (INF, -INF, 3 * pi / 4), (-INF, INF, -pi / 4), (-INF, -INF, -3 * pi / 4),
    ],
    "copysign": [
        (NUMBER, POSITIVE, SIZE_PLUS), (NUMBER, NEGATIVE, SIZE_MINUS),
        (NUMBER, 0.0, SIZE_PLUS), (NUMBER, -0.0, SIZE_MINUS), (NAN, ANY, NAN),
    ],
    "divide": [
        *_QUOTIENT, *_SMALL_QUOTIENT,
        (PLUS, PLUS, MADE_PLUS), (MINUS, MINUS, MADE_PLUS),
        (PLUS, MINUS, MADE_MINUS), (MINUS, PLUS, MADE_MINUS),
    ],
    "equal": [
        (NAN, ANY, False), (ANY, NAN, False), (INF, INF, True), (-INF, -INF, True),
        (-0.0, 0.0, True), (0.0, -0.0, True), (0.0, 0.0, True), (-0.0, -0.0, True),
        (FINITE, INFINITE, False), (INF, -INF, False),
    ],
    "floor_divide": [
        *_QUOTIENT, *_SMALL_QUOTIENT,
        (PLUS, PLUS, MADE_PLUS), (MINUS, MINUS, MADE_PLUS),
        (PLUS, MINUS, MADE_MINUS), (MINUS, PLUS, MADE_MINUS),
    ],
    "greater": [(NAN, ANY, False), (ANY, NAN, False), (INF, FINITE, True), (0.0, -0.0, False)],
    "greater_equal": [
        (NAN, ANY, False), (ANY, NAN, False), (-INF, FINITE, False), (-0.0, 0.0, True),
    ],
    "hypot": [
        (INFINITE, ANY, INF), (ANY, INFINITE, INF), (NAN, FINITE, NAN), (FINITE, NAN, NAN),
        (NAN, NAN, NAN), (ZERO, FINITE, Rule("the size of the second", lambda _, y: abs(y))),
        (FINITE, ZERO, SIZE_PLUS),
    ],
    "less": [(NAN, ANY, False), (ANY, NAN, False), (-INF, FINITE, True), (-0.0, 0.0, False)],
    "less_equal": [
        (NAN, ANY, False), (ANY, NAN, False), (INF, FINITE, False), (0.0, -0.0, True),
    ],
    "logaddexp": [
        *_NANS, (INF, NUMBER, INF), (NUMBER, INF, INF), (-INF, -INF, -INF),
        (-INF, NONZERO, X2), (NONZERO, -INF, X1),
    ],
    "maximum": [*_NANS, (INF, NUMBER, INF), (-INF, NUMBER, X2)],
    "minimum": [*_NANS, (-INF, NUMBER, -INF), (INF, NUMBER, X2)],
    "multiply": [
        *_NANS,
        (INFINITE, ZERO, NAN), (ZERO, INFINITE, NAN),
        (INF, POSITIVE, INF), (INF, NEGATIVE, -INF), (-INF, POSITIVE, -INF), (-INF, NEGATIVE, INF),
        (POSITIVE, INF, INF), (NEGATIVE, INF, -INF), (POSITIVE, -INF, -INF), (NEGATIVE, -INF, INF),
        (PLUS, PLUS, MADE_PLUS), (MINUS, MINUS, MADE_PLUS), (PLUS, MINUS, MADE_MINUS),
        (MINUS, PLUS, MADE_MINUS), (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0), (-0.0, -0.0, 0.0),
    ],
    "nextafter": [*_NANS, (0.0, -0.0, -0.0), (-0.0, 0.0, 0.0), (INF, INF, INF)],
    "not_equal": [(NAN, ANY, True), (ANY, NAN, True), (INF, INF, False), (-0.0, 0.0, False)],
    "pow": [
        (NOT_1, NAN, NAN), (ANY, 0.0, 1.0), (ANY, -0.0, 1.0), (NAN, NOT_0, NAN),
        (LARGE, INF, INF), (LARGE, -INF, 0.0), (UNITS, INF, 1.0), (UNITS, -INF, 1.0),
        (1.0, NUMBER, 1.0), (SMALL, INF, 0.0), (SMALL, -INF, INF),
        (INF, POSITIVE, INF), (INF, NEGATIVE, 0.0),
        (-INF, ODD_PLUS, -INF), (-INF, EVEN_PLUS, INF),
        (-INF, ODD_MINUS, -0.0), (-INF, EVEN_MINUS, 0.0),
        (0.0, POSITIVE, 0.0), (0.0, NEGATIVE, INF),
        (-0.0, ODD_PLUS, -0.0), (-0.0, EVEN_PLUS, 0.0),
        (-0.0, ODD_MINUS, -INF), (-0.0, EVEN_MINUS, INF), (MINUS, BROKEN, NAN),
    ],
    "remainder": [
        *_NANS,
        (INFINITE, NUMBER, NAN), (ZERO, ZERO, NAN), (POSITIVE, ZERO, NAN), (NEGATIVE, ZERO, NAN),
        (0.0, POSITIVE, 0.0), (-0.0, POSITIVE, 0.0), (0.0, NEGATIVE, -0.0), (-0.0, NEGATIVE, -0.0),
        (PLUS, INF, X1), (PLUS, -INF, X2), (MINUS, INF, X2), (MINUS, -INF, X1),
        (NONZERO, PLUS, MADE_PLUS), (NONZERO, MINUS, MADE_MINUS),
    ],
    "subtract": [
        *_NANS,
        (INF, INF, NAN), (-INF, -INF, NAN), (INF, -INF, INF), (-INF, INF, -INF),
        (INF, FINITE, INF), (-INF, FINITE, -INF), (FINITE, INF, -INF), (FINITE, -INF, INF),
        (-0.0, -0.0, 0.0), (-0.0, 0.0, -0.0), (0.0, -0.0, 0.0), (0.0, 0.0, 0.0),
        (NONZERO, ZERO, X1), (2.5, 2.5, 0.0),
    ],
}

BINARY = rows_of(_BINARY, 2)
"""Special cases of functions of two real numbers."""

INPLACE = {
    "__iadd__": "add", "__isub__": "subtract", "__imul__": "multiply", "__itruediv__": "divide",
    "__ifloordiv__": "floor_divide", "__imod__": "remainder", "__ipow__": "pow",
}
"""In-place operators and the functions whose rows apply to them."""
