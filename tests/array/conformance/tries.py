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
            wanted = oracle(*_copied(call.args), **_copied(call.options))
        except (TypeError, ValueError, IndexError, np.linalg.LinAlgError) as error:
            wanted = error
    try:
        _try(call, draw, wanted, place or {}, namespace)
    except Exception as error:
        return f"{call}: {type(error).__name__}: {error}"
    return ""


def _try(
    call: Call, draw: Draw, wanted: Any, place: Mapping[str, Any], namespace: Any
) -> None:
    args, options = _ours(call.args, draw), _ours(call.options, draw)
    try:
        use: Any = USES.get(call.name) or _found(namespace, call.name)
        got = draw.called(call.name, lambda: use(*args, **options, **place))
    except TecompError:
        if isinstance(wanted, Exception):
            return
        raise
    assert not isinstance(wanted, Exception), f"{got} in place of {wanted!r}"
    _compare(got, wanted, call.tolerance)
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


def _check_unchanged(given: Any, kept: Any) -> None:
    """Check that no argument was modified."""
    if isinstance(given, Array):
        if given._node.data is not None:
            np.testing.assert_array_equal(np.asarray(given), kept, "an argument has changed")
    elif isinstance(given, dict):
        _check_unchanged(list(given.values()), list(kept.values()))
    elif isinstance(given, tuple | list):
        for one, other in zip(given, kept, strict=True):
            _check_unchanged(one, other)


def _compare(got: Any, wanted: Any, near: float) -> None:
    if isinstance(wanted, tuple | list):
        assert len(got) == len(wanted), f"{len(got)} results"
        for one, other in zip(got, wanted, strict=True):
            _compare(one, other, near)
        return
    if isinstance(wanted, np.dtype | bool | np.bool_ | int) and not isinstance(got, Array):
        assert got == wanted, f"{got}, not {wanted}"
        return
    assert isinstance(got, Array), type(got)
    one, other = np.asarray(got), np.asarray(wanted)
    assert one.shape == got.shape, "the shape that was told"
    assert one.dtype == got.dtype, "the type that was told"
    assert (one.dtype, one.shape) == (other.dtype, other.shape), (
        f"{one.dtype} of shape {one.shape}, not {other.dtype} of shape {other.shape}")
    if other.dtype.kind not in "fc":
        np.testing.assert_array_equal(one, other)
        return
    rtol = near * float(np.finfo(other.dtype).eps)
    assert_close(one, other, rtol=rtol, atol=rtol)
