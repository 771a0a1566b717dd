"""Primitive that changes the layout of a stage: transform_layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import signature
from math import prod
from typing import Any, Protocol, runtime_checkable

from tecomp.compute.expr_like import value_of
from tecomp.compute.extern import ExternOp
from tecomp.compute.iter_var import IterKind, IterVar
from tecomp.compute.operation import Operation
from tecomp.compute.reduce import Reduce
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import TensorLoad
from tecomp.compute.tensor_compute import TensorComputeOp
from tecomp.errors import LayoutError, ScheduleError, TypeMismatchError
from tecomp.ir.nodes.argument_checks import is_one_of
from tecomp.ir.nodes.dtype import DType, promote
from tecomp.ir.nodes.expr import Binary, BinOp, Cast, Const, Expr, Var, index_value
from tecomp.ir.nodes.operators import holds
from tecomp.ir.nodes.stmt import Extent, PadValue, Range
from tecomp.ir.traversal.rewrite import contains, free_variables, substitute
from tecomp.poly.maps.index_map import IndexMap
from tecomp.scheduling.state import (
    LayoutTransform,
    ScheduleState,
    StageLayout,
    StageState,
    check_equal_shapes,
    drop_annotations,
)

LOOPS = ("physical", "logical")


@runtime_checkable
class HasIndexMap(Protocol):
    """Object with an index map from logical to physical indices."""

    @property
    def index_map(self) -> IndexMap:
        """Map from the logical indices of a tensor to its physical indices."""


class StorageFormat(Protocol):
    """Storage format of elements: the part of the interface that schedules use."""

    @property
    def name(self) -> str:
        """Name of the format; the name of a dtype if elements are stored unencoded."""


@runtime_checkable
class NamedLayout(HasIndexMap, Protocol):
    """Layout of one tensor, such as a `tecomp.Layout`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor."""

    @property
    def storage(self) -> StorageFormat:
        """Storage format of the elements."""

    @property
    def pad_value(self) -> float | None:
        """Value of the padding, or None if the padding is undefined."""


def transform_layout(
    state: ScheduleState,
    key: Operation,
    mapping: object,
    pad_value: object = None,
    loops: str = "physical",
) -> tuple[ScheduleState, tuple[IterVar, ...]]:
    """Store a tensor at `mapping(*index)`, and reorder its loops accordingly.

    See `Stage.transform_layout`.

    Returns:
        The new state, and the new loops: none for a placeholder, the axes before the call for
        `loops="logical"` and for a scan, a `te.extern` or a stage computed by an intrinsic.
    """
    stage = state.stage(key)
    where = f"s[{stage.name}].transform_layout"
    if not is_one_of(loops, LOOPS):
        raise ScheduleError(
            "{where}: loops must be 'physical' or 'logical', got {loops!r}",
            kind="unknown-choice", where=where, loops=loops,
        )
    check_equal_shapes(stage, where)
    shape = physical_shape_of(stage)
    _check_described(mapping, stage, shape, where)
    index_map = _index_map(mapping, len(shape), where)
    *first, last = index_map.parts
    if first:
        for part in first:
            state, _ = transform_layout(state, key, part, loops=loops)
        return transform_layout(state, key, last, pad_value, loops)
    new_shape = _checked_shape(index_map, shape, stage, where)
    layout = StageLayout(
        maps=(*stage.layout.maps, index_map),
        axis_separators=index_map.axis_separators or _kept_separators(stage, new_shape, where),
        pad_value=_pad_value(pad_value, stage, new_shape, where),
    )
    changed = replace(stage, layout=layout, aligns=())
    if stage.is_placeholder:
        return state.update(changed), ()
    before = stage.layout_axes
    names = dict(zip(index_map.initial_indices, (axis.name for axis in before), strict=True))
    used: set[str] = set()
    axes = []
    for k, (result, extent) in enumerate(zip(index_map.final_indices, new_shape, strict=True)):
        name = _axis_name(result, names) or f"axis{k}"
        name = name if name not in used else f"{name}.{k}"
        used.add(name)
        axes.append(IterVar(name, dom=Range(Const(0), index_value(extent)), kind=IterKind.DATA))
    after = tuple(axes)
    if loops == "logical" or isinstance(stage.op, ScanOp | ExternOp | TensorComputeOp):
        return state.update(replace(changed, layout_axes=after)), before
    changed = _reloop(changed, LayoutTransform(before, after, index_map), where)
    return state.update(changed), after


def pad_function(pad: PadValue) -> Callable[..., Expr]:
    """Return a padding value as a function of the physical indices, as `pad_value=` accepts it."""

    def value(*indices: Expr) -> Expr:
        return substitute(pad.value, dict(zip(pad.indices, indices, strict=True)))

    return value


def physical_shape_of(stage: StageState) -> tuple[Extent, ...]:
    """Return the physical shape of the stage's tensor after its current layout maps."""
    shape = stage.op.output(0).shape
    for index_map in stage.layout.maps:
        shape = tuple(index_map.map_shape(shape))
    return shape


def _index_map(mapping: object, rank: int, where: str) -> IndexMap:
    if isinstance(mapping, HasIndexMap):
        mapping = mapping.index_map
    if isinstance(mapping, IndexMap):
        if len(mapping.initial_indices) != rank:
            raise LayoutError(
                "{where}: the index map takes {count} indices, but the tensor has {rank} axes",
                kind="layout-shape-mismatch", where=where, count=len(mapping.initial_indices),
                rank=rank,
            )
        return _check_closed(mapping, where)
    if not callable(mapping):
        raise LayoutError(
            "{where}: expected a function of the indices, an IndexMap or a layout, got "
            "{mapping!r}",
            kind="invalid-type", where=where, mapping=mapping,
        )
    return _check_closed(IndexMap.from_func(mapping, ndim=rank), where)


def _check_closed(index_map: IndexMap, where: str) -> IndexMap:
    """Return `index_map` after a check that its results use no variables except its indices.

    Raises:
        LayoutError: If a result uses another variable.
    """
    known = set(index_map.initial_indices)
    for position, result in enumerate(index_map.final_indices):
        for var in free_variables(result):
            if var not in known:
                names = ", ".join(index.name for index in index_map.initial_indices)
                raise LayoutError(
                    "{where}: result {position} of the index map, `{result}`, uses {var}, which is "
                    "not one of its indices ({names}); use only these and constants",
                    kind="unbound-variable", where=where, position=position, result=result,
                    var=var.name, names=names,
                )
    return index_map


def _check_described(
    mapping: object, stage: StageState, shape: tuple[Extent, ...], where: str
) -> None:
    """Raise if a named layout was made for another shape or dtype than that of the stage.

    Raises:
        LayoutError: If the shape or the storage format differs.
    """
    if not isinstance(mapping, NamedLayout):
        return
    if mapping.shape != tuple(shape):
        raise LayoutError(
            "{where}: the layout is for shape {shape}, but {stage} has shape {brackets_of_shape}; "
            "create a layout for that shape",
            kind="layout-shape-mismatch", where=where, shape=list(mapping.shape), stage=stage.name,
            brackets_of_shape=_brackets(shape),
        )
    stored, dtype = mapping.storage.name, stage.op.output(0).dtype
    if stored != dtype:
        raise LayoutError(
            "{where}: the layout stores {stored}, but {stage} has dtype {dtype}; compute a stage "
            "of dtype {stored} and apply the layout to it",
            kind="layout-shape-mismatch", where=where, stored=stored, stage=stage.name, dtype=dtype,
        )


def _checked_shape(
    index_map: IndexMap, shape: tuple[Extent, ...], stage: StageState, where: str
) -> tuple[Extent, ...]:
    new_shape = tuple(index_map.map_shape(shape))
    if prod(n for n in new_shape if isinstance(n, int)) >= 2**63:
        raise LayoutError(
            "{where}: {stage} would occupy {product} elements, which exceeds 64-bit indices; use "
            "smaller factors in the index map",
            kind="limit-exceeded", where=where, stage=stage.name,
            product=_brackets(new_shape)[1:-1].replace(", ", " * "),
        )
    if (collision := index_map.collision(shape)) is not None:
        first, second = collision
        raise LayoutError(
            "{where}: the index map is not injective: elements {first} and {second} of "
            "{stage}{shape} map to the same address; keep every index in the map, e.g. both i // 4 "
            "and i % 4",
            kind="not-injective", where=where, first=first, second=second, stage=stage.name,
            shape=_brackets(shape),
        )
    return new_shape


def _kept_separators(
    stage: StageState, shape: tuple[Extent, ...], where: str
) -> tuple[int, ...]:
    separators = stage.layout.axis_separators
    if separators and separators[-1] >= len(shape) - 1:
        raise LayoutError(
            "{where}: the axis separators {separators} of an earlier call do not match the {rank} "
            "axes of this index map; put te.AXIS_SEPARATOR into the map where a physical axis "
            "begins",
            kind="layout-shape-mismatch", where=where, separators=list(separators), rank=len(shape),
        )
    return separators


def _pad_value(
    value: object, stage: StageState, shape: tuple[Extent, ...], where: str
) -> PadValue | None:
    if value is None:
        return _kept_pad_value(stage.layout.pad_value, shape, where)
    if stage.is_placeholder:
        raise ScheduleError(
            "{where}: {stage} is a placeholder, whose padding is filled by the caller (kernel.pack "
            "does); use pad_value= only for computed stages",
            kind="pad-value", where=where, stage=stage.name,
        )
    indices = tuple(Var(f"p{k}") for k in range(len(shape)))
    result = _call_index_function(value, indices, where) if callable(value) else value
    expr = _expression(result, where)
    if contains((TensorLoad, Reduce), expr):
        raise ScheduleError(
            "{where}: pad_value= must use only physical indices and constants, not tensor "
            "elements, got `{expr}`",
            kind="pad-value", where=where, expr=expr,
        )
    _check_held(expr, stage.op.output(0).dtype, stage.name, where)
    return PadValue(indices, expr)


def _check_held(expr: Expr, dtype: DType, name: str, where: str) -> None:
    """Raise if the dtype of the tensor cannot represent a padding value.

    Raises:
        ScheduleError: If the value would change when it is stored.
    """
    if isinstance(expr, Const):
        if not holds(dtype, expr.value):
            raise ScheduleError(
                "{where}: pad_value= is {expr}, which is not representable in {dtype}, the dtype "
                "of {name}; pass a representable value",
                kind="pad-value", where=where, expr=expr.value, name=name, dtype=dtype,
            )
        return
    both_float = expr.dtype.is_float and dtype.is_float
    if not both_float and promote(expr.dtype, dtype) != dtype:
        raise ScheduleError(
            "{where}: pad_value= `{expr}` has dtype {dtype}, but {name} has dtype "
            "{expected_dtype}; "
            'convert it with .astype("{expected_dtype}") if that is intended',
            kind="pad-value", where=where, expr=expr, dtype=expr.dtype, name=name,
            expected_dtype=dtype,
        )


def _expression(value: Any, where: str) -> Expr:
    try:
        return value_of(value)
    except TypeMismatchError:
        raise ScheduleError(
            "{where}: pad_value= must be a number, an expression or a function that returns one, "
            "got {value!r}",
            kind="pad-value", where=where, value=value,
        ) from None


def _call_index_function(
    function: Callable[..., object], indices: tuple[Var, ...], where: str
) -> object:
    try:
        signature(function).bind(*indices)
    except (TypeError, ValueError):
        raise ScheduleError(
            "{where}: the pad_value= function must accept {index_count} indices, one for each "
            "physical axis; name them all, or use *i",
            kind="pad-value", where=where, index_count=len(indices),
        ) from None
    return function(*indices)


def _kept_pad_value(
    earlier: PadValue | None, shape: tuple[Extent, ...], where: str
) -> PadValue | None:
    if earlier is None:
        return None
    if free_variables(earlier.value):
        raise ScheduleError(
            "{where}: pad_value= of an earlier call is a function of its physical axes, which this "
            "index map replaces; pass pad_value= in the last call only",
            kind="pad-value", where=where,
        )
    return PadValue(tuple(Var(f"p{k}") for k in range(len(shape))), earlier.value)


def _axis_name(result: Expr, names: dict[Var, str]) -> str | None:
    """Return `i` for `i`, `i.outer` for `i // 4`, `i.inner` for `i % 4`, and None otherwise."""
    match result:
        case Cast(_, value):
            return _axis_name(value, names)
        case Var():
            return names.get(result)
        case Binary(BinOp.FLOORDIV, Var() as var, Const()) if var in names:
            return f"{names[var]}.outer"
        case Binary(BinOp.MOD, Var() as var, Const()) if var in names:
            return f"{names[var]}.inner"
    return None


def _reloop(stage: StageState, transform: LayoutTransform, where: str) -> StageState:
    """Return `stage` with the loops over its data axes replaced by loops over physical axes.

    Raises:
        ScheduleError: If a data axis was split or fused, or the map has no known inverse.
    """
    old = set(transform.before)
    missing = [axis.name for axis in transform.before if axis not in set(stage.leaves)]
    if missing:
        raise ScheduleError(
            "{where}: axis {missing} of {stage} was already split or fused, so its loops cannot "
            "follow the new layout; call transform_layout first and split the axes that it "
            "returns, or keep the loops with loops='logical'",
            kind="primitive-order", where=where, missing=missing[0], stage=stage.name,
        )
    if not transform.index_map.initial_indices:
        return replace(stage, layout_axes=transform.after)
    if transform.index_map.inverse_or_none([axis.extent for axis in transform.before]) is None:
        raise ScheduleError(
            "{where}: cannot derive the inverse of this index map, so loops cannot follow it; keep "
            "the loops with loops='logical'",
            kind="not-invertible", where=where,
        )
    first = min(k for k, leaf in enumerate(stage.leaves) if leaf in old)
    remaining = [leaf for leaf in stage.leaves if leaf not in old]
    leaves = (*remaining[:first], *transform.after, *remaining[first:])
    changed = replace(
        stage,
        leaves=leaves,
        relations=(*stage.relations, transform),
        layout_axes=transform.after,
    )
    return drop_annotations(changed, *transform.before)


def _brackets(shape: Sequence[Extent]) -> str:
    return f"[{', '.join(map(str, shape))}]"
