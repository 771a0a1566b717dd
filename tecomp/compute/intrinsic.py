"""Operations of a machine, and calls of them on parts of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from tecomp.compute.arithmetic import Arithmetic, value_of
from tecomp.compute.axis import IterKind, IterVar, make_axis
from tecomp.compute.body_check import difference
from tecomp.compute.operation import ComputeOp, PlaceholderOp
from tecomp.compute.parts import Part, part_of
from tecomp.compute.reduce import Reduce
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir.algebra.extents import simplified
from tecomp.ir.language.expr import BufferLoad, Const, Expr, Var, cast
from tecomp.ir.language.shapes import shape_text
from tecomp.ir.language.stmt import Allocate, Buffer, BufferStore, Extent, Stmt
from tecomp.ir.traversal.rewrite import bottom_up, free_variables, substitute, walk

Check: TypeAlias = Literal["now", "later", "never"]
Sizes: TypeAlias = "Mapping[Var, int]"


@dataclass(frozen=True, slots=True, eq=False)
class TensorIntrin:
    """An operation of a machine; made by `decl_tensor_intrin`.

    A call of it, on parts of tensors and numbers, is what the function of a `te.compute` gives.

    Attributes:
        name: what messages and traces call it.
        op: what it computes.
        buffers: stand for the operands in the statements: inputs in order, then the output.
        scalar_params: numbers in `op` that take a value from the schedule.
        body: computes the tile from nothing.
        reset: stores what a reduction starts from.
        update: combines the reduction over the tile into what is there.
        scopes: for each operand the memory that it has to be in; empty if any will do.
        unit: of the machine's engine that does it, or its link; empty if none is said to.
        mode: of that unit; empty for the usual one of the operands' type.
        check: when the statements were or will be compared with the operation.

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
    def tile(self) -> tuple[int, ...]:
        """Extents of its data axes, and then of its reduction axes."""
        return tuple(map(length, (*self.op.axis, *self.op.reduce_axis)))

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that the definition reads."""
        return self.op.input_tensors

    @property
    def sizes(self) -> tuple[Var, ...]:
        """The variables in its extents, which become numbers where it is used."""
        axes = (*self.op.axis, *self.op.reduce_axis)
        extents = [*(axis.extent for axis in axes), *(n for t in self.inputs for n in t.shape)]
        open_ = [n for n in extents if not isinstance(n, int)]
        return tuple(dict.fromkeys(var for n in open_ for var in free_variables(n)))

    def __call__(
        self, *args: Any, reduce_axis: IterVar | Sequence[IterVar] | None = None
    ) -> TensorIntrinCall:
        """The operation on parts of tensors, such as `A[i, 0:16]`, and on numbers.

        Args:
            *args: a part for each input, in their order, and values of the scalar parameters.
            reduce_axis: axes of a reduction around, whose tiles are added up by `update`.

        Raises:
            DefinitionError: they do not fit the declaration.
            TypeMismatchError: something is no part of a tensor and no number.
        """
        where = f"{self.name}(...)"
        given = [part_of(arg, where) or value_of(arg) for arg in args]
        parts = tuple(each for each in given if isinstance(each, Part))
        scalars = tuple(each for each in given if isinstance(each, Expr))
        self._check_counts(parts, scalars, where)
        sizes: dict[Var, int] = {}
        for own, part in zip(self.inputs, parts, strict=True):
            _check_part(own, part, sizes, where)
        axes = tuple(reduce_axis) if isinstance(reduce_axis, list | tuple) else (
            () if reduce_axis is None else (reduce_axis,))
        self._check_reduction(axes, where)
        values = tuple(
            cast(var.dtype, value) for var, value in zip(self.scalar_params, scalars, strict=True)
        )
        return TensorIntrinCall(self, parts, axes, values, sizes)

    def _check_counts(
        self, parts: Sequence[Part], scalars: Sequence[Expr], where: str
    ) -> None:
        names = [tensor.name for tensor in self.inputs]
        if len(parts) != len(names):
            raise DefinitionError(
                f"{where}: it is given {len(parts)} parts of tensors for {len(names)} inputs "
                f"({', '.join(names)}); give one for each, such as A[i, 0:16]",
                kind="wrong-count",
            )
        if len(scalars) != len(self.scalar_params):
            params = ", ".join(var.name for var in self.scalar_params) or "none"
            raise DefinitionError(
                f"{where}: it is given {len(scalars)} numbers, and its scalar_params are {params}; "
                "give one for each",
                kind="wrong-count",
            )
        for var, value in zip(self.scalar_params, scalars, strict=True):
            read = next((node for node in walk(value) if isinstance(node, TensorLoad)), None)
            if read is not None:
                raise DefinitionError(
                    f"{where}: {var.name} is computed from {read}; give a number of axes and "
                    "sizes, or make it an input of the intrinsic",
                    kind="intrinsic",
                )

    def _check_reduction(self, axes: Sequence[Any], where: str) -> None:
        for axis in axes:
            if not isinstance(axis, IterVar) or axis.kind is not IterKind.REDUCE:
                raise TypeMismatchError(
                    f"{where}: reduce_axis= is {axis!r}; give an axis made by te.reduce_axis",
                    kind="intrinsic",
                )
        if axes and (self.update is None or self.reset is None):
            raise DefinitionError(
                f"{where}: reduce_axis= adds tiles up, and {self.name} has no update and reset; "
                "give (body, reset, update) to te.decl_tensor_intrin",
                kind="intrinsic",
            )

    def __repr__(self) -> str:
        return f"TensorIntrin({self.name}: {self.op})"


@dataclass(frozen=True, slots=True, eq=False)
class TensorIntrinCall(Arithmetic):
    """An operation on parts of tensors.

    Attributes:
        intrin: the operation.
        parts: of tensors, one for each input.
        reduce_axis: axes of a reduction around.
        scalars: values of the scalar parameters.
        sizes: values of those variables in its extents that the parts say.
    """

    intrin: TensorIntrin
    parts: tuple[Part, ...]
    reduce_axis: tuple[IterVar, ...]
    scalars: tuple[Expr, ...]
    sizes: Sizes

    def as_expr(self) -> Expr:
        """Refused: it stands for many elements."""
        parts = ", ".join(part.text for part in self.parts)
        raise TypeMismatchError(
            f"{self.intrin.name}({parts}) is a part of a tensor, not a number; return it as it is, "
            "and use elements of what te.compute gives in another definition",
            kind="whole-tensor",
        )


def _check_part(own: Tensor, part: Part, sizes: dict[Var, int], where: str) -> None:
    """A part has the type and the shape of an operand; it says sizes that are open.

    Raises:
        DefinitionError: it has not.
    """
    if part.tensor.dtype != own.dtype:
        raise DefinitionError(
            f"{where}: {own.name} is {own.dtype}, and {part.text} is {part.tensor.dtype}; convert "
            "it in a te.compute before",
            kind="intrinsic",
        )
    shape = part.shape_as(own.ndim)
    if len(shape) != own.ndim or not all(
        isinstance(n, int) and fits(wanted, n, sizes)
        for wanted, n in zip(own.shape, shape, strict=True)
    ):
        raise DefinitionError(
            f"{where}: {own.name} has shape {shape_text(own.shape)}, and {part.text} has shape "
            f"{shape_text(shape)}; give ranges first:end of that many elements",
            kind="intrinsic",
        )


def fits(extent: Extent, number: int, sizes: dict[Var, int]) -> bool:
    """Whether an extent of an intrinsic can be a number, given the sizes known, or says one.

    >>> n, known = Var("n"), {}
    >>> fits(n, 8, known), fits(n + 1, 9, known), fits(n, 4, known)
    (True, True, False)
    """
    if isinstance(extent, int):
        return extent == number
    if isinstance(extent, Var):
        return sizes.setdefault(extent, number) == number
    found = simplified(substitute(extent, _literals(sizes)))
    return isinstance(found, int) and found == number


def _literals(sizes: Sizes) -> dict[Var, Expr]:
    return {var: Const(number, var.dtype) for var, number in sizes.items()}


def with_sizes(intrin: TensorIntrin, sizes: Sizes) -> TensorIntrin:
    """An intrinsic whose extents are variables, with numbers for them; checked where it is to be.

    Raises:
        DefinitionError: the statements compute something else for these numbers.
    """
    if not intrin.sizes:
        return intrin
    numbers = _literals(sizes)
    body, reset, update = (
        None if part is None else _sized_statement(part, numbers)
        for part in (intrin.body, intrin.reset, intrin.update)
    )
    made = replace(
        intrin, op=_sized(intrin.op, numbers), body=body, reset=reset, update=update,
        buffers=tuple(_sized_buffer(buffer, numbers) for buffer in intrin.buffers),
    )
    if made.check == "now":
        check_statements(made)
    return made


def _sized_statement(statement: Stmt, numbers: Mapping[Var, Expr]) -> Stmt:
    def rule(node: Any) -> Any:
        if isinstance(node, BufferLoad | BufferStore | Allocate):
            return replace(node, buffer=_sized_buffer(node.buffer, numbers))
        return None

    return bottom_up(substitute(statement, numbers), rule)


def _sized_buffer(buffer: Buffer, numbers: Mapping[Var, Expr]) -> Buffer:
    shape = (n if isinstance(n, int) else simplified(substitute(n, numbers)) for n in buffer.shape)
    return replace(buffer, shape=tuple(shape))


def _sized(op: ComputeOp, numbers: Mapping[Var, Expr]) -> ComputeOp:
    """A definition with numbers for variables in its extents."""
    def extent(value: Extent) -> Extent:
        return value if isinstance(value, int) else simplified(substitute(value, numbers))

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


def _of_axes(value: Expr, axes: Mapping[IterVar, IterVar], moved: Any) -> Expr:
    if not isinstance(value, Reduce):
        made: Expr = moved(value)
        return made
    return replace(
        value, axis=tuple(axes[axis] for axis in value.axis),
        source=tuple(map(moved, value.source)), condition=moved(value.condition),
    )


def check_statements(intrin: TensorIntrin) -> None:
    """Run the statements on random values, and compare with what the intrinsic declares.

    Raises:
        DefinitionError: they compute something else.
    """
    parts = {"body": intrin.body, "reset": intrin.reset, "update": intrin.update}
    found = difference(intrin.op, intrin.buffers, intrin.scalar_params, parts)
    if found is not None:
        raise DefinitionError(
            f"te.decl_tensor_intrin {intrin.name}: {found}; mend one of them, or say "
            'check="never" if only the machine can run the statements',
            kind="intrinsic",
        )


def length(axis: IterVar) -> int:
    """The extent of an axis of an intrinsic, which is a number."""
    extent = axis.extent
    assert isinstance(extent, int)
    return extent
