"""Functions of arrays of a team give the same results as on one process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp import dist
from tests.numerics import assert_close
from tests.operations.references import AXES_REDUCTIONS

TEAM = dist.world()
Case = Callable[..., Any]


def numbers(shape: tuple[int, ...], dtype: str = "float64") -> Any:
    """Return distinct, unordered elements that are equal on all processes."""
    size = int(np.prod(shape))
    mixed = (np.arange(size) * 7919 + 13) % max(size, 1)
    values = mixed.reshape(shape) - size // 3
    return (values + 1j * values[::-1] if dtype.startswith("complex") else values).astype(dtype)


def beside(x: Any, values: Any) -> Any:
    """Create an array on the team of `x`, if `x` has a team."""
    return xp.asarray(values, team=x.team)


PLACED: list[tuple[tuple[int, ...], Any]] = [
    ((9, 5), None), ((9, 5), [dist.Shard(1)]), ((2, 3), None), ((0, 3), None),
]

TRIED = {1: 1, 2: 2}.get(TEAM.size, len(PLACED))
"""Number of partitions to test; with few processes most of them are equivalent."""

ELEMENTWISE: dict[str, Case] = {
    "x * 2 + 1": lambda x: x * 2 + 1,
    "2 - x": lambda x: 2 - x,
    "exp(x * .1)": lambda x: xp.exp(x * 0.1),
    "x + x": lambda x: x + x,
    "x < 2": lambda x: x < 2,
    "where": lambda x: xp.where(x > 0, x, -1.0),
    "astype": lambda x: xp.astype(x, xp.int32),
    "row": lambda x: x + x[:1, :],
    "column": lambda x: x * xp.sum(x, axis=1, keepdims=True),
    "scaled": lambda x: x - xp.mean(x, axis=0),
    "transposed": lambda x: x.T + xp.permute_dims(x * 2, (1, 0)),
    "clip": lambda x: xp.clip(x, -2.0, 3.0),
    "ones": lambda x: x + xp.ones_like(x) + xp.zeros_like(x),
    "broadcast": lambda x: xp.broadcast_to(x, (2, *x.shape)) + x,
    "columns": lambda x: xp.redistribute(x, [dist.Shard(1)]) + x if x.team else x + x,
    "cyclic": lambda x: xp.redistribute(x, [dist.Shard(0, block=1)]) * x if x.team else x * x,
    "same cyclic": lambda x: (xp.redistribute(x, [dist.Shard(0, block=1)]) if x.team else x) * 3,
}

REDUCTIONS: dict[str, Case] = {
    f"{name} {axis} {keep}": lambda x, name=name, axis=axis, keep=keep: getattr(xp, name)(
        x, axis=axis, keepdims=keep)
    for name, places in (
        *[(name, ((None, False), (0, False), (1, True))) for name in ("sum", "max")],
        *[(name, ((None, False), (0, False), (1, True)) if row.finish else ((0, False),))
          for name, row in AXES_REDUCTIONS.items() if name not in ("sum", "max")],
    )
    for axis, keep in places
} | {
    f"{name} {axis}": lambda x, name=name, axis=axis: getattr(xp, name)(x, axis=axis)
    for name, axes in (("argmax", (None, 0, 1)), ("argmin", (0,)))
    for axis in axes
} | {
    f"{name} {axis} {first}": lambda x, name=name, axis=axis, first=first: getattr(xp, name)(
        x * 0.1, axis=axis, include_initial=first)
    for name, places in (
        ("cumulative_sum", ((0, False), (0, True), (1, True))), ("cumulative_prod", ((0, True),)))
    for axis, first in places
} | {
    "sum T": lambda x: xp.sum(x.T, axis=0),
    "argmax T": lambda x: xp.argmax(x.T),
    "var1": lambda x: xp.var(x, axis=0, correction=1),
    "var all": lambda x: xp.var(x, correction=100),
    "max of ints": lambda x: xp.max(xp.astype(x, xp.int16), axis=0),
    "nan": lambda x: xp.max(x / x, axis=0),
}

MOVES: dict[str, Case] = {
    "x[1:]": lambda x: x[1:],
    "x[:-1] + x[1:]": lambda x: x[:-1] + x[1:],
    "inner": lambda x: x[1:-1, 1:-1] * 4 - x[:-2, 1:-1] - x[2:, 1:-1] - x[1:-1, :-2] - x[1:-1, 2:],
    "x[::2, 1::3]": lambda x: x[::2, 1::3],
    "x[::-2]": lambda x: x[::-2],
    "x[::-1, ::-1]": lambda x: x[::-1, ::-1],
    "x[5:2:-1].T": lambda x: x[5:2:-1].T,
    "None": lambda x: x[:, None] + x[None],
    "mask": lambda x: x[x > 0],
    "indices": lambda x: x[:, beside(x, [1, 0])],
    "rows": lambda x: xp.take(x, beside(x, [0, 0]), axis=0) if len(x) else x,
    "take": lambda x: xp.take(x, beside(x, [1, 0]), axis=1),
    "flip": lambda x: xp.flip(x),
    "flip 1": lambda x: xp.flip(x, axis=1),
    "roll": lambda x: xp.roll(x, 1, axis=0),
    "roll all": lambda x: xp.roll(x, 4),
    "roll both": lambda x: xp.roll(x, (-2, 3), axis=(0, 1)),
    "permuted": lambda x: xp.permute_dims(x, (1, 0))[1:],
    "reshape -1": lambda x: xp.reshape(x, (-1,)) if x.size else x,
    "reshape": lambda x: xp.reshape(x, (x.shape[1], x.shape[0])),
    "reshape T": lambda x: xp.reshape(x.T, (1, x.shape[0], -1)) if x.size else x,
    "reshape split": lambda x: xp.reshape(x, (x.shape[0], 1, x.shape[1])),
    "concat": lambda x: xp.concat([x, x[1:] * 2, x]),
    "concat 1": lambda x: xp.concat([x, x * 2], axis=1),
    "concat None": lambda x: xp.concat([x, x], axis=None),
    "stack": lambda x: xp.stack([x, -x]),
    "stack 1": lambda x: xp.stack([x, -x, x], axis=1),
    "unstack": lambda x: sum(xp.unstack(x, axis=1), start=x[:, 0]),
    "repeat": lambda x: xp.repeat(x, 2, axis=0),
    "tile": lambda x: xp.tile(x, (2, 2)),
    "tril": lambda x: xp.tril(x, k=1),
    "triu T": lambda x: xp.triu(x.T, k=-1),
    "diff": lambda x: xp.diff(x, axis=0),
    "diff 1": lambda x: xp.diff(x, axis=1),
    "squeeze": lambda x: xp.squeeze(x[:1], axis=0) if len(x) else x,
    "x[-1]": lambda x: x[-1] if len(x) else x,
    "sort": lambda x: xp.sort(x, axis=0),
    "argsort": lambda x: xp.argsort(x, axis=0),
    "unique": lambda x: xp.unique_values(x),
    "nonzero": lambda x: xp.nonzero(x)[0],
    "meshgrid": lambda x: xp.meshgrid(x[:, 0], x[:, 1])[0],
}


def assigned(key: Any, value: Any) -> Case:
    def case(x: Any) -> Any:
        y = x + 0
        y[key] = value(x) if callable(value) else value
        return y + x

    return case


MOVES |= {
    "set 0": assigned(slice(0, 2), 7.0),
    "set inner": assigned((slice(1, -1), slice(1, -1)), lambda x: x[1:-1, 1:-1] * 2),
    "set back": assigned((slice(None, None, -1),), lambda x: x),
    "set step": assigned((slice(None, None, 2), 1), -1.0),
    "set mask": lambda x: assigned(x > 1, 0.5)(x),
    "set indices": lambda x: assigned(beside(x, [0, 0]), 2.5)(x) if len(x) else x,
}

PRODUCTS: dict[str, Case] = {
    "x @ x.T": lambda x: x @ x.T,
    "x.T @ x": lambda x: x.T @ x,
    "x @ w": lambda x: x @ xp.matmul(x.T, x),
    "x @ v": lambda x: x @ x[0] if len(x) else x,
    "v @ x": lambda x: x[:, 0] @ x,
    "v @ v": lambda x: x[:, 0] @ x[:, 1],
    "outer": lambda x: xp.linalg.outer(x[:, 0], x[0, :]) if len(x) else x,
    "vecdot": lambda x: xp.vecdot(x, x),
    "vecdot 0": lambda x: xp.vecdot(x, x * 2, axis=-2),
    "tensordot": lambda x: xp.tensordot(x, x, axes=((0,), (0,))),
    "batches": lambda x: xp.stack([x, x]) @ x.T,
    "batches T": lambda x: x[:, :, None] @ x[:, None, :],
    "solve": lambda x: xp.linalg.solve(x.T @ x + 1e3 * xp.eye(x.shape[1], team=x.team), xp.sum(x, axis=0)),
    "det": lambda x: xp.linalg.det(x.T @ x),
    "trace": lambda x: xp.linalg.trace(x),
    "norm": lambda x: xp.linalg.vector_norm(x, axis=0),
    "fft": lambda x: xp.fft.fft(x, axis=1),
}

WHOLE = {name: case for name, case in REDUCTIONS.items() if " None" in name}
"""Reductions of all axes; the others reduce rows or columns, or belong to no axis."""

GROUPS: Mapping[str, dict[str, Case]] = {
    "elementwise": ELEMENTWISE,
    "reductions of all axes": WHOLE,
    "reductions of rows": {name: case for name, case in REDUCTIONS.items() if " 0" in name},
    "other reductions": {
        name: case for name, case in REDUCTIONS.items() if " 0" not in name and name not in WHOLE
    },
    "moves": MOVES,
    "products": PRODUCTS,
}


def outcome(case: Case, x: Any) -> Any:
    """Return the result as a NumPy array, or the name of the error class."""
    try:
        return np.asarray(case(x))
    except (IndexError, TypeError, ValueError) as error:
        return f"{type(error).__name__}"


def check(where: str, expected: Any, found: Any) -> None:
    """Check that the result of sharded arrays equals the result of the whole array."""
    if isinstance(expected, str) or isinstance(found, str):
        assert repr(expected) == repr(found), where
        return
    assert found.dtype == expected.dtype, where
    assert_close(found, expected, rtol=1e-12, atol=1e-12, err_msg=where)


def main(group: str) -> None:
    """Run all functions of a group on all shapes and partitions."""
    np.seterr(all="ignore")
    for name, case in GROUPS[group].items():
        known: dict[tuple[int, ...], Any] = {}
        for shape, placements in PLACED[: TRIED]:
            data = numbers(shape)
            if shape not in known:
                known[shape] = outcome(case, xp.asarray(data))
            found = outcome(case, xp.asarray(data, team=TEAM, placements=placements))
            check(f"{name} of {shape} as {placements}", known[shape], found)
    if TEAM.rank == 0:
        print("as one", group)


main(sys.argv[1])
