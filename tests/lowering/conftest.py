"""Fixtures that lower schedules to loop nests and interpret them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from tecomp.compute import Tensor
from tecomp.ir import (
    INT32,
    Buffer,
    BufferLoad,
    BufferRealize,
    BufferStore,
    Const,
    PrimFunc,
    bottom_up,
    evaluate,
    map_body,
    parse,
    seq,
    simplify,
    verify,
    walk,
)
from tecomp.lowering import build_nest, prepare
from tecomp.scheduling.schedule import Schedule

Array: TypeAlias = NDArray[Any]
Nest: TypeAlias = Callable[[Schedule, Sequence[object]], PrimFunc]
Run: TypeAlias = "Callable[..., PrimFunc]"
Count: TypeAlias = "Callable[..., Array]"


def _nest(schedule: Schedule, args: Sequence[object]) -> PrimFunc:
    func = simplify(build_nest(prepare(schedule, args), "main"))
    verify(func)
    assert parse(str(func)) == func
    return func


@pytest.fixture
def nest() -> Nest:
    """Return a function that lowers a schedule to a loop nest, which it verifies and prints."""
    return _nest


@pytest.fixture
def run() -> Run:
    """Return a function that lowers a schedule and evaluates the loop nest on arrays in place."""

    def run_nest(schedule: Schedule, args: Sequence[object], *arrays: Any) -> PrimFunc:
        func = _nest(schedule, args)
        evaluate(func, arrays)
        return func

    return run_nest


@pytest.fixture
def count() -> Count:
    """Return a function that counts how often each element of a tensor is stored."""

    def count_stores(
        schedule: Schedule, args: Sequence[object], tensor: Tensor, *arrays: Any
    ) -> Array:
        func = _nest(schedule, args)
        shape = tuple(int(str(extent)) for extent in tensor.shape)
        counter = Buffer("counter", shape, INT32)

        def rule(node: Any) -> Any:
            if isinstance(node, BufferStore) and node.buffer.name == tensor.name:
                more = BufferLoad(counter, node.indices) + Const(1, INT32)
                return seq(node, BufferStore(counter, more, node.indices))
            return None

        total_count = map_body(func, lambda body: bottom_up(body, rule))
        total_count = _with_parameter(total_count, counter)
        counts = np.zeros(shape, np.int32)
        evaluate(total_count, [*arrays, counts])
        return counts

    return count_stores


def _with_parameter(func: PrimFunc, buffer: Buffer) -> PrimFunc:
    return PrimFunc(
        func.name, (*func.params, buffer), func.body, func.sizes, func.layout_maps,
        func.pad_values, func.sites,
    )


@pytest.fixture
def realized() -> Callable[[PrimFunc, str], list[str]]:
    """Return a function that lists the bounds of each realized region of a buffer as text."""

    def bounds(func: PrimFunc, name: str) -> list[str]:
        return [
            ", ".join(f"{r.min}+{r.extent}" for r in node.bounds)
            for node in walk(func.body)
            if isinstance(node, BufferRealize) and node.buffer.name == name
        ]

    return bounds
