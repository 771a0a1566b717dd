"""Functional statement builder for the bodies of intrinsics and `te.extern`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import Any

from tecomp.compute.expr_like import Value, value_of
from tecomp.compute.expression_analysis import NotScalarizableError, lanes_of
from tecomp.compute.intrinsics import concat_vectors
from tecomp.compute.iter_var import as_constant_extents
from tecomp.compute.shape_validation import dtype_of, name_of, shape_of
from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir.nodes.argument_checks import as_int, check_function, check_kind, is_one_of
from tecomp.ir.nodes.dtype import INT64, DType
from tecomp.ir.nodes.expr import (
    BufferLoad,
    Const,
    Expr,
    Var,
    as_expr,
    cast,
    const,
    index_value,
    is_const,
)
from tecomp.ir.nodes.printer import brief
from tecomp.ir.nodes.stmt import (
    Allocate,
    ArrayArgument,
    Buffer,
    BufferStore,
    Extent,
    For,
    ForKind,
    IfThenElse,
    Stmt,
    array_argument,
    seq,
)
from tecomp.ir.traversal.rewrite import free_variables, walk

LOOP_KINDS = {
    "serial": ForKind.SERIAL, "parallel": ForKind.PARALLEL, "vectorize": ForKind.VECTORIZED,
    "vectorized": ForKind.VECTORIZED, "unroll": ForKind.UNROLLED, "unrolled": ForKind.UNROLLED,
}  # fmt: skip
"""Kind of loop by the names that `te.for_range` and `IRBuilder.for_range` take."""


@dataclass(frozen=True, slots=True)
class Operand:
    """Operand in the statements of an intrinsic or `te.extern`, with the indices of its definition.

    The schedule that uses the statements determines address, strides and layout of the elements.

    Attributes:
        buffer: Buffer that represents the memory.
        is_input: Whether the statements only read the operand.

    >>> from tecomp import te
    >>> A = te.placeholder((2, 4), name="A")
    >>> def doubled(ins, outs):
    ...     a, b = ins[0], outs[0]
    ...     print(a.name, a.shape, a.strides, a.dtype, repr(a.scope), a.is_input, a.buffer.name)
    ...     print(a[1, 2], [str(extent) for extent in a.data.shape], a.elem_offset)
    ...     return te.for_range(0, 2, lambda i: te.for_range(
    ...         0, 4, lambda j: b.store((i, j), a[i, j] * 2.0)))
    >>> B = te.extern((2, 4), [A], doubled, name="B")
    A (2, 4) (4, 1) float32 '' True A
    A[1, 2] ['2', '4'] 0
    """

    buffer: Buffer
    is_input: bool = False

    @property
    def name(self) -> str:
        """Name of the operand in the definition."""
        return self.buffer.name

    @property
    def shape(self) -> tuple[Extent, ...]:
        """Shape of the tile, with `Known` ints for constant extents, as for tensors."""
        return as_constant_extents(self.buffer.shape)

    @property
    def dtype(self) -> DType:
        """Dtype of the elements."""
        return self.buffer.dtype

    @property
    def scope(self) -> str:
        """Required memory; empty for any memory."""
        return self.buffer.scope

    def __getitem__(self, indices: object) -> Expr:
        """Return the load of the element at `indices`."""
        return BufferLoad(self.buffer, self._place(indices))

    def vload(self, begin: object, dtype: str) -> Expr:
        """Load a vector of adjacent elements along the last axis, starting at `begin`.

        Functions such as `te.dot` take such a vector as one operand; the schedule must then make
        its elements contiguous in memory.

        Args:
            begin: Index of the first element; a tuple for several axes.
            dtype: Vector dtype of this operand's dtype, such as `float32x4`.

        Raises:
            TypeMismatchError: If `dtype` is not a vector of 2, 4, 8, ... elements of this operand.

        >>> from tecomp import te
        >>> A = te.placeholder((8,), "float32", "A")
        >>> B = te.extern((8,), [A], lambda ins, outs: te.for_range(
        ...     0, 2, lambda i: outs[0].vstore(i * 4, ins[0].vload(i * 4, "float32x4"))), name="B")
        >>> str(B.op.statement).splitlines()[:2]
        ['for i in range(2):', '    B[i * 4 + 0] = A[i * 4 + 0]']
        """
        kind = DType(dtype)
        if kind.scalar != self.dtype or kind.lanes < 2 or kind.lanes & (kind.lanes - 1):
            raise TypeMismatchError(
                "operand {name}.vload: {dtype} is not a vector of 2, 4, 8, ... {subject_dtype}",
                name=self.name, dtype=dtype, subject_dtype=self.dtype,
            )
        *outer, last = self._place(begin)
        parts: list[Expr] = [self[(*outer, last + k)] for k in range(kind.lanes)]
        return concat_vectors(parts)

    def store(self, indices: object, value: Value) -> Stmt:
        """Return the statement that stores `value`, cast to the dtype of the operand.

        A vector is stored to adjacent elements along the last axis, starting at `indices`.

        Args:
            indices: Index of the element; a tuple for several axes.
            value: Expression or number.

        Raises:
            TypeMismatchError: If the value is a vector that cannot be split into lanes of this
                dtype.

        >>> from tecomp import te
        >>> A = te.placeholder((8,), "float32", "A")
        >>> B = te.extern((8,), [A], lambda ins, outs: te.for_range(
        ...     0, 8, lambda i: outs[0].store(i, ins[0][7 - i])), name="B")
        >>> print(B.op.statement)
        for i in range(8):
            B[i] = A[7 - i]
        """
        stored = value_of(value) if not isinstance(value, bool | int | float) else as_expr(
            value, self.dtype)
        if isinstance(stored, Const):
            stored = const(stored.value, self.dtype)
        position, lanes = self._place(indices), stored.dtype.lanes
        if lanes in (1, self.dtype.lanes):
            return BufferStore(self.buffer, cast(self.dtype, stored), position)
        if self.dtype.lanes > 1 or not position:
            raise self._refused(stored)
        try:
            values = lanes_of(stored)
        except NotScalarizableError:
            raise self._refused(stored) from None
        *outer, last = position
        return seq(*(
            BufferStore(self.buffer, cast(self.dtype, lane), (*outer, last + k))
            for k, lane in enumerate(values)
        ))

    def _refused(self, stored: Expr) -> TypeMismatchError:
        return TypeMismatchError(
            "operand {name}: cannot store {stored} of dtype {dtype} to an element of dtype "
            "{subject_dtype}; store values of its dtype, or vectors that vload supports",
            name=self.name, stored=brief(stored), dtype=stored.dtype, subject_dtype=self.dtype,
        )

    @property
    def strides(self) -> tuple[Extent, ...]:
        """Strides in elements of the contiguous array that a call receives."""
        factors = self.buffer.shape[1:]
        return as_constant_extents(
            tuple(reduce(mul, factors[k:], 1) for k in range(len(self.buffer.shape))))

    @property
    def elem_offset(self) -> int:
        """Offset of the first element from `data`, always 0."""
        return 0

    def vstore(self, begin: object, value: Value) -> Stmt:
        """Return the statement that stores `value` at `begin`, the same as `store`.

        Raises:
            TypeMismatchError: If the value is a vector that cannot be split into lanes of this
                dtype.

        >>> from tecomp import te
        >>> A = te.placeholder((2,), "float32", "A")
        >>> B = te.extern((2,), [A], lambda ins, outs: outs[0].vstore(
        ...     0, ins[0].vload(0, "float32x2") * 2.0), name="B")
        >>> print(B.op.statement)
        B[0] = A[0] * float32(2.0)
        B[1] = A[1] * float32(2.0)
        """
        return self.store(begin, value)

    @property
    def data(self) -> ArrayArgument:
        """Whole operand as a call argument, passed by the address of its first element."""
        return self.array(is_written=not self.is_input)

    def array(self, *, is_written: bool) -> ArrayArgument:
        """Return the whole operand as a call argument.

        Args:
            is_written: Whether the called function writes to the operand.

        >>> import tecomp
        >>> from tecomp import te
        >>> @tecomp.register_func("example.twice", override=True)
        ... def twice(x, y):
        ...     y[...] = 2 * x
        >>> A = te.placeholder((4,), name="A")
        >>> def doubled(ins, outs):
        ...     a, b = ins[0].array(is_written=False), outs[0].array(is_written=True)
        ...     return te.call_packed("example.twice", a, b)
        >>> B = te.extern((4,), [A], doubled, name="B")
        >>> print(B.op.statement)
        call_packed("example.twice", reads(lambda i0: A[i0], (4,)), writes(lambda i0: B[i0], (4,)))
        """
        variables = tuple(Var(f"i{k}", INT64) for k in range(len(self.shape)))
        shape = tuple(map(index_value, self.shape))
        return array_argument(self.buffer, variables, shape, variables, is_written=is_written)

    def access_ptr(
        self,
        access_mask: str | int,
        ptr_type: str = "handle",
        content_lanes: int = 1,
        offset: Value = 0,
        extent: Value | None = None,
    ) -> ArrayArgument:
        """Return a pointer argument to contiguous row-major elements, by default to all elements.

        Args:
            access_mask: Access of the called function: `"r"`, `"w"` or `"rw"`, or 1, 2 or 3.
            ptr_type: Ignored; the called function declares its pointer types.
            content_lanes: Ignored, as `ptr_type`.
            offset: Row-major offset of the first element.
            extent: Number of elements. Default: all elements from `offset` to the end.

        Raises:
            DefinitionError: If the access is unknown, or the elements are known to be out of
                bounds.
            TypeMismatchError: If `offset` or `extent` is not an integer.

        >>> import ctypes
        >>> from tecomp import CFunction, register_func, te
        >>> copy = CFunction(ctypes.CDLL(None), "memcpy", ["handle", "const handle", "uint64"])
        >>> _ = register_func("example.memcpy", copy, override=True)
        >>> A = te.placeholder((2, 4), name="A")
        >>> def last_row(ins, outs):
        ...     row = ins[0].access_ptr("r", offset=4, extent=4)
        ...     return te.call_extern("handle", "example.memcpy", outs[0].access_ptr("w"), row, 16)
        >>> te.extern((4,), [A], last_row, name="B")
        Tensor(B, shape=(4,), dtype=float32)
        """
        where = f"operand {self.name}.access_ptr"
        named = {"r": False, "w": True, "rw": True, "wr": True, 1: False, 2: True, 3: True}
        if not isinstance(access_mask, str | int) or access_mask not in named:
            raise DefinitionError(
                "{where}: access must be 'r', 'w' or 'rw', got {access_mask!r}",
                kind="unknown-choice", where=where, access_mask=access_mask,
            )
        is_written = named[access_mask]
        start = integer(offset, f"{where}: offset")
        if is_const(start, 0) and extent is None:
            return self.array(is_written=is_written)
        size = _product([index_value(n) for n in self.shape])
        count = size - start if extent is None else integer(extent, f"{where}: extent")
        _check_inside(_number(start), _number(count), _number(size), where)
        var = Var("k", INT64)
        indices = row_major(start + var, self.shape)
        return array_argument(self.buffer, (var,), (count,), indices, is_written=is_written)

    def _place(self, indices: object) -> tuple[Expr, ...]:
        items = indices if isinstance(indices, tuple) else (indices,)
        if len(items) != len(self.shape):
            raise DefinitionError(
                "operand {name}[...]: operand has {rank} axes, got {given_count} indices; write "
                "one per axis",
                kind="index-count", name=self.name, rank=len(self.shape), given_count=len(items),
            )
        where = f"operand {self.name}[...]"
        found = tuple(integer(index, f"{where}: index {k}") for k, index in enumerate(items))
        for k, (index, extent) in enumerate(zip(found, self.shape, strict=True)):
            _check_index(_number(index), extent, f"{where}: index {k}")
        return found


def _number(value: Expr) -> Extent:
    return int(value.value) if isinstance(value, Const) else value


def _check_index(index: Extent, extent: Extent, where: str) -> None:
    """Raise if a constant index is out of bounds, except for empty axes, where nothing runs.

    Raises:
        DefinitionError: If the index is out of bounds.
    """
    if not isinstance(index, int) or (isinstance(extent, int) and extent == 0):
        return
    if index < 0 or (isinstance(extent, int) and index >= extent):
        raise DefinitionError(
            "{where} is {index}, which is out of bounds for an axis of extent {extent}; pass one "
            "in bounds",
            kind="index-out-of-bounds", where=where, index=index, extent=extent,
        )


def _check_inside(start: Extent, count: Extent, size: Extent, where: str) -> None:
    """Raise if a range of elements is known to be out of the bounds of a tensor.

    Raises:
        DefinitionError: If the range is out of bounds.
    """
    first = start if isinstance(start, int) else 0
    min_count = max(count, 0) if isinstance(count, int) else 0
    is_short = isinstance(size, int) and first + min_count > size
    if first < 0 or is_short or (isinstance(count, int) and count < 0):
        raise DefinitionError(
            "{where}: offset {start} with extent {count} is out of bounds for {size} elements; "
            "pass a range in bounds",
            kind="index-out-of-bounds", where=where, start=start, count=count, size=size,
        )


def _product(factors: Sequence[Expr]) -> Expr:
    total: Expr = index_value(1)
    for factor in factors:
        total = total * factor
    return total


def row_major(offset: Expr, shape: Sequence[Extent]) -> tuple[Expr, ...]:
    """Return the indices of the element at a row-major offset."""
    found: list[Expr] = []
    remaining = offset
    for extent in reversed(shape[1:]):
        found.append(remaining % index_value(extent))
        remaining = remaining // index_value(extent)
    return (remaining, *reversed(found)) if shape else ()


def for_range(
    begin: Value, end: Value, body: Callable[[Var], Stmt], name: str = "i", kind: str = "serial"
) -> Stmt:
    """Return a loop over the half-open range from `begin` to `end`.

    Args:
        begin: First value.
        end: End of the range.
        body: Function that is called once with the loop variable and returns the loop body.
        name: Name of the loop variable.
        kind: `serial`, `parallel`, `vectorize` (or `vectorized`), `unroll` (or `unrolled`).

    Raises:
        DefinitionError: If the kind does not exist.
        TypeMismatchError: If a bound is not an integer, or `body` is not a function that returns a
            statement.

    >>> from tecomp import te
    >>> out = te.Operand(te.decl_buffer((4,), name="out"))
    >>> te.for_range(0, 4, lambda i: out.store(i, 1.0))
    for i in range(4):
        out[i] = float32(1.0)
    """
    if not is_one_of(kind, LOOP_KINDS):
        raise DefinitionError(
            "te.for_range: unknown loop kind {form!r}; supported kinds are {kinds}",
            kind="unknown-choice", form=kind, kinds=", ".join(LOOP_KINDS),
        )
    first, last = integer(begin, "te.for_range: begin"), integer(end, "te.for_range: end")
    var = Var(name_of(name, "te.for_range"), INT64)
    return For(var, first, last - first, LOOP_KINDS[kind], _body(
        body, var, "te.for_range", "the variable"))


def stmt_seq(*statements: Stmt) -> Stmt:
    """Return the sequence of the given statements.

    Raises:
        TypeMismatchError: If an argument is not a statement.

    >>> from tecomp import te
    >>> out = te.Operand(te.decl_buffer((4,), name="out"))
    >>> te.stmt_seq(out.store(0, 1.0), out.store(1, 2.0))
    out[0] = float32(1.0)
    out[1] = float32(2.0)
    """
    for k, statement in enumerate(statements):
        _check_statement(statement, f"te.stmt_seq: statement {k}")
    return seq(*statements)


def if_stmt(condition: Value, then: Stmt, otherwise: Stmt | None = None) -> Stmt:
    """Return a conditional statement: `then` if the condition holds, else `otherwise`.

    Raises:
        TypeMismatchError: If `condition` is not boolean, or a branch is not a statement.

    >>> from tecomp import te
    >>> out = te.Operand(te.decl_buffer((4,), name="out"))
    >>> te.if_stmt(te.var("i") > 0, out.store(0, 1.0))
    if i > int32(0):
        out[0] = float32(1.0)
    """
    _check_statement(then, "te.if_stmt: then")
    if otherwise is not None:
        _check_statement(otherwise, "te.if_stmt: otherwise")
    test = value_of(condition)
    if not test.dtype.is_bool:
        raise TypeMismatchError(
            "te.if_stmt: condition is {condition}, of dtype {dtype}; pass a comparison",
            condition=test, dtype=test.dtype,
        )
    return IfThenElse(test, then, otherwise)


def allocate(
    shape: Extent | Sequence[Extent],
    dtype: str,
    body: Callable[[Operand], Stmt],
    name: str = "buffer",
    scope: str = "local",
) -> Stmt:
    """Return a statement that allocates an uninitialized buffer for the duration of a body.

    Args:
        shape: Extents in elements.
        dtype: Dtype of the elements.
        body: Function that is called once with the operand of the buffer and returns a statement.
        name: Name of the buffer.
        scope: Memory of the buffer. Default: `local`.

    Raises:
        DefinitionError: If an extent is not a size.
        TypeMismatchError: If an argument has the wrong type, or `body` does not return a statement.

    >>> from tecomp import te
    >>> te.allocate((4,), "float32", lambda m: m.store(0, 1.0), "m")
    with Allocate(Buffer("float32", (4,), scope="local")) as m:
        m[0] = float32(1.0)
    """
    name = name_of(name, "te.allocate")
    where = f"te.allocate {name}"
    check_scope(scope, where)
    buffer = Buffer(name, shape_of(shape, where), dtype_of(dtype, where), scope)
    return Allocate(buffer, _body(body, Operand(buffer), where, "the memory"))


def check_scope(scope: object, where: str) -> None:
    """Raise if `scope` is not a string.

    Raises:
        TypeMismatchError: If `scope` is not a string.
    """
    check_kind(
        scope, str, f"{where}: scope", 'pass the name of a memory, such as "local"',
        TypeMismatchError,
    )


def integer(value: Any, where: str) -> Expr:
    """Convert an index or loop bound to an int64 expression.

    Raises:
        TypeMismatchError: If the value is not an integer.
    """
    literal = as_int(value)
    node = literal if literal is not None else value_of(value)
    if isinstance(node, Expr) and not node.dtype.is_integer:
        raise TypeMismatchError(
            '{where} is {value} ({dtype}); pass an integer, or convert it with .astype("int64") if '
            "that is intended",
            kind="index-type", where=where, value=node, dtype=node.dtype,
        )
    return index_value(node)


def _body(body: Any, operand: object, where: str, kind: str) -> Stmt:
    """Call a body function with its variable or operand, and return its statement."""
    check_function(body, 1, f"{where}: the body", f"give a function of {kind}", TypeMismatchError)
    stmt: Stmt = body(operand)
    _check_statement(stmt, f"{where}: what the body gives")
    return stmt


def _check_statement(value: object, where: str) -> None:
    check_kind(
        value, Stmt, where,
        "pass a statement: store(index, value) of an operand, te.for_range, te.if_stmt, "
        "te.allocate or te.stmt_seq",
        TypeMismatchError,
    )


def check_statement(
    statement: Stmt,
    buffers: Sequence[Buffer],
    known_variables: Iterable[Var],
    where: str,
    remedy: str,
) -> None:
    """Raise if a user statement accesses anything except its operands and its own allocations.

    Args:
        statement: Statement to check.
        buffers: Buffers of the operands.
        known_variables: Variables that the statement may use.
        where: Call, for error messages.
        remedy: Remedy for an unknown variable, for error messages.

    Raises:
        DefinitionError: If the statement uses another buffer or variable.
    """
    known = {buffer.data for buffer in buffers}
    allocated = {node.buffer.data for node in walk(statement) if hasattr(node, "bound")
            and hasattr(node, "buffer")}  # fmt: skip
    for node in walk(statement):
        if isinstance(node, BufferLoad | BufferStore) and node.buffer.data not in known | allocated:
            raise DefinitionError(
                "{where}: fcompute uses {buffer}, which is not an operand; use the operands that "
                "it receives",
                kind="statements", where=where, buffer=node.buffer.name,
            )
    allowed = set(known_variables)
    for var in free_variables(statement):
        if var not in allowed:
            raise DefinitionError(
                "{where}: fcompute uses the unbound variable {var}; {remedy}",
                kind="unbound-variable", where=where, var=var.name, remedy=remedy,
            )
