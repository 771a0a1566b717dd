"""Canonicalize operations: extract casts into separate operations, and operands into views."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from operator import is_
from typing import Any

from tecomp.compute.access_relations import accesses
from tecomp.compute.define import compute
from tecomp.compute.extern import ExternOp
from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.reduce import Reduce
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.constraints.operation_view import loads_of
from tecomp.graph.layout_candidates import lanes_of
from tecomp.ir.arith.extents import constant_shape
from tecomp.ir.nodes.dtype import BOOL, FLOAT32, INT32, DType, represents_all
from tecomp.ir.nodes.expr import Cast, Expr, const, is_const
from tecomp.ir.traversal.rewrite import substitute, top_down, walk
from tecomp.machine.components import MatmulUnit
from tecomp.machine.descriptor import Target

_OPAQUE = ScanOp, ExternOp  # their bodies describe what they read, not what they compute


def extract_casts(target: Target) -> Callable[[Operation], Operation]:
    """Return a rewrite that extracts casts from element-wise operations into separate operations.

    A cast that several operations share is computed once. Boolean operands are converted and
    compared with 0. An operation that then still mixes dtypes with different lane counts, such as
    `A[i] < B[i]` of float32, is computed in wider dtypes. On targets without sticks the rewrite is
    the identity.

    >>> from tecomp import te
    >>> A, B = te.placeholder((8,), "float16", name="A"), te.placeholder((8,), name="B")
    >>> C = te.compute((8,), lambda i: A[i] * B[i], name="C")
    >>> print(extract_casts(Target.load("stick128"))(C.op))
    C[i] = A_float32[i] * B[i]
    """
    if target.stick is None:
        return lambda op: op
    return _Conversions(target).change


@dataclass(frozen=True, slots=True)
class _Conversions:
    """State of cast extraction.

    Attributes:
        target: Target.
        casts: Extracted casts, by tensor and result dtype.
        stored: Replacements in stored dtypes, by the values whose dtype the target cannot store.
    """

    target: Target
    casts: dict[tuple[Tensor, DType], Tensor] = field(default_factory=dict)
    stored: dict[Tensor, Tensor] = field(default_factory=dict)

    def change(self, op: Operation) -> Operation:
        """Return the operation with its casts extracted.

        A result whose dtype the target cannot store is replaced, for its readers, by a value of a
        stored dtype that represents all its values.
        """
        if not isinstance(op, ComputeOp) or isinstance(op, _OPAQUE) or len(op.body) > 1:
            return op
        body = top_down(op.body[0], self._stored_before)
        op = op if body is op.body[0] else replace(op, body=(body,))
        converted = self._of_formula(op) if _is_formula(op) else op
        result = op.output(0).dtype
        if not self._is_stored(result) and not op.reduce_axis:
            wide_type = next((x for x in (FLOAT32, INT32)
                         if x in self.target.formats and represents_all(x, result)),
                         None)  # fmt: skip
            if wide_type is not None:
                widened = self._of_formula(_value(op, Cast(wide_type, body)).op)
                self.stored[converted.output(0)] = widened.output(0)
        return converted

    def _is_stored(self, dtype: DType) -> bool:
        return not self.target.formats or dtype in self.target.formats

    def _stored_before(self, node: Any) -> Expr | None:
        if not isinstance(node, TensorLoad) or node.tensor not in self.stored:
            return None
        stored_load = TensorLoad(self.stored[node.tensor], node.indices, node.location)
        return Cast(node.dtype, stored_load)

    def _of_formula(self, op: Operation) -> Operation:
        assert isinstance(op, ComputeOp)
        lanes, result = self._lanes(op.output(0).dtype), op.body[0]
        dtype = result.value.dtype if isinstance(result, Cast) else op.output(0).dtype
        if isinstance(result, Cast) and self._is_stored(dtype) and self._lanes(dtype) != lanes:
            is_wide = any(self._lanes(x.dtype) != lanes for x in op.input_tensors)
            return self._converted_at_last(op, result) if is_wide else op
        body = top_down(result, lambda node: self._of_lanes(node, op.output(0).dtype))
        if any(_is_known(load) and self._lanes(load.dtype) != lanes for load in loads_of(body)):
            return self._in_wide_types(op)
        return op if body is result else replace(op, body=(body,))

    def _lanes(self, dtype: DType) -> int:
        return lanes_of(self.target, dtype)

    def _converted(self, load: TensorLoad, dtype: DType) -> TensorLoad:
        key = load.tensor, dtype
        if key not in self.casts:
            self.casts[key] = _conversion(*key)
        return TensorLoad(self.casts[key], load.indices, load.location)

    def _of_lanes(self, node: Any, dtype: DType) -> Expr | None:
        """Return the replacement of a cast or load whose lane count differs from `dtype`'s."""
        is_cast, lanes = isinstance(node, Cast), self._lanes(dtype)
        load: Any = node.value if is_cast else node
        if not isinstance(load, TensorLoad):
            return None
        result: Expr = node
        if self._lanes(load.dtype) == lanes or not _is_known(load):
            return result
        if is_cast:
            return self._converted(load, node.dtype) if self._lanes(node.dtype) == lanes else result
        return self._converted(load, dtype) != const(0, dtype) if load.dtype == BOOL else result

    def _converted_at_last(self, op: ComputeOp, result: Cast) -> Operation:
        """Compute the uncast value as a separate tensor and cast that to the result dtype."""
        uncast = _value(op, result.value)
        return replace(op, body=(Cast(result.dtype, self.change(uncast.op).output(0)[op.axis]),))

    def _in_wide_types(self, op: ComputeOp) -> Operation:
        """Compute the operation in dtypes with the lane count of its widest dtype.

        These dtypes represent all values of the narrower ones, so rounding does not change. If the
        target lacks such a dtype, the operation is returned unchanged.
        """
        result = op.output(0).dtype
        kinds = dict.fromkeys((result, *(x.dtype for x in loads_of(op.body[0]) if _is_known(x))))
        lanes = min(map(self._lanes, kinds))
        types = {x: wide_type for x in kinds if (wide_type := self._wider(x, lanes)) is not None}

        def rule(node: Any) -> Expr | None:
            if not isinstance(node, TensorLoad):
                return None
            unchanged: Expr = node
            if not _is_known(node) or types[node.dtype] == node.dtype:
                return unchanged
            return Cast(node.dtype, self._converted(node, types[node.dtype]))

        if len(types) < len(kinds):
            return op
        body = top_down(op.body[0], rule)
        if types[result] == result:
            return replace(op, body=(body,))
        widened = _value(op, Cast(types[result], body))
        return replace(op, body=(Cast(result, widened[op.axis]),))

    def _wider(self, dtype: DType, lanes: int) -> DType | None:
        """Return a dtype with `lanes` lanes that represents all values of `dtype`, or None."""
        return next((
            candidate for candidate in (dtype, FLOAT32, INT32)
            if candidate in self.target.formats and self._lanes(candidate) == lanes
            and represents_all(candidate, dtype)
        ), None)


def _value(op: ComputeOp, value: Expr) -> Tensor:
    """Return a subexpression of an operation as a separate tensor."""

    def element(*axes: Expr) -> Expr:
        return substitute(value, dict(zip(op.axis, axes, strict=True)))

    result = compute(op.shape, element, name=f"{op.name}_{value.dtype}")
    assert isinstance(result, Tensor)
    return result


def _is_formula(op: Operation) -> bool:
    """Return whether an operation is element-wise and more than a cast of one load."""
    if not isinstance(op, ComputeOp) or isinstance(op, _OPAQUE) or len(op.body) != 1:
        return False
    value: Any = op.body[0]
    while isinstance(value, Cast):
        value = value.value
    return not isinstance(value, TensorLoad | Reduce)


def _is_known(load: TensorLoad) -> bool:
    """Return whether the load indices are data-independent; table lookups read few elements."""
    return not any(isinstance(node, TensorLoad) for index in load.indices for node in walk(index))


def _conversion(tensor: Tensor, dtype: DType) -> Tensor:
    """Cast the whole tensor, so that no guarded out-of-bounds element is read."""
    result = compute(
        tensor.shape, lambda *axes: Cast(dtype, tensor[axes]), name=f"{tensor.name}_{dtype}"
    )
    assert isinstance(result, Tensor)
    return result


def linearize_factors(op: Operation) -> Operation:
    """Replace factors of a sum of products by views if their indices are sums of loop variables.

    >>> from tecomp import te
    >>> Q, K = te.placeholder((8, 6), name="Q"), te.placeholder((9, 6), name="K")
    >>> e = te.reduce_axis((0, 3), name="e")
    >>> S = te.compute(
    ...     (2, 8, 9), lambda h, i, j: te.sum(Q[i, h * 3 + e] * K[j, h * 3 + e], axis=e), name="S")
    >>> print(linearize_factors(S.op))
    S[h, i, j] = sum(Q_view[h, i, e] * K_view[h, j, e], axis=[e])
    """
    if not isinstance(op, ComputeOp) or isinstance(op, ScanOp) or len(op.body) != 1:
        return op
    found = accesses(op.output(0))
    if found.reducer != "sum" or len(found.factors) != 2:
        return op
    compound = {
        read.tensor for read in found.factors
        if all(index.is_affine for index in read.index)
        and any(axis is None for axis in read.axes)
    }
    views: dict[int, Tensor] = {}

    def rule(node: Any) -> Expr | None:
        if not isinstance(node, TensorLoad) or node.tensor not in compound:
            return None
        axes = _loops(node, (*found.axis, *found.reduce_axis))
        if not _is_rearranged(node, axes):
            return None
        if id(node) not in views:
            views[id(node)] = _view(node, axes)
        return TensorLoad(views[id(node)], tuple(axes), node.location)

    body = top_down(op.body[0], rule)
    return replace(op, body=(body,)) if views else op


def with_factors_of_unit(op: Operation, target: Target) -> Operation:
    """Read factors that a separate operation casts before that cast, if a matrix unit takes them.

    Matrix units accumulate products of narrow factors in a wider dtype. The unit cannot execute a
    product of factors that are stored in the wider dtype.

    >>> from tecomp import te
    >>> A, B = te.placeholder((8, 6), "float16", "A"), te.placeholder((6, 9), "float16", "B")
    >>> W = te.compute((6, 9), lambda i, j: te.cast(B[i, j], "float32"), name="W")
    >>> k = te.reduce_axis((0, 6), name="k")
    >>> C = te.compute(
    ...     (8, 9), lambda i, j: te.sum(te.cast(A[i, k], "float32") * W[k, j], axis=k), name="C")
    >>> print(with_factors_of_unit(C.op, Target.load("stick128")))
    C[i, j] = sum(cast("float32", A[i, k]) * cast("float32", B[k, j]), axis=[k])
    """
    units = [unit for unit in target.engine.values() if isinstance(unit, MatmulUnit)]
    if not isinstance(op, ComputeOp) or isinstance(op, _OPAQUE) or len(op.body) != 1 or not units:
        return op
    found = accesses(op.output(0))
    if found.reducer != "sum" or len(found.factors) != 2:
        return op
    sources = {read.tensor: source for read in found.factors
               if (source := _cast_source(read.tensor)) is not None}  # fmt: skip
    dtypes = {str(sources.get(read.tensor, read.tensor).dtype) for read in found.factors}
    if not sources or not any(dtypes.issubset(unit.inputs) for unit in units):
        return op

    def rule(node: Any) -> Expr | None:
        if not isinstance(node, TensorLoad) or node.tensor not in sources:
            return None
        return Cast(node.dtype, TensorLoad(sources[node.tensor], node.indices, node.location))

    return replace(op, body=(top_down(op.body[0], rule),))


def _cast_source(tensor: Tensor) -> Tensor | None:
    """Return the tensor that an operation casts element by element to a wider dtype, or None."""
    op: Any = tensor.op
    if not isinstance(op, ComputeOp) or isinstance(op, _OPAQUE) or len(op.body) != 1:
        return None
    match op.body[0]:
        case Cast(dtype, TensorLoad() as load) if (
            all(map(is_, load.indices, op.axis)) and represents_all(dtype, load.dtype)
        ):
            source: Tensor = load.tensor
            return source
    return None


def _loops(load: TensorLoad, axes: tuple[IterVar, ...]) -> list[IterVar]:
    """Return the loops that the indices of a load depend on, in the order of the operation."""
    used = {id(node) for index in load.indices for node in walk(index)}
    return [axis for axis in axes if id(axis) in used]


def _is_rearranged(load: TensorLoad, axes: list[IterVar]) -> bool:
    """Return whether the loops start at 0 and have no more iterations than the tensor has elements.

    Sliding windows have many more iterations than elements and are not rearrangements.
    """
    extents = constant_shape([axis.extent for axis in axes])
    shape = constant_shape(load.tensor.shape)
    if extents is None or shape is None or not all(is_const(axis.dom.min, 0) for axis in axes):
        return False
    return prod(extents) <= prod(shape)


def _view(load: TensorLoad, axes: list[IterVar]) -> Tensor:
    def element(*indices: Expr) -> Expr:
        values = dict(zip(axes, indices, strict=True))
        return TensorLoad(
            load.tensor, tuple(substitute(index, values) for index in load.indices), load.location
        )

    result = compute(tuple(axis.extent for axis in axes), element, name=f"{load.tensor.name}_view")
    assert isinstance(result, Tensor)
    return result
