"""Compilation cost is linear in the number of operations of a program."""

from __future__ import annotations

import cProfile
import gc
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest

from tecomp import te
from tecomp.compute import ComputeOp, Operation, accesses, post_order
from tecomp.graph import compile_native, validate_request
from tests.bench import growth_command
from tests.bench.programs_of_size import KINDS

SIZE = 16


def chain(count: int, word: str = "v") -> te.Tensor:
    """Return a chain of element-wise formulas, which becomes one kernel of several stages."""
    value = te.placeholder((SIZE, SIZE), name="X")
    for number in range(count):
        value = te.compute(
            (SIZE, SIZE), lambda i, j, x=value: te.sqrt(x[i, j] * 0.5 + 1.0), name=f"{word}{number}"
        )
    return value


def layers(count: int) -> te.Tensor:
    """Return alternating products and element-wise residuals: structurally equal kernels."""
    X = value = te.placeholder((SIZE, SIZE), name="X")
    for number in range(count // 2):
        k = te.reduce_axis((0, SIZE), name="k")
        product = te.compute(
            (SIZE, SIZE), lambda i, j, x=value, k=k: te.sum(x[i, k] * X[k, j], axis=k),
            name=f"p{number}",
        )
        value = te.compute(
            (SIZE, SIZE), lambda i, j, x=value, y=product: x[i, j] + te.max(y[i, j], 0.0),
            name=f"r{number}",
        )
    return value


def operations(value: te.Tensor) -> tuple[Operation, ...]:
    return post_order([value.op])


def calls(value: te.Tensor) -> int:
    """Return the number of Python calls that compile a program."""
    source = operations(value)[0].output(0)
    requested = validate_request(value, [source], "cpu", {}, "program")
    profile = cProfile.Profile()
    profile.runcall(compile_native, requested)
    return sum(int(entry.callcount) for entry in profile.getstats())


@pytest.mark.exhaustive
@pytest.mark.parametrize("make", [chain, layers])
def test_calls_grow_with_the_number_of_operations(make: Callable[[int], te.Tensor]) -> None:
    calls(make(10))
    few, some, many = (calls(make(count)) for count in (40, 80, 160))

    assert many - some < 2.5 * (some - few)


@pytest.mark.exhaustive
def test_operations_are_freed_after_access_queries() -> None:
    """Operations with cached accesses are freed together, when the last reference is gone."""
    value = chain(3, "gone")
    for op in operations(value):
        accesses(op.output(0))
    assert _living("gone") == 3
    del value, op

    assert _living("gone") == 0


def _living(word: str) -> int:
    gc.collect()
    every = (item for item in gc.get_objects() if isinstance(item, ComputeOp))
    return sum(item.name.startswith(word) for item in every)


def test_growth_is_drawn_and_printed() -> None:
    found = {"chain": [0.01, 0.1], "different": [0.5]}
    root = ET.fromstring(growth_command.picture((10, 100), found))

    assert growth_command.table((10, 100), found).splitlines()[1:] == [
        "        10     0.010 s, 1.00 ms each    0.500 s, 50.00 ms each",
        "       100     0.100 s, 1.00 ms each                          ",
    ]
    marks = [box for box in root.iter("{http://www.w3.org/2000/svg}rect") if box.get("rx")]
    assert [(box.get("x"), box.get("y")) for box in marks] == [
        ("67", "357"), ("327", "282"), ("67", "229.6"),
    ]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("kind", list(KINDS))
def test_programs_of_any_size_are_compiled(kind: str) -> None:
    assert growth_command.seconds(KINDS[kind](10)) > 0
