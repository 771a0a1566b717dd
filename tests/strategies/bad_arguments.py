"""Things of every kind, passed in the place of each argument of a call that is right."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pytest

from tecomp import TecompError, te

Right: TypeAlias = "dict[str, Any]"

WRONG: tuple[Any, ...] = (
    None, 3, -1, 1.5, float("nan"), True, "x", b"x", (), [], {}, (2, -1), (2.5,), ("a", "b"), [[]],
    object(), str, {1: 2}, {1}, 10**30, (10**20, 10**20), (1,) * 8, "(" * 5000, [None, None],
    np.zeros((2, 2)), np.float32(3.0), pytest, te.var("n"), te.placeholder((3,), name="P"),
    lambda: None, lambda *indices: indices,
)


def tried(call: Callable[[], object]) -> str | None:
    """What is wrong with the way in which a call is refused, if anything."""
    try:
        call()
    except TecompError as error:
        if re.search(r"\b0x[0-9a-f]{6,}", error.message):
            return f"an address: {error.message}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def failures(call: Callable[[Right], object], right: Right) -> list[str]:
    """The arguments of a right call, by name, that are refused badly if they are something else."""
    found = ((name, wrong, tried(partial(call, right | {name: wrong})))
             for name in right for wrong in WRONG)
    return [f"{name}={wrong!r}: {what}" for name, wrong, what in found if what]
