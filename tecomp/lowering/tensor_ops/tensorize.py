"""Replace loops by tensor intrinsics: bind operands and handle tails.

Iteration domains and accesses are integer sets and relations. An intrinsic replaces loops if its
axes cover the same points, and if the accessed element of each operand is a function of the operand
indices at all points. This function covers offsets, strides, permuted and fused axes and layouts;
the statements of the intrinsic are rewritten with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import NoReturn, TypeAlias

from tecomp.compute.iter_var import IterVar
from tecomp.compute.tensor import TensorLoad
from tecomp.compute.tensor_compute import TensorComputeOp
from tecomp.compute.tensor_intrin import TensorIntrin, length
from tecomp.errors import LowerError
from tecomp.ir.nodes.expr import Expr, Var, index_value
from tecomp.ir.nodes.stmt import IfThenElse, Stmt, seq
from tecomp.ir.traversal.rewrite import substitute
from tecomp.lowering.stages.definition import Definition
from tecomp.lowering.stages.edge_tiles import Memory
from tecomp.lowering.stages.index_expressions import index_of, value_of
from tecomp.lowering.stages.program import PreparedSchedule
from tecomp.lowering.tensor_ops.pattern_match import (
    BoundOperands,
    IntrinsicMatch,
    Masks,
    SharedDigit,
    bind_statement,
    correspondences,
    intrinsic_loads,
    operation,
    pairings,
    uses_axes,
)
from tecomp.lowering.tensor_ops.tail_handling import can_overcompute, masks_of
from tecomp.poly.accesses.tiles import (
    IterationTile,
    OperandAccess,
    TileDigit,
    clash,
    digits_of,
    tile_of,
    values_at,
)
from tecomp.poly.loops.box_loops import corner
from tecomp.poly.loops.regions import LoopScope, first_dims
from tecomp.poly.sets.to_isl import NotAffine, Points, Space, pw_aff
from tecomp.scheduling.state import StageState, is_reduction

Put: TypeAlias = "Callable[[Stmt, TensorIntrin, BoundOperands, Masks], Stmt]"


@dataclass(frozen=True)
class Tensorizer:
    """Tensor intrinsic that replaces the inner loops of a stage.

    Attributes:
        program: Program with all definitions.
        definition: Definition of the stage.
        intrin: Tensor intrinsic.
        position: Number of loops around the intrinsic.
        digits: Extents and strides of each data and reduction axis in the replaced loops.
        memory: Elements that are backed by memory, for each tensor in scope.
    """

    program: PreparedSchedule
    definition: Definition
    intrin: TensorIntrin
    position: int
    digits: tuple[tuple[TileDigit, ...], ...] = ()
    memory: Memory = field(default_factory=dict)

    @property
    def where(self) -> str:
        """Text of the `tensorize` call, for error messages."""
        stage = self.definition.stage
        return f"s[{stage.name}].tensorize({stage.leaves[self.position].name}, {self.intrin.name})"

    def measured(self, points: Points, scope: LoopScope) -> Tensorizer:
        """Return this tensorizer with the digits of the loops that visit `points`.

        Raises:
            LowerError: If the points are not a tile of constant shape.
        """
        axes = (*self.definition.axis, *self.definition.reduce_axis)
        digits = digits_of(points, corner(points, scope), axes, scope)
        if digits is None:
            raise LowerError(
                "{where}: the iterations of these loops are not a tile of constant shape; split "
                "the axes by constants first",
                kind="tensorize", where=self.where,
            )
        return replace(self, digits=tuple(map(tuple, digits)))

    def not_affine(self) -> LowerError:
        """Return the error for loops that are not affine functions of the axes."""
        return LowerError(
            "{where}: the loops are not affine functions of the axes; fuse only axes of constant "
            "extent",
            kind="tensorize", where=self.where,
        )

    def computed(self, points: Points, scope: LoopScope, *, accumulates: bool) -> Stmt:
        """Return the statements that compute or accumulate the values at `points`.

        Args:
            points: Points of the data and reduction axes.
            scope: Parameters of the sets: sizes and enclosing loops.
            accumulates: Whether to add to existing values instead of storing new values.

        Raises:
            LowerError: If the loops do not compute the same as the intrinsic.
        """
        intrin = self.intrin
        if accumulates or intrin.body is None:
            if intrin.update is None:
                raise LowerError(
                    "{where}: a reduction loop is outside, but {intrin} has no update; return "
                    "(body, reset, update) from fcompute, or reorder",
                    kind="tensorize", where=self.where, intrin=intrin.name,
                )
            statement = intrin.update
        else:
            statement = intrin.body
        bound = self._place(points, scope)
        result = self._with_tail(statement, bound, operation)
        if not accumulates and intrin.body is None:
            return seq(self.started(self._data_points(points), scope), result)
        return result

    def started(self, points: Points, scope: LoopScope) -> Stmt:
        """Return the statements that initialize the reduction for the elements `points`."""
        assert self.intrin.reset is not None
        found = next(self._tiles(points, self.definition.axis, scope), None)
        if found is None:
            raise self._refused_axes()
        bound = BoundOperands(
            found, (*self._unused(), self._output(found)),
            (*self.intrin.buffers[:-1], self.definition.buffers[0]), (), (),
            (*(True for _ in self.intrin.inputs), _is_in_rows(self.definition.stage)),
        )
        return self._with_tail(self.intrin.reset, bound, bind_statement)

    def _unused(self) -> tuple[OperandAccess, ...]:
        return tuple(OperandAccess((), ()) for _ in self.intrin.inputs)

    def _data_points(self, points: Points) -> Points:
        count = len(self.definition.axis)
        return first_dims(points, count)

    def _with_tail(self, statement: Stmt, bound: BoundOperands, bind: Put) -> Stmt:
        full = bind(statement, self.intrin, bound, {})
        if bound.tile.is_full():
            return full
        context = bound.tile, bound.accesses, bound.loads, self.memory
        if can_overcompute(self.program, self.definition, self.intrin, *context):
            return full
        masks = masks_of(self.program, self.definition, self.intrin, self.where, *context)
        part = bind(statement, self.intrin, bound, masks)
        if bound.tile.is_never_full():
            return part
        return IfThenElse(bound.tile.full_condition(), full, part)

    def _place(self, points: Points, scope: LoopScope) -> BoundOperands:
        """Return the operands of the first correspondence that is valid for every operand."""
        found = self._pairings()
        axes = (*self.definition.axis, *self.definition.reduce_axis)
        problem: LowerError | None = None
        for tile in self._tiles(points, axes, scope):
            for pairing in found:
                bound = self._operands(tile, pairing)
                error = self._clash(bound, pairing)
                if error is None:
                    self._check_scopes(pairing)
                    return bound
                problem = problem or error
        raise problem or self._refused_axes()

    def _check_indices(self, pairing: IntrinsicMatch) -> None:
        axes = (*self.definition.axis, *self.definition.reduce_axis)
        space = Space(axes, self.program.integers)
        for load in pairing.loads:
            for index in load.indices:
                try:
                    pw_aff(index_of(index, {}), space)
                except NotAffine:
                    raise LowerError(
                        "{where}: index {index} of {load} is not an affine function of the axes; "
                        "tensorize stages whose indices are affine",
                        kind="tensorize", where=self.where, index=index, load=load,
                    ) from None

    def _pairings(self) -> list[IntrinsicMatch]:
        op = self.definition.stage.op
        if isinstance(op, TensorComputeOp):
            return [self._called(op)]
        reduce = self.definition.reduce
        name = self.intrin.name
        if (axis := uses_axes(self.definition.body[0])) is not None:
            raise LowerError(
                "{where}: {stage} uses the value of axis {axis} itself, which is not an operand of "
                "{name}",
                kind="tensorize", where=self.where, stage=self.definition.stage.name,
                axis=axis.name, name=name,
            )
        if reduce is not None and getattr(reduce.condition, "value", None) is not True:
            raise LowerError(
                "{where}: the reduction has where={condition}, but {name} reduces over the whole "
                "tile; mask the operand in a separate stage",
                kind="tensorize", where=self.where, condition=reduce.condition, name=name,
            )
        found = list(pairings(self.definition.body[0], self.intrin))
        if not found:
            raise LowerError(
                "{where}: the loops compute\n    {body}\nbut {name} computes\n    "
                "{intrin_body}\nwhich differs in more than the order of operands; use an "
                "intrinsic with the same reduction and operations",
                kind="tensorize", where=self.where, body=self.definition.body[0], name=name,
                intrin_body=self.intrin.op.body[0],
            )
        self._check_indices(found[0])
        return found

    def _called(self, op: TensorComputeOp) -> IntrinsicMatch:
        """Return the operands of an explicit call of the intrinsic."""
        sizes = dict(self.program.sizes)
        operands = (substitute(value, sizes) for value in op.operands)
        loads = tuple(value for value in operands if isinstance(value, TensorLoad))
        pairing = IntrinsicMatch(loads, tuple(substitute(value, sizes) for value in op.scalars))
        self._check_indices(pairing)
        return pairing

    def _tiles(
        self, points: Points, axes: Sequence[IterVar], scope: LoopScope
    ) -> Iterator[IterationTile]:
        """Yield the tiles in which the intrinsic axes cover `points`."""
        starts = corner(points, scope)
        op = self.intrin.op
        n_data = len(self.definition.axis)
        reduced = op.reduce_axis if len(axes) > n_data or not op.reduce_axis else ()
        for lines in self._widened(axes):
            data = [digit for line in lines[:n_data] for digit in line]
            reduce_digits = [digit for line in lines[n_data:] for digit in line]
            for first, second in product(
                correspondences(op.axis, data), correspondences(reduced, reduce_digits)
            ):
                coordinates = _places(starts, (*first, *second))
                all_axes = (*op.axis, *reduced)
                extents = [length(axis) for axis in all_axes]
                tile = tile_of(points, coordinates, all_axes, extents, scope)
                if tile.holds(points):
                    yield tile

    def _widened(self, axes: Sequence[IterVar]) -> Iterator[tuple[tuple[TileDigit, ...], ...]]:
        """Return combinations of digits; axes shorter than a tile are also widened to the tile."""
        options = []
        for k, (line, axis) in enumerate(zip(self.digits, axes, strict=False)):
            intrin_axes = self.intrin.op.reduce_axis if is_reduction(axis) else self.intrin.op.axis
            count = prod(digit.extent for digit in line)
            extent = self.program.extent(axis.extent)
            is_whole = isinstance(extent, int) and count == extent
            longer = sorted({length(other) for other in intrin_axes} - {*range(count + 1)})
            options.append([line, *((TileDigit(k, 1, n),) for n in longer if is_whole)])
        return product(*options)

    def _operands(self, tile: IterationTile, pairing: IntrinsicMatch) -> BoundOperands:
        roots = dict(zip(
            (*self.definition.axis, *self.definition.reduce_axis), tile.coordinates, strict=True
        ))
        accesses = []
        for slot, load in zip(intrinsic_loads(self.intrin), pairing.loads, strict=True):
            indices = tuple(index_of(index, roots) for index in load.indices)
            accesses.append(OperandAccess(tuple(index_of(i, {}) for i in slot.indices), indices))
        buffers = [self.program.buffer_of(load.tensor) for load in pairing.loads]
        stages = [*(self.program.state.stage(load.tensor.op) for load in pairing.loads),
                  self.definition.stage]  # fmt: skip
        scalars = tuple(value_of(value, roots, _no_read) for value in pairing.scalars)
        return BoundOperands(
            tile, (*accesses, self._output(tile)), (*buffers, self.definition.buffers[0]),
            scalars, pairing.loads, tuple(map(_is_in_rows, stages)),
        )

    def _output(self, tile: IterationTile) -> OperandAccess:
        indices = tuple(index_value(axis) for axis in self.intrin.op.axis)
        return OperandAccess(indices, tile.coordinates[: len(self.definition.axis)])

    def _clash(self, bound: BoundOperands, pairing: IntrinsicMatch) -> LowerError | None:
        """Return an error with two points if an operand is not a function of its indices."""
        for operand, load, access in zip(
            intrinsic_loads(self.intrin), pairing.loads, bound.accesses, strict=False
        ):
            pair = clash(access, bound.tile)
            if pair is None:
                continue
            element = values_at(access.operand_indices, bound.tile.space, pair[0])
            first, second = (values_at(access.tensor_indices, bound.tile.space, p) for p in pair)
            return LowerError(
                "{where}: operand {tensor} of {intrin} would be {load}, but its element {element} "
                "is {tensor_name}{first} at {pair} and {tensor_name}{second} at {point_of_pair}; "
                "an element that the intrinsic reads once must be a single element in the loops",
                kind="tensorize", where=self.where, tensor=operand.tensor.name,
                intrin=self.intrin.name, load=load, element=_text(element),
                tensor_name=load.tensor.name, first=_text(first), pair=_point(pair[0]),
                second=_text(second), point_of_pair=_point(pair[1]),
            )
        return None

    def _check_scopes(self, pairing: IntrinsicMatch) -> None:
        tensors = (*(load.tensor for load in pairing.loads), self.definition.stage.op.output(0))
        for tensor, buffer, scope in zip(
            tensors, self.intrin.buffers, self.intrin.scopes, strict=True
        ):
            actual = self.program.state.stage(tensor.op).scope
            if scope and scope != actual:
                raise LowerError(
                    "{where}: operand {buffer} must be in memory {scope}, but {tensor} is in "
                    '{here}; copy it with s.cache_read({tensor}, "{scope}", ...), or '
                    'set_scope("{scope}")',
                    kind="tensorize", where=self.where, buffer=buffer.name, scope=scope,
                    tensor=tensor.name, here=actual,
                )

    def _refused_axes(self) -> LowerError:
        axes = (*self.definition.axis, *self.definition.reduce_axis)
        loop_texts = [_shape_text(axis, line) for axis, line in zip(axes, self.digits, strict=True)]
        intrin_axes = (*self.intrin.op.axis, *self.intrin.op.reduce_axis)
        intrin_texts = [f"{axis.name}: {axis.extent}" for axis in intrin_axes]
        return LowerError(
            "{where}: these loops have extents {ours}, but {intrin} has {intrin_extents}; split "
            "and reorder so that the inner data and reduction axes have the same extents",
            kind="tensorize", where=self.where, ours=", ".join(loop_texts), intrin=self.intrin.name,
            intrin_extents=", ".join(intrin_texts),
        )


def _no_read(load: TensorLoad, indices: tuple[Expr, ...]) -> NoReturn:
    raise AssertionError(f"{load} is a number of a call")


def _is_in_rows(stage: StageState) -> bool:
    layout = stage.layout
    return not (layout.maps or layout.axis_separators or stage.aligns or stage.is_rolling)


def tensorizer(program: PreparedSchedule, definition: Definition) -> Tensorizer | None:
    """Return the tensorizer of a stage, or None if the stage is not tensorized.

    Raises:
        LowerError: If the tensorized loop no longer exists, or if a replaced loop is marked, bound
            or has an attached stage.
    """
    stage = definition.stage
    if stage.tensorized is None:
        return None
    axis, intrin = stage.tensorized.axis, stage.tensorized.intrin
    where = f"s[{stage.name}].tensorize({axis.name}, {intrin.name})"
    position = next((k for k, leaf in enumerate(stage.leaves) if leaf is axis), None)
    if position is None:
        names = ", ".join(leaf.name for leaf in stage.leaves)
        raise LowerError(
            "{where}: {axis} is no longer a loop of {stage}; its loops are {names}; call tensorize "
            "after split and fuse",
            kind="unknown-loop", where=where, axis=axis.name, stage=stage.name, names=names,
        )
    inside = stage.leaves[position:]
    for leaf in inside:
        if leaf in stage.marks or leaf in stage.threads:
            call = stage.marks[leaf].name.lower() if leaf in stage.marks else "bound"
            raise LowerError(
                "{where}: the inner loop {leaf} is marked {call}, but is replaced by {intrin}; "
                "mark only loops outside of it",
                kind="tensorize", where=where, leaf=leaf.name, call=call, intrin=intrin.name,
            )
    for leaf, producer in program.attached(stage.key):
        if any(leaf is other for other in inside):
            raise LowerError(
                "{where}: {stage} is computed at {leaf}, a loop that is replaced by {intrin}; "
                "compute it at an outer loop",
                kind="tensorize", where=where, stage=producer.stage.name, leaf=leaf.name,
                intrin=intrin.name,
            )
    return Tensorizer(program, definition, intrin, position)


def _places(starts: Sequence[Expr], pieces: Sequence[SharedDigit]) -> list[Expr]:
    """Return the value of each program dimension in terms of the intrinsic axes."""
    coordinates = list(starts)
    for piece in pieces:
        value = index_value(piece.var)
        if piece.weight > 1:
            value = value // piece.weight
        if piece.weight * piece.extent < length(piece.var):
            value = value % piece.extent
        coordinates[piece.axis] = coordinates[piece.axis] + value * piece.stride
    return coordinates


def _text(index: Sequence[int]) -> str:
    return f"[{', '.join(map(str, index)) or '()'}]"


def _point(point: Mapping[Var, int]) -> str:
    return "(" + ", ".join(f"{var.name}={value}" for var, value in point.items()) + ")"


def _shape_text(axis: IterVar, digits: Sequence[TileDigit]) -> str:
    steps = [f"{d.extent} in steps of {d.stride}" if d.stride > 1 else str(d.extent)
             for d in reversed(digits)]  # fmt: skip
    return f"{axis.name}: {' by '.join(steps) or 1}"
