"""Every function of several arrays rejects arrays on different devices."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array import Array
from tecomp.errors import DeviceMismatchError, TecompError
from tests.array.operators import BINARY, BITWISE, COMPARISONS, INPLACE
from tests.messages import Diagnostic, diagnostic

DTYPES = ("float32", "int32", "bool")


TYPES_ALONE = {"can_cast", "isdtype", "result_type"}
"""Functions that read dtypes only and compute nothing."""


def arrays(dtype: str, rank: int = 2) -> tuple[Array, Array, Array]:
    """Return two arrays on the host and one on another device."""
    data = (np.eye(3) + 1).astype(dtype)[0 if rank == 1 else ...]
    return xp.asarray(data), xp.asarray(data), xp.asarray(data, device="stick128")


def functions() -> Iterator[tuple[str, Any]]:
    for module, prefix in ((strict, ""), (strict.linalg, "linalg."), (strict.fft, "fft.")):
        for name in module.__all__:
            is_function = inspect.isfunction(getattr(module, name))
            if is_function and "strict_flags" not in name and name not in TYPES_ALONE:
                yield prefix + name, operator.attrgetter(prefix + name)(xp)


def ways(function: Any) -> Iterator[Callable[[Any, Any], object]]:
    """Yield the ways in which a function may receive two arrays."""
    yield lambda x, y: function(x, y)
    yield lambda x, y: function(y, x)
    yield lambda x, y: function([x, y])
    yield lambda x, y: function(x, y, axis=0)
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is not parameter.POSITIONAL_ONLY and name not in ("copy", "out"):
            yield lambda x, y, name=name: function(x, **{name: y})  # type: ignore[misc]


def works(call: Callable[[Any, Any], object], one: Array, other: Array) -> bool:
    try:
        result = call(one, other)
    except (TecompError, TypeError, ValueError):
        return False
    return result is not None


FOUND: dict[str, list[tuple[str, int, int]]] = {}
for NAME, FUNCTION in functions():
    for DTYPE in DTYPES:
        for RANK in (1, 2):
            A, B, _ = arrays(DTYPE, RANK)
            for PLACE, WAY in enumerate(ways(FUNCTION)):
                if works(WAY, A, B):
                    FOUND.setdefault(NAME, []).append((DTYPE, RANK, PLACE))


@pytest.mark.parametrize("name", sorted(FOUND))
def test_functions(name: str) -> None:
    function = operator.attrgetter(name)(xp)
    for dtype, rank, place in FOUND[name]:
        x, _, there = arrays(dtype, rank)
        with pytest.raises(DeviceMismatchError) as caught:
            [*ways(function)][place](x, there)
        found = diagnostic(caught.value)
        first, other = (found.parameters[key] for key in ("first", "other"))
        assert found == Diagnostic(
            "device-mismatch", where={"diff": "concat"}.get(name, name.rpartition(".")[2]), first=first, k=1, other=other,
            device=str(x.device if x.device in first else there.device),
        )
        assert sorted(item.partition("device=")[2] for item in (first, other)) == (
            ["'cpu'>", "'stick128'>"]
        )


def test_enough_was_found() -> None:
    assert {
        "add", "broadcast_arrays", "concat", "clip", "isin", "linalg.solve", "matmul", "meshgrid",
        "repeat", "searchsorted", "stack", "take", "take_along_axis", "tensordot",
        "vecdot",
    } <= {*FOUND}


@pytest.mark.parametrize("name", [*BINARY, *COMPARISONS, *INPLACE])
def test_operators(name: str) -> None:
    dtype = "int32" if name in BITWISE else "float32"
    x, _, there = arrays(dtype)
    with pytest.raises(DeviceMismatchError):
        getattr(operator, name)(x, there)
    with pytest.raises(DeviceMismatchError):
        getattr(operator, name)(there, x)


CALLS: list[Callable[[Array, Array, Array], object]] = [
    lambda x, y, mask: xp.where(mask, x, y), lambda x, y, mask: xp.where(x > 0, x, y),
    lambda x, y, mask: xp.clip(x, y), lambda x, y, mask: xp.clip(x, None, y),
    lambda x, y, mask: xp.clip(x, min=x, max=y), lambda x, y, mask: x[mask],
    lambda x, y, mask: x.__setitem__(mask, 1.0), lambda x, y, mask: x.__setitem__(..., y),
    lambda x, y, mask: x.__setitem__(x > 0, y[0, 0]), lambda x, y, mask: xp.full_like(x, y),
    lambda x, y, mask: xp.full((3, 3), y, device="cpu"),
    lambda x, y, mask: x[xp.asarray([0]), xp.asarray([1], device="stick128")],
    lambda x, y, mask: x.__setitem__(xp.asarray([0], device="stick128"), 1.0),
]


@pytest.mark.parametrize("k", range(len(CALLS)))
def test_calls(k: int) -> None:
    x, _, there = arrays("float32")
    mask = arrays("bool")[2]
    with pytest.raises(DeviceMismatchError):
        CALLS[k](x, there, mask)
