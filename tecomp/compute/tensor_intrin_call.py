"""Tensor intrinsics and their calls, with randomized verification of bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tecomp.compute.expr_like import ExprLike, value_of
from tecomp.compute.iter_var import IterKind, IterVar, make_axis
from tecomp.compute.operation import ComputeOp, PlaceholderOp
from tecomp.compute.reduce import Reduce
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.compute.tensor_region import TensorRegion, part_of
from tecomp.errors import CallError, DefinitionError, InternalError, TypeMismatchError
from tecomp.ir.arith.extents import simplify_extent
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.ir.nodes.dtype import INT64, DType
from tecomp.ir.nodes.expr import BufferLoad, Const, Expr, Var, cast, index_value, integer_range
from tecomp.ir.nodes.stmt import (
    Allocate,
    Buffer,
    BufferStore,
    Extent,
    For,
    ForKind,
    PrimFunc,
    Stmt,
    seq,
)
from tecomp.ir.traversal.rewrite import bottom_up, free_variables, nodes_of, substitute, walk
from tecomp.operations.element_types import FLOATS, element_type

Array = NDArray[Any]

# Minimum tolerance in units in the last place, because two implementations of a mathematical
# function may differ by several roundings in the dtypes in which functions are evaluated.
_MIN_ROUNDINGS = {"float32": 80, "float64": 80}


def find_mismatch(
    op: ComputeOp,
    buffers: Sequence[Buffer],
    scalars: Sequence[Var],
    parts: Mapping[str, Stmt | None],
) -> str | None:
    """Describe the first difference between the statements of an intrinsic and its definition.

    The statements and the definition run in the interpreter on the same random inputs.

    Args:
        op: Definition, with constant extents.
        buffers: Buffers of the inputs, followed by the buffer of the output.
        scalars: Scalar parameters.
        parts: Statements by name: `body`, which computes the output from scratch, `reset`, which
            stores the initial value of a reduction, and `update`, which accumulates the reduction
            into the output.

    Returns:
        The first element that differs, with both values and its inputs; None if all elements agree.
    """
    # Import lazily: only intrinsics need the interpreter.
    from tecomp.ir.interpreter.evaluate import evaluate as run

    draw = np.random.default_rng(20)
    numbers = [_random(draw, (), var.dtype).item() for var in scalars]
    *inputs, before = (_random(draw, _shape(b), b.dtype) for b in buffers)
    for name, statement in parts.items():
        reference = _reference_statements(op, buffers, name) if statement is not None else None
        if statement is None or reference is None:
            continue
        results = []
        for stmt in (reference, statement):
            result = before.copy()
            try:
                run(PrimFunc(name, (*scalars, *buffers), stmt),
                    [*numbers, *(a.copy() for a in inputs), result])
            except (CallError, InternalError) as error:
                subject = "the definition" if stmt is reference else f"the {name}"
                return f"{subject} cannot be run: {error.message.partition('; ')[0]}"
            results.append(result)
        expected, actual = results
        if (idx := _first_difference(expected, actual, _terms(op))) is not None:
            return (
                f"the {name} stores {actual[idx]} at {_at(op.name, idx)}, where the definition "
                f"gives {expected[idx]}, for {_format_inputs(op, inputs, scalars, numbers, idx)}"
            )
    return None


def _reference_statements(op: ComputeOp, buffers: Sequence[Buffer], part: str) -> Stmt | None:
    """Return reference statements for a part; None if the definition has no such part."""
    *inputs, out = buffers
    bufs = dict(zip(op.input_tensors, inputs, strict=True))
    loops = {axis: Var(axis.name, INT64) for axis in (*op.axis, *op.reduce_axis)}
    axes = {axis: cast(axis.dtype, var) for axis, var in loops.items()}
    indices = tuple(loops[axis] for axis in op.axis)
    value = op.body[0]
    if not isinstance(value, Reduce):
        stmt = _loops_over(op.axis, loops, BufferStore(out, _read(value, bufs, axes), indices))
        return stmt if part == "body" else None
    reset = BufferStore(out, value.combiner.identity[0], indices)
    combiner = value.combiner
    combined = substitute(combiner.result[0], {
        combiner.lhs[0]: BufferLoad(out, indices),
        combiner.rhs[0]: _read(value.source[0], bufs, axes),
    })
    update = _loops_over(op.reduce_axis, loops, BufferStore(out, combined, indices))
    steps = {"body": seq(reset, update), "reset": reset, "update": update}
    return _loops_over(op.axis, loops, steps[part])


def _loops_over(axes: Sequence[IterVar], loops: Mapping[IterVar, Var], body: Stmt) -> Stmt:
    for axis in reversed(axes):
        low, count = cast(INT64, axis.dom.min), index_value(axis.extent)
        body = For(loops[axis], low, count, ForKind.SERIAL, body)
    return body


def _read(value: Expr, bufs: Mapping[Tensor, Buffer], axes: Mapping[IterVar, Expr]) -> Expr:
    """Rewrite an expression of tensors and axes to buffers and loop variables."""

    def rule(node: object) -> Expr | None:
        if not isinstance(node, TensorLoad):
            return None
        return BufferLoad(bufs[node.tensor], tuple(map(index_value, node.indices)))

    return substitute(bottom_up(value, rule), axes)


def _shape(buffer: Buffer) -> tuple[int, ...]:
    shape = tuple(n for n in buffer.shape if isinstance(n, int))
    return shape if buffer.dtype.lanes == 1 else (*shape, buffer.dtype.lanes)


def _random(draw: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return random numbers with few significant bits, to keep rounding differences small."""
    if dtype.is_float:
        quarters = draw.integers(1, 17, shape) * draw.choice([-0.25, 0.25], shape)
        return np.asarray(quarters).astype(dtype.numpy)
    if dtype.is_bool:
        return np.asarray(draw.integers(0, 2, shape)).astype(bool)
    low, high = integer_range(dtype)
    return draw.integers(max(low, -1000), min(high, 1000), shape, endpoint=True).astype(dtype.numpy)


def _terms(op: ComputeOp) -> int:
    return int(np.prod([n for n in (a.extent for a in op.reduce_axis) if isinstance(n, int)]))


def _first_difference(expected: Array, actual: Array, terms: int) -> tuple[int, ...] | None:
    kind = expected.dtype.name
    if kind not in FLOATS:
        differs = expected != actual
    else:
        x, y = expected.astype(np.float64), actual.astype(np.float64)
        with np.errstate(all="ignore"):
            precision = 2.0 ** -element_type(kind).fraction_bits
            tolerance = precision * max(terms + 4, _MIN_ROUNDINGS.get(kind, 0))
            is_close = np.abs(x - y) <= np.maximum(np.abs(x), 1.0) * tolerance
            differs = ~((x == y) | (np.isnan(x) & np.isnan(y)) | is_close)
    positions = np.argwhere(differs)
    return tuple(map(int, positions[0])) if len(positions) else None


def _at(name: str, position: Sequence[object]) -> str:
    return f"{name}[{', '.join(map(str, position))}]"


def _format_inputs(
    op: ComputeOp, inputs: Sequence[Array], scalars: Sequence[Var], numbers: Sequence[Any],
    position: Sequence[int],
) -> str:
    """Return text with the inputs of an element, for the error message."""
    parts = [f"{var.name} = {number}" for var, number in zip(scalars, numbers, strict=True)]
    for tensor, array in zip(op.input_tensors, inputs, strict=True):
        entries = _read_at(op, tensor, position)
        if entries is None:
            parts.append(f"random values of {tensor.name}")
            continue
        element = _at(tensor.name, [":" if isinstance(n, slice) else n for n in entries])
        parts.append(f"{element} = {np.array2string(array[entries], threshold=16, separator=', ')}")
    return ", ".join(parts) or "no input"


def _read_at(
    op: ComputeOp, tensor: Tensor, position: Sequence[int]
) -> tuple[int | slice, ...] | None:
    """Return the index at which an element reads a tensor, with slices along reduction axes.

    The result is None if an index of the load is not an axis.
    """
    known: dict[Expr, int | slice] = {axis: slice(None) for axis in op.reduce_axis}
    known.update(zip(op.axis, position, strict=False))
    for node in walk(*op.body):
        if isinstance(node, TensorLoad) and node.tensor == tensor:
            entries = [known.get(index) for index in node.indices]
            return None if None in entries else tuple(n for n in entries if n is not None)
    return None


Check: TypeAlias = Literal["now", "later", "never"]
Sizes: TypeAlias = "Mapping[Var, int]"


@dataclass(frozen=True, slots=True, eq=False)
class TensorIntrin:
    """Tensor intrinsic of a target; made by `decl_tensor_intrin`.

    The index function of a `te.compute` can return a call of the intrinsic on parts of tensors and
    numbers.

    Attributes:
        name: Name in error messages and traces.
        op: Definition of the computation.
        buffers: Buffers of the operands in the statements: inputs in order, then the output.
        scalar_params: Scalar parameters in `op`, bound by each use.
        body: Statement that computes the tile from scratch, or None.
        reset: Statement that stores the initial value of a reduction, or None.
        update: Statement that accumulates the reduction over the tile into the output, or None.
        scopes: Required memory of each operand; empty for any memory.
        unit: Unit of the target's engine, or link, that executes the intrinsic; empty if unknown.
        mode: Mode of the unit; empty for the default mode of the operand dtypes.
        check: Time at which the statements are compared with the definition.

    >>> from tecomp import te
    >>> a = te.placeholder((2,), "float32", "a")
    >>> twice = te.compute((2,), lambda i: a[i] * 2.0, name="twice")
    >>> vtwice = te.decl_tensor_intrin(twice.op, lambda ins, outs: outs[0].vstore(
    ...     0, ins[0].vload(0, "float32x2") * 2.0), name="vtwice")
    >>> vtwice.name, vtwice.op.name, vtwice.tile, vtwice.inputs, vtwice.sizes
    ('vtwice', 'twice', (2,), (Tensor(a, shape=(2,), dtype=float32),), ())
    >>> [buffer.name for buffer in vtwice.buffers], vtwice.scopes, vtwice.unit, vtwice.mode
    (['a', 'twice'], ('', ''), '', '')
    >>> print(vtwice.body)
    twice[0] = a[0] * float32(2.0)
    twice[1] = a[1] * float32(2.0)
    >>> vtwice.reset, vtwice.update, vtwice.check, vtwice.scalar_params
    (None, None, 'now', ())
    >>> vtwice.reduce_init, vtwice.reduce_update
    (None, None)
    """

    name: str
    op: ComputeOp
    buffers: tuple[Buffer, ...]
    scalar_params: tuple[Var, ...]
    body: Stmt | None
    reset: Stmt | None
    update: Stmt | None
    scopes: tuple[str, ...] = field(default=())
    unit: str = ""
    mode: str = ""
    check: Check = "now"

    @property
    def reduce_init(self) -> Stmt | None:
        """Alias of `reset`, under the name that TVM uses."""
        return self.reset

    @property
    def reduce_update(self) -> Stmt | None:
        """Alias of `update`, under the name that TVM uses."""
        return self.update

    @property
    def tile(self) -> tuple[int, ...]:
        """Extents of the data axes, followed by the extents of the reduction axes."""
        return tuple(map(length, (*self.op.axis, *self.op.reduce_axis)))

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Tensors that the definition reads."""
        return self.op.input_tensors

    @property
    def sizes(self) -> tuple[Var, ...]:
        """Size variables in the extents, which each use of the intrinsic binds to constants."""
        axes = (*self.op.axis, *self.op.reduce_axis)
        extents = [*(axis.extent for axis in axes), *(n for t in self.inputs for n in t.shape)]
        open_ = [n for n in extents if not isinstance(n, int)]
        return tuple(dict.fromkeys(var for n in open_ for var in free_variables(n)))

    def __call__(
        self, *args: Any, reduce_axis: IterVar | Sequence[IterVar] | None = None
    ) -> TensorIntrinCall:
        """Apply the intrinsic to parts of tensors, such as `A[i, 0:16]`, and to numbers.

        Args:
            *args: Part of a tensor for each input, in order, and values of the scalar parameters.
            reduce_axis: Outer reduction axis or axes, whose tiles `update` accumulates.

        Raises:
            DefinitionError: If the arguments do not match the declaration.
            TypeMismatchError: If an argument is neither a part of a tensor nor a number.
        """
        where = f"{self.name}(...)"
        operands = [part_of(arg, where) or value_of(arg) for arg in args]
        parts = tuple(item for item in operands if isinstance(item, TensorRegion))
        scalars = tuple(item for item in operands if isinstance(item, Expr))
        self._check_counts(parts, scalars, where)
        sizes: dict[Var, int] = {}
        for param, part in zip(self.inputs, parts, strict=True):
            _check_part(param, part, sizes, where)
        axes = tuple(reduce_axis) if isinstance(reduce_axis, list | tuple) else (
            () if reduce_axis is None else (reduce_axis,))
        self._check_reduction(axes, where)
        values = tuple(
            cast(var.dtype, value) for var, value in zip(self.scalar_params, scalars, strict=True)
        )
        return TensorIntrinCall(self, parts, axes, values, sizes)

    def _check_counts(
        self, parts: Sequence[TensorRegion], scalars: Sequence[Expr], where: str
    ) -> None:
        names = [tensor.name for tensor in self.inputs]
        if len(parts) != len(names):
            raise DefinitionError(
                "{where}: got {part_count} tensor slices for {name_count} inputs ({names}); pass "
                "one per input, such as A[i, 0:16]",
                kind="count-mismatch", where=where, part_count=len(parts), name_count=len(names),
                names=", ".join(names),
            )
        if len(scalars) != len(self.scalar_params):
            params = ", ".join(var.name for var in self.scalar_params) or "none"
            raise DefinitionError(
                "{where}: got {scalar_count} scalars for scalar_params {params}; pass one per "
                "parameter",
                kind="count-mismatch", where=where, scalar_count=len(scalars), params=params,
            )
        for var, value in zip(self.scalar_params, scalars, strict=True):
            read = next(iter(nodes_of(TensorLoad, value)), None)
            if read is not None:
                raise DefinitionError(
                    "{where}: {var} is computed from {read}; pass an expression of axes and sizes, "
                    "or make it an input of the intrinsic",
                    kind="intrinsic", where=where, var=var.name, read=read,
                )

    def _check_reduction(self, axes: Sequence[Any], where: str) -> None:
        for axis in axes:
            if not isinstance(axis, IterVar) or axis.kind is not IterKind.REDUCE:
                raise TypeMismatchError(
                    "{where}: reduce_axis= must be a reduction axis, got {axis!r}; create one with "
                    "te.reduce_axis",
                    kind="intrinsic", where=where, axis=axis,
                )
        if axes and (self.update is None or self.reset is None):
            raise DefinitionError(
                "{where}: reduce_axis= accumulates tiles, but {name} has no update and reset; pass "
                "(body, reset, update) to te.decl_tensor_intrin",
                kind="intrinsic", where=where, name=self.name,
            )

    def __repr__(self) -> str:
        return f"TensorIntrin({self.name}: {self.op})"


@dataclass(frozen=True, slots=True, eq=False)
class TensorIntrinCall(ExprLike):
    """Call of a tensor intrinsic on parts of tensors.

    Attributes:
        intrin: Called intrinsic.
        parts: Parts of tensors, one per input.
        reduce_axis: Outer reduction axes.
        scalars: Values of the scalar parameters.
        sizes: Values of the size variables that the parts determine.
    """

    intrin: TensorIntrin
    parts: tuple[TensorRegion, ...]
    reduce_axis: tuple[IterVar, ...]
    scalars: tuple[Expr, ...]
    sizes: Sizes

    def as_expr(self) -> Expr:
        """Raise, because the call computes a tile and not a single element.

        Raises:
            TypeMismatchError: Always.
        """
        parts = ", ".join(part.text for part in self.parts)
        raise TypeMismatchError(
            "{intrin}({parts}) is a slice of a tensor, not a number; return it unchanged, and read "
            "elements of the tensor of that te.compute in another one",
            kind="tensor-as-scalar", intrin=self.intrin.name, parts=parts,
        )


def _check_part(param: Tensor, part: TensorRegion, sizes: dict[Var, int], where: str) -> None:
    """Raise if a part does not match an operand; record the size variables that it determines.

    Raises:
        DefinitionError: If the dtype or the shape differs.
    """
    if part.tensor.dtype != param.dtype:
        raise DefinitionError(
            "{where}: {param} is {dtype}, but {text} is {tensor_dtype}; convert it in a "
            "preceding te.compute",
            kind="intrinsic", where=where, param=param.name, dtype=param.dtype, text=part.text,
            tensor_dtype=part.tensor.dtype,
        )
    shape = part.shape_as(param.ndim)
    if len(shape) != param.ndim or not all(
        isinstance(n, int) and fits(extent, n, sizes)
        for extent, n in zip(param.shape, shape, strict=True)
    ):
        raise DefinitionError(
            "{where}: {param} has shape {shape}, but {text} has shape {slice_shape}; pass slices "
            "first:end with that many elements",
            kind="intrinsic", where=where, param=param.name, shape=shape_text(param.shape),
            text=part.text, slice_shape=shape_text(shape),
        )


def fits(extent: Extent, number: int, sizes: dict[Var, int]) -> bool:
    """Return whether an extent can equal a number; an unbound size variable is bound to the number.

    >>> n, known = Var("n"), {}
    >>> fits(n, 8, known), fits(n + 1, 9, known), fits(n, 4, known)
    (True, True, False)
    """
    if isinstance(extent, int):
        return extent == number
    if isinstance(extent, Var):
        return sizes.setdefault(extent, number) == number
    found = simplify_extent(substitute(extent, _literals(sizes)))
    return isinstance(found, int) and found == number


def _literals(sizes: Sizes) -> dict[Var, Expr]:
    return {var: Const(number, var.dtype) for var, number in sizes.items()}


def with_sizes(intrin: TensorIntrin, sizes: Sizes) -> TensorIntrin:
    """Return an intrinsic with its size variables replaced by constants, and verify the statements.

    Raises:
        DefinitionError: If `check` is "now" and the statements do not compute the definition for
            these sizes.
    """
    if not intrin.sizes:
        return intrin
    numbers = _literals(sizes)
    body, reset, update = (
        None if part is None else _sized_statement(part, numbers)
        for part in (intrin.body, intrin.reset, intrin.update)
    )
    sized = replace(
        intrin, op=_substitute_sizes(intrin.op, numbers), body=body, reset=reset, update=update,
        buffers=tuple(_sized_buffer(buffer, numbers) for buffer in intrin.buffers),
    )
    if sized.check == "now":
        check_statements(sized)
    return sized


def _sized_statement(statement: Stmt, numbers: Mapping[Var, Expr]) -> Stmt:
    def rule(node: Any) -> Any:
        if isinstance(node, BufferLoad | BufferStore | Allocate):
            return replace(node, buffer=_sized_buffer(node.buffer, numbers))
        return None

    return bottom_up(substitute(statement, numbers), rule)


def _sized_buffer(buffer: Buffer, numbers: Mapping[Var, Expr]) -> Buffer:
    shape = (n if isinstance(n, int) else simplify_extent(substitute(n, numbers)) for n
        in buffer.shape)
    return replace(buffer, shape=tuple(shape))


def _substitute_sizes(op: ComputeOp, numbers: Mapping[Var, Expr]) -> ComputeOp:
    """Return a definition with constants substituted for the variables in its extents."""
    def extent(value: Extent) -> Extent:
        return value if isinstance(value, int) else simplify_extent(substitute(value, numbers))

    inputs = {
        tensor: PlaceholderOp(
            tensor.name, tuple(map(extent, tensor.shape)), tensor.dtype, tensor.op.location
        ).output(0)
        for tensor in op.input_tensors
    }
    axes = {
        axis: make_axis(axis.name, extent(axis.low), extent(axis.extent), axis.kind)
        for axis in (*op.axis, *op.reduce_axis)
    }

    def moved(value: Expr) -> Expr:
        return substitute(bottom_up(value, lambda node: (
            TensorLoad(inputs[node.tensor], node.indices, node.location)
            if isinstance(node, TensorLoad) else None
        )), {**numbers, **axes})

    body = tuple(_of_axes(value, axes, moved) for value in op.body)
    return replace(op, axis=tuple(axes[axis] for axis in op.axis), body=body)


def _of_axes(value: Expr, axes: Mapping[IterVar, IterVar], remap: Any) -> Expr:
    if not isinstance(value, Reduce):
        rewritten: Expr = remap(value)
        return rewritten
    return replace(
        value, axis=tuple(axes[axis] for axis in value.axis),
        source=tuple(map(remap, value.source)), condition=remap(value.condition),
    )


def check_statements(intrin: TensorIntrin) -> None:
    """Run the statements on random values, and compare the results with the definition.

    Raises:
        DefinitionError: If the results differ.
    """
    parts = {"body": intrin.body, "reset": intrin.reset, "update": intrin.update}
    found = find_mismatch(intrin.op, intrin.buffers, intrin.scalar_params, parts)
    if found is not None:
        raise DefinitionError(
            'te.decl_tensor_intrin {intrin}: {found}; correct one of them, or pass check="never" '
            "if only the target can execute the statements",
            kind="intrinsic", intrin=intrin.name, found=found,
        )


def length(axis: IterVar) -> int:
    """Return the extent of an axis, which must be constant."""
    extent = axis.extent
    assert isinstance(extent, int)
    return extent
