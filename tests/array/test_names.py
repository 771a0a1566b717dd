"""`dir` of the namespace lists public names only."""

from __future__ import annotations

import inspect

import tecomp.array as xp


def test_values_are_named_after_user_variables() -> None:
    names = set(dir(xp))

    assert {"Array", "asarray", "float32", "linalg", "fft", "statistics", "jit", "pi"} <= names
    assert {n for n in names if inspect.ismodule(getattr(xp, n))} == {
        "fft", "linalg", "random", "statistics"}
    assert not {"TYPE_CHECKING", "ModuleType", "absent_function"} & names
