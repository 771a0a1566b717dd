"""Enumerate the layout combinations that an operation supports, with their costs.

A value lies in a layout of its own, or is a view: then its elements are those of another tensor,
where that has them. Rules of the machine decide about views as about layouts, by what the loops of
the reader read there.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TypeAlias

from tecomp.compute.define import compute, placeholder
from tecomp.compute.extern import ExternOp
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.constraints.check import has_roles, keeps_rules
from tecomp.constraints.operation_view import (
    Computation,
    Use,
    View,
    computation,
    loads_of,
    only_moves,
    texts_of,
)
from tecomp.errors import LayoutError
from tecomp.graph.definition_keys import definition_key
from tecomp.graph.sizes import elements_of, plain_layout, sizes_of
from tecomp.ir.nodes.expr import Expr, Var
from tecomp.ir.traversal.rewrite import free_variables, walk
from tecomp.layout.core.layout import Layout
from tecomp.layout.sticks.stick_layout import StickLayout
from tecomp.machine.descriptor import Target
from tecomp.poly.accesses.lane_access import Places
from tecomp.poly.maps.index_map import IndexMap
from tecomp.poly.sets.isl_context import isl_work
from tecomp.poly.sets.to_isl import NotAffine

_FEW = 2
"""Elements of a tensor that may come from a layout each, whatever loops walk them."""
_MOST = 4
"""Layouts of one tensor that an operation may read: each multiplies the ways that are tried."""

Seat: TypeAlias = "Layout | View"
"""Where a value may lie."""


@dataclass(frozen=True, slots=True)
class Way:
    """A combination that an operation allows: the seats of its results, and of what it reads.

    Attributes:
        outs: the number of the seat of each result.
        inputs: the same for each of its slots.
        cost: elements that it moves only because they lie like that.
    """

    outs: tuple[int, ...]
    inputs: tuple[int, ...]
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Slot:
    """Reads of a tensor by an operation that find it in one seat.

    Attributes:
        tensor: what is read.
        indices: its elements, as text; none for all that are read.
    """

    tensor: Tensor
    indices: frozenset[tuple[str, ...]] = frozenset()

    def has(self, tensor: Tensor, indices: Sequence[Expr]) -> bool:
        """Whether a read is one of these."""
        return tensor is self.tensor and (
            not self.indices or tuple(map(str, indices)) in self.indices
        )


def slots_of(
    op: Operation, known: Container[Tensor], *, is_opaque: bool
) -> tuple[Slot, ...]:
    """What an operation reads of some tensors.

    Elements of one tensor may come from several layouts of it, as in `X[i, k] * X[j, k]`. Of many
    elements, those come from one that other loops walk in the same way, as in a stencil. Tensors of
    indices may lie anyhow, and are left out.
    """
    if is_opaque or not isinstance(op, ComputeOp):
        return tuple(Slot(x) for x in op.input_tensors if x in known)
    found: dict[Tensor, dict[tuple[str, ...], TensorLoad]] = {}
    for load in loads_of(op.body[0]):
        found.setdefault(load.tensor, {})[tuple(map(str, load.indices))] = load
    return tuple(Slot(tensor, own) for tensor, reads in found.items() for own in _apart(reads))


def _apart(reads: Mapping[tuple[str, ...], TensorLoad]) -> list[frozenset[tuple[str, ...]]]:
    """Elements of a tensor, taken together that come from one layout; none where all do."""
    alike: dict[object, list[tuple[str, ...]]] = {}
    for text, load in reads.items():
        loops = tuple(frozenset(free_variables(index)) for index in load.indices)
        alike.setdefault(loops if len(reads) > _FEW else text, []).append(text)
    return [frozenset(own) for own in alike.values()] if 1 < len(alike) <= _MOST else [frozenset()]


def is_opaque(op: Operation) -> bool:
    """Whether no rule says in which layouts an operation runs."""
    return (
        not isinstance(op, ComputeOp) or isinstance(op, ScanOp | ExternOp) or op.num_outputs > 1
    )


def view_of(op: Operation) -> TensorLoad | None:
    """What an operation shows that only says where an element of another tensor is."""
    if is_opaque(op) or not isinstance(op, ComputeOp):
        return None
    (load,) = op.body
    if not isinstance(load, TensorLoad):
        return None
    is_known = not any(isinstance(n, TensorLoad) for index in load.indices for n in walk(index))
    return load if is_known else None


def seen(op: Operation, load: TensorLoad, seat: Seat) -> View:
    """A view, where what it shows lies in a seat."""
    assert isinstance(op, ComputeOp)
    if isinstance(seat, View):
        return seat.of(op.axis, load.indices)
    return View(seat, op.axis, tuple(load.indices))


def is_same_place(view: View, layout: Layout) -> bool:
    """Whether a view has each of its elements where a layout has it."""
    used = {node for index in view.indices for node in walk(index) if isinstance(node, Var)}
    if len(view.indices) != len(view.axes) or used != set(view.axes):
        return False
    if not all(isinstance(index, Var) for index in view.indices):
        return False
    if view.layout.storage != layout.storage or view.layout.pad_value != layout.pad_value:
        return False
    same = view.texts == texts_of(layout)
    if same or type(view.layout) is type(layout) is StickLayout:
        return same and view.layout.physical_shape == layout.physical_shape
    shown = IndexMap(view.axes, view.indices, ()).then(view.layout.index_map)
    return shown.is_equivalent_to(layout.index_map, layout.shape)


def runs_along(seat: Seat, tensor: Tensor, axis: int) -> bool:
    """Whether an axis of a tensor runs along the lanes of a seat."""
    if isinstance(seat, Layout):
        seat = View(seat, seat.index_map.initial_indices, seat.index_map.initial_indices)
    places = seat.layout.index_map.at(seat.indices)
    return Places(tuple(seat.axes), sizes_of(tensor), places).runs_along(axis)


def key_of(seat: Seat) -> object:
    """What seats in which the same is allowed have in common."""
    if isinstance(seat, Layout):
        return seat
    return seat.layout, seat.texts, len(seat.axes)


@dataclass(frozen=True, slots=True)
class Machine:
    """What a machine allows, and what was found out about it so far.

    Attributes:
        target: the machine.
        is_strict: whether factors stay in the order in which they are written where a rule wants
            that, and what only says where elements are under conditions is a formula like any
            other.
        is_lone: whether the host may bring inputs with one element to a stick.
        is_repeated: whether it may bring one in several layouts, where no copy leads to all.
        allowed: ways of operations, by what these compute and the seats around them.
        moved: costs of copies, by shape, type and seats.
        known: the layouts that it has for tensors, by shape and type.
    """

    target: Target
    is_strict: bool = True
    is_lone: bool = False
    is_repeated: bool = False
    allowed: dict[object, tuple[Way, ...]] = field(default_factory=dict)
    moved: dict[object, dict[tuple[int, int], float]] = field(default_factory=dict)
    known: dict[object, tuple[Layout, ...]] = field(default_factory=dict)

    @property
    def has_roles(self) -> bool:
        """Whether factors of products are taken in the order in which they are written."""
        return self.is_strict and has_roles(self.target)

    def ways(
        self, op: Operation, slots: Sequence[Slot], seats: Mapping[Tensor, Sequence[Seat]]
    ) -> tuple[Way, ...]:
        """The combinations that an operation allows, of the seats of what is around it.

        Raises:
            LayoutError: it cannot be decided.
        """
        around = (op.output(0), *dict.fromkeys(slot.tensor for slot in slots))
        key = definition_key([op], op.input_tensors), *(
            tuple(map(key_of, seats[x])) for x in around
        )
        if key not in self.allowed:
            assert isinstance(op, ComputeOp)
            self.allowed[key] = tuple(self._ways(op, slots, seats))
        return self.allowed[key]

    def _ways(
        self, op: ComputeOp, slots: Sequence[Slot], seats: Mapping[Tensor, Sequence[Seat]]
    ) -> list[Way]:
        with isl_work("layouts", LayoutError):
            try:
                return _combinations(op, slots, seats, self)
            except NotAffine as error:
                raise LayoutError(
                    f"layouts: `{error.args[0]}` in {op.name} or a layout of its operands is no "
                    "affine function, so lanes cannot be compared; write indices and conditions as "
                    "sums of axes times numbers, or build the operation alone with tecomp.build",
                    kind="demand",
                ) from None

    def prices(
        self, tensor: Tensor, sources: Sequence[Seat], results: Sequence[Layout]
    ) -> dict[tuple[int, int], float]:
        """The elements that copies move: from which source to which result there is one."""
        key = tensor.shape, tensor.dtype, tuple(map(key_of, sources)), tuple(results)
        if key not in self.moved:
            before = placeholder(tensor.shape, tensor.dtype, tensor.name)
            after = compute(tensor.shape, lambda *i: before[i if i else ()], name="copy")
            assert isinstance(after, Tensor)
            assert isinstance(after.op, ComputeOp)
            ways = self._ways(after.op, [Slot(before)], {after: results, before: sources})
            self.moved[key] = {
                (way.inputs[0], way.outs[0]): float(
                    places_written(sources[way.inputs[0]], results[way.outs[0]])
                )
                for way in ways
            }
        return self.moved[key]


def places_written(source: Seat, result: Layout) -> int:
    """The places that a copy writes: padding too if it is to hold something.

    Where elements stay where they are, padding is all that is written.
    """
    padding = 0 if result.pad_value is None else result.padding_count
    if isinstance(source, Layout) and texts_of(source) == texts_of(result):
        return padding
    return result.num_elements + padding


def _combinations(
    op: ComputeOp, slots: Sequence[Slot], seats: Mapping[Tensor, Sequence[Seat]], machine: Machine
) -> list[Way]:
    result, target = op.output(0), machine.target
    first = {x: plain_layout(x) for x in (result, *(slot.tensor for slot in slots))}
    base = computation(op, op.body[0], first)
    number = [next(k for k, s in enumerate(slots) if s.has(u.tensor, r.indices))
              for u, r in zip(base.inputs, loads_of(op.body[0]), strict=True)]  # fmt: skip
    # What is found out about a place is kept with it: each is made once for all combinations.
    read = [[[use.at(seat) for use, k in zip(base.inputs, number, strict=True) if k == n]
             for seat in seats[slot.tensor]] for n, slot in enumerate(slots)]  # fmt: skip
    found: dict[tuple[int, tuple[int, ...]], Way] = {}
    for each, turn in _readings(base, machine):
        cost = 0.0 if each.kind == base.kind else float(elements_of(result))
        for k, seat in enumerate(seats[result]):
            out = base.out.at(seat)
            alone = [
                [n for n, uses in enumerate(own) if _fit(each, out, uses, target)] for own in read
            ]
            for chosen in product(*alone):
                taken = [iter(own[n]) for own, n in zip(read, chosen, strict=True)]
                inputs = tuple(next(taken[n]) for n in number)[::turn]
                if (k, chosen) not in found and keeps_rules(
                    replace(each, inputs=inputs, out=out), target
                ):
                    found[k, chosen] = Way((k,), chosen, cost)
    return list(found.values())


def _readings(base: Computation, machine: Machine) -> list[tuple[Computation, int]]:
    """What rules may take an operation for, each with the order in which it reads its inputs.

    The first is what it is as it is written. A product is the same with its factors exchanged; and
    what only says where elements are, under conditions, is a copy that is made part by part.
    """
    found = [(base, 1)]
    if base.kind == "contraction" and not machine.has_roles:
        found.append((base, -1))
    if not machine.is_strict and base.kind == "elementwise" and only_moves(base.op.body[0]):
        found.append((replace(base, kind="copy"), 1))
    return found


def _fit(base: Computation, out: Use, uses: Sequence[Use], target: Target) -> bool:
    """Whether the result goes together with one input, read any number of times."""
    return all(
        keeps_rules(replace(base, inputs=(use,), out=out), target, is_alone=True) for use in uses
    )
