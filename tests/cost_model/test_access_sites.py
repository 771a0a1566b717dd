"""Access sites and dependences of random programs equal those seen by the interpreter."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import numpy as np

from tecomp.cost_model import AccessSites, sites_of, sources_of
from tecomp.ir import BufferLoad, BufferStore, PrimFunc, evaluate, parse
from tests.strategies.loop_nests import value, visited

SIZE = 12
BUFFERS = "ABC"
Access = tuple[str, str, tuple[int, ...]]


class Programs:
    """Generator of program text: loops, conditions and values over three small buffers."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.count = 0

    def function(self) -> str:
        params = ", ".join(f'{name}: Buffer("int32", ({SIZE},))' for name in BUFFERS)
        return f"def f({params}):\n" + "".join(
            self.statement(1, []) for _ in range(self.draw.randint(1, 3)))

    def statement(self, depth: int, loops: list[str]) -> str:
        pad = "    " * depth
        kind = self.draw.random() if depth < 5 else 1.0
        inside = [*loops, f"v{self.count}"]
        self.count += 1
        if kind < 0.45:
            bounds = f"{self.draw.randint(0, 2)}, extent={self.extent(loops)}"
            return f"{pad}for {inside[-1]} in range({bounds}):\n{self.body(depth, inside)}"
        if kind < 0.6:
            text = f"{pad}if {self.condition(loops)}:\n{self.body(depth, loops)}"
            repeated = self.draw.random() < 0.5
            return f"{text}{pad}else:\n{self.body(depth, loops)}" if repeated else text
        if kind < 0.7:
            return f"{pad}with Let({self.place(loops)}) as {inside[-1]}:\n{self.body(depth, inside)}"
        return f"{pad}{self.draw.choice(BUFFERS)}[{self.place(loops)}] = {self.value(loops)}\n"

    def body(self, depth: int, loops: list[str]) -> str:
        return "".join(
            self.statement(depth + 1, loops) for _ in range(self.draw.choice((1, 1, 2))))

    def extent(self, loops: list[str]) -> str:
        return f"{loops[-1]} % 4" if loops and self.draw.random() < 0.3 else str(self.draw.randint(1, 3))

    def index(self, loops: list[str]) -> str:
        terms = [f"{name} * {self.draw.randint(1, 3)}" for name in loops if self.draw.random() < 0.6]
        return " + ".join([*terms, str(self.draw.randint(0, 9))])

    def place(self, loops: list[str]) -> str:
        return f"({self.index(loops)}) % {SIZE}"

    def condition(self, loops: list[str]) -> str:
        return f"{self.index(loops)} {self.draw.choice(('<', '==', '>='))} {self.index(loops)}"

    def value(self, loops: list[str]) -> str:
        reads = [f"{self.draw.choice(BUFFERS)}[{self.place(loops)}]" for _ in range(2)]
        kind = self.draw.random()
        if kind < 0.3:
            return f"if_then_else({self.condition(loops)}, {reads[0]}, int32(3))"
        return reads[0] if kind < 0.6 else " + ".join(reads)


class Accesses:
    """Observer that counts the reads and writes of the interpreter."""

    def __init__(self) -> None:
        self.found: Counter[Access] = Counter()

    def reader(self, node: BufferLoad) -> Callable[[tuple[int, ...]], None]:
        return self._seen("read", node.buffer.name)

    def writer(self, node: BufferStore) -> Callable[[tuple[int, ...]], None]:
        return self._seen("write", node.buffer.name)

    def operation(self, node: object) -> None:
        """Ignore intrinsics, which these programs do not contain."""

    def core(self, thread: str, value: int | None) -> None:
        """Ignore cores, which these programs do not contain."""

    def _seen(self, direction: str, name: str) -> Callable[[tuple[int, ...]], None]:
        def seen(place: tuple[int, ...]) -> None:
            self.found[direction, name, place] += 1

        return seen


def counted(sites: AccessSites) -> Counter[Access]:
    return Counter(
        (site.direction, site.buffer.name, tuple(value(index, at) for index in site.indices))
        for site in sites.sites for at in visited(site.frames, {}, {})
    )


def programs() -> list[PrimFunc]:
    return [parse(Programs(seed).function()) for seed in range(60)]


def test_sites_count_all_accesses() -> None:
    most = 0
    for func in programs():
        watch = Accesses()
        evaluate(func, [np.zeros(SIZE, np.int32) for _ in BUFFERS], watch)
        sites = sites_of(func, {})

        assert not sites.unknown
        assert counted(sites) == watch.found, str(func)
        most = max(most, watch.found.total())
    assert most > 100


def test_sources_are_the_preceding_writers() -> None:
    some = 0
    for func in programs():
        sites = sites_of(func, {})
        expected: dict[int, set[int]] = {}
        for read in sites.sites:
            for write in sites.sites:
                if (read.direction, write.direction) == ("read", "write") and (
                    read.buffer is write.buffer and write.statement < read.statement
                ):
                    expected.setdefault(read.statement, set()).add(write.statement)

        found = sources_of(sites)

        assert {reader: set(needed.iterations) for reader, needed in found.items()} == expected
        some += len(expected)
    assert some > 20


def test_shared_iterations_are_those_of_common_loops() -> None:
    func = parse(f"""
def f(A: Buffer("int32", ({SIZE},)), B: Buffer("int32", ({SIZE},))):
    for i in range(3):
        A[i] = int32(1)
        for j in range(4):
            A[j] = int32(2)
            B[i + j] = A[i]
    for i in range(5):
        B[i] = A[i]
""")
    first, second, third, fourth = sorted({site.statement for site in sites_of(func, {}).sites})

    found = sources_of(sites_of(func, {}))
    assert {statement: needed.iterations for statement, needed in found.items()} == {
        third: {first: 3, second: 12}, fourth: {first: 1, second: 1},
    }
