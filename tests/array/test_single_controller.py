"""Functions of several arrays reject arrays on different devices or teams."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array.array_object import Array, from_node
from tecomp.array.graph import materialized_node
from tecomp.errors import DeviceMismatchError, TeamMismatchError, TecompError
from tecomp.ptensor import PTensorType
from tests.array.operators import BINARY, BITWISE, COMPARISONS, INPLACE

Pair = Callable[[Any, Any], Any]
CHOSEN: dict[str, Pair] = {
    "broadcast_arrays": xp.broadcast_arrays,
    "concat": lambda a, b: xp.concat([a, b]),
    "diff prepend": lambda a, b: xp.diff(a, prepend=b),
    "diff append": lambda a, b: xp.diff(a, append=b),
    "einsum": lambda a, b: xp.einsum("ij,jk", a, b),
    "interp": lambda a, b: xp.interp(a[0], a[0], b[0]),
    "full": lambda a, b: xp.full((2, 2), a, device=b.device) + b,
    "full_like": lambda a, b: xp.full_like(a, b),
    "meshgrid": lambda a, b: xp.meshgrid(a[0], b[0]),
    "repeat": lambda a, b: xp.repeat(a, xp.astype(b[0], xp.int32), axis=0),
    "searchsorted sorter": lambda a, b: xp.searchsorted(
        a[0], a[0], sorter=xp.astype(b[0], xp.int32)),
    "searchsorted": lambda a, b: xp.searchsorted(a[0], b),
    "stack": lambda a, b: xp.stack([a, b]),
    "take": lambda a, b: xp.take(a, xp.astype(b[0], xp.int32), axis=0),
    "take_along_axis": lambda a, b: xp.take_along_axis(a, xp.astype(b, xp.int32), axis=0),
    "where condition": lambda a, b: xp.where(a > 0, b, b),
    "where choices": lambda a, b: xp.where(a > 0, a, b),
    "clip min": lambda a, b: xp.clip(a, b),
    "clip max": lambda a, b: xp.clip(a, None, b),
    "clip both": lambda a, b: xp.clip(a, a, b),
    "tensordot": lambda a, b: xp.tensordot(a, b, axes=1),
    "linalg.tensordot": lambda a, b: xp.linalg.tensordot(a, b, axes=1),
    "linalg.cross": lambda a, b: xp.linalg.cross(_three(a), _three(b)),
    "linalg.outer": lambda a, b: xp.linalg.outer(a[0], b[0]),
    "linalg.pinv": lambda a, b: xp.linalg.pinv(a, rtol=b[0, 0]),
    "linalg.matrix_rank": lambda a, b: xp.linalg.matrix_rank(a, rtol=b[0, 0]),
    "x[i]": lambda a, b: a[xp.astype(b[0], xp.int32)],
    "x[mask]": lambda a, b: a[b > 0],
    "x[i] = v": lambda a, b: operator.setitem(a, 0, b),
    "x[index] = v": lambda a, b: operator.setitem(a, xp.astype(b[0], xp.int32), 1.0),
    "x[mask] = v": lambda a, b: operator.setitem(a, b > 0, 1.0),
}


def _three(x: Any) -> Any:
    return xp.concat([x, x[:, :1]], axis=1)


AS = {
    **{name: "int32" for name in dir(xp) if name.startswith("bitwise_")},
    **{name: "bool" for name in dir(xp) if name.startswith("logical_")},
}
ALONE = {"result_type", "can_cast", "asarray", "isdtype", "relayout_to", "eval", "report", "jit"}
"""Functions that take several arrays without combining their elements."""
OPERATORS = {f"__{name.rstrip('_')}__": name for name in (*BINARY, *COMPARISONS, *INPLACE)}
"""Names in `operator` by method."""


def functions() -> Iterator[tuple[str, Any]]:
    for module, prefix in ((xp, ""), (xp.linalg, "linalg."), (xp.fft, "fft.")):
        for name in getattr(module, "__all__", None) or dir(module):
            found = getattr(module, name)
            if inspect.isfunction(found) and not name.startswith("_"):
                yield prefix + name, found


def several(function: Any) -> bool:
    """Return whether the annotations of a function allow two or more arrays."""
    params = [
        p for p in inspect.signature(function).parameters.values() if "Array" in str(p.annotation)
    ]
    return len(params) > 1 or any(
        p.kind is p.VAR_POSITIONAL or "[Array" in str(p.annotation) for p in params
    )


def cases() -> dict[str, Pair]:
    found = dict(CHOSEN)
    chosen = {name.split(" ")[0] for name in CHOSEN}
    for name, function in functions():
        if name not in chosen and name not in ALONE and several(function):
            found[name] = function
    for name in OPERATORS:
        found[name] = getattr(Array, name)
    return found


CASES = cases()


def _dtype(name: str) -> str:
    return AS.get(name, "int32" if OPERATORS.get(name) in BITWISE else "float32")


def _here(dtype: str, team: int | None) -> Array:
    data = np.array([[1, 1], [0, 1]], dtype)
    return from_node(materialized_node(data, PTensorType((2, 2), dtype, "cpu", team)))


def test_many_take_several_arrays() -> None:
    expected = {"add", "matmul", "vecdot", "isin", "linalg.solve", "linalg.vecdot", "atan2", "where"}
    assert expected <= {name.split(" ")[0] for name in CASES}
    assert len(CASES) > 80


@pytest.mark.exhaustive(keep=105)
@pytest.mark.parametrize("name", sorted(CASES))
@pytest.mark.parametrize("turned", [False, True])
def test_devices_are_not_mixed(name: str, *, turned: bool) -> None:
    here = _here(_dtype(name), None)
    there = here.to_device("stick128")
    pair = (there, here) if turned else (here, there)
    _refused(DeviceMismatchError, CASES[name], pair, ["device='cpu'", "device='stick128'"])
    assert here.device == "cpu"
    assert there.device == "stick128"


_CONVERTED = {
    "linalg.cross", "interp", "repeat", "searchsorted sorter", "take", "take_along_axis", "where choices",
    "where condition", "x[i]", "x[index] = v", "x[mask]", "x[mask] = v",
}
"""Cases that convert an array first, which requires a team with processes; see tests/dist."""


@pytest.mark.parametrize("name", sorted({*CASES} - _CONVERTED))
def test_teams_are_not_mixed(name: str) -> None:
    pair = _here(_dtype(name), 1), _here(_dtype(name), 2)
    _refused(TeamMismatchError, CASES[name], pair, ["team=1", "team=2"])


def _refused(
    kind: type[TecompError], function: Pair, pair: tuple[Array, Array], places: list[str]
) -> None:
    before = [np.asarray(x).copy() for x in pair]
    with pytest.raises(kind) as error:
        function(*pair)
    assert all(place in str(error.value) for place in places), str(error.value)
    for x, old in zip(pair, before, strict=True):
        np.testing.assert_array_equal(np.asarray(x), old)
