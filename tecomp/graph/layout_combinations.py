"""Enumerate the layout combinations that an operation supports, with their costs.

A value is stored in its own layout, or is a view of elements of another tensor. The operand
rules of the target apply to views as to layouts, based on the elements that the loops of the
reader access.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TypeAlias

from tecomp.compute.define import copy_of, placeholder
from tecomp.compute.extern import ExternOp
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.constraints.check import has_roles, rules_for, satisfies_constraints
from tecomp.constraints.operation_view import (
    AnalyzedOperation,
    IndirectAccess,
    OperandUse,
    computation,
    is_pure_movement,
    loads_of,
    texts_of,
)
from tecomp.errors import LayoutError
from tecomp.graph.definition_keys import definition_key
from tecomp.graph.sizes import elements_of, plain_layout, sizes_of
from tecomp.ir.nodes.expr import Expr, Var
from tecomp.ir.traversal.rewrite import free_variables, nodes_of, walk
from tecomp.layout.core.layout import Layout
from tecomp.layout.core.stick_layout import StickLayout
from tecomp.machine.descriptor import Target
from tecomp.poly.accesses.lane_access import LaneAddresses
from tecomp.poly.maps.index_map import IndexMap
from tecomp.poly.sets.isl_context import isl_work
from tecomp.poly.sets.to_isl import NotAffine

_MAX_SEPARATE_READS = 2
"""Up to this number of distinct reads of a tensor, each may use a layout of its own."""
_MAX_LAYOUTS = 4
"""Maximum number of layouts of one tensor per operation; each multiplies the combinations tried."""

Seat: TypeAlias = "Layout | IndirectAccess"
"""Candidate storage of a value: a layout or a view."""


@dataclass(frozen=True, slots=True)
class LayoutCombination:
    """A combination of layouts of results and operands that an operation supports.

    Attributes:
        outs: Candidate number of each result.
        inputs: Candidate number of each operand slot.
        cost: Number of elements moved only because of this combination.
        is_exchanged: Whether the factors of a product are exchanged, which decides ties only.
    """

    outs: tuple[int, ...]
    inputs: tuple[int, ...]
    cost: float = 0.0
    is_exchanged: bool = False


@dataclass(frozen=True, slots=True)
class OperandSlot:
    """Reads of a tensor by an operation that share one layout.

    Attributes:
        tensor: Tensor that is read.
        indices: Index expressions of the reads, as text; empty for all reads.
    """

    tensor: Tensor
    indices: frozenset[tuple[str, ...]] = frozenset()

    def has(self, tensor: Tensor, indices: Sequence[Expr]) -> bool:
        """Return whether a read belongs to the slot."""
        return tensor is self.tensor and (
            not self.indices or tuple(map(str, indices)) in self.indices
        )


def slots_of(
    op: Operation, known: Container[Tensor], *, is_opaque: bool
) -> tuple[OperandSlot, ...]:
    """Return the operand slots of an operation; an opaque one has one slot per tensor in `known`.

    Reads of one tensor may use different layouts of it, as in `X[i, k] * X[j, k]`. If there are
    many reads, as in a stencil, those that depend on the same loops share a layout. Tensors that
    occur only in indices may have any layout and have no slot.
    """
    if is_opaque or not isinstance(op, ComputeOp):
        return tuple(OperandSlot(x) for x in op.input_tensors if x in known)
    found: dict[Tensor, dict[tuple[str, ...], TensorLoad]] = {}
    for load in loads_of(op.body[0]):
        found.setdefault(load.tensor, {})[tuple(map(str, load.indices))] = load
    return tuple(OperandSlot(tensor, group) for tensor, reads in found.items() for group
        in _partition_reads(reads))


def _partition_reads(reads: Mapping[tuple[str, ...], TensorLoad]) -> list[
        frozenset[tuple[str, ...]]]:
    """Partition the reads of a tensor by shared layout; one empty set represents all reads."""
    groups: dict[object, list[tuple[str, ...]]] = {}
    for text, load in reads.items():
        loops = tuple(frozenset(free_variables(index)) for index in load.indices)
        groups.setdefault(loops if len(reads) > _MAX_SEPARATE_READS else text, []).append(text)
    return [frozenset(group) for group in groups.values()] if 1 < len(groups) <= _MAX_LAYOUTS else [
        frozenset()]


def is_layout_opaque(op: Operation) -> bool:
    """Return whether no operand rules describe the layouts in which an operation runs."""
    return (
        not isinstance(op, ComputeOp) or isinstance(op, ScanOp | ExternOp) or op.num_outputs > 1
    )


def view_of(op: Operation) -> TensorLoad | None:
    """Return the load of an operation that is a view, or None."""
    if is_layout_opaque(op) or not isinstance(op, ComputeOp):
        return None
    (load,) = op.body
    if not isinstance(load, TensorLoad):
        return None
    is_known = not any(isinstance(n, TensorLoad) for index in load.indices for n in walk(index))
    return load if is_known else None


def view_in_layout(op: Operation, load: TensorLoad, storage: Seat) -> IndirectAccess:
    """Return the view of a load, given the storage of the loaded tensor."""
    assert isinstance(op, ComputeOp)
    if isinstance(storage, IndirectAccess):
        return storage.of(op.axis, load.indices)
    return IndirectAccess(storage, op.axis, tuple(load.indices))


def is_same_place(view: IndirectAccess, layout: Layout) -> bool:
    """Return whether a view has the same element addresses as a layout."""
    used = {node for index in view.indices for node in nodes_of(Var, index)}
    if len(view.indices) != len(view.axes) or used != set(view.axes):
        return False
    if not all(isinstance(index, Var) for index in view.indices):
        return False
    if view.layout.storage != layout.storage or view.layout.pad_value != layout.pad_value:
        return False
    is_equal = view.texts == texts_of(layout)
    if is_equal or type(view.layout) is type(layout) is StickLayout:
        return is_equal and view.layout.physical_shape == layout.physical_shape
    composed = IndexMap(view.axes, view.indices, ()).then(view.layout.index_map)
    return composed.is_equivalent_to(layout.index_map, layout.shape)


def runs_along(view: Seat, tensor: Tensor, axis: int) -> bool:
    """Return whether an axis of a tensor runs along the lanes of its storage."""
    if isinstance(view, Layout):
        view = IndirectAccess(view, view.index_map.initial_indices, view.index_map.initial_indices)
    addresses = view.layout.index_map.at(view.indices)
    return LaneAddresses(tuple(view.axes), sizes_of(tensor), addresses).runs_along(axis)


def key_of(storage: Seat) -> object:
    """Return a key that is equal for candidates on which the same operations are possible."""
    if isinstance(storage, Layout):
        return storage
    return storage.layout, storage.texts, len(storage.axes)


@dataclass(frozen=True, slots=True)
class LayoutCapabilities:
    """Layout capabilities of a target, with caches of query results.

    Attributes:
        target: Target.
        is_strict: Whether the factor order of products is fixed where a rule distinguishes the
            factors, and guarded views count as element-wise operations.
        is_lone: Whether the host may supply inputs with one element per stick.
        is_repeated: Whether the host may supply an input in several layouts if no device copy
            produces all of them.
        allowed: Supported combinations, by definition and candidates.
        copy_costs: Costs of copies, by shape, dtype and candidates.
        known: Candidate layouts of the target, by shape and dtype.
    """

    target: Target
    is_strict: bool = True
    is_lone: bool = False
    is_repeated: bool = False
    allowed: dict[object, tuple[LayoutCombination, ...]] = field(default_factory=dict)
    copy_costs: dict[object, dict[tuple[int, int], float]] = field(default_factory=dict)
    known: dict[object, tuple[Layout, ...]] = field(default_factory=dict)

    def combinations(
        self, op: Operation, slots: Sequence[OperandSlot], storages: Mapping[Tensor, Sequence[Seat]]
    ) -> tuple[LayoutCombination, ...]:
        """Return the supported combinations of an operation for the given candidates.

        Raises:
            LayoutError: If the operation cannot be analyzed.
        """
        values = (op.output(0), *dict.fromkeys(slot.tensor for slot in slots))
        key = definition_key([op], op.input_tensors), *(
            tuple(map(key_of, storages[x])) for x in values
        )
        if key not in self.allowed:
            assert isinstance(op, ComputeOp)
            self.allowed[key] = tuple(self._ways(op, slots, storages))
        return self.allowed[key]

    def _ways(
        self, op: ComputeOp, slots: Sequence[OperandSlot], storages: Mapping[Tensor, Sequence[Seat]]
    ) -> list[LayoutCombination]:
        with isl_work("layouts", LayoutError):
            try:
                return _combinations(op, slots, storages, self)
            except NotAffine as error:
                raise LayoutError(
                    "layouts: `{reason}` in {op} or a layout of its operands is not affine, so "
                    "lanes cannot be compared; use sums of axes times constants in indices and "
                    "conditions, or build the operation alone with tecomp.build",
                    kind="layout-requirement", reason=error.args[0], op=op.name,
                ) from None

    def prices(
        self, tensor: Tensor, sources: Sequence[Seat], results: Sequence[Layout]
    ) -> dict[tuple[int, int], float]:
        """Return the elements moved by each feasible copy, by source and result number."""
        key = tensor.shape, tensor.dtype, tuple(map(key_of, sources)), tuple(results)
        if key not in self.copy_costs:
            before = placeholder(tensor.shape, tensor.dtype, tensor.name)
            after = copy_of(before)
            assert isinstance(after.op, ComputeOp)
            combos = self._ways(after.op, [OperandSlot(before)], {after: results, before: sources})
            self.copy_costs[key] = {
                (combo.inputs[0], combo.outs[0]): float(
                    written_elements(sources[combo.inputs[0]], results[combo.outs[0]])
                )
                for combo in combos
            }
        return self.copy_costs[key]


def written_elements(source: Seat, result: Layout) -> int:
    """Return the number of elements that a copy writes, including padding with a defined value.

    If all elements keep their addresses, only padding is written.
    """
    padding = 0 if result.pad_value is None else result.padding_count
    if isinstance(source, Layout) and texts_of(source) == texts_of(result):
        return padding
    return result.num_elements + padding


def _combinations(
    op: ComputeOp, slots: Sequence[OperandSlot], storages: Mapping[Tensor, Sequence[Seat]],
    machine: LayoutCapabilities
) -> list[LayoutCombination]:
    result, target = op.output(0), machine.target
    first = {x: plain_layout(x) for x in (result, *(slot.tensor for slot in slots))}
    base = computation(op, op.body[0], first)
    number = [next(k for k, s in enumerate(slots) if s.has(u.tensor, r.indices))
              for u, r in zip(base.inputs, loads_of(op.body[0]), strict=True)]  # fmt: skip
    # Uses cache query results, so each is created once for all combinations.
    read = [[[use.at(storage) for use, k in zip(base.inputs, number, strict=True) if k == n]
             for storage in storages[slot.tensor]] for n, slot in enumerate(slots)]  # fmt: skip
    found: dict[tuple[int, tuple[int, ...]], LayoutCombination] = {}
    for form, step in _readings(base, machine):
        cost = 0.0 if form.kind == base.kind else float(elements_of(result))
        for k, storage in enumerate(storages[result]):
            out = base.out.at(storage)
            compatible = [
                [n for n, uses in enumerate(row) if _fit(form, out, uses, target)] for row in read
            ]
            for chosen in product(*compatible):
                iterators = [iter(row[n]) for row, n in zip(read, chosen, strict=True)]
                inputs = tuple(next(iterators[n]) for n in number)[::step]
                if (k, chosen) not in found and satisfies_constraints(
                    replace(form, inputs=inputs, out=out), target
                ):
                    found[k, chosen] = LayoutCombination((k,), chosen, cost, step < 0)
    return list(found.values())


def _readings(base: AnalyzedOperation, machine: LayoutCapabilities) -> list[
        tuple[AnalyzedOperation, int]]:
    """Return the interpretations of an operation under the rules, each with its operand order.

    The first is the operation as written. A product also permits exchanged factors, and a guarded
    view also counts as a copy that is made part by part.
    """
    found = [(base, 1)]
    is_ordered = machine.is_strict and has_roles(rules_for(base, machine.target))
    if base.kind == "contraction" and not is_ordered:
        found.append((base, -1))
    if not machine.is_strict and base.kind == "elementwise" and is_pure_movement(base.op.body[0]):
        found.append((replace(base, kind="copy"), 1))
    return found


def _fit(
    base: AnalyzedOperation, out: OperandUse, uses: Sequence[OperandUse], target: Target
) -> bool:
    """Return whether the result layout is compatible with an operand, for all its uses."""
    return all(
        satisfies_constraints(replace(base, inputs=(use,), out=out), target, is_alone=True) for use
        in uses
    )
