"""Index vectors in narrow lanes give the same results as in 64-bit lanes."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from tecomp.codegen import Kernel, emit_assembly
from tecomp.ir import parse


@pytest.mark.exhaustive(keep=13)
@pytest.mark.parametrize("lanes", [2, 5, 8, 31])
@pytest.mark.parametrize("start", ["0", "i", "9223372036854775000", "B[i]"])
def test_progressions_in_narrow_lanes(both: Callable[..., Kernel], lanes: int, start: str) -> None:
    """64-bit indices are compared and cast in 32-bit lanes; data may wrap around."""
    bounds = np.array([-(2**63), -9, -1, 0, 1, 4, 30, 60, 2**63 - 2, 2**63 - 1])
    stores = "".join(f'''
        T{k}[ramp(i * {lanes}, 1, {lanes})] = {value}'''
        for k, value in enumerate([
            f"ramp(0, 1, {lanes}) < broadcast(B[i], {lanes})",
            f"ramp({start}, 2, {lanes}) >= broadcast(B[i], {lanes})",
            f"broadcast(B[i], {lanes}) > ramp(0, -3, {lanes}) + ramp(4, 1, {lanes})",
            f"ramp(i, 1, {lanes}) <= ramp(4, 2, {lanes})",
        ])
    )
    names = ", ".join(f'T{k}: Buffer("bool", ({10 * lanes},))' for k in range(4))
    both(f'''def f(B: Buffer("int64", (10,)), {names}, N: Buffer("int8", ({10 * lanes},))):
    for i in range(10):{stores}
        N[ramp(i * {lanes}, 1, {lanes})] = cast("int8x{lanes}", ramp({start}, 7, {lanes}))
''', bounds, *(np.zeros(10 * lanes, bool) for _ in range(4)), np.zeros(10 * lanes, np.int8))


@pytest.mark.parametrize(("name", "lanes", "word"), [("int8", 32, "b"), ("int16", 16, "w")])
def test_masks_of_many_lanes_take_one_comparison(name: str, lanes: int, word: str) -> None:
    func = parse(f'''def f(B: Buffer("{name}", ({8 * lanes},)), n: "int64"):
    for i in range(8):
        with Let(ramp(i * {lanes}, 1, {lanes}) < broadcast(n, {lanes})) as mask:
            B[ramp(i * {lanes}, 1, {lanes})] = select(
                mask, B[ramp(i * {lanes}, 1, {lanes})], broadcast({name}(7), {lanes}))
''')
    text = emit_assembly(func, triple="x86_64-unknown-linux-gnu", cpu="haswell")

    assert len(re.findall("vpcmpgt.", text)) == text.count(f"vpcmpgt{word}") > 0
    assert "vpack" not in text


def test_masks_of_narrow_lanes() -> None:
    func = parse('''def f(A: Buffer("float32", (64,)), B: Buffer("float32", (64,)), n: "int64"):
    for i in range(8):
        with Let(ramp(i * 8, 1, 8) < broadcast(n, 8)) as mask:
            store(B[ramp(i * 8, 1, 8)], A.load(ramp(i * 8, 1, 8), where=mask), where=mask)
''')
    text = emit_assembly(func, triple="x86_64-unknown-linux-gnu", cpu="haswell")

    assert "vpcmpgtd" in text
    assert "vpcmpgtq" not in text
