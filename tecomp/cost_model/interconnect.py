"""Core-to-core exchanges and link costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tecomp.cost_model.access_sites import Site, Sites
from tecomp.cost_model.iteration_counting import Frame, Loop, Where, address_of
from tecomp.errors import LowerError
from tecomp.ir.arith.quasi_affine import QuasiAffine
from tecomp.ir.arith.quasi_affine_conversion import Terms
from tecomp.ir.nodes.expr import Const, Expr, Var
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.machine.components import Link
from tecomp.machine.descriptor import Target
from tecomp.poly.accesses.access_conflicts import Use, by_owner
from tecomp.poly.sets.isl_context import isl_work

Sources: TypeAlias = "tuple[tuple[tuple[int, ...], Where], ...]"
"""Cores that have what a copy reads, each with when it reads from there."""


@dataclass(slots=True)
class Uses:
    """Who uses a buffer.

    Attributes:
        own: accesses that a core makes to what it has itself.
        copies: reads that may be of what another core has.
    """

    own: list[Use] = field(default_factory=list)
    copies: list[Use] = field(default_factory=list)


def link_between(target: Target, source: str, to: str) -> Link | None:
    """What moves data from one memory to another; for one memory, between those of two cores."""
    found = (link for link in target.links.values() if (link.from_, link.to) == (source, to))
    return next(found, None)


def uses_of(sites: Sites) -> dict[Var, Uses]:
    """The accesses of each buffer, by its memory."""
    made = _made(sites)
    found: dict[Var, Uses] = {}
    for site in sites.sites:
        uses = found.setdefault(site.buffer.data, Uses())
        into = uses.copies if _may_cross(site, made) else uses.own
        into.append(_use(site, sites.axes))
    return found


def exchanges(sites: Sites, target: Target) -> dict[int, Sources]:
    """For each copy that may be from another core, by its identity, whom it copies from.

    Raises:
        LowerError: the index sets are too complex.
    """
    made = _made(sites)
    copies = [
        site for site in sites.sites if _may_cross(site, made)
        and link_between(target, site.buffer.scope, site.buffer.scope) is not None
    ]
    uses = uses_of(sites) if copies else {}
    found: dict[int, Sources] = {}
    for site in copies:
        known = uses[site.buffer.data]
        with isl_work("report", LowerError):
            parts = by_owner(_use(site, sites.axes), known.own, known.copies)
            found[id(site)] = tuple((core, Where(when)) for core, when in parts)
    return found


def _made(sites: Sites) -> dict[Var, set[Var | None]]:
    """The loops over cores in which each buffer is written."""
    made: dict[Var, set[Var | None]] = {}
    for site in sites.sites:
        if site.direction == "write":
            made.setdefault(site.buffer.data, set()).add(_side_by_side(site))
    return made


def _may_cross(site: Site, made: dict[Var, set[Var | None]]) -> bool:
    """Whether it is a copy in its memory of what was made before its cores began."""
    if not site.is_copy or site.target is None or site.target.scope != site.buffer.scope:
        return False
    cores = _side_by_side(site)
    return cores is None or cores not in made.get(site.buffer.data, set())


def _side_by_side(site: Site) -> Var | None:
    """The outermost loop over cores around a place, of which iterations run in any order."""
    loops = (frame for frame in site.frames if isinstance(frame, Loop) and frame.thread)
    first = next(loops, None)
    return None if first is None else first.var


def _use(site: Site, axes: Sequence[str]) -> Use:
    around = [frame for frame in site.frames if isinstance(frame, Loop)]
    cores: dict[str, Expr] = {loop.thread: loop.var for loop in around if loop.thread}
    return Use(
        tuple((loop.var, loop.min, loop.extent) for loop in around),
        tuple(_conditions(site.frames)),
        tuple(cores.get(axis, Const(0)) for axis in axes), site.indices,
    )


def _conditions(frames: Sequence[Frame]) -> Iterator[Expr]:
    return (frame.condition for frame in frames if isinstance(frame, Where))


def hops(link: Link, here: Sequence[int], grid: Mapping[str, int]) -> int:
    """How many cores a transfer passes from the nearest port of a link; 0 if it has none."""
    return min((distance(link, here, port, grid) for port in link.ports), default=0)


def distance(
    link: Link, here: Sequence[int], there: Sequence[int], grid: Mapping[str, int]
) -> int:
    """Steps between two cores, along one axis after the other."""
    total = 0
    for a, b, count in zip(here, there, grid.values(), strict=True):
        steps = abs(a - b)
        total += min(steps, count - steps) if link.topology == "torus" else steps
    return total


def latency(link: Link, passed: int) -> float:
    """From the start of a request to its first byte."""
    return link.latency_cycles + link.hop_cycles * passed


def cycles(link: Link, moved: int, requests: int, delay: float) -> float:
    """How long a link is busy with some bytes.

    All its instances work at once. Each waits for the first byte of a request while it moves those
    of others that are under way, as many as `outstanding` says.
    """
    time = moved / link.bytes_per_cycle
    waiting = (requests * delay + time) / link.outstanding if link.outstanding else 0.0
    return max(time, waiting) / link.instances


def outside_of_transfer(terms: Terms, site: Site, link: Link) -> tuple[Frame, ...]:
    """The loops and conditions of which each iteration is a transfer: one descriptor of the link.

    A transfer is the innermost loops in which there is nothing but the copy, as many as the link
    takes. Loops that go on where the next one inside ends, in both memories, are one.
    """
    assert site.target is not None
    addresses = [
        address_of(terms, buffer, indices, None)
        for buffer, indices in (
            (site.buffer, site.indices), (site.target, site.target_indices))
    ]
    found: list[tuple[int | None, list[int] | None]] = []
    outer = len(site.frames)
    for k in range(len(site.frames) - 1, -1, -1):
        frame = site.frames[k]
        if not isinstance(frame, Loop):
            continue
        if not frame.is_alone or frame.thread:
            break
        steps = [_factor(terms, address, frame) for address in addresses]
        known = [step for step in steps if step is not None]
        extent = int(frame.extent.value) if isinstance(frame.extent, Const) else None
        before = found[-1] if found else (None, None)
        if len(known) == len(steps) and before[0] and before[1] and known == [
            step * before[0] for step in before[1]
        ]:
            count = None if extent is None else extent * before[0]
            found[-1] = count, before[1]
        elif link.max_loops is not None and len(found) == link.max_loops:
            break
        else:
            found.append((extent, known if len(known) == len(steps) else None))
        outer = k
    return site.frames[:outer]


def _factor(terms: Terms, address: QuasiAffine, loop: Loop) -> int | None:
    """What an address grows by in a loop; None where that is no multiple."""
    total = 0
    for atom, factor in terms.listed(address):
        if atom is loop.var:
            total += factor
        elif loop.var in free_variables(atom):
            return None
    return total
