"""Copies from the memory of one core into that of another: which they are, and from whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tecomp.errors import LowerError
from tecomp.ir.language.expr import Const, Expr, Var
from tecomp.machine.descriptor import Target
from tecomp.machine.memory import Link
from tecomp.model.frames import Frame, Loop, Where
from tecomp.model.sites import Site, Sites
from tecomp.poly.accesses.shares import Use, by_owner
from tecomp.poly.sets.context import isl_work

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
