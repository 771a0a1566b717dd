"""Tensors computed by intrinsic calls, such as `lambda i: vadd(A[i, 0:16], B[i, 0:16])`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tecomp.compute.iter_var import IterKind, IterVar, make_axis
from tecomp.compute.operation import ComputeOp
from tecomp.compute.reduce import Reduce
from tecomp.compute.tensor import TensorLoad
from tecomp.compute.tensor_intrin_call import (
    TensorIntrin,
    TensorIntrinCall,
    fits,
    length,
    with_sizes,
)
from tecomp.errors import DefinitionError
from tecomp.ir.nodes.expr import Expr, Var
from tecomp.ir.nodes.printer import Pieces
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.traversal.rewrite import bottom_up, nodes_of, substitute
from tecomp.source_locations import user_location


@dataclass(frozen=True, slots=True, eq=False)
class TensorComputeOp(ComputeOp):
    """Computation of tiles of the last axes by an intrinsic; `body` is the equivalent definition.

    Attributes:
        intrin: Intrinsic with constant extents.
        operands: Load of each input of the intrinsic, in terms of the axes of this operation.
        scalars: Values of the scalar parameters.
        outer: Reduction axes around the tiles.

    >>> from tecomp import te
    >>> a, b = (te.placeholder((4,), "float32", name) for name in "ab")
    >>> add = te.compute((4,), lambda i: a[i] + b[i], name="add")
    >>> vadd = te.decl_tensor_intrin(add.op, lambda ins, outs: outs[0].vstore(
    ...     0, ins[0].vload(0, "float32x4") + ins[1].vload(0, "float32x4")), name="vadd")
    >>> A, B = (te.placeholder((8, 4), "float32", name) for name in "AB")
    >>> op = te.compute((8, 4), lambda i: vadd(A[i, 0:4], B[i, 0:4]), name="C").op
    >>> print(op)
    C[i, ax0] = A[i, ax0] + B[i, ax0] by vadd
    >>> op.intrin.name, op.operands, op.scalars, op.loops, op.inner_loops, op.outer
    ('vadd', (A[i, ax0], B[i, ax0]), (), (i,), (ax0,), ())
    """

    intrin: TensorIntrin = field(kw_only=True)
    operands: tuple[Expr, ...] = field(kw_only=True)
    scalars: tuple[Expr, ...] = field(kw_only=True)
    outer: tuple[IterVar, ...] = field(kw_only=True)

    @property
    def loops(self) -> tuple[IterVar, ...]:
        """Loops around the tiles, which a schedule can transform."""
        return (*self.axis[: len(self.axis) - len(self.intrin.op.axis)], *self.outer)

    @property
    def inner_loops(self) -> tuple[IterVar, ...]:
        """Loops inside a tile, which the intrinsic replaces."""
        return tuple(axis for axis in (*self.axis, *self.reduce_axis) if axis not in self.loops)

    def rewritten(self, change: Callable[[Expr], Expr]) -> TensorComputeOp:
        """Return the operation with `change` applied to bodies, operands and scalars."""
        return replace(
            self, body=tuple(map(change, self.body)), operands=tuple(map(change, self.operands)),
            scalars=tuple(map(change, self.scalars)),
        )

    def print_tokens(self) -> Pieces:
        """Yield the pieces of the printed text, `C[i, ax0] = A[i, ax0] + B[i, ax0] by vadd`."""
        yield from ComputeOp.print_tokens(self)
        yield f" by {self.intrin.name}"


def tensor_compute(
    name: str,
    tag: str,
    attrs: Mapping[str, object],
    outer_axes: Sequence[IterVar],
    inside: Sequence[Extent],
    call: TensorIntrinCall,
) -> TensorComputeOp:
    """Return the operation whose tiles along the last axes are computed by an intrinsic call.

    Args:
        name: Name of the tensor.
        tag: Tag of the operation.
        attrs: Attributes of the operation.
        outer_axes: Leading axes, outside the tiles.
        inside: Extents of the tile axes.
        call: Intrinsic call that computes one tile, in terms of the leading axes.

    Raises:
        DefinitionError: If the intrinsic computes tiles of another shape, or a size of the
            intrinsic is not determined.
    """
    where = f"te.compute {name}"
    intrin = _bind_sizes(call, inside, where)
    data = tuple(
        make_axis(f"ax{k}", 0, length(axis), IterKind.DATA) for k, axis in enumerate(intrin.op.axis)
    )
    reduce_axes = tuple(
        make_axis(axis.name, axis.low, length(axis), IterKind.REDUCE)
        for axis in intrin.op.reduce_axis
    )
    axes: dict[Var, Expr] = dict(
        zip((*intrin.op.axis, *intrin.op.reduce_axis), (*data, *reduce_axes), strict=True))
    axes |= dict(zip(intrin.scalar_params, call.scalars, strict=True))
    parts = dict(zip(intrin.inputs, call.parts, strict=True))

    def rule(node: object) -> Expr | None:
        if not isinstance(node, TensorLoad):
            return None
        part = parts[node.tensor]
        return part.element(part.axes_as(node.tensor.ndim), node.indices)

    def moved(value: Expr) -> Expr:
        # Substitute the axes of the intrinsic before its loads, because the indices of the
        # replaced loads contain axes of the program, which must not be substituted.
        return bottom_up(substitute(value, axes), rule)

    body = tuple(_around_condition(value, (*call.reduce_axis, *reduce_axes), moved) for value
        in intrin.op.body)
    read = {node.tensor: node for value in intrin.op.body for node in nodes_of(TensorLoad, value)}
    return TensorComputeOp(
        name, (*outer_axes, *data), body, tag, attrs, user_location(), intrin=intrin,
        operands=tuple(moved(read[tensor]) for tensor in intrin.inputs), scalars=call.scalars,
        outer=call.reduce_axis,
    )


def _bind_sizes(call: TensorIntrinCall, inside: Sequence[Extent], where: str) -> TensorIntrin:
    """Return the intrinsic with the sizes that operands and result determine.

    Raises:
        DefinitionError: If the tile shape does not match, or a size is not determined.
    """
    sizes = dict(call.sizes)
    extents = [axis.extent for axis in call.intrin.op.axis]
    if len(extents) != len(inside) or not all(
        isinstance(n, int) and fits(extent, n, sizes)
        for extent, n in zip(extents, inside, strict=True)
    ):
        raise DefinitionError(
            "{where}: the axes without an index have extents {inside}, but {intrin} computes tiles "
            "of {extents}; make the last axes of the shape the axes of a tile, and take one index "
            "for each other axis",
            kind="intrinsic", where=where, inside=list(inside), intrin=call.intrin.name,
            extents=list(map(str, extents)),
        )
    if unknown := [var.name for var in call.intrin.sizes if var not in sizes]:
        raise DefinitionError(
            "{where}: {unknown} of {intrin} cannot be inferred from the operands and the result; "
            "make it an extent of one of them",
            kind="intrinsic", where=where, unknown=unknown[0], intrin=call.intrin.name,
        )
    return with_sizes(call.intrin, sizes)


def _around_condition(
    value: Expr, axes: tuple[IterVar, ...], remap: Callable[[Expr], Expr]
) -> Expr:
    if not isinstance(value, Reduce):
        return remap(value)
    return replace(
        value, axis=axes, source=tuple(map(remap, value.source)), condition=remap(value.condition))
