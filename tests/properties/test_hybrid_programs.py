"""Random hybrid functions, compiled, give the same results as in Python."""

from __future__ import annotations

import linecache
import random
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te

SHAPES = {"a": (6,), "b": (3, 4), "c": (5, 3), "d": (7,), "t": (4,)}
OUTPUTS = ("c", "d")


@dataclass
class Writer:
    """Generator of functions that read only initialized elements and use only indices in bounds."""

    rng: random.Random
    lines: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    count: int = 0

    def new(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def place(self, name: str, depth: int) -> str:
        indices = (f"({self.value(depth)}) % {n}" for n in SHAPES[name])
        return f"{name}[{', '.join(indices)}]"

    def value(self, depth: int) -> str:
        kind = self.rng.randrange(9) if depth else self.rng.randrange(2)
        one, other = (self.value(depth - 1) if depth else "" for _ in range(2))
        if kind == 0 or (kind == 1 and not self.names):
            return str(self.rng.randint(-4, 9))
        if kind == 1:
            return self.rng.choice(self.names)
        if kind == 2:
            return self.place(self.rng.choice(list(SHAPES)), depth - 1)
        if kind == 3:
            return f"({one} {self.rng.choice('+-')} {other})"
        if kind == 4:
            return f"(({one}) % 11 * {self.rng.randint(-3, 3)})"
        if kind == 5:
            return f"(({one}) {self.rng.choice(('//', '%'))} {self.rng.randint(1, 5)})"
        if kind == 6:
            return f"{self.rng.choice(('min', 'max'))}(({one}) % 50, ({other}) % 50)"
        if kind == 7:
            return f"({one} if {self.condition(depth - 1)} else {other})"
        return f"(-({one}))"

    def condition(self, depth: int) -> str:
        one, two, three = (self.value(depth) for _ in range(3))
        word = self.rng.choice(("<", "<=", "==", "!=", ">"))
        kind = self.rng.randrange(4)
        if kind == 0:
            return f"({one}) <= ({two}) < ({three})"
        if kind == 1:
            return f"(({one}) {word} ({two}) or not ({two}) > ({three}))"
        if kind == 2:
            return f"(({one}) {word} 2 and ({two}) > ({three}))"
        return f"({one}) {word} ({two})"

    def statements(self, depth: int, pad: str) -> None:
        known = list(self.names)
        for _ in range(self.rng.randint(1, 3)):
            self.statement(depth, pad)
        self.names = known

    def statement(self, depth: int, pad: str) -> None:
        kind = self.rng.randrange(7) if depth else self.rng.randrange(4)
        if kind <= 1:
            place = self.place(self.rng.choice(("c", "d", "t")), 1)
            self.lines.append(f"{pad}{place} = ({self.value(3)}) % 97")
        elif kind == 2:
            place = self.place(self.rng.choice(("c", "d", "t")), 1)
            self.lines.append(f"{pad}{place} {self.rng.choice(('+=', '-='))} ({self.value(2)}) % 5")
        elif kind == 3:
            name = self.new("v")
            self.lines.append(f"{pad}{name} = ({self.value(2)}) % 97")
            self.names.append(name)
        elif kind == 4:
            self.lines.append(f"{pad}s = (s + {self.value(2)}) % 97")
        elif kind == 5:
            self.loop(depth, pad)
        else:
            self.lines.append(f"{pad}if {self.condition(1)}:")
            self.statements(depth - 1, pad + "    ")
            if self.rng.random() < 0.5:
                self.lines.append(f"{pad}else:")
                self.statements(depth - 1, pad + "    ")

    def loop(self, depth: int, pad: str) -> None:
        name, word = self.new("i"), self.rng.choice(("range", "range", "unroll", "const_range"))
        first, count = self.rng.randint(-1, 2), self.rng.randint(0, 4)
        bounds = f"{first}, {first + count}" if first else str(count)
        self.lines.append(f"{pad}for {name} in {word}({bounds}):")
        known = list(self.names)
        self.names.append(name)
        self.statements(depth - 1, pad + "    ")
        self.names = known


def written(seed: int) -> str:
    writer = Writer(random.Random(seed), names=["s", "n"])
    pad = "    "
    head = [
        "def program(a, b, n):",
        *(f'{pad}{name} = output_tensor({SHAPES[name]}, "int32")' for name in OUTPUTS),
        f'{pad}t = allocate({SHAPES["t"]}, "int32")',
        f"{pad}for k in range(4):",
        f"{pad}    t[k] = k * 3",
        f"{pad}s = 1",
        f"{pad}s += n",
    ]
    for _ in range(4):
        writer.statement(3, pad)
    last = [f"{pad}c[0, 0] = s", f"{pad}d[6] = t[2]", f"{pad}return c, d"]
    return "\n".join([*head, *writer.lines, *last]) + "\n"


def function_of(text: str, name: str) -> Any:
    """Define a hybrid function from text, which `inspect` finds in `linecache`."""
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    result: dict[str, Any] = {}
    exec(compile(text, name, "exec"), result)
    return te.hybrid.script(result["program"])


def interpreted(s: te.Schedule, args: list[Any], *arrays: Any) -> None:
    tecomp.evaluate(tecomp.lower(s, args, stop_after="nest"), arrays)


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    program = function_of(written(seed), f"<program {seed}>")
    n = te.var("n")
    A, B = (te.placeholder(SHAPES[name], "int32", name=name) for name in "ab")
    result = program(A, B, n)
    numbers = np.random.default_rng(seed)
    a, b = (numbers.integers(-9, 9, SHAPES[name]).astype("int32") for name in "ab")
    expected = program(a, b, 3)
    s = te.create_schedule(result[0].op)
    args = [A, B, n, *result]
    for run in (
        tecomp.build(s, args, check_bounds=True),
        partial(interpreted, s, args),
    ):
        found = [np.zeros(SHAPES[name], "int32") for name in OUTPUTS]
        run(a, b, 3, *found)
        for actual, right in zip(found, expected, strict=True):
            np.testing.assert_array_equal(actual, right)
