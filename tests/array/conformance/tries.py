"""Comparison of one random call with our arrays and with NumPy arrays."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np

import tecomp.array as xp
from tecomp.array import Array
from tecomp.errors import TecompError
from tests.array.conformance.calls import MAKERS, Call
from tests.array.conformance.draws import Draw
from tests.array.conformance.methods import USES
from tests.numerics import assert_close


def fault_of(
    name: str, seed: Sequence[int], kind: type[Draw] = Draw, place: Mapping[str, Any] | None = None,
    namespace: Any = xp,
) -> str:
    """Return the fault of a random call, or an empty string.

    Args:
        name: Name of the function.
        seed: Seed of the call.
        kind: Class that draws the arguments and creates the arrays.
        place: Additional keyword arguments of our function.
        namespace: Namespace whose function is called with our arrays. NumPy functions dispatch to ours.
    """
    draw = kind([*seed, crc32(name.encode())])
    call = MAKERS[name](draw, name)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # NumPy warns about the same values
        try:
            oracle: Any = call.oracle or _found(np, name)
            expected = oracle(*_copied(call.args), **_copied(call.options))
        except (TypeError, ValueError, IndexError, np.linalg.LinAlgError) as error:
            expected = error
    try:
        _try(call, draw, expected, place or {}, namespace)
    except Exception as error:
        return f"{call}: {type(error).__name__}: {error}"
    return ""


def _try(
    call: Call, draw: Draw, expected: Any, place: Mapping[str, Any], namespace: Any
) -> None:
    args, options = _ours(call.args, draw), _ours(call.options, draw)
    try:
        use: Any = USES.get(call.name) or _found(namespace, call.name)
        actual = draw.called(call.name, lambda: use(*args, **options, **place))
    except TecompError:
        if isinstance(expected, Exception):
            return
        raise
    assert not isinstance(expected, Exception), f"{actual} in place of {expected!r}"
    _compare(actual, expected, call.tolerance)
    _check_unchanged((args, options), (call.args, call.options))


def _found(place: Any, name: str) -> Any:
    for part in name.split("."):
        place = getattr(place, part)
    return place


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return type(value)([_copied(one) for one in value])
    return value


def _ours(value: Any, draw: Draw) -> Any:
    if isinstance(value, np.ndarray):
        return draw.array(value)
    if isinstance(value, dict):
        return {key: _ours(one, draw) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return type(value)([_ours(one, draw) for one in value])
    return value


def _check_unchanged(argument: Any, before: Any) -> None:
    """Check that no argument was modified."""
    if isinstance(argument, Array):
        if argument._node.data is not None:
            np.testing.assert_array_equal(np.asarray(argument), before, "an argument has changed")
    elif isinstance(argument, dict):
        _check_unchanged(list(argument.values()), list(before.values()))
    elif isinstance(argument, tuple | list):
        for one, other in zip(argument, before, strict=True):
            _check_unchanged(one, other)


def _compare(actual: Any, expected: Any, near: float) -> None:
    if isinstance(expected, tuple | list):
        assert len(actual) == len(expected), f"{len(actual)} results"
        for one, other in zip(actual, expected, strict=True):
            _compare(one, other, near)
        return
    if isinstance(expected, np.dtype | bool | np.bool_ | int) and not isinstance(actual, Array):
        assert actual == expected, f"{actual}, not {expected}"
        return
    assert isinstance(actual, Array), type(actual)
    one, other = np.asarray(actual), np.asarray(expected)
    assert one.shape == actual.shape, "the shape that was told"
    assert one.dtype == actual.dtype, "the type that was told"
    assert (one.dtype, one.shape) == (other.dtype, other.shape), (
        f"{one.dtype} of shape {one.shape}, not {other.dtype} of shape {other.shape}")
    if other.dtype.kind not in "fc":
        np.testing.assert_array_equal(one, other)
        return
    rtol = near * float(np.finfo(other.dtype).eps)
    assert_close(one, other, rtol=rtol, atol=rtol)
