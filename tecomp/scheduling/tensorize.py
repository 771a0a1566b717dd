"""Primitives that use instructions on tensors and vectors: tensorize, into_dots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tecomp.compute.define import compute
from tecomp.compute.intrinsics import concat_vectors, dot, reinterpret
from tecomp.compute.iter_var import IterKind, IterVar, make_axis
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.reduce import Reduce
from tecomp.compute.reduce import sum as sum_of
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.compute.tensor_intrin_call import TensorIntrin, fits, with_sizes
from tecomp.errors import ScheduleError, safe_str
from tecomp.ir.arith.extents import ceil_div
from tecomp.ir.nodes.dtype import DType, represents_all
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Cast,
    Const,
    Expr,
    Var,
    binary,
    cast,
    const,
    if_then_else,
    is_const,
)
from tecomp.ir.nodes.operators import dot_type
from tecomp.ir.traversal.rewrite import substitute, walk
from tecomp.scheduling.cache_stages import with_body
from tecomp.scheduling.compute_location import check_loops
from tecomp.scheduling.state import (
    Inline,
    ScheduleState,
    StageState,
    Tensorized,
    drop_annotations,
    initial_stage,
    is_data,
    is_reduction,
    leaf_position,
)

_HOLDERS = {
    "int8": ("int8", "uint8", "int16"), "uint8": ("uint8", "int8", "int16"), "int16": ("int16",),
    "bfloat16": ("bfloat16",),
}
"""For each dtype of a factor, the scalar dtypes that can hold its values. The 8-bit dtype of the
other signedness can, with a bias of 128."""
_MOVED = -2139062144  # 0x80808080 as int32: 128 in each of the four bytes, which is -128 as int8


@dataclass(frozen=True, slots=True)
class _Factor:
    """Factor of the products.

    Attributes:
        load: Load of the multiplied element.
        dim: Position of the reduction axis in the indices of the load.
        kind: Vector dtype into which the factor is packed.
    """

    load: TensorLoad
    dim: int
    kind: DType

    @property
    def is_moved(self) -> bool:
        """Whether the factor is biased by 128 because `kind` has the other signedness."""
        source_type, packed_type = self.load.dtype, self.kind.scalar
        return source_type.bits == packed_type.bits and source_type.kind != packed_type.kind


def into_dots(
    state: ScheduleState, tensor: Tensor, axis: IterVar, first: str, second: str
) -> tuple[ScheduleState, tuple[Tensor, ...]]:
    """Group adjacent terms of a sum of products into `te.dot` of 32-bit vectors.

    See `Schedule.into_dots`.

    Returns:
        The new state, and a tuple: the sum of dot products, the left and right tensor of words, and
        the bias correction if there is one.
    """
    stage = state.stage(tensor.op)
    where = f"s.into_dots({stage.name}, {safe_str(getattr(axis, 'name', axis))})"
    reduce = _checked_sum(stage, axis, where)
    factors = _factors(state, reduce, axis, (first, second), where)
    sums = _DotSums(stage, reduce, axis, factors, tuple(_words(factor, axis) for factor in factors))
    created = [*sums.words, sums.of_dots()]
    value: Expr = TensorLoad(created[-1], stage.compute.axis, stage.compute.location)
    if any(factor.is_moved for factor in factors):
        total, data_axes = sums.of_what_is_moved()
        created.append(total)
        value = binary(BinOp.SUB, value, TensorLoad(total, data_axes, stage.compute.location))
    for t in created:
        state = state.insert(initial_stage(t.op, is_output=False), before=stage.key)
    leaves = tuple(leaf for leaf in stage.leaves if not is_reduction(leaf))
    final = drop_annotations(replace(stage, leaves=leaves), *reduce.axis)
    left, right, dots, *extra = created
    return state.redefine(final, with_body(stage.compute, (value,))), (dots, left, right, *extra)


@dataclass(frozen=True)
class _DotSums:
    """Builder of the sums that replace one sum of products.

    Attributes:
        stage: Stage of the original sum.
        reduce: Original sum.
        axis: Reduction axis along which terms are grouped.
        factors: Both factors of a term.
        words: Tensors of packed words, one per factor.
    """

    stage: StageState
    reduce: Reduce
    axis: IterVar
    factors: tuple[_Factor, _Factor]
    words: tuple[Tensor, ...]

    def of_dots(self) -> Tensor:
        """Return the sum of the dot products of packed words."""
        op = self.stage.compute
        axes = _fresh((*op.axis, *self.reduce.axis), self.axis, self.factors[0].kind.lanes)
        data_axes = tuple(axes[axis] for axis in op.axis)
        body = (self._products(axes, (None, None)),)
        name = f"{self.stage.name}_dots"
        return ComputeOp(name, data_axes, body, op.tag, op.attrs, op.location).output(0)

    def of_what_is_moved(self) -> tuple[Tensor, tuple[IterVar, ...]]:
        """Return the correction for the biased factor, and the data axes that it depends on."""
        op = self.stage.compute
        biased = next(k for k in (0, 1) if self.factors[k].is_moved)
        other = self.factors[1 - biased]
        used = {node for index in other.load.indices for node in walk(index)}
        data_axes = tuple(axis for axis in op.axis if axis in used)
        axes = _fresh((*data_axes, *self.reduce.axis), self.axis, other.kind.lanes)
        constant = const(_MOVED, "int32")
        pair = (constant, None) if biased == 0 else (None, constant)
        body = (self._products(axes, pair),)
        new_axes = tuple(axes[axis] for axis in data_axes)
        name = f"{self.stage.name}_moved"
        return ComputeOp(name, new_axes, body, location=op.location).output(0), data_axes

    def _products(
        self, axes: Mapping[IterVar, IterVar], pair: Sequence[Expr | None]
    ) -> Expr:
        """Return the sum of dot products over `axes`; entries of `pair` replace factors."""
        terms = [
            reinterpret(str(f.kind), _read(f, word, self.axis, axes) if entry is None else entry)
            for f, word, entry in zip(self.factors, self.words, pair, strict=True)
        ]
        return sum_of(dot(*terms), axis=[axes[axis] for axis in self.reduce.axis])


def _fresh(axes: Sequence[IterVar], group_axis: IterVar, group: int) -> dict[IterVar, IterVar]:
    """Return fresh axes for a new stage; the extent of `group_axis` is divided by `group`."""
    return {
        axis: make_axis(axis.name, 0, ceil_div(axis.extent, group), IterKind.REDUCE)
        if axis is group_axis else IterVar(axis.name, dom=axis.dom, kind=axis.kind)
        for axis in axes
    }


def _read(
    factor: _Factor, word: Tensor, group_axis: IterVar, axes: Mapping[IterVar, IterVar]
) -> Expr:
    """Return the load of the packed word of a factor, at the given axes."""
    indices = list(factor.load.indices)
    indices[factor.dim] = group_axis
    mapping: dict[Var, Expr] = {old: new for old, new in axes.items()}
    return TensorLoad(word, tuple(substitute(index, mapping) for index in indices),
                      factor.load.location)


def _checked_sum(stage: StageState, axis: IterVar, where: str) -> Reduce:
    """Return the sum that a stage computes, if `axis` is an unmodified reduction axis from 0.

    Raises:
        ScheduleError: If the stage is not a `te.sum` without `where=` and `init=`, `axis` is not
            one of its reduction axes or does not start at 0, or a reduction axis was split or
            fused.
    """
    check_loops(stage, where)
    reduce = stage.compute.body[0]
    if not isinstance(reduce, Reduce) or not _is_plain_sum(reduce):
        raise ScheduleError(
            "{where}: {stage} is not a te.sum without where= and init=; only such sums can be "
            "converted to dot products",
            kind="pattern-mismatch", where=where, stage=stage.name,
        )
    if not any(axis is a for a in reduce.axis) or not is_const(axis.dom.min, 0):
        axes = ", ".join(a.name for a in reduce.axis)
        raise ScheduleError(
            "{where}: expected a reduction axis that starts at 0; {stage} reduces over {axes}",
            kind="unknown-loop", where=where, stage=stage.name, axes=axes,
        )
    if missing := [a.name for a in reduce.axis if a not in set(stage.leaves)]:
        raise ScheduleError(
            "{where}: reduction axis {missing} was already split or fused; call into_dots first "
            "and split the axes of the sum that it returns",
            kind="primitive-order", where=where, missing=missing[0],
        )
    return reduce


def _is_plain_sum(reduce: Reduce) -> bool:
    (result, *others), lhs, rhs = reduce.combiner.result, reduce.combiner.lhs, reduce.combiner.rhs
    is_sum = not others and isinstance(result, Binary) and result.op is BinOp.ADD and {
        result.a, result.b} == {lhs[0], rhs[0]}
    condition = reduce.condition
    unconditional = isinstance(condition, Const) and condition.value is True
    return is_sum and unconditional and not reduce.init


def _factors(
    state: ScheduleState, reduce: Reduce, axis: IterVar, types: tuple[str, str], where: str
) -> tuple[_Factor, _Factor]:
    """Return both factors of the products after a check of their dtypes and of the sum's dtype.

    Raises:
        ScheduleError: If the terms are not products, `te.dot` of the dtypes does not give the dtype
            of the sum, or both factors would be biased.
    """
    source = reduce.source[0]
    if not isinstance(source, Binary) or source.op is not BinOp.MUL:
        raise ScheduleError(
            "{where}: `{source}` is not a product of two elements",
            kind="pattern-mismatch", where=where, source=source,
        )
    found = [
        _factor(_element(state, operand), axis, kind, where)
        for operand, kind in zip((source.a, source.b), types, strict=True)
    ]
    first, second = found
    if dot_type(first.kind, second.kind) != source.dtype:
        raise ScheduleError(
            "{where}: te.dot of {first_dtype} and {second_dtype} does not return {dtype}, the "
            "dtype of the sum",
            kind="pattern-mismatch", where=where, first_dtype=first.kind, second_dtype=second.kind,
            dtype=source.dtype,
        )
    if first.is_moved and second.is_moved:
        raise ScheduleError(
            "{where}: {first_dtype} and {second_dtype} would bias both factors by 128; use the "
            "original dtype for one of them",
            kind="pattern-mismatch", where=where, first_dtype=first.kind, second_dtype=second.kind,
        )
    return first, second


def _element(state: ScheduleState, value: Expr) -> Expr:
    """Return the element that a factor reads, without lossless casts and through inlined stages."""
    if isinstance(value, Cast):
        element = _element(state, value.value)
        return element if represents_all(value.dtype, element.dtype) else value
    stage = state.find(value.tensor.op) if isinstance(value, TensorLoad) else None
    if stage is None or not isinstance(stage.attach, Inline):
        return value
    assert isinstance(value, TensorLoad)
    (body, *others) = stage.compute.body
    mapping: dict[Var, Expr] = dict(zip(stage.compute.axis, value.indices, strict=True))
    element = _element(state, substitute(body, mapping))
    return element if not others and isinstance(element, TensorLoad) else value


def _factor(value: Expr, axis: IterVar, kind: str, where: str) -> _Factor:
    if isinstance(value, Cast) and isinstance(value.value, TensorLoad):
        raise ScheduleError(
            "{where}: `{value}` is a lossy cast from {dtype}; compute the cast in a separate "
            "stage, and multiply that stage",
            kind="pattern-mismatch", where=where, value=value, dtype=value.value.dtype,
        )
    if not isinstance(value, TensorLoad):
        raise ScheduleError(
            "{where}: `{value}` is not an element of a tensor",
            kind="pattern-mismatch", where=where, value=value,
        )
    dtype, packed = value.dtype, DType(kind)
    group = 32 // packed.bits
    if str(packed.scalar) not in _HOLDERS.get(str(dtype), ()) or packed.lanes != group:
        raise ScheduleError(
            "{where}: {vector_dtype} is not a 32-bit vector dtype that can hold {tensor}, which "
            "is {dtype}",
            kind="pattern-mismatch", where=where, vector_dtype=kind, tensor=value.tensor.name,
            dtype=dtype,
        )
    dims = [k for k, index in enumerate(value.indices) if index is axis]
    used = [k for k, index in enumerate(value.indices) if any(n is axis for n in walk(index))]
    if len(dims) != 1 or used != dims:
        raise ScheduleError(
            "{where}: {axis} must be exactly one index of `{value}` and not part of another",
            kind="pattern-mismatch", where=where, axis=axis.name, value=value,
        )
    return _Factor(value, dims[0], packed)


def _words(factor: _Factor, axis: IterVar) -> Tensor:
    """Return the tensor of int32 words that pack adjacent elements along `axis`, lowest first.

    Lanes past the end of the axis are zero.
    """
    source, dim, group = factor.load.tensor, factor.dim, factor.kind.lanes
    shape = list(source.shape)
    shape[dim] = ceil_div(axis.extent, group)

    def word(*axes: IterVar) -> Expr:
        numbers: list[Expr] = []
        for k in range(group):
            index: list[Expr] = list(axes)
            index[dim] = axes[dim] * group + k
            number = _cast_to_lane(factor, source(*index))
            if k and not is_const(axis.extent % group, 0):
                number = if_then_else(index[dim] < axis.extent, number, const(0, number.dtype))
            numbers.append(number)
        packed = reinterpret("int32", concat_vectors(numbers))
        return packed ^ const(_MOVED, "int32") if factor.is_moved else packed

    return compute(tuple(shape), word, name=f"{source.name}_dots")


def _cast_to_lane(factor: _Factor, value: Expr) -> Expr:
    """Return an element in an integer dtype of the lane width, cast if its width differs."""
    bits = factor.kind.bits
    return value if value.dtype.bits == bits else cast(f"int{bits}", value)


def tensorize(
    state: ScheduleState, key: Operation, axis: IterVar, intrin: TensorIntrin
) -> tuple[ScheduleState, None]:
    """Replace a loop and everything inside it by a tensor intrinsic; see `Stage.tensorize`."""
    stage = state.stage(key)
    leaf_position(stage, axis, "tensorize")
    where = f"s[{stage.name}].tensorize({axis.name})"
    if not isinstance(intrin, TensorIntrin):
        raise ScheduleError(
            "{where}: expected an intrinsic of te.decl_tensor_intrin, got {intrin!r}",
            kind="invalid-type", where=where, intrin=intrin,
        )
    if isinstance(stage.op, ScanOp):
        raise ScheduleError(
            "{where}: {stage} is a scan and cannot be tensorized; tensorize a stage that its steps "
            "are computed from",
            kind="pattern-mismatch", where=where, stage=stage.name,
        )
    check_loops(stage, where)
    if stage.tensorized is not None and stage.tensorized.axis is not axis:
        raise ScheduleError(
            "{where}: {stage} is already tensorized at {axis}; a stage can be tensorized only "
            "once, at one loop",
            kind="primitive-order", where=where, stage=stage.name, axis=stage.tensorized.axis.name,
        )
    found, known = stage.compute.dtypes, intrin.op.dtypes
    if found != known:
        raise ScheduleError(
            "{where}: {stage} has dtype {found}, but {intrin} computes {known}",
            kind="tensorize", where=where, stage=stage.name, found=", ".join(found),
            intrin=intrin.name, known=", ".join(known),
        )
    sized = _bind_extents(stage, axis, intrin, where)
    return state.update(replace(stage, tensorized=Tensorized(axis, sized))), None


def _bind_extents(
    stage: StageState, axis: IterVar, intrin: TensorIntrin, where: str
) -> TensorIntrin:
    """Return the intrinsic with its symbolic extents bound to the extents of the replaced loops.

    Raises:
        ScheduleError: If the loops do not determine the extents of the intrinsic.
    """
    if not intrin.sizes:
        return intrin
    inner = stage.leaves[leaf_position(stage, axis, "tensorize"):]
    sizes: dict[Var, int] = {}
    for axes, loops in (
        (intrin.op.axis, [leaf for leaf in inner if is_data(leaf)]),
        (intrin.op.reduce_axis, [leaf for leaf in inner if is_reduction(leaf)]),
    ):
        if len(axes) != len(loops) or not all(
            isinstance(leaf.extent, int) and fits(other.extent, leaf.extent, sizes)
            for other, leaf in zip(axes, loops, strict=True)
        ):
            raise ScheduleError(
                "{where}: {intrin} has axes {axis}, whose symbolic extents must be bound to "
                "constants, but these loops are {inside}; split and reorder so that each axis has "
                "one inner loop of constant extent",
                kind="tensorize", where=where, intrin=intrin.name,
                axis=_extents((*intrin.op.axis, *intrin.op.reduce_axis)), inside=_extents(inner),
            )
    return with_sizes(intrin, sizes)


def _extents(axes: Sequence[IterVar]) -> str:
    return ", ".join(f"{axis.name}: {axis.extent}" for axis in axes)
