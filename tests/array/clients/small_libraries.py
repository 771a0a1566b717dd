"""Functions of array-api-extra and einops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import array_api_extra as extra
import numpy as np
from einops import array_api as einops

from tests.array.clients.case import Case, Make

_random = np.random.default_rng(3)
X = _random.standard_normal((6, 5))
HOLES = np.where(X > 1, np.nan, X)
COUNTS = _random.integers(0, 4, (3, 4))
LINE = COUNTS.reshape(-1)


def _copied(make: Make) -> Callable[[], Any]:
    """Return a function that creates a new copy, because some calls write in place."""
    return lambda: make(X.copy())


def _changed(make: Make) -> Any:
    x = _copied(make)
    return [
        extra.at(x(), np.s_[1:3]).set(2.0), extra.at(x())[1:3].add(2.0),
        extra.at(x())[:, 0].multiply(make(X[:, 1])), extra.at(x())[0, 0].divide(4.0),
        extra.at(x())[2].subtract(1.0), extra.at(x())[2].power(2.0),
        extra.at(x())[2].min(0.0), extra.at(x(), make(X > 0)).max(0.5),
    ]


def _namespace(make: Make) -> Any:
    return make(X).__array_namespace__()


CASES = [
    Case("at", _changed),
    Case("angle", lambda make: extra.angle(make(X + 1j * X[::-1]), deg=True)),
    Case("apply_where", lambda make: extra.apply_where(
        make(X > 0), make(X), lambda x: x**0.5, lambda x: -x)),
    Case("apply_where and fill", lambda make: extra.apply_where(
        make(X > 0), (make(X), make(X)), lambda x, y: x * y, fill_value=7.0)),
    Case("argpartition", lambda make: _namespace(make).take_along_axis(
        make(X), extra.argpartition(make(X), 2)[..., 2:3], axis=-1)),
    Case("partition", lambda make: extra.partition(make(X), 2)[..., 2]),
    Case("atleast_nd", lambda make: extra.atleast_nd(make(X), ndim=4)),
    Case("cov", lambda make: extra.cov(make(X))),
    Case("cov with weights", lambda make: extra.cov(
        make(X), correction=0, fweights=make(np.asarray([1, 2, 1, 3, 1])),
        aweights=make(np.abs(X[0])))),
    Case("create_diagonal", lambda make: extra.create_diagonal(make(X), offset=-1)),
    Case("deg2rad", lambda make: [extra.deg2rad(make(X)), extra.rad2deg(make(X))]),
    Case("diag_indices", lambda make: list(extra.diag_indices(3, xp=_namespace(make)))),
    Case("tril_indices", lambda make: [
        *extra.tril_indices(3, offset=1, m=4, xp=_namespace(make)),
        *extra.triu_indices(3, offset=1, m=4, xp=_namespace(make))]),
    Case("expand_dims", lambda make: extra.expand_dims(make(X), axis=(0, -1))),
    Case("isclose", lambda make: extra.isclose(make(HOLES), make(HOLES + 1e-9), equal_nan=True)),
    Case("isin", lambda make: [
        extra.isin(make(COUNTS), make(LINE[:2])),
        extra.isin(make(COUNTS), make(LINE[:2]), invert=True)]),
    Case("kron", lambda make: extra.kron(make(X[:2]), make(X[:3]))),
    Case("lazy_apply", lambda make: extra.lazy_apply(
        lambda x: x * 2, make(X), shape=(6, 5), as_numpy=True)),
    Case("nan_to_num", lambda make: extra.nan_to_num(make(HOLES), fill_value=1.0)),
    Case("nanmax", lambda make: [
        extra.nanmax(make(HOLES), axis=0), extra.nanmin(make(HOLES)),
        extra.nanmean(make(HOLES), axis=1), extra.nansum(make(HOLES), axis=(0, 1))]),
    Case("nunique", lambda make: extra.nunique(make(COUNTS))),
    Case("one_hot", lambda make: extra.one_hot(make(COUNTS), 4, axis=1)),
    Case("pad", lambda make: extra.pad(make(X), ((0, 1), (2, 0)), constant_values=3.0)),
    Case("searchsorted", lambda make: extra.searchsorted(
        make(np.sort(X)), make(X), side="right")),
    Case("setdiff1d", lambda make: extra.setdiff1d(make(LINE), make(LINE[:3]))),
    Case("union1d", lambda make: extra.union1d(make(LINE), make(LINE + 2))),
    Case("sinc", lambda make: extra.sinc(make(X))),
    Case("unravel_index", lambda make: list(extra.unravel_index(make(LINE), (2, 4)))),
    Case("rearrange", lambda make: einops.rearrange(
        make(X[:, :4].copy()), "(a b) (c d) -> a d (b c)", a=3, c=2)),
    Case("reduce", lambda make: [
        einops.reduce(make(X), "(a b) c -> a c", kind, a=3)
        for kind in ("mean", "sum", "max", "min", "prod")]),
    Case("repeat", lambda make: einops.repeat(make(X), "a b -> (a 2) b c", c=3)),
    Case("pack", lambda make: einops.unpack(
        *einops.pack([make(X), make(X[0])], "* b"), "* b")),
    Case("asnumpy", lambda make: einops.asnumpy(make(X)), returns_arrays=False),
]
