"""Work of building a kernel, cold and from the disk cache, in calls of Python functions.

Build times differ between runs and machines. Call counts do not: a build that became slower makes
more calls.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import tecomp
from tecomp import Core, te
from tecomp.codegen.llvm import code_cache
from tecomp.driver import build_cache
from tecomp.schedules import activations, conv2d, elementwise, matmul

# Schedules depend on vectors and caches, so that all machines use one core description.
TARGET = replace(tecomp.Target.load("cpu"), core=Core(4, 32, 16, (32768, 524288, 8388608)))

Shape = tuple[int, ...]
Operator = tuple[tuple[Shape, ...], Callable[..., te.Tensor], Callable[..., te.Schedule]]

OPERATORS: dict[str, Operator] = {
    "gelu": (
        ((2048, 2048),), partial(elementwise.define, activations.gelu), elementwise.schedule),
    "product": (((1024, 1024), (1024, 1024)), matmul.define, matmul.schedule),
    "convolution": (
        ((1, 56, 56, 64), (3, 3, 64, 64)), partial(conv2d.define, layout="NHWC", padding=1),
        conv2d.schedule),
}
CALLS = {
    ("gelu", "disk"): 2974, ("product", "disk"): 7535, ("convolution", "disk"): 9056,
    ("gelu", "cold"): 13433, ("product", "cold"): 76127, ("convolution", "cold"): 74826,
}
"""Calls of each build at the last count. Count again after an improvement, or after a change that
justifies its additional work.
"""
_SLACK = 1.05


def built(name: str) -> object:
    shapes, define, schedule = OPERATORS[name]
    inputs = [te.placeholder(shape, name=f"in{k}") for k, shape in enumerate(shapes)]
    output = define(*inputs)
    return tecomp.build(schedule(output, TARGET), [*inputs, output], TARGET)


def calls_of(run: Callable[[], object]) -> int:
    """Return the number of Python functions that `run` calls."""
    entered: Counter[str] = Counter()

    def note(frame: object, event: str, argument: object) -> None:
        entered[event] += 1

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return entered["call"]


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize(("name", "state"), CALLS)
def test_builds_are_no_more_work_than_before(
    name: str, state: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TECOMP_CACHE", "on")
    monkeypatch.setenv("TECOMP_CACHE_DIR", str(tmp_path / "first"))
    built(name)  # imports the required modules
    if state == "cold":
        monkeypatch.setenv("TECOMP_CACHE_DIR", str(tmp_path / "second"))
    build_cache.COMPILED.clear()
    code_cache.LINKED.clear()

    counts = calls_of(lambda: built(name))

    assert counts <= CALLS[name, state] * _SLACK, f"{counts} calls"


SMALL_CALLS = {"definition": 157, "lowering": 2342, "unscheduled build": 5632}
"""Calls for an element-wise operation on a (64, 64) tensor at the last count; see `CALLS`."""


def small_step(name: str) -> Callable[[], object]:
    """Return a step of the compilation of `A + 1`; inputs and schedules are made before."""
    A = te.placeholder((64, 64), name="A")
    if name == "definition":
        return lambda: te.compute((64, 64), lambda i, j: A[i, j] + 1)
    B = te.compute((64, 64), lambda i, j: A[i, j] + 1, name="B")
    if name == "unscheduled build":
        return lambda: tecomp.build(B, [A, B], TARGET)
    schedule = te.create_schedule(B)
    schedule[B].split(B.op.axis[0], 8)
    return lambda: tecomp.lower(schedule, [A, B])


@pytest.mark.parametrize("name", SMALL_CALLS)
def test_small_steps_make_few_calls(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TECOMP_CACHE", "off")
    small_step(name)()  # imports the required modules
    build_cache.COMPILED.clear()
    code_cache.LINKED.clear()

    counts = calls_of(small_step(name))

    assert counts <= SMALL_CALLS[name] * _SLACK, f"{counts} calls"
