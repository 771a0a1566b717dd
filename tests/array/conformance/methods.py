"""Random uses of arrays: indexing, assignment, in-place operators."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tests.array.conformance import draws
from tests.array.conformance.calls import MAKERS, Call
from tests.array.conformance.draws import Draw

__all__ = ["MAKERS", "USES"]

OPERATORS = ("add", "sub", "mul")


def _indexed(draw: Draw, name: str) -> Call:
    x = draw.data(draw.shape(), draws.ALL)
    return Call(name, (x, _key(draw, x)), {}, operator.getitem)


def _key(draw: Draw, x: Any) -> Any:
    kind = draw.number(0, 4)
    if kind == 0:
        extents = [0 if draw.chance(0.1) else extent for extent in x.shape]
        return draw.data(tuple(extents[: draw.number(0, x.ndim)]), ("bool",))
    if kind == 1 and 0 not in x.shape and x.ndim:
        shape = draw.shape(0, 2)
        return tuple([draw.rng.integers(-extent, extent, shape) for extent in x.shape])
    if kind == 2 and 0 not in x.shape and x.ndim:
        places = draw.rng.integers(-x.shape[0], x.shape[0], draw.number(0, 4))
        return (places, ...) if x.ndim > 1 else places
    return draw.index(x.shape)


def _assigned(draw: Draw, name: str) -> Call:
    x = draw.data(draw.shape(), draws.ALL)
    key = _key(draw, x)
    target = x[key]
    value: Any = draw.data(draw.part(target.shape), (x.dtype.name,))
    if isinstance(key, np.ndarray) and key.dtype == bool:
        value = draw.pick([value.dtype.type(1).item(), draw.data(target.shape, (x.dtype.name,))])
    return Call(name, (x, key, value), {}, assigned)


def assigned(x: Any, key: Any, value: Any) -> Any:
    """Return an array after an assignment, and a view that was taken before."""
    x = _copy(x)
    whole = x[...]
    x[key] = value
    return x, whole


def _copy(x: Any) -> Any:
    """Copy an array; a NumPy scalar becomes an array."""
    found = x ^ False if x.dtype == bool else x + 0
    return np.asarray(found) if isinstance(found, np.generic) else found


def _changed(draw: Draw, name: str) -> Call:
    x = draw.data(draw.shape(), draws.NUMERIC)
    y: Any = draw.data(draw.part(x.shape), (x.dtype.name,))
    if draw.chance(0.3):
        y = 2
    return Call(name, (x, y, draw.pick(OPERATORS), draw.index(x.shape)), {}, changed)


def changed(x: Any, y: Any, name: str, key: Any) -> Any:
    """Apply an in-place operator, add 1 to a part, and return the array, views and a copy."""
    x = _copy(x)
    before = x * 2
    whole = x[...]
    change = getattr(operator, f"i{name}")
    x = change(x, y)
    part = x[key]
    if part.ndim:
        part += 1
    return x, whole, part, before


USES = {"assigned": assigned, "changed": changed, "indexed": operator.getitem}

MAKERS |= {"indexed": _indexed, "assigned": _assigned, "changed": _changed}
