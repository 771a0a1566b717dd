"""Random stages with external calls, layouts, memories and locations agree with NumPy."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import LowerError, ScheduleError

TYPES = ("float32", "float64", "int32", "int8", "uint16", "bool")
NAME = "test.properties.mixed"


def weights(shape: tuple[int, ...]) -> Any:
    return np.arange(int(np.prod(shape))).reshape(shape) % 5 + 1


def mixed(count: int, *arrays: Any) -> None:
    """Write outputs that depend on the position of each element of each input."""
    ins, outs = arrays[:count], arrays[count:]
    total = sum(int((x.astype("int64") * weights(x.shape)).sum()) for x in ins)
    for k, out in enumerate(outs):
        assert out.flags.writeable
        out[...] = ((weights(out.shape) + total + k) % 7).astype(out.dtype)


tecomp.register_func(NAME, mixed, override=True)


@dataclass(frozen=True)
class Case:
    """Program: inputs, stages computed from them, results of external calls, and their reader."""

    inputs: list[te.Tensor]
    sources: list[te.Tensor]
    results: list[te.Tensor]
    last: te.Tensor


def shape_of(rng: random.Random) -> tuple[int, ...]:
    return tuple(rng.choice((1, 2, 3, 4, 5, 8)) for _ in range(rng.randrange(4)))


def drawn(rng: random.Random) -> Case:
    inputs = [
        te.placeholder(shape_of(rng), rng.choice(TYPES), name=f"A{k}")
        for k in range(rng.randint(1, 3))
    ]
    sources = [
        x if rng.random() < 0.4 else te.compute(x.shape, lambda *i, x=x: x[i], name=f"P{k}")
        for k, x in enumerate(inputs)
    ]
    shapes = [shape_of(rng) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.5:
        shapes = [shapes[0]] * len(shapes)
    types = [rng.choice(TYPES[:-1]) for _ in shapes]
    result = te.extern(
        shapes, sources, lambda ins, outs: te.call_packed(NAME, len(ins), *ins, *outs),
        name="C", dtype=types,
    )
    results = list(result) if isinstance(result, list) else [result]
    shape = shapes[0]
    last = te.compute(
        shape, lambda *i: sum(
            (r[tuple(a % n for a, n in zip(i, r.shape, strict=False))].astype("float32")
             if r.ndim <= len(i) else r[(0,) * r.ndim].astype("float32") for r in results[1:]),
            results[0][i].astype("float32"),
        ), name="D",
    )
    return Case(inputs, sources, results, last)


def layout(rng: random.Random, rank: int) -> Callable[..., Any]:
    order = rng.sample(range(rank), rank)
    cut = rng.randrange(rank)
    factor = rng.choice((2, 3, 4))

    def mapping(*i: Any) -> list[Any]:
        parts = [i[k] for k in order if k != cut]
        return [i[cut] // factor, *parts, i[cut] % factor] if rng_split else [i[k] for k in order]

    rng_split = rng.random() < 0.5
    return mapping


def schedule(rng: random.Random, case: Case) -> te.Schedule:
    """Draw primitives for one stage after the other; rejected primitives are skipped."""
    s = te.create_schedule(case.last)
    moved = [x for x in case.sources if x not in case.inputs]
    for tensor in (*moved, case.results[0]):
        with suppress(ScheduleError):
            store(rng, s[tensor], tensor.ndim)
    with suppress(ScheduleError):
        place(rng, s, case, moved)
    if moved and rng.random() < 0.3:
        s.cache_read(moved[0], "local", [case.results[0]])
    return s


def store(rng: random.Random, stage: te.Stage, rank: int) -> None:
    """Draw the memory and layout of a stage; rejected for several results with different shapes."""
    if rng.random() < 0.3:
        stage.set_scope(rng.choice(("local", "shared")))
    if rank and rng.random() < 0.4:
        stage.transform_layout(layout(rng, rank))
    elif len(stage.op.axis) > 1 and rng.random() < 0.4:
        stage.storage_align(stage.op.axis[0], 8, 3)


def place(rng: random.Random, s: te.Schedule, case: Case, moved: list[te.Tensor]) -> None:
    """Draw the compute location of stages and the loop kinds of the last one."""
    axes = list(s[case.last].op.axis)
    if axes and rng.random() < 0.5:
        getattr(s[case.last], rng.choice(("parallel", "vectorize", "unroll")))(rng.choice(axes))
    if axes and rng.random() < 0.6:
        axis = rng.choice(axes)
        for tensor in (case.results[0], *moved):
            if tensor is case.results[0] or rng.random() < 0.5:
                s[tensor].compute_at(s[case.last], axis)
        if rng.random() < 0.3:
            s[case.results[0]].double_buffer()


def expected(case: Case, arrays: list[Any]) -> Any:
    outs = [np.zeros(t.shape, t.dtype.numpy) for t in case.results]
    mixed(len(arrays), *arrays, *outs)
    first, *more = (out.astype("float32") for out in outs)
    total = np.array(first)
    for index in np.ndindex(*first.shape):
        for out in more:
            at = tuple(i % n for i, n in zip(index, out.shape, strict=False))
            total[index] += out[at] if out.ndim <= len(index) else out[(0,) * out.ndim]
    return total


def is_refused(s: te.Schedule, args: list[te.Tensor]) -> bool:
    """Return whether lowering rejects a primitive that the error message names."""
    try:
        tecomp.lower(s, args)
    except LowerError as error:
        return re.match(r"s\[\w+\]\.(compute_at|double_buffer|parallel)", error.message) is not None
    return False


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("seed", range(60))
def test_random_stages(seed: int, agrees: Any) -> None:
    rng = random.Random(seed)
    case = drawn(rng)
    numbers = np.random.default_rng(seed)
    arrays = [numbers.integers(0, 2, x.shape).astype(x.dtype.numpy) for x in case.inputs]
    s = schedule(rng, case)
    args = [*case.inputs, case.last]
    if is_refused(s, args):
        return
    agrees(s, args, dict(zip(args, [*arrays, expected(case, arrays)], strict=True)))
