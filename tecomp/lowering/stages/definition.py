"""A computed stage as it will be generated, and what it reads under which conditions."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property

from tecomp.compute.axis import IterVar
from tecomp.compute.extern import ExternOp
from tecomp.compute.reduce import Reduce
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import TensorLoad
from tecomp.ir.language.expr import Const, Expr, Not, index_value
from tecomp.ir.language.stmt import Buffer, Extent
from tecomp.ir.traversal.guards import Guards
from tecomp.ir.traversal.rewrite import walk
from tecomp.scheduling.state import StageState


@dataclass(frozen=True, slots=True)
class Read:
    """One place in a definition that reads a tensor.

    Attributes:
        load: the access.
        conditions: all of them hold whenever it is evaluated.
        is_initial: whether a reduction starts from it, for every element and before it has
            reduced anything.
    """

    load: TensorLoad
    conditions: tuple[Expr, ...]
    is_initial: bool = False


@dataclass(frozen=True)
class Definition:
    """A computed stage as it will be generated.

    Attributes:
        stage: its schedule.
        body: one expression for each output; inlined stages are written out.
        start: of a scan, the first steps: one expression for each output.
        buffers: one for each output.
        is_argument: whether the caller passes the memory.
        first_step: of a scan, the first that follows from others.
        is_pointwise: of a scan, whether elements follow from those at the same place alone.
    """

    stage: StageState
    body: tuple[Expr, ...]
    start: tuple[Expr, ...]
    buffers: tuple[Buffer, ...]
    is_argument: bool
    first_step: Extent = 0
    is_pointwise: bool = False

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """Axes of the outputs."""
        return self.stage.compute.axis

    @property
    def reduce(self) -> Reduce | None:
        """The reduction, if it is one."""
        return self.body[0] if isinstance(self.body[0], Reduce) else None

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """Axes of the reduction."""
        return self.reduce.axis if self.reduce is not None else ()

    @property
    def scan_axis(self) -> IterVar | None:
        """The steps, if it is a scan."""
        return self.stage.op.scan_axis if isinstance(self.stage.op, ScanOp) else None

    @property
    def is_opaque(self) -> bool:
        """Whether it is made of statements that compute all of it at once."""
        return isinstance(self.stage.op, ExternOp)

    @property
    def has_own_boxes(self) -> bool:
        """Whether each of its tensors has memory for all of its elements: shapes may differ."""
        return self.is_opaque or not self.stage.op.are_alike

    @property
    def initial(self) -> tuple[Expr, ...]:
        """What is stored before the loops over a reduction, or over steps."""
        if self.reduce is None:
            return self.start
        return self.reduce.init or self.reduce.identity

    @property
    def is_later_step(self) -> Expr:
        """Whether an element of a scan follows from others, as a condition of its axes."""
        return index_value(self.axis[0]) >= index_value(self.first_step)

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        """Every read in its bodies, and in the first steps of a scan."""
        later = (self.is_later_step,) if self.scan_axis is not None else ()
        return tuple(_reads(self.start, self.body, later))

    @cached_property
    def starts_from_tensors(self) -> bool:
        """Whether what is stored before the loops over a reduction, or over steps, is read."""
        return any(isinstance(node, TensorLoad) for node in walk(*self.initial))


def _reads(
    start: tuple[Expr, ...], body: tuple[Expr, ...], later: tuple[Expr, ...]
) -> Iterator[Read]:
    """The reads of first steps and of bodies, which hold where `later` does."""
    first = tuple(Not(condition) for condition in later)
    groups: dict[Hashable, tuple[tuple[Expr, ...], bool, list[Expr]]] = {}
    for value, around in (*((e, later) for e in body), *((e, first) for e in start)):
        for part, conditions, is_initial in _parts(value, around):
            key = tuple(map(id, conditions)), is_initial
            groups.setdefault(key, (conditions, is_initial, []))[2].append(part)
    for conditions, is_initial, roots in groups.values():
        guards = Guards(roots)
        for node in walk(*roots):
            if isinstance(node, TensorLoad):
                guard = guards.of(node)
                inside = () if guard is None else guard.conditions()
                yield Read(node, (*conditions, *inside), is_initial)


def _parts(
    value: Expr, conditions: tuple[Expr, ...]
) -> list[tuple[Expr, tuple[Expr, ...], bool]]:
    """What is computed for an element, under which conditions, and whether only to begin with."""
    if not isinstance(value, Reduce):
        return [(value, conditions, False)]
    inside = conditions if _is_true(value.condition) else (*conditions, value.condition)
    return [
        (value.condition, conditions, False),
        *((given, inside, False) for given in value.given),
        *((source, inside, False) for source in value.source),
        *((start, conditions, True) for start in value.init or value.identity),
    ]


def _is_true(condition: Expr) -> bool:
    return isinstance(condition, Const) and condition.value is True
