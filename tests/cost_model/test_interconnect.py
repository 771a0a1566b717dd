"""The source core of a copy is the core that wrote the element, for all elements."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tecomp.cost_model import AccessSites, Loop, Site, exchanges, link_between, sites_of, uses_of
from tecomp.ir import Var, parse
from tecomp.machine import Target
from tests.strategies.loop_nests import value, visited

TARGET = Target.load("stick128")


def program(cores: int, rows: int, result: str, read: str) -> AccessSites:
    """Return a program where each core writes a part of X and copies another part into Y."""
    size = cores * rows
    return sites_of(parse(f'''def main(A: Buffer("float32", ({size},))):
    with Allocate(Buffer("float32", ({size},), scope="lx")) as X:
        with Allocate(Buffer("float32", ({size},), scope="lx")) as Y:
            for c in parallel({cores}, thread="core.x"):
                for j in range({rows}):
                    X[{result}] = A[{result}]
            for c in parallel({cores}, thread="core.x"):
                for j in range({rows}):
                    Y[c * {rows} + j] = {read}
'''), {})


def happens(site: Site, cores: int) -> list[tuple[int, int, dict[Var, int]]]:
    """Return core, element and variables for each execution of a site."""
    thread = next(frame.var for frame in site.frames if isinstance(frame, Loop) and frame.thread)
    found: list[tuple[int, int, dict[Var, int]]] = []
    for core in range(cores):
        for at in visited(site.frames, {"core.x": core}, {}):
            found.append((at[thread], value(site.indices[0], at), at))
    return found


def test_elements_are_transferred_from_the_producing_core() -> None:
    draw, remote = random.Random(7), Counter[bool]()
    for _ in range(25):
        cores, rows = draw.randint(2, 5), draw.randint(1, 4)
        size = cores * rows
        result = draw.choice((f"c * {rows} + j", f"j * {cores} + c"))
        place = draw.choice((
            f"(c * {rows} + j + {draw.randint(0, size)}) % {size}", f"j * {cores} + c",
            f"{size - 1} - c * {rows} - j", f"(c * {rows} + j) // 2",
        ))
        guard = f"if_then_else(c * {rows} + j < {draw.randint(0, size)}, X[{place}], float32(0.0))"
        sites = program(cores, rows, result, draw.choice((f"X[{place}]", guard)))
        (write,) = (s for s in sites.sites if s.direction == "write" and s.buffer.name == "X")
        (copy,) = (s for s in sites.sites if s.direction == "read" and s.buffer.name == "X")
        owner = {element: core for core, element, _ in happens(write, cores)}

        found = exchanges(sites, TARGET)

        assert set(found) == {id(copy)}
        for core, element, at in happens(copy, cores):
            description = [name for name, when in found[id(copy)] if value(when.condition, at)]
            assert description == [(owner[element],)]
            remote[owner[element] != core] += 1
    assert min(remote.values()) > 50


def test_transfers_exclude_local_elements() -> None:
    sites = program(3, 2, "c * 2 + j", "X[(c * 2 + j + 1) % 6]")
    uses = {data.name: (len(each.local_accesses), len(each.copies)) for data, each in uses_of(sites).items()}

    assert uses == {"A": (1, 0), "X": (1, 1), "Y": (1, 0)}


@pytest.mark.parametrize("name", ["stick128", "tensix_wh"])
def test_links_are_found_by_their_ends(name: str) -> None:
    target = Target.load(name)
    for link in target.links.values():
        found = link_between(target, link.from_, link.to)
        assert found is not None
        assert (found.from_, found.to) == (link.from_, link.to)
    assert link_between(target, "nowhere", "lx") is None
