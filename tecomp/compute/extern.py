"""Tensors that statements of the user's own compute: `te.extern`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from tecomp.compute.axis import IterKind, IterVar, make_axis
from tecomp.compute.builder import Operand, check_statement
from tecomp.compute.declared_buffers import check_without_gaps
from tecomp.compute.operation import ComputeOp
from tecomp.compute.shape import attributes_of, dtype_of, name_of, shape_of
from tecomp.compute.tags import tag_of
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir.language.dtype import INT64, DType
from tecomp.ir.language.expr import Call, Expr
from tecomp.ir.language.given import check_function, check_list
from tecomp.ir.language.stmt import Buffer, BufferStore, Extent, Stmt
from tecomp.ir.language.text import Name, Pieces
from tecomp.ir.traversal.rewrite import free_variables, walk
from tecomp.locations import user_location

_ANYWHERE = "anywhere"


@dataclass(frozen=True, slots=True, eq=False)
class ExternOp(ComputeOp):
    """Tensors that a statement stores: opaque, so it is run as a whole and has no loops.

    The body says what is read: each input, at places that may be any. Where the shapes of the
    tensors differ, they have no axes in common, and so the operation has none.

    Attributes:
        buffers: stand for the inputs and then the outputs in the statement.
        statement: stores the outputs.

    >>> from tecomp import te
    >>> A = te.placeholder((4,), name="A")
    >>> B = te.extern((4,), [A], lambda ins, outs: te.for_range(
    ...     0, 4, lambda i: outs[0].store(i, ins[0][i] * 2.0)), name="B")
    >>> op = B.op
    >>> op.inputs, [buffer.name for buffer in op.buffers], op.shapes, op.loops
    ((Tensor(A, shape=(4,), dtype=float32),), ['A', 'B'], ((4,),), ())
    >>> print(op.statement)
    for i in range(4):
        B[i] = A[i] * float32(2.0)
    """

    buffers: tuple[Buffer, ...] = field(kw_only=True)
    statement: Stmt = field(kw_only=True)

    @property
    def loops(self) -> tuple[IterVar, ...]:
        """None that a schedule could change."""
        return ()

    @property
    def shapes(self) -> tuple[tuple[Extent, ...], ...]:
        """Extents of each tensor."""
        return tuple(buffer.shape for buffer in self.buffers[-len(self.body):])

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the first buffers stand for; a tensor may be there twice."""
        first = self.body[0]
        assert isinstance(first, Call)
        return tuple(load.tensor for load in first.args if isinstance(load, TensorLoad))

    def pieces(self) -> Pieces:
        """The text, piece by piece: `E = extern(A, B)`."""
        for k, tensor in enumerate(self.outputs):
            yield ", " if k else ""
            yield Name(tensor)
        yield " = extern("
        for k, tensor in enumerate(self.inputs):
            yield ", " if k else ""
            yield Name(tensor)
        yield ")"


@overload
def extern(
    shape: Extent | Sequence[Extent],
    inputs: Tensor | Sequence[Tensor],
    fcompute: Callable[[list[Operand], list[Operand]], Stmt],
    name: str = "extern",
    dtype: str | Sequence[str] | None = None,
    in_buffers: Buffer | Sequence[Buffer] | None = None,
    out_buffers: Buffer | Sequence[Buffer] | None = None,
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Tensor: ...


@overload
def extern(
    shape: Sequence[Sequence[Extent]],
    inputs: Tensor | Sequence[Tensor],
    fcompute: Callable[[list[Operand], list[Operand]], Stmt],
    name: str = "extern",
    dtype: str | Sequence[str] | None = None,
    in_buffers: Buffer | Sequence[Buffer] | None = None,
    out_buffers: Buffer | Sequence[Buffer] | None = None,
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Any: ...


def extern(
    shape: Any,
    inputs: Tensor | Sequence[Tensor],
    fcompute: Callable[[list[Operand], list[Operand]], Stmt],
    name: str = "extern",
    dtype: str | Sequence[str] | None = None,
    in_buffers: Buffer | Sequence[Buffer] | None = None,
    out_buffers: Buffer | Sequence[Buffer] | None = None,
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Any:
    """Tensors that statements compute: for what no expression of an index says.

    Args:
        shape: extents of the result; a list of them for several tensors.
        inputs: the tensors that the statements read.
        fcompute: called once with a list of operands for `inputs` and a list of operands for the
            results. Gives the statement that stores all of the results: made of
            `operand.store(index, value)`, `te.for_range`, `te.if_stmt`, `te.allocate` and
            `te.stmt_seq`.
        name: what printed text calls the result.
        dtype: of the result, or one for each; that of the inputs if None.
        in_buffers: for each input a `te.decl_buffer` of its shape and type, whose name the operand
            has; its memory and layout come from the schedule.
        out_buffers: for each result, as `in_buffers`; says types too.
        tag: free text, kept with the operation.
        attrs: free values, kept with the operation.

    Returns:
        The result; a list of tensors where there are several.

    Raises:
        DefinitionError: types cannot be told, or the statement uses something else than its
            operands, or leaves a result without a store.
        TypeMismatchError: `fcompute` gives something else than a statement.

    Example:
        >>> from tecomp import te
        >>> A = te.placeholder((9,), name="A")
        >>> def rolled(ins, outs):
        ...     (a,), (b,) = ins, outs
        ...     first = b.store(0, a[0])
        ...     return te.stmt_seq(
        ...         first, te.for_range(1, 9, lambda i: b.store(i, b[i - 1] * 0.5 + a[i])))
        >>> te.extern((9,), [A], rolled, name="B")
        Tensor(B, shape=(9,), dtype=float32)
    """
    name = name_of(name, "te.extern")
    where = f"te.extern {name}"
    read = _inputs(inputs, where)
    shapes = _shapes(shape, where)
    outs = _declared(out_buffers, f"{where}: out_buffers")
    if dtype is None and len(outs) == len(shapes):
        dtype = [buffer.dtype for buffer in outs]
    types = _types(dtype, read, len(shapes), where)
    alike = all(list(map(str, each)) == list(map(str, shapes[0])) for each in shapes)
    common = shapes[0] if alike else ()
    axis = tuple(make_axis(f"i{k}", 0, n, IterKind.DATA) for k, n in enumerate(common))
    results = [name if len(types) == 1 else f"{name}_v{k}" for k in range(len(types))]
    ins = [Buffer(t.name, t.shape, t.dtype, "") for t in read]
    made = [Buffer(n, each, t, "") for n, each, t in zip(results, shapes, types, strict=True)]
    buffers = (
        *_named(ins, _declared(in_buffers, f"{where}: in_buffers"), f"{where}: in_buffers"),
        *_named(made, outs, f"{where}: out_buffers"),
    )
    statement = _statement(fcompute, buffers, len(read), where)
    location = user_location()
    loads = tuple(TensorLoad(t, tuple(_anywhere(t)), location) for t in read)
    body: tuple[Expr, ...] = tuple(Call("extern", loads, kind) for kind in types)
    outputs = ExternOp(
        name, axis, body, tag_of(tag, where), attributes_of(attrs, where), location,
        buffers=buffers, statement=statement,
    ).outputs
    return outputs[0] if len(outputs) == 1 else list(outputs)


def _declared(given: object, where: str) -> tuple[Buffer, ...]:
    """Buffers that a caller has declared for operands; none for None."""
    buffers: Any = () if given is None else [given] if isinstance(given, Buffer) else given
    check_list(buffers, Buffer, where, "give a list of te.decl_buffer", TypeMismatchError)
    return tuple(buffers)


def _named(own: Sequence[Buffer], given: Sequence[Buffer], where: str) -> Iterator[Buffer]:
    """The buffers of operands under the names that were declared for them.

    Raises:
        DefinitionError: what was declared is something else.
    """
    if given and len(given) != len(own):
        raise DefinitionError(
            f"{where}: there are {len(given)} for {len(own)} tensors; give one for each",
            kind="wrong-count",
        )
    for buffer, asked in zip(own, given or own, strict=True):
        same = list(map(str, buffer.shape)) == list(map(str, asked.shape))
        if not same or buffer.dtype != asked.dtype or asked.scope not in ("", "global"):
            raise DefinitionError(
                f"{where}: `{asked}` is declared for `{buffer}`; declare its shape and type, and "
                "leave its memory to set_scope",
                kind="statements",
            )
        check_without_gaps(asked, f"{where}: {asked.name}")
        yield Buffer(asked.name, buffer.shape, buffer.dtype, "")


def _anywhere(tensor: Tensor) -> Iterator[Expr]:
    """Indices that may be any."""
    return (Call(_ANYWHERE, (), INT64) for _ in tensor.shape)


def _inputs(inputs: object, where: str) -> tuple[Tensor, ...]:
    given = tuple(inputs) if isinstance(inputs, list | tuple) else (inputs,)
    for tensor in given:
        if not isinstance(tensor, Tensor):
            raise TypeMismatchError(
                f"{where}: an input is {tensor!r} ({type(tensor).__name__}); give tensors",
                kind="wrong-argument",
            )
    return given


def _shapes(shape: Any, where: str) -> list[tuple[Extent, ...]]:
    """The shape of each result."""
    are_several = isinstance(shape, list | tuple) and shape and isinstance(shape[0], list | tuple)
    return [shape_of(each, where) for each in (shape if are_several else [shape])]


def _types(
    dtype: object, inputs: Sequence[Tensor], count: int, where: str
) -> tuple[DType, ...]:
    if dtype is None:
        known = dict.fromkeys(tensor.dtype for tensor in inputs)
        if len(known) != 1:
            raise DefinitionError(
                f"{where}: the inputs are {', '.join(known) or 'none'}, so the type of the result "
                "cannot be told; give it as dtype=",
                kind="statements",
            )
        return tuple(known) * count
    many = list(dtype) if isinstance(dtype, list | tuple) else [dtype] * count
    if len(many) != count:
        raise DefinitionError(
            f"{where}: there are {len(many)} types for {count} results; give one for each",
            kind="wrong-count",
        )
    return tuple(dtype_of(each, where) for each in many)


def _statement(
    fcompute: Callable[..., Stmt], buffers: Sequence[Buffer], n_inputs: int, where: str
) -> Stmt:
    """What the function of the user gives for operands that stand for some buffers, checked."""
    check_function(
        fcompute, 2, f"{where}: fcompute", "give a function of the inputs and the outputs",
        TypeMismatchError,
    )
    operands = [Operand(buffer, k < n_inputs) for k, buffer in enumerate(buffers)]
    statement = fcompute(operands[:n_inputs], operands[n_inputs:])
    _check(statement, buffers, n_inputs, where)
    return statement


def _check(statement: object, buffers: Sequence[Buffer], n_inputs: int, where: str) -> None:
    if not isinstance(statement, Stmt):
        raise TypeMismatchError(
            f"{where}: fcompute gives {statement!r} ({type(statement).__name__}); it returns a "
            "statement: outs[0].store(index, value), te.for_range, te.if_stmt, te.allocate or "
            "te.stmt_seq",
            kind="statements",
        )
    loads = [node for node in walk(statement) if isinstance(node, TensorLoad)]
    if loads:
        raise DefinitionError(
            f"{where}: fcompute reads {loads[0].tensor.name} itself; name it in inputs, and read "
            "the operand that stands for it",
            kind="statements",
        )
    own = [var for var in free_variables(statement) if not isinstance(var, IterVar)]
    check_statement(statement, buffers, own, where, "loop with te.for_range")
    written = {node.buffer.data for node in walk(statement) if isinstance(node, BufferStore)}
    for k, buffer in enumerate(buffers):
        if k < n_inputs and buffer.data in written:
            raise DefinitionError(
                f"{where}: fcompute stores to the input {buffer.name}; "
                "store to its outputs, or to memory of te.allocate",
                kind="statements",
            )
        if k >= n_inputs and buffer.data not in written:
            raise DefinitionError(
                f"{where}: fcompute stores nothing to {buffer.name}; store all of each result",
                kind="statements",
            )
