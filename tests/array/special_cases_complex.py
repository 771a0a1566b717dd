"""Special cases of complex functions: patterns and results for real and imaginary parts.

Rows cover imaginary parts with positive sign and NaN; the result of a conjugate is the conjugate.
"""

from __future__ import annotations

from math import pi

import numpy as np

from tests.array.special_cases import (
    ANY,
    FINITE,
    INF,
    INFINITE,
    NAN,
    NONZERO,
    NUMBER,
    PLUS,
    SIGNED_PLUS,
    ZERO,
    Line,
    Rule,
    Unsigned,
    rows_of,
)

SIGNED_ZERO = Unsigned(0.0)
SIGNED_INF = Unsigned(INF)


def _times_cosine(size: float) -> Rule:
    return Rule(f"{size} cos(b)", lambda _, b: size * np.cos(b))


def _times_sine(size: float) -> Rule:
    return Rule(f"{size} sin(b)", lambda _, b: size * np.sin(b))


ZERO_OF_TWICE = Rule("0 sin(2 b)", lambda _, b: 0 * np.sin(b) * np.cos(b))
COS_INF, SIN_INF = _times_cosine(INF), _times_sine(INF)
COS_0, SIN_0 = _times_cosine(0.0), _times_sine(0.0)

_LOG: list[Line] = [
    (INF, INF, INF, pi / 4), (-INF, INF, INF, 3 * pi / 4), (FINITE, INF, INF, pi / 2),
    (FINITE, NAN, NAN, NAN), (-INF, SIGNED_PLUS, INF, pi), (INF, SIGNED_PLUS, INF, 0.0),
    (INFINITE, NAN, INF, NAN), (NAN, FINITE, NAN, NAN), (NAN, INF, INF, NAN), (NAN, NAN, NAN, NAN),
]

_TABLES: dict[str, list[Line]] = {
    "acos": [
        (ZERO, 0.0, pi / 2, -0.0), (ZERO, NAN, pi / 2, NAN), (FINITE, INF, pi / 2, -INF),
        (NONZERO, NAN, NAN, NAN), (-INF, SIGNED_PLUS, pi, -INF), (INF, SIGNED_PLUS, 0.0, -INF),
        (-INF, INF, 3 * pi / 4, -INF), (INF, INF, pi / 4, -INF), (INFINITE, NAN, NAN, SIGNED_INF),
        (NAN, FINITE, NAN, NAN), (NAN, INF, NAN, -INF), (NAN, NAN, NAN, NAN),
    ],
    "acosh": [
        (ZERO, 0.0, 0.0, pi / 2), (FINITE, INF, INF, pi / 2), (NONZERO, NAN, NAN, NAN),
        (ZERO, NAN, NAN, Unsigned(pi / 2)), (-INF, SIGNED_PLUS, INF, pi),
        (INF, SIGNED_PLUS, INF, 0.0), (-INF, INF, INF, 3 * pi / 4), (INF, INF, INF, pi / 4),
        (INFINITE, NAN, INF, NAN), (NAN, FINITE, NAN, NAN), (NAN, INF, INF, NAN),
        (NAN, NAN, NAN, NAN),
    ],
    "asinh": [
        (0.0, 0.0, 0.0, 0.0), (SIGNED_PLUS, INF, INF, pi / 2), (FINITE, NAN, NAN, NAN),
        (INF, SIGNED_PLUS, INF, 0.0), (INF, INF, INF, pi / 4), (INF, NAN, INF, NAN),
        (NAN, 0.0, NAN, 0.0), (NAN, NONZERO, NAN, NAN), (NAN, INF, SIGNED_INF, NAN),
        (NAN, NAN, NAN, NAN),
    ],
    "atanh": [
        (0.0, 0.0, 0.0, 0.0), (0.0, NAN, 0.0, NAN), (1.0, 0.0, INF, 0.0),
        (SIGNED_PLUS, INF, 0.0, pi / 2), (NONZERO, NAN, NAN, NAN), (INF, SIGNED_PLUS, 0.0, pi / 2),
        (INF, INF, 0.0, pi / 2), (INF, NAN, 0.0, NAN), (NAN, FINITE, NAN, NAN),
        (NAN, INF, SIGNED_ZERO, pi / 2), (NAN, NAN, NAN, NAN),
    ],
    "cosh": [
        (0.0, 0.0, 1.0, 0.0), (0.0, INF, NAN, SIGNED_ZERO), (0.0, NAN, NAN, SIGNED_ZERO),
        (NONZERO, INF, NAN, NAN), (NONZERO, NAN, NAN, NAN), (INF, 0.0, INF, 0.0),
        (INF, NONZERO, COS_INF, SIN_INF), (INF, INF, SIGNED_INF, NAN), (INF, NAN, INF, NAN),
        (NAN, 0.0, NAN, SIGNED_ZERO), (NAN, NONZERO, NAN, NAN), (NAN, INF, NAN, NAN),
        (NAN, NAN, NAN, NAN),
    ],
    "exp": [
        (ZERO, 0.0, 1.0, 0.0), (FINITE, INF, NAN, NAN), (FINITE, NAN, NAN, NAN),
        (INF, 0.0, INF, 0.0), (-INF, FINITE, COS_0, SIN_0), (INF, NONZERO, COS_INF, SIN_INF),
        (-INF, INF, SIGNED_ZERO, SIGNED_ZERO), (INF, INF, SIGNED_INF, NAN),
        (-INF, NAN, SIGNED_ZERO, SIGNED_ZERO), (INF, NAN, SIGNED_INF, NAN), (NAN, 0.0, NAN, 0.0),
        (NAN, NONZERO, NAN, NAN), (NAN, INF, NAN, NAN), (NAN, NAN, NAN, NAN),
    ],
    "expm1": [
        (ZERO, 0.0, SIGNED_ZERO, 0.0), (FINITE, INF, NAN, NAN), (FINITE, NAN, NAN, NAN),
        (INF, 0.0, INF, 0.0), (-INF, FINITE, -1.0, SIN_0), (INF, NONZERO, COS_INF, SIN_INF),
        (-INF, INF, -1.0, SIGNED_ZERO), (INF, INF, SIGNED_INF, NAN), (-INF, NAN, -1.0, SIGNED_ZERO),
        (INF, NAN, SIGNED_INF, NAN), (NAN, 0.0, NAN, 0.0), (NAN, NONZERO, NAN, NAN),
        (NAN, INF, NAN, NAN), (NAN, NAN, NAN, NAN),
    ],
    "log": [(-0.0, 0.0, -INF, pi), (0.0, 0.0, -INF, 0.0), *_LOG],
    "log1p": [(-1.0, 0.0, -INF, 0.0), *_LOG],
    "sign": [
        (ZERO, ZERO, 0.0, SIGNED_ZERO), (NAN, ANY, NAN, NAN), (ANY, NAN, NAN, NAN),
        (PLUS, ZERO, 1.0, SIGNED_ZERO), (ZERO, PLUS, SIGNED_ZERO, 1.0),
    ],
    "sinh": [
        (0.0, 0.0, 0.0, 0.0), (0.0, INF, SIGNED_ZERO, NAN), (0.0, NAN, SIGNED_ZERO, NAN),
        (NONZERO, INF, NAN, NAN), (NONZERO, NAN, NAN, NAN), (INF, 0.0, INF, 0.0),
        (INF, NONZERO, COS_INF, SIN_INF), (INF, INF, SIGNED_INF, NAN), (INF, NAN, SIGNED_INF, NAN),
        (NAN, 0.0, NAN, 0.0), (NAN, NONZERO, NAN, NAN), (NAN, INF, NAN, NAN), (NAN, NAN, NAN, NAN),
    ],
    "sqrt": [
        (ZERO, 0.0, 0.0, 0.0), (ANY, INF, INF, INF), (FINITE, NAN, NAN, NAN),
        (-INF, SIGNED_PLUS, 0.0, INF), (INF, SIGNED_PLUS, INF, 0.0), (-INF, NAN, NAN, SIGNED_INF),
        (INF, NAN, INF, NAN), (NAN, FINITE, NAN, NAN), (NAN, NAN, NAN, NAN),
    ],
    "tanh": [
        (0.0, 0.0, 0.0, 0.0), (NONZERO, INF, NAN, NAN), (0.0, INF, 0.0, NAN),
        (NONZERO, NAN, NAN, NAN), (0.0, NAN, 0.0, NAN), (INF, SIGNED_PLUS, 1.0, ZERO_OF_TWICE),
        (INF, INF, 1.0, SIGNED_ZERO), (INF, NAN, 1.0, SIGNED_ZERO), (NAN, 0.0, NAN, 0.0),
        (NAN, NONZERO, NAN, NAN), (NAN, INF, NAN, NAN), (NAN, NAN, NAN, NAN),
    ],
    "isfinite": [(FINITE, FINITE, True), (INFINITE, ANY, False), (ANY, NAN, False)],
    "isinf": [(INFINITE, ANY, True), (ANY, INF, True), (NAN, FINITE, False)],
    "isnan": [(NAN, ANY, True), (ANY, NAN, True), (NUMBER, NUMBER, False)],
    "abs": [(INFINITE, ANY, INF), (ANY, INF, INF), (NAN, FINITE, NAN), (ZERO, ZERO, 0.0)],
}

COMPLEX = rows_of(_TABLES, 2)
"""Special cases of complex functions: patterns of both parts, and both parts of the result."""

TURNED = {"asin": "asinh", "atan": "atanh", "sin": "sinh", "tan": "tanh"}
"""Functions f with f(z) = -i g(iz), and the function g."""
