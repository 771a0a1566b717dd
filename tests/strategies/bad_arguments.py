"""Invalid values of every kind that replace the arguments of a valid call."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from random import Random
from typing import Any, TypeAlias

import numpy as np
import pytest

from tecomp import InternalError, TecompError, te
from tecomp.errors import safe_repr

Right: TypeAlias = "dict[str, Any]"



def nested(depth: int) -> list[Any]:
    """Return a list nested to a depth."""
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


class Unprintable:
    """Object whose `repr` and `str` raise an error."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


NESTED, DEEP, HUGE = nested(100), nested(2000), 10**5000
UNPRINTABLE: tuple[Any, ...] = (
    HUGE, -HUGE, (HUGE, 2), (2, HUGE), [HUGE] * 2, {"a": HUGE}, {HUGE: 1}, Fraction(HUGE, 3),
    DEEP, (DEEP, 1), [DEEP, DEEP], {"a": DEEP}, Unprintable(), [Unprintable()],
)
"""Values that `repr` does not format: too many digits, too many levels, an error of its own."""

WRONG: tuple[Any, ...] = (
    None, 3, -1, 1.5, float("nan"), True, "x", b"x", (), [], {}, (2, -1), (2.5,), ("a", "b"), [[]],
    object(), str, {1: 2}, {1}, 10**30, (10**20, 10**20), (1,) * 8, "(" * 5000, [None, None],
    np.zeros((2, 2)), np.float32(3.0), pytest, te.var("n"), te.placeholder((3,), name="P"),
    lambda: None, lambda *indices: indices,
    # Edge cases of names, sizes and structures: long or unusual text, more than 64 bits, nesting.
    "a" * 5000, "a b", "a\nb", "\0", "\ud800", "ä", 1 << 31, 1 << 63, -(1 << 63) - 1, -0.0,
    float("inf"), 1e308, [[1], [2, "x"]], NESTED, {"a": NESTED}, range(3), (1 << 63, 1),
    *UNPRINTABLE,
)


def tried(call: Callable[[], object]) -> str | None:
    """Return the defect in how a call rejects its arguments, or None if there is no defect."""
    try:
        call()
    except InternalError as error:  # a defect of the compiler, not of the arguments
        return f"InternalError: {error.message}"
    except TecompError as error:
        if re.search(r"\b0x[0-9a-f]{6,}", error.message):
            return f"an address: {error.message}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def failures(call: Callable[[Right], object], right: Right) -> list[str]:
    """Return the wrong values of single arguments that a call does not reject properly."""
    found = ((name, wrong, tried(partial(call, right | {name: wrong})))
             for name in right for wrong in WRONG)
    return [f"{name}={safe_repr(wrong)[:200]}: {subject}" for name, wrong, subject in found if subject]


def random_failures(call: Callable[[Right], object], right: Right, count: int) -> list[str]:
    """Return random sets of replaced arguments that a call does not reject properly."""
    random = Random(count)
    found = []
    for _ in range(count):
        names = random.sample([*right], random.randint(1, len(right))) if right else []
        data = {name: random.choice(WRONG) for name in names}
        if subject := tried(partial(call, right | data)):
            found.append(f"{', '.join(f'{n}={safe_repr(x)[:200]}' for n, x in data.items())}: {subject}")
    return found
