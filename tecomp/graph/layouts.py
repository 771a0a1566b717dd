"""A layout for every value of a program, with the relayouts that cost least in all.

Each operation has the combinations of layouts that the rules of the machine allow it, decided by
sets. A value is made in one layout; readers that need another get a copy, which all of them share.
What only says where an element is, such as a transpose, is a view, which costs nothing where its
readers may read it so. What is chosen for an operation and for the values around it are variables,
and which of them go together is a table: `assignment` finds the cheapest, and says how sure it is
of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import inf
from types import MappingProxyType

import numpy as np

from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.constraints.operation import View
from tecomp.constraints.wishes import Hint, asked_of
from tecomp.errors import LayoutError
from tecomp.graph.assignment import Assignment, Factor, Table, minimise
from tecomp.graph.candidates import (
    Wanted,
    candidates,
    has_layouts,
    is_one_to_a_row,
    layouts_in,
)
from tecomp.graph.dag import Graph, steps_of_scans
from tecomp.graph.memory import plain_layout
from tecomp.graph.paddings import asked_paddings, is_padded_anyway, with_paddings
from tecomp.graph.refusals import refusal
from tecomp.graph.ways import (
    Machine,
    Seat,
    Slot,
    Way,
    elements_of,
    is_opaque,
    is_same_place,
    places_written,
    runs_along,
    seen,
    slots_of,
    view_of,
)
from tecomp.ir.language.dtype import INT64
from tecomp.ir.language.expr import Const
from tecomp.layout.descriptions.fixed_tiled import FixedTiledLayout
from tecomp.layout.descriptions.layout import Layout
from tecomp.layout.placement.places import row_major
from tecomp.machine.descriptor import Target


@dataclass(frozen=True, slots=True)
class Copy:
    """A value brought to another layout.

    Attributes:
        tensor: the value.
        source: the layout that it is made in.
        layout: the one of the copy.
        readers: the operations that read the copy.
        elements: that are moved, or places of padding that are filled; none of what is known when
            the program is compiled.
    """

    tensor: Tensor
    source: Layout
    layout: Layout
    readers: tuple[Operation, ...]
    elements: int

    @property
    def is_fill(self) -> bool:
        """Whether elements stay where they are, and only padding is written."""
        return self.source.index_map.formula == self.layout.index_map.formula

    @property
    def nbytes(self) -> int:
        """Bytes that it writes, padding included; none of what is known before."""
        if self.is_fill:
            return self.elements * self.layout.nbytes // max(self.layout.num_places, 1)
        return self.layout.nbytes if self.elements else 0


@dataclass(frozen=True, slots=True)
class Certificate:
    """How sure it is that no other layouts cost less.

    Attributes:
        cost: elements that all relayouts move.
        lower_bound: no choice of layouts moves fewer.
        method: how that is known.
    """

    cost: int
    lower_bound: int
    method: str


@dataclass(frozen=True, slots=True)
class Wish:
    """A hint, and what became of it.

    Attributes:
        hint: what was wished.
        is_kept: whether it is so.
        inside: the kernels that compute the value for themselves, if it is in no memory.
    """

    hint: Hint
    is_kept: bool
    inside: tuple[str, ...] = ()

    def __str__(self) -> str:
        kept = "is kept" if self.is_kept else f"is not kept, for {self.hint.cost:,.0f} elements"
        where = (
            f"; {self.hint.tensor.name} is in no memory, but inside of {', '.join(self.inside)}"
            if self.inside else ""
        )
        return f"{self.hint} {kept}{where}"


@dataclass(frozen=True, slots=True)
class Layouts(Mapping[Tensor, FixedTiledLayout]):
    """The layouts of a program, by the tensors as the caller wrote them.

    Attributes:
        of: the layout in which each value is made; that of another tensor, if it is a view of it.
        relayouts: copies of values in other layouts.
        certificate: how sure it is that none would be cheaper.
        seats: the same as `of`, and for views what they show.
        shown: the views, which are in no memory of their own.
        reads: for each operation what it reads a copy of, and in which layout.
        copying: the operations that only bring a value to another layout.
        asked: the operations whose results have a layout that was asked for, and are in memory.
        wishes: the hints, and whether they were kept.
        graph: the program.
    """

    of: Mapping[Tensor, Layout]
    relayouts: tuple[Copy, ...]
    certificate: Certificate
    seats: Mapping[Tensor, Seat]
    shown: frozenset[Tensor]
    reads: Mapping[Operation, tuple[tuple[Slot, Layout | None], ...]]
    copying: frozenset[Operation]
    asked: frozenset[Operation]
    wishes: tuple[Wish, ...]
    graph: Graph

    def copies_of(self, tensor: Tensor) -> tuple[Copy, ...]:
        """The copies of a value."""
        return tuple(copy for copy in self.relayouts if copy.tensor is tensor)

    def __getitem__(self, tensor: Tensor) -> FixedTiledLayout:
        """Where a value is.

        Raises:
            LayoutError: it is none of the program.
        """
        found = self.graph.origins.get(tensor, tensor)
        if found not in self.seats:
            raise LayoutError(
                f"layouts: {tensor!r} is no value of the program; these are "
                f"{', '.join(x.name for x in self.seats)}"
            )
        return _fixed(found, self.seats[found])

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.seats)

    def __len__(self) -> int:
        return len(self.seats)

    @property
    def moved_bytes(self) -> int:
        """Bytes that relayouts write, padding included."""
        return sum(copy.nbytes for copy in self.relayouts)

    def __str__(self) -> str:
        lines = [f"{x.name}: {self[x]}" for x in self]
        for copy in self.relayouts:
            readers = ", ".join(op.name for op in copy.readers)
            to = _fixed(copy.tensor, copy.layout)
            lines.append(f"{copy.tensor.name} for {readers}: {to}, {copy.elements:,} elements")
        known = self.certificate
        lines.append(
            f"relayouts move {known.cost:,} elements, at least {known.lower_bound:,} have to be "
            f"({known.method})"
        )
        lines += map(str, self.wishes)
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _State:
    """What is made of a value: in which seat it lies, and in which others there are copies."""

    made: int
    copies: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Value:
    """Where a value may lie.

    Attributes:
        seats: layouts and, of a view, what it may show.
        made: those that it may be made in.
        is_known: whether it follows from constants alone, so that copies cost nothing.
        readers: how many slots of operations read it.
        hints: soft ones about it.
    """

    seats: tuple[Seat, ...]
    made: tuple[int, ...]
    is_known: bool
    readers: int
    hints: tuple[Hint, ...]


@dataclass(frozen=True)
class _Problem:
    """All that is chosen among.

    Attributes:
        graph: the program.
        machine: where it is to run.
        values: where each value may lie.
        slots: what each operation reads.
        opaque: the operations that no rule says anything of.
        ways: the combinations that each operation allows.
        copying: those that bring a value to a layout that was asked for.
        wanted: the layouts of which values have to have one.
        soft: hints about values, by these.
        paddings: what readers ask to be in the padding of values.
        readers: how many slots of operations read a value.
    """

    graph: Graph
    machine: Machine
    values: dict[Tensor, _Value]
    slots: dict[Operation, tuple[Slot, ...]]
    opaque: frozenset[Operation]
    ways: dict[Operation, tuple[Way, ...]]
    copying: set[Operation]
    wanted: Mapping[Tensor, tuple[Layout, ...]]
    soft: Mapping[Tensor, Sequence[Hint]]
    paddings: Mapping[Tensor, AbstractSet[float]]
    readers: Mapping[Tensor, int]

    @cached_property
    def share(self) -> float:
        """What a byte costs: all copies that there may be together cost less than an element."""
        every = (x for value in self.values.values() for x in value.seats if isinstance(x, Layout))
        return 0.25 / max(sum(layout.nbytes for layout in every), 1)

    def seats(self, tensor: Tensor, own: Sequence[Layout]) -> tuple[Layout, ...]:
        """Layouts of a tensor, and all others that the machine knows or a reader asks for."""
        found = dict.fromkeys((*own, *_known(tensor, self.machine)))
        values = sorted(self.paddings.get(tensor, ()))
        found = dict.fromkeys(with_paddings(tuple(found), values, self.machine.target))
        if any(op in self.opaque for op in self.graph.readers.get(tensor.op, ())):
            found.setdefault(plain_layout(tensor))
        return tuple(found)

    def value(
        self, tensor: Tensor, own: Sequence[Seat], made: Iterable[int], *, is_known: bool
    ) -> _Value:
        """Where a value may lie: the first seats are its own."""
        layouts = [seat for seat in own if isinstance(seat, Layout)]
        seats = tuple(dict.fromkeys((*own, *self.seats(tensor, layouts))))
        hints = tuple(self.soft.get(tensor, ()))
        return _Value(seats, tuple(made), is_known, self.readers.get(tensor, 0), hints)


@dataclass(frozen=True, slots=True)
class _Choice:
    """What is made of each value, and the way of each operation."""

    found: Assignment
    states: Mapping[Tensor, _State]
    ways: Mapping[Operation, Way]


def choose_layouts(
    graph: Graph,
    target: Target,
    given: Mapping[Tensor, Wanted] = MappingProxyType({}),
    hints: Sequence[Hint] = (),
    *,
    relayouts: bool = True,
) -> Layouts:
    """The layouts of all values, with the fewest elements moved by relayouts.

    Args:
        graph: the program.
        target: the machine.
        given: layouts that values have, or one of which they have. Inputs for which nothing is
            said come in the machine's own; constants in any, as they are laid out once.
        hints: wishes; hard ones are kept, soft ones where that is worth it.
        relayouts: whether there are any; without, layouts follow from those of the inputs alone.

    Raises:
        LayoutError: an operation has no layouts that the rules allow, or cannot be decided about;
            or two wishes clash.
    """
    machine = Machine(target, {}, {}, {})
    if not has_layouts(target):
        hints = ()  # Nothing there has lanes.
    demands = _demands(graph, target, given, hints)
    problem = _problem(graph, machine, demands, hints)
    states = {x: _states(value, may_copy=relayouts) for x, value in problem.values.items()}
    choice = _cheapest(problem, states, len(problem.ways))
    if choice.found.cost < inf:
        return _layouts(problem, choice)
    # What inputs come in is no wish: what cannot be then, is the fault of an operation.
    facts = [each for each in demands if each.tensor in given and each.tensor in graph.inputs]
    least = _problem(graph, machine, facts, ())
    if len(facts) < len(demands) and _is_possible(least, relayouts=relayouts):
        raise LayoutError(_clash(graph, machine, demands, relayouts=relayouts))
    states = {x: _states(value, may_copy=relayouts) for x, value in least.values.items()}
    raise LayoutError(_refusal(least, states, relayouts=relayouts))


@dataclass(frozen=True, slots=True)
class _Demand:
    """What has to be so of a value.

    Attributes:
        tensor: the value.
        text: who says so.
        wanted: the layouts that it may have.
        axis: the one along its lanes, if that is all that is said.
    """

    tensor: Tensor
    text: str
    wanted: Wanted = "default"
    axis: int | None = None


def _demands(
    graph: Graph, target: Target, given: Mapping[Tensor, Wanted], hints: Sequence[Hint]
) -> list[_Demand]:
    """What the caller says that has to be so, of the values of the program."""
    every = {*graph.inputs, *graph.constants, *(x for op in graph.operations for x in op.outputs)}
    found = []
    for op in graph.operations:
        wanted = asked_of(op)
        if isinstance(wanted, Layout) or (wanted is not None and has_layouts(target)):
            said = {"axis": wanted} if isinstance(wanted, int) else {"wanted": wanted}
            found.append(_Demand(op.output(0), f"the copy {op.name}", **said))
    for x, asked in given.items():
        found.append(_Demand(graph.origins.get(x, x), f"the layout of {x.name}", asked))
    for each in hints:
        x = graph.origins.get(each.tensor, each.tensor)
        if x not in every:
            raise LayoutError(
                f"layouts: {each.tensor!r} has a hint, and is no value of the program"
            )
        if each.is_hard:
            found.append(_Demand(x, str(each), axis=each.stick))
    for demand in found:
        if demand.tensor not in every:
            raise LayoutError(
                f"layouts: {demand.tensor!r} is given a layout, and is no value of the program"
            )
    return found


def _is_possible(problem: _Problem, *, relayouts: bool) -> bool:
    states = {x: _states(value, may_copy=relayouts) for x, value in problem.values.items()}
    return _cheapest(problem, states, len(problem.ways)).found.cost < inf


def _clash(
    graph: Graph, machine: Machine, demands: Sequence[_Demand], *, relayouts: bool
) -> str:
    """Demands of which no one can be left out, that cannot be kept together."""
    left = list(demands)
    for demand in demands:
        without = [each for each in left if each is not demand]
        if not _is_possible(_problem(graph, machine, without, ()), relayouts=relayouts):
            left = without
    texts = " and ".join(each.text for each in left)
    if len(left) == 1:
        return f"layouts: {texts} cannot be kept on {machine.target.name}; leave more to choose"
    return (
        f"layouts: {texts} clash: no layouts of the program keep them together; leave one of them "
        "out, or make it a soft hint"
    )


def forward_relayouts(graph: Graph, target: Target) -> tuple[int, int] | None:
    """What relayouts cost if each operation in turn takes the layouts that are cheapest for it.

    It copies for itself what it reads in other layouts. Exact choice is compared with that.

    Args:
        graph: the program.
        target: the machine.

    Returns:
        The elements that are moved, and the bytes that are written; None where that ends with an
        operation that has no layouts then.
    """
    problem = _problem(graph, Machine(target, {}, {}, {}), [], ())
    made = {x: value.made[0] for x, value in problem.values.items()}
    elements, nbytes = 0, 0
    for op, ways in problem.ways.items():
        costs = [_cost_now(problem, op, way, made) for way in ways]
        way = min(ways, key=lambda each: costs[ways.index(each)], default=None)
        if way is None or min(costs) == inf:
            return None
        elements += int(min(costs))
        made.update(zip(op.outputs, way.outs, strict=True))
        for tensor, number in _copied(problem, op, way, made):
            value, seat = problem.values[tensor], problem.values[tensor].seats[number]
            nbytes += seat.nbytes if isinstance(seat, Layout) and not value.is_known else 0
    return elements, nbytes


def _copied(
    problem: _Problem, op: Operation, way: Way, made: Mapping[Tensor, int]
) -> set[tuple[Tensor, int]]:
    """What an operation reads in other seats than it is made in."""
    wanted = {(s.tensor, n) for s, n in zip(problem.slots[op], way.inputs, strict=True)}
    return {(tensor, number) for tensor, number in wanted if number != made[tensor]}


def _cost_now(
    problem: _Problem, op: Operation, way: Way, made: Mapping[Tensor, int]
) -> float:
    """The elements that are moved for one operation, after those before it."""
    if any(k not in problem.values[x].made for k, x in zip(way.outs, op.outputs, strict=True)):
        return inf
    cost = way.cost
    for tensor, number in _copied(problem, op, way, made):
        state = _State(made[tensor], frozenset({number}))
        value = problem.values[tensor]
        is_layout = isinstance(value.seats[number], Layout)
        moved = _moved(problem, tensor, [state])[0] if is_layout else inf
        cost += 0.0 if value.is_known and is_layout else moved
    return cost


def _problem(
    graph: Graph, machine: Machine, demands: Sequence[_Demand], hints: Sequence[Hint]
) -> _Problem:
    values: dict[Tensor, _Value] = {}
    every = (*graph.inputs, *graph.constants, *(x for op in graph.operations for x in op.outputs))
    steps = steps_of_scans(graph.operations)
    opaque = frozenset(op for op in graph.operations if is_opaque(op) or op in steps)
    slots = {op: slots_of(op, set(every), is_opaque=op in opaque) for op in graph.operations}
    readers: dict[Tensor, int] = {}
    for slot in (slot for own in slots.values() for slot in own):
        readers[slot.tensor] = readers.get(slot.tensor, 0) + 1
    wanted: dict[Tensor, tuple[Layout, ...]] = {}
    for demand in demands:
        own = _layouts_of(demand, machine)
        wanted[demand.tensor] = tuple(x for x in wanted.get(demand.tensor, own) if x in own)
    soft: dict[Tensor, list[Hint]] = {}
    for each in hints:
        soft.setdefault(graph.origins.get(each.tensor, each.tensor), []).append(each)
    views = {op: view_of(op) for op in graph.operations if op not in opaque}
    shown = {op: load for op, load in views.items() if load is not None}
    paddings = asked_paddings(
        [op for op in graph.operations if op not in opaque], shown, machine.target
    )
    problem = _Problem(
        graph, machine, values, slots, opaque, {}, set(), wanted, soft, paddings, readers
    )
    for x in (*graph.inputs, *graph.constants):
        is_known = x in graph.constants
        full = tuple(each for each in _known(x, machine) if not is_one_to_a_row(each))
        own = wanted.get(x) or problem.seats(x, full)
        is_free = is_known or x in wanted or x in soft
        values[x] = problem.value(x, own, range(len(own) if is_free else 1), is_known=is_known)
    for op in graph.operations:
        _add(problem, op)
    return problem


def _add(problem: _Problem, op: Operation) -> None:
    """What an operation makes, where that may lie, and the ways in which it does."""
    values, machine = problem.values, problem.machine
    reads = [x for x in op.input_tensors if x in values]
    is_known = bool(reads) and all(values[x].is_known for x in reads)
    shown = None if op in problem.opaque else view_of(op)
    if shown is not None and op.output(0) not in problem.wanted and shown.tensor in values:
        x = op.output(0)
        own, ways = _shown(op, values[shown.tensor].seats, problem.seats(x, ()))
        made = dict.fromkeys(way.outs[0] for way in ways)
        values[x] = problem.value(x, own, made, is_known=is_known)
        problem.ways[op] = ways
        return
    for x in op.outputs:
        known = problem.wanted[x] if x in problem.wanted else problem.seats(x, ())
        if op in problem.opaque:
            known = (plain_layout(x),)
        values[x] = problem.value(x, known, range(len(known)), is_known=is_known)
    if op in problem.opaque:
        reads = [slot.tensor for slot in problem.slots[op]]
        plain = tuple(values[x].seats.index(plain_layout(x)) for x in reads)
        problem.ways[op] = (Way((0,) * op.num_outputs, plain),)
        return
    seats = {x: value.seats for x, value in values.items()}
    problem.ways[op] = _priced(op, machine.ways(op, problem.slots[op], seats), problem)


def _priced(op: Operation, ways: Sequence[Way], problem: _Problem) -> tuple[Way, ...]:
    """Ways with what they cost: a copy that somebody asked for moves all elements."""
    made = [set(problem.values[x].made) for x in op.outputs]
    fit = [w for w in ways if all(k in own for k, own in zip(w.outs, made, strict=True))]
    shown = view_of(op)
    if shown is None:
        return tuple(replace(way, cost=_filled(op, way, problem)) for way in fit)
    problem.copying.add(op)
    source, result = problem.values[shown.tensor], problem.values[op.output(0)]
    priced = []
    for way in fit:
        to = result.seats[way.outs[0]]
        view = seen(op, shown, source.seats[way.inputs[0]])
        is_free = source.is_known or (isinstance(to, Layout) and is_same_place(view, to))
        cost = 0.0 if is_free else float(elements_of(op.output(0)))
        priced.append(Way(way.outs, way.inputs, cost))
    return tuple(priced)


def _filled(op: Operation, way: Way, problem: _Problem) -> float:
    """Places of padding that an operation has to fill, as they do not come out right anyway."""
    out = problem.values[op.output(0)].seats[way.outs[0]]
    if not isinstance(out, Layout) or out.pad_value is None:
        return 0.0
    seats = {
        slot.tensor: problem.values[slot.tensor].seats[n]
        for slot, n in zip(problem.slots[op], way.inputs, strict=True)
    }
    return 0.0 if is_padded_anyway(op, out, seats) else float(out.padding_count)


def _shown(
    op: Operation, source: Sequence[Seat], known: Sequence[Layout]
) -> tuple[tuple[Seat, ...], tuple[Way, ...]]:
    """The seats of a view, and which of them it has where its source has which."""
    load = view_of(op)
    assert load is not None
    seats: list[Seat] = list(known)
    ways = []
    for n, seat in enumerate(source):
        view = seen(op, load, seat)
        same = next((k for k, layout in enumerate(known) if is_same_place(view, layout)), None)
        if same is None:
            same = len(seats)
            seats.append(view)
        ways.append(Way((same,), (n,)))
    return tuple(seats), tuple(ways)


def _known(tensor: Tensor, machine: Machine) -> tuple[Layout, ...]:
    """The layouts of a tensor that the machine knows.

    Raises:
        LayoutError: it does not store its type.
    """
    shape = tuple(extent for extent in tensor.shape if isinstance(extent, int))
    key = shape, tensor.dtype
    if key not in machine.known:
        try:
            machine.known[key] = candidates(machine.target, shape, tensor.dtype)
        except LayoutError as error:
            raise LayoutError(
                f"layouts: {tensor.name} has no layout on {machine.target.name}: {error}"
            ) from None
    return machine.known[key]


def _layouts_of(demand: _Demand, machine: Machine) -> tuple[Layout, ...]:
    """The layouts that are asked for."""
    tensor, asked = demand.tensor, demand.wanted
    if demand.axis is not None:
        known = _known(tensor, machine)
        return tuple(each for each in known if runs_along(each, tensor, demand.axis))
    found = tuple(
        _known(tensor, machine)[0] if each == "default" else each for each in layouts_in(asked)
    )
    for layout in found:
        if not isinstance(layout, Layout):
            raise LayoutError(
                f"layouts: {tensor.name} is given {layout!r}; give a layout, \"default\", or "
                "several of these"
            )
        if layout.shape != tensor.shape or layout.dtype != tensor.dtype:
            raise LayoutError(
                f"layouts: {tensor.name} is {tensor.dtype}{list(tensor.shape)}, and its layout is "
                f"for {layout.dtype}{list(layout.shape)}; give one of its shape and type"
            )
    if not found:
        raise LayoutError(f"layouts: {tensor.name} is given no layout to choose; give one or more")
    return tuple(dict.fromkeys(found))


def _states(value: _Value, *, may_copy: bool) -> list[_State]:
    """A value in one seat, with copies in as many layouts as there are readers."""
    layouts = [
        k for k, seat in enumerate(value.seats)
        if isinstance(seat, Layout) and not is_one_to_a_row(seat)
    ]
    found = []
    for made in value.made:
        others = [k for k in layouts if k != made]
        for size in range(min(value.readers, len(others)) + 1 if may_copy else 1):
            found += [_State(made, frozenset(each)) for each in combinations(others, size)]
    return found


def _cheapest(
    problem: _Problem, states: Mapping[Tensor, Sequence[_State]], count: int
) -> _Choice:
    """What costs least in all, for the first operations."""
    ways = dict(list(problem.ways.items())[:count])
    around = {x for op in ways for x in (*op.outputs, *(s.tensor for s in problem.slots[op]))}
    own = {x: states[x] for x in problem.values if x in around}
    if not all(own.values()) or not all(ways.values()):
        return _Choice(Assignment((), inf, inf, 0, is_exact=True), {}, {})
    keys: tuple[Tensor | Operation, ...] = (*own, *ways)
    number = {key: k for k, key in enumerate(keys)}
    factors = [Factor((number[x],), _costs(problem, x, states[x])) for x in own]
    for op, each in ways.items():
        factors.append(Factor((number[op],), np.array([way.cost for way in each], float)))
        factors += _tables(problem, op, states, number)
    found = minimise([*map(len, own.values()), *map(len, ways.values())], factors)
    taken = {x: each[found.values[number[x]]] for x, each in own.items()}
    picked = {op: each[found.values[number[op]]] for op, each in ways.items()}
    return _Choice(found, taken, picked)


def _costs(problem: _Problem, tensor: Tensor, states: Sequence[_State]) -> Table:
    """What the copies of a value cost, and hints that are not kept, for each of its states."""
    value = problem.values[tensor]
    unkept = {
        made: sum(h.cost for h in value.hints if not _keeps(value.seats[made], tensor, h))
        for made in value.made
    }
    wished = np.array([unkept[state.made] for state in states], float)
    return wished if value.is_known else wished + _moved(problem, tensor, states)


def _keeps(seat: Seat, tensor: Tensor, hint: Hint) -> bool:
    return runs_along(seat, tensor, hint.stick)


def _moved(problem: _Problem, tensor: Tensor, states: Sequence[_State]) -> Table:
    """The elements that copies of a value move, for each of its states."""
    value = problem.values[tensor]
    if not any(state.copies for state in states):
        return np.zeros(len(states))
    layouts = {k: seat for k, seat in enumerate(value.seats) if isinstance(seat, Layout)}
    prices = problem.machine.prices(tensor, value.seats, tuple(layouts.values()))
    number = {k: n for n, k in enumerate(layouts)}
    share = problem.share

    def cost(made: int, k: int) -> float:
        return prices.get((made, number[k]), inf) + share * layouts[k].nbytes

    return np.array([sum(cost(state.made, k) for k in state.copies) for state in states], float)


def _tables(
    problem: _Problem, op: Operation, states: Mapping[Tensor, Sequence[_State]],
    number: Mapping[Tensor | Operation, int],
) -> Iterator[Factor]:
    """Which ways of an operation go together with which states of the values around it."""
    ways = problem.ways[op]
    for k, x in enumerate(op.outputs):
        made = np.array([state.made for state in states[x]])
        outs = np.array([way.outs[k] for way in ways], int)
        yield Factor((number[op], number[x]), np.where(outs[:, None] == made, 0.0, inf))
    for k, slot in enumerate(problem.slots[op]):
        own = states[slot.tensor]
        there = np.full((len(problem.values[slot.tensor].seats), len(own)), inf)
        for n, state in enumerate(own):
            there[[state.made, *state.copies], n] = 0.0
        seats = np.array([way.inputs[k] for way in ways], int)
        yield Factor((number[op], number[slot.tensor]), there[seats])


def _refusal(
    problem: _Problem, states: Mapping[Tensor, Sequence[_State]], *, relayouts: bool
) -> str:
    """What is said of the first operation with which those up to it have no layouts."""
    ops = list(problem.ways)
    low, high = 0, len(ops)
    while high - low > 1:
        middle = (low + high) // 2
        if _cheapest(problem, states, middle).found.cost == inf:
            high = middle
        else:
            low = middle
    before, op = _cheapest(problem, states, low), ops[high - 1]
    seats = {x: value.seats[value.made[0]] for x, value in problem.values.items()}
    seats |= {x: problem.values[x].seats[state.made] for x, state in before.states.items()}
    outs = [problem.values[op.output(0)].seats[k] for k in problem.values[op.output(0)].made]
    return refusal(op, problem.machine.target, seats, outs, can_mend=not relayouts)


def _layouts(problem: _Problem, choice: _Choice) -> Layouts:
    exact = "variable elimination along a tree decomposition, exact"
    bounded = "variables changed one at a time, against a bound of tables minimised apart"
    found, values = choice.found, problem.values
    certificate = Certificate(
        int(found.cost), int(found.lower_bound), exact if found.is_exact else bounded
    )
    first = {x: _State(value.made[0], frozenset()) for x, value in values.items()}
    taken = first | dict(choice.states)
    copies = tuple(each for x in values for each in _copies(problem, choice, x, taken[x]))
    seats = {x: value.seats[taken[x].made] for x, value in values.items()}
    of = {x: seat if isinstance(seat, Layout) else seat.layout for x, seat in seats.items()}
    reads = {op: tuple(_reads(problem, op, way, taken)) for op, way in choice.ways.items()}
    views = {op for op in problem.ways if op not in problem.opaque and view_of(op) is not None}
    asked = frozenset(op for op in views if op in problem.copying)
    return Layouts(
        of, copies, certificate, seats, frozenset(op.output(0) for op in views - asked),
        reads, asked, frozenset(x.op for x in problem.wanted),
        tuple(_wish(problem, each, seats) for own in problem.soft.values() for each in own),
        problem.graph,
    )


def _wish(problem: _Problem, hint: Hint, seats: Mapping[Tensor, Seat]) -> Wish:
    tensor = problem.graph.origins.get(hint.tensor, hint.tensor)
    return Wish(hint, _keeps(seats[tensor], tensor, hint))


def _reads(
    problem: _Problem, op: Operation, way: Way, taken: Mapping[Tensor, _State]
) -> Iterator[tuple[Slot, Layout | None]]:
    """What an operation reads, and the layout of the copy if it reads one."""
    for slot, number in zip(problem.slots[op], way.inputs, strict=True):
        seat = problem.values[slot.tensor].seats[number]
        is_made = taken[slot.tensor].made == number
        assert is_made or isinstance(seat, Layout)
        yield slot, None if is_made or not isinstance(seat, Layout) else seat


def _copies(
    problem: _Problem, choice: _Choice, tensor: Tensor, state: _State
) -> Iterator[Copy]:
    value = problem.values[tensor]
    for number in sorted(state.copies):
        readers = tuple(
            op for op in problem.graph.readers.get(tensor.op, ())
            if any(
                slot.tensor is tensor and n == number
                for slot, n in zip(problem.slots[op], choice.ways[op].inputs, strict=True)
            )
        )
        source, layout = value.seats[state.made], value.seats[number]
        assert isinstance(layout, Layout)
        held = source.layout if isinstance(source, View) else source
        moved = 0 if value.is_known else places_written(source, layout)
        yield Copy(tensor, held, layout, readers, moved)


def _fixed(tensor: Tensor, seat: Seat) -> FixedTiledLayout:
    size = tuple(extent for extent in tensor.shape if isinstance(extent, int))
    if isinstance(seat, Layout):
        return FixedTiledLayout(size, row_major(size), seat)
    return FixedTiledLayout(size, _strides(seat, size), seat.layout)


def _strides(view: View, size: Sequence[int]) -> tuple[int, ...]:
    """Elements of the host from one index of a view to the next, if these are constants."""
    steps = row_major(view.layout.shape)

    def offset(at: Sequence[int]) -> int:
        index = view.at([Const(n, INT64) for n in at])
        return sum(step * int(n.value) for step, n in zip(steps, index, strict=True)
                   if isinstance(n, Const))  # fmt: skip

    start = offset([0] * len(size))
    units = [[int(k == dim and size[k] > 1) for k in range(len(size))] for dim in range(len(size))]
    strides = tuple(offset(unit) - start for unit in units)
    last = [max(extent - 1, 0) for extent in size]
    whole = start + sum(n * step for n, step in zip(last, strides, strict=True))
    return strides if offset(last) == whole else tuple(row_major(size))
