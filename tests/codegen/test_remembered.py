"""Test code cached by earlier runs equals new code; most tests compile without optimization."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import tecomp
from tecomp.codegen import LlvmSource, Store, object_code
from tests.strategies.machine_code import Code, remembered, ships

ONE = LlvmSource("define i32 @f(ptr %x) {\n  ret i32 1\n}\n")


def test_each_module_is_compiled_once(tmp_path: Path) -> None:
    results: list[tuple[LlvmSource, int]] = []

    def make(source: LlvmSource, effort: int) -> bytes:
        results.append((source, effort))
        return object_code(source, effort)

    requested = [(ONE, 2), (replace(ONE, text=ONE.text.replace("1", "2")), 2), (ONE, 0)]
    for _ in "ab":  # like two test runs
        code = remembered(Store(tmp_path / "code", 10**6), make)
        assert [code(*item) for item in requested * 2] == [object_code(*item) for item in requested * 2]

    assert results == requested


def test_scalar_code_is_not_optimized() -> None:
    results: list[tuple[LlvmSource, int]] = []

    def make(source: LlvmSource, effort: int) -> bytes:
        results.append((source, effort))
        return b""

    marked = replace(ONE, plain_loops=("f",), loop_work=("f",), inlined=("f",))
    Code(make)(marked)
    Code(make, is_shipped=False)(marked)

    assert results == [(marked, 2), (replace(ONE, inlined=("f",)), 0)]


@pytest.mark.parametrize(
    ("machine", "is_shipped"),
    [("cpu", True), (tecomp.Target.load("cpu"), True), ("texture2d", False), ("x", True),
     (tecomp.Target("small", "made up", tecomp.Target.load("cpu").memories), False)],
)
def test_other_machines_are_for_numbers(
    machine: object, is_shipped: bool, request: pytest.FixtureRequest
) -> None:
    del machine

    assert ships(request.node) == is_shipped


@pytest.mark.numbers_alone
def test_marker_selects_unoptimized_code(request: pytest.FixtureRequest) -> None:
    assert not ships(request.node)
