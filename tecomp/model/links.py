"""What links take for transfers: requests, their way over the grid, and those under way at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tecomp.ir.algebra.quasi_affine import QuasiAffine
from tecomp.ir.algebra.terms import Terms
from tecomp.ir.language.expr import Const
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.machine.memory import Link
from tecomp.model.count import address_of
from tecomp.model.frames import Frame, Loop
from tecomp.model.sites import Site


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
