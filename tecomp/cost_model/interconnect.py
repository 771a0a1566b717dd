"""Core-to-core exchanges and costs of link transfers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeAlias

from tecomp.cost_model.access_sites import AccessSites, Site
from tecomp.cost_model.iteration_counting import Frame, GuardCondition, Loop, address_of
from tecomp.errors import LowerError
from tecomp.ir.arith.intervals import Interval
from tecomp.ir.arith.quasi_affine import QuasiAffine
from tecomp.ir.arith.quasi_affine_conversion import TermTable
from tecomp.ir.arith.simplify import Ranges, bounds, constant_upper_bound
from tecomp.ir.nodes.expr import CmpOp, Compare, Const, Expr, Var, compare, is_const
from tecomp.ir.traversal.rewrite import bottom_up, free_variables
from tecomp.machine.components import Link
from tecomp.machine.descriptor import Target
from tecomp.poly.accesses.access_conflicts import CoreAccess, by_owner
from tecomp.poly.sets.isl_context import isl_work

Sources: TypeAlias = "tuple[tuple[tuple[int, ...], GuardCondition], ...]"
"""Cores that own elements which a copy reads, each with the condition of the read."""


@dataclass(slots=True)
class BufferUses:
    """Accesses of one buffer.

    Attributes:
        local_accesses: Accesses of a core to its own elements.
        copies: Reads that may access elements of another core.
    """

    local_accesses: list[CoreAccess] = field(default_factory=list)
    copies: list[CoreAccess] = field(default_factory=list)


def link_between(target: Target, source: str, dest: str) -> Link | None:
    """Return the link from one memory to another, or, for equal names, between two cores."""
    found = (link for link in target.links.values() if (link.from_, link.to) == (source, dest))
    return next(found, None)


def uses_by_core_loop(sites: AccessSites) -> dict[Var, list[list[CoreAccess]]]:
    """Return the accesses of each buffer by data variable, one list per outermost core loop."""
    found: dict[Var, dict[Var | None, list[CoreAccess]]] = {}
    for site in sites.sites:
        by_loop = found.setdefault(site.buffer.data, {})
        by_loop.setdefault(_side_by_side(site), []).append(_use(site, sites.axes))
    return {data: [*by_loop.values()] for data, by_loop in found.items()}


def uses_of(sites: AccessSites) -> dict[Var, BufferUses]:
    """Return the accesses of each buffer, by its data variable."""
    writing_loops = _writing_core_loops(sites)
    found: dict[Var, BufferUses] = {}
    for site in sites.sites:
        uses = found.setdefault(site.buffer.data, BufferUses())
        bucket = uses.copies if _may_cross(site, writing_loops) else uses.local_accesses
        bucket.append(_use(site, sites.axes))
    return found


def exchanges(sites: AccessSites, target: Target) -> dict[int, Sources]:
    """Return the source cores of each copy that may read another core's memory, by site id.

    A buffer that the function never writes is an argument. Each core reads its own part of it.

    Raises:
        LowerError: If the index sets are too complex.
    """
    if not sites.axes:  # one core runs the function
        return {}
    writing_loops = _writing_core_loops(sites)
    copies = [
        site for site in sites.sites
        if site.buffer.data in writing_loops and _may_cross(site, writing_loops)
        and link_between(target, site.buffer.scope, site.buffer.scope) is not None
    ]
    uses = uses_of(sites) if copies else {}
    found: dict[int, Sources] = {}
    for site in copies:
        known = uses[site.buffer.data]
        with isl_work("report", LowerError):
            parts = by_owner(_use(site, sites.axes), known.local_accesses, known.copies)
            found[id(site)] = tuple(
                (core, GuardCondition(_on_outer_loops(guard, site.frames))) for core, guard in parts
            )
    return found


def _on_outer_loops(condition: Expr, frames: Sequence[Frame]) -> Expr:
    """Return an equivalent condition without the loops inside of blocks that it does not divide.

    Iterations of loops that a condition depends on are counted one by one.

    Args:
        condition: Condition on the index of an element.
        frames: Loops around the access.
    """
    ranges: dict[Var, Interval] = {}
    for frame in frames:
        if isinstance(frame, Loop) and is_const(frame.min, 0):
            extent = constant_upper_bound(frame.extent, ranges)
            ranges[frame.var] = 0, None if extent is None else extent - 1
    terms = TermTable()

    def rule(node: Any) -> Expr | None:
        if not isinstance(node, Compare) or node.op not in (CmpOp.GE, CmpOp.LT):
            return None
        if not isinstance(node.b, Const):
            return None
        total = terms.sum_of(node.a)
        bound, parts = int(node.b.value) - total.const, terms.listed(total)
        for block in sorted({abs(factor) for _, factor in parts}, reverse=True):
            inner = [(atom, factor) for atom, factor in parts if factor % block]
            if not inner or bound % block or _greatest_sum(inner, ranges) >= block:
                continue
            outer = QuasiAffine()
            for atom, factor in parts:
                outer = outer if factor % block else outer.plus(terms.sum_of(atom), factor)
            return compare(node.op, terms.expr(outer), Const(bound, node.b.dtype))
        return None

    return bottom_up(condition, rule)


def _greatest_sum(parts: Sequence[tuple[Expr, int]], ranges: Ranges) -> float:
    """Return an upper bound of a sum of nonnegative terms; infinity if there is none."""
    total = 0
    for atom, factor in parts:
        low, high = bounds(atom, ranges)
        if low is None or low < 0 or high is None or factor < 0:
            return inf
        total += high * factor
    return total


def _writing_core_loops(sites: AccessSites) -> dict[Var, set[Var | None]]:
    """Return the outermost core loops in which each buffer is written."""
    result: dict[Var, set[Var | None]] = {}
    for site in sites.sites:
        if site.direction == "write":
            result.setdefault(site.buffer.data, set()).add(_side_by_side(site))
    return result


def _may_cross(site: Site, writing_loops: dict[Var, set[Var | None]]) -> bool:
    """Return whether a site copies, within one kind of memory, data made outside its core loop."""
    if not site.is_copy or site.target is None or site.target.scope != site.buffer.scope:
        return False
    cores = _side_by_side(site)
    return cores is None or cores not in writing_loops.get(site.buffer.data, set())


def _side_by_side(site: Site) -> Var | None:
    """Return the variable of the outermost core loop around a site, or None."""
    loops = (frame for frame in site.frames if isinstance(frame, Loop) and frame.thread)
    first = next(loops, None)
    return None if first is None else first.var


def _use(site: Site, axes: Sequence[str]) -> CoreAccess:
    loops = [frame for frame in site.frames if isinstance(frame, Loop)]
    cores: dict[str, Expr] = {loop.thread: loop.var for loop in loops if loop.thread}
    return CoreAccess(
        tuple((loop.var, loop.min, loop.extent) for loop in loops),
        tuple(_conditions(site.frames)),
        tuple(cores.get(axis, Const(0)) for axis in axes), site.indices,
    )


def _conditions(frames: Sequence[Frame]) -> Iterator[Expr]:
    return (frame.condition for frame in frames if isinstance(frame, GuardCondition))


def hops(link: Link, core: Sequence[int], grid: Mapping[str, int]) -> int:
    """Return the number of hops from a core to the nearest port of a link; 0 without ports."""
    return min((distance(link, core, port, grid) for port in link.ports), default=0)


def distance(
    link: Link, source: Sequence[int], dest: Sequence[int], grid: Mapping[str, int]
) -> int:
    """Return the number of hops between two cores with dimension-ordered routing."""
    total = 0
    for a, b, count in zip(source, dest, grid.values(), strict=True):
        steps = abs(a - b)
        total += min(steps, count - steps) if link.topology == "torus" else steps
    return total


def latency(link: Link, hop_count: int) -> float:
    """Return the cycles from the start of a request to its first byte."""
    return link.latency_cycles + link.hop_cycles * hop_count


def cycles(link: Link, nbytes: int, requests: int, delay: float) -> float:
    """Return the number of cycles in which a link is busy.

    All instances of the link work concurrently. The latency of a request overlaps with the transfer
    of other requests in flight, up to `outstanding` requests.

    Args:
        link: Link.
        nbytes: Bytes moved.
        requests: Number of requests.
        delay: Latency of a request in cycles.
    """
    time = nbytes / link.bytes_per_cycle
    waiting = (requests * delay + time) / link.outstanding if link.outstanding else 0.0
    return max(time, waiting) / link.instances


def outside_of_transfer(terms: TermTable, site: Site, link: Link) -> tuple[Frame, ...]:
    """Return the frames around a transfer, each iteration of which starts one descriptor.

    A transfer consists of the innermost loops that contain only the copy, up to the number of
    loops that a descriptor of the link supports. Adjacent loops that are contiguous in both
    memories count as one loop.
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


def _factor(terms: TermTable, address: QuasiAffine, loop: Loop) -> int | None:
    """Return the stride of an address along a loop; None if the address is not linear in it."""
    total = 0
    for atom, factor in terms.listed(address):
        if atom is loop.var:
            total += factor
        elif loop.var in free_variables(atom):
            return None
    return total
