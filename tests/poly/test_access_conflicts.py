"""Elements shared between cores and sources of copies, against enumeration of all elements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from tecomp.ir import Const, Var
from tecomp.poly import CoreAccess, by_owner, find_shared_element
from tests.strategies.draws import Draw
from tests.strategies.linear import Sum, box, sums
from tests.strategies.reference import number

CORE, X, Y = Var("core"), Var("i"), Var("j")
LOOPS = (CORE, X, Y)
Point = tuple[int, ...]


@dataclass(frozen=True)
class Accesses:
    """Accesses in loops over cores, `i` and `j`, where a sum is non-negative."""

    extents: Point
    indices: tuple[Sum, ...]
    where: Sum

    def use(self) -> CoreAccess:
        loops = tuple(
            (var, Const(0), Const(n)) for var, n in zip(LOOPS, self.extents, strict=True))
        indices = tuple(index(LOOPS) + Const(0) for index in self.indices)
        return CoreAccess(loops, (self.where(LOOPS) + Const(0) >= 0,), (CORE,), indices)

    def points(self) -> list[Point]:
        return [at for at in box(self.extents) if self.where(at) >= 0]

    def element(self, at: Point) -> Point:
        return tuple(index(at) for index in self.indices)


@st.composite
def accesses(draw: Draw, rank: int) -> Accesses:
    extents = tuple(draw(st.integers(1, n)) for n in (4, 4, 3))
    indices = tuple(draw(sums(3, 4)) for _ in range(rank))
    return Accesses(extents, indices, draw(sums(3, 2)))


@st.composite
def programs(draw: Draw) -> tuple[list[Accesses], list[Accesses]]:
    rank = draw(st.integers(1, 2))
    uses = draw(st.lists(accesses(rank), min_size=1, max_size=2))
    copies = draw(st.lists(accesses(rank), max_size=2))
    return uses, copies


def owners(uses: Sequence[Accesses], copies: Sequence[Accesses]) -> dict[Point, set[int]]:
    """Return the cores that access each element."""
    found: dict[Point, set[int]] = defaultdict(set)
    for use in uses:
        for at in use.points():
            found[use.element(at)].add(at[0])
    rest: dict[Point, set[int]] = defaultdict(set)
    for copy in copies:
        for at in copy.points():
            if copy.element(at) not in found:
                rest[copy.element(at)].add(at[0])
    return {**found, **rest}


@given(programs())
def test_elements_of_several_cores(program: tuple[list[Accesses], list[Accesses]]) -> None:
    uses, copies = program
    cores_of = owners(uses, copies)
    if not cores_of:
        return

    found = find_shared_element([item.use() for item in uses], [item.use() for item in copies])

    clashes = {element: cores for element, cores in cores_of.items() if len(cores) > 1}
    assert (found.cores is not None) == bool(clashes)
    if found.cores is not None:
        assert {core for (core,) in found.cores} <= clashes[found.index]
        return
    for axis, span in enumerate(found.span):
        actual: dict[int, list[int]] = defaultdict(list)
        for element, (core,) in cores_of.items():
            actual[core].append(element[axis])
        assert span == max(max(all_) - min(all_) + 1 for all_ in actual.values())


@given(programs())
def test_copies_are_shared_out_among_owners(
    program: tuple[list[Accesses], list[Accesses]]
) -> None:
    uses, copies = program
    cores_of = owners(uses, copies)
    if not copies or any(len(cores) > 1 for cores in cores_of.values()):
        return

    copy = copies[0]
    found = list(by_owner(copy.use(), [u.use() for u in uses], [c.use() for c in copies]))

    expected = {core for at in copy.points() for core in cores_of[copy.element(at)]}
    assert [core for core, _ in found] == sorted((core,) for core in expected)
    for at in copy.points():
        values = dict(zip(LOOPS, at, strict=True))
        sources = {core for (core,), when in found if number(when, values)}
        assert sources == cores_of[copy.element(at)]
