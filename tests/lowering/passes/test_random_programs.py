"""Random loop nests compute the same results after vectorization, unrolling and simplification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tecomp.ir import ForKind, PrimFunc, evaluate, parse, simplify, verify
from tecomp.lowering import unroll_loops, vectorize_loops

HEAD = """
@sites("t.py:1: A[idx[j]]")
def f(A: Buffer("float32", (32,)), D: Buffer("int64", (32,)), O: Buffer("float32", (64,)), P: Buffer("float32", (64,)), C: Buffer("float32", (4,)), n: "int64"):
"""
STEPS: dict[str, Callable[[PrimFunc], PrimFunc]] = {
    "vectorize": vectorize_loops,
    "narrow": lambda func: vectorize_loops(func, max_lanes=3),
    "unroll": lambda func: unroll_loops(func, limit=100),
    "simplify": simplify,
    "all": lambda func: simplify(unroll_loops(vectorize_loops(func))),
}


class Programs:
    """Draw the text of a loop nest; each iteration of loop `j` writes only its own elements."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw
        self.names = 0
        # Each array has one index form; with two forms, several lanes could write one element.
        self.places = (self.pick("O[j]", "O[j * 2 + 1]", "O[63 - j]"),
                       self.pick("P[j + 3]", "P[63 - j * 2]", "P[j * 3]"))

    def pick(self, *options: str) -> str:
        return str(self.draw(st.sampled_from(options)))

    def index(self, scope: list[str], depth: int = 2) -> str:
        if depth == 0:
            return self.pick(*scope, "j", "j", "n", "1", "2", "3")
        a, b = self.index(scope, depth - 1), self.index(scope, depth - 1)
        return self.pick(a, f"({a} + {b})", f"({a} - {b})", f"{a} * 2", f"({a}) // 3",
                         f"({a}) % 4", f"min({a}, {b})", f"max({a}, {b})", f"D[({a}) % 32]")

    def condition(self, scope: list[str]) -> str:
        a, b = self.index(scope), self.index(scope, 0)
        one = f"{a} {self.pick('<', '>=', '==', '!=')} {b}"
        return self.pick(one, f"{one} and j > 1", f"n > 2 and {one}", f"not ({one})",
                         f"j < n or {one}", f"A[({b}) % 32] > float32(0.0)")

    def number(self, scope: list[str], fallback: str, depth: int = 2) -> str:
        at = self.index(scope)
        if depth == 0:
            return self.pick("float32(2.0)", f"A[({at}) % 32]", "C[n % 4]", fallback,
                             f'cast("float32", {at})')
        a, b = (self.number(scope, fallback, depth - 1) for _ in range(2))
        free = self.index(scope, 1)
        return self.pick(
            a, f"({a} + {b})", f"({a} - {b})", f"max({a}, {b})",
            f"select({self.condition(scope)}, {a}, {b})",
            f"if_then_else({self.condition(scope)}, {a}, {b})",
            f"if_then_else(0 <= {free} and {free} < 32, A[{free}], {a})",
            f"if_then_else(0 <= n - 3 and n - 3 < 4, C[n - 3], {b})",
            f"A.load(({at}) % 32, where=check_index(({at}) % 32, 32, 0))",
        )

    def block(self, indent: str, scope: list[str], memory: list[str], depth: int) -> list[str]:
        count = self.draw(st.integers(1, 2))
        return [line for _ in range(count)
                for line in self.statement(indent, scope, memory, depth)]

    def statement(self, indent: str, scope: list[str], memory: list[str], depth: int) -> list[str]:
        kind = self.pick("store", "store", "if", "else", "for", "triangle", "let", "number", "own")
        deeper = indent + "    "
        self.names += 1
        fresh = f"x{self.names}"
        if depth == 0 or kind == "store":
            return self.store(indent, scope, memory)
        if kind in ("if", "else"):
            lines = [f"{indent}if {self.condition(scope)}:",
                     *self.block(deeper, scope, memory, depth - 1)]
            if kind == "else":
                lines += [f"{indent}else:", *self.block(deeper, scope, memory, depth - 1)]
            return lines
        if kind in ("for", "triangle"):
            word = self.pick("range", "unrolled")
            bound = self.pick("2", "n", "3") if kind == "for" else (
                self.pick("j % 3", "j + 1", "min(j, 3)", "5 - j", "n - j * 2", "D[j % 32] % 3"))
            start = self.pick("", "1, extent=", "j, extent=" if kind == "triangle" else "")
            return [f"{indent}for {fresh} in {word}({start}{bound}):",
                    *self.block(deeper, [*scope, fresh], memory, depth - 1)]
        if kind == "let":
            return [f"{indent}with Let({self.index(scope)}) as {fresh}:",
                    *self.block(deeper, [*scope, fresh], memory, depth - 1)]
        if kind == "number":
            value = self.number(scope, "float32(1.0)", 1)
            return [f"{indent}with Let({value}) as {fresh}:",
                    *self.block(deeper, scope, [*memory, fresh], depth - 1)]
        return [f'{indent}with Allocate(Buffer("float32", (3,))) as {fresh}:',
                *(f"{deeper}{fresh}[{k}] = {self.number(scope, 'C[1]', 1)}" for k in range(3)),
                *self.block(deeper, scope, [*memory, f"{fresh}[{self.index(scope, 1)}]"],
                            depth - 1)]

    def store(self, indent: str, scope: list[str], memory: list[str]) -> list[str]:
        place = self.pick(*self.places)
        # Only the lane that writes an element may read it again.
        stored = self.pick(place, "float32(3.0)", *(name.split("[")[0] if "[" not in name else
                        name.replace("[", "[(").replace("]", ") % 3]") for name in memory))
        return [f"{indent}{place} = {self.number(scope, stored)}"]

    def nest(self) -> str:
        loop = self.pick(
            "for j in vectorized(7)", "for j in vectorized(2, extent=8)", "for j in vectorized(n)",
            "for j in vectorized(min(8, n))", "for j in vectorized(min(5, 9 - n))",
            "for j in vectorized(n, extent=6)")
        lines = [f"    {loop}:", *self.block("        ", [], [], 2)]
        if self.draw(st.booleans()):
            lines = ["    for i in range(2):", *("    " + line for line in lines)]
        return HEAD + "\n".join(lines)


@st.composite
def programs(draw: Callable[[st.SearchStrategy[Any]], Any]) -> str:
    return Programs(draw).nest()


def run(func: PrimFunc, n: int) -> list[Any]:
    rng = np.random.default_rng(n)
    floats = [rng.integers(-9, 10, size).astype(np.float32) for size in (32, 64, 64, 4)]
    places = rng.integers(-3, 12, 32)
    arrays = [floats[0], places, floats[1], floats[2], floats[3]]
    evaluate(func, [*arrays, n])
    return arrays


@pytest.mark.exhaustive
@settings(max_examples=60, deadline=None)
@given(programs(), st.sampled_from(sorted(STEPS)))
def test_random_programs(text: str, step: str) -> None:
    func = parse(text)
    verify(func)

    done = STEPS[step](func)

    verify(done, flat=True)
    assert parse(str(done)) == done
    if step in ("vectorize", "all"):
        assert ForKind.VECTORIZED.value not in str(done)
    for n in (0, 1, 3, 8):
        for actual, want in zip(run(done, n), run(func, n), strict=True):
            np.testing.assert_array_equal(actual, want)
