"""Imperative statement builder, compatible with TVM's `tir.ir_builder`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tecomp.compute.expr_like import Value, value_of
from tecomp.compute.shape_validation import dtype_of, name_of, shape_of
from tecomp.compute.statement_builder import (
    LOOP_KINDS,
    Operand,
    check_scope,
    if_stmt,
    integer,
    row_major,
)
from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir.nodes.argument_checks import check_kind, is_one_of
from tecomp.ir.nodes.dtype import INT64, DType
from tecomp.ir.nodes.expr import Expr, Var, index_value
from tecomp.ir.nodes.stmt import Allocate, Buffer, Extent, For, ForKind, IfThenElse, Let, Stmt, seq
from tecomp.ir.traversal.rewrite import substitute

_MARKS = ("pragma_", "hint_", "compute_scope", "extern_scope")
"""Prefixes of attribute names that `scope_attr` accepts and ignores."""

Rest = Callable[[Stmt], Stmt]
"""Function that wraps a statement around the remaining statements of a scope."""


class BufferVar:
    """Buffer in an `IRBuilder`: `A[i, j]` reads an element, and `A[i, j] = x` emits a store.

    A single index into a buffer of several axes is a row-major offset.

    Attributes:
        operand: Operand that represents the buffer.
    """

    __slots__ = ("_emit", "operand")

    def __init__(self, operand: Operand, emit: Callable[[Stmt], None]) -> None:
        self.operand = operand
        self._emit = emit

    @property
    def dtype(self) -> DType:
        """Dtype of the elements."""
        return self.operand.dtype

    def asobject(self) -> Operand:
        """Return the operand, for use as a call argument."""
        return self.operand

    def access_ptr(self, *args: Any, **options: Any) -> Any:
        """Return a pointer argument of the operand, as `operand.access_ptr`."""
        return self.operand.access_ptr(*args, **options)

    def __getitem__(self, indices: Any) -> Expr:
        return self.operand[self._place(indices)]

    def __setitem__(self, indices: Any, value: Value) -> None:
        self._emit(self.operand.store(self._place(indices), value))

    def _place(self, indices: Any) -> tuple[Any, ...]:
        items = tuple(indices) if isinstance(indices, tuple | list) else (indices,)
        if len(items) == 1 and len(self.operand.shape) > 1:
            where = f"ir_builder: {self.operand.name}[...]: index"
            return row_major(integer(items[0], where), self.operand.shape)
        return items


class IRBuilder:
    """Builder that collects statements in emission order; made by `create`."""

    def __init__(self) -> None:
        self._scopes: list[list[Stmt | Rest]] = [[]]

    def emit(self, stmt: Stmt) -> None:
        """Append a statement to the current scope.

        Raises:
            TypeMismatchError: If `stmt` is not a statement.
        """
        check_kind(
            stmt, Stmt, "ir_builder.emit: the statement",
            "pass a statement, such as te.call_extern(...)", TypeMismatchError,
        )
        self._scopes[-1].append(stmt)

    def get(self) -> Stmt:
        """Return the sequence of all emitted statements, and reset the builder.

        Raises:
            DefinitionError: If a scope is still open.
        """
        if len(self._scopes) > 1:
            raise DefinitionError(
                "ir_builder.get: a `with` block of this builder is still open; call it after all "
                "blocks",
                kind="statements",
            )
        (parts,) = self._scopes
        self._scopes = [[]]
        return _join(parts)

    def buffer_ptr(self, buffer: Any, shape: Any = None) -> BufferVar:
        """Return a buffer for an operand, with reads and stores by index.

        Raises:
            TypeMismatchError: If `buffer` is not an operand.
        """
        check_kind(
            buffer, Operand, "ir_builder.buffer_ptr: the buffer",
            "pass an operand, such as outs[0]", TypeMismatchError,
        )
        return BufferVar(buffer, self.emit)

    def pointer(self, content_type: str, name: str = "ptr", scope: str = "") -> BufferVar:
        """Raise, because a pointer without memory is not supported.

        Raises:
            DefinitionError: Always.
        """
        raise DefinitionError(
            "ir_builder.pointer {name}: a pointer without memory is not supported; use "
            "ib.buffer_ptr(outs[0]) for operands, or ib.allocate",
            kind="statements", name=name,
        )

    def allocate(
        self,
        dtype: str,
        shape: Extent | Sequence[Extent],
        name: str = "buf",
        axis_separators: None = None,
        scope: str | None = None,
    ) -> BufferVar:
        """Allocate an uninitialized buffer for the rest of the current scope.

        Args:
            dtype: Dtype of the elements.
            shape: Extents in elements.
            name: Name of the buffer.
            axis_separators: Not supported; must be empty.
            scope: Memory of the buffer. Default: `local`.

        Raises:
            DefinitionError: If an extent is not a size, or `axis_separators` is given.
            TypeMismatchError: If an argument has the wrong type.
        """
        where = f"ir_builder.allocate {name_of(name, 'ir_builder.allocate')}"
        if axis_separators:
            raise DefinitionError(
                "{where}: memory has one physical axis; omit axis_separators",
                kind="statements", where=where,
            )
        check_scope(scope or "local", where)
        buffer = Buffer(name, shape_of(shape, where), dtype_of(dtype, where), scope or "local")
        self._around(lambda body: Allocate(buffer, body))
        return BufferVar(Operand(buffer), self.emit)

    def let(self, var_name: str, value: Value) -> Var:
        """Bind a variable to `value`, computed once, for the rest of the current scope."""
        expr = value_of(value)
        var = Var(name_of(var_name, "ir_builder.let"), expr.dtype)
        self._around(lambda body: Let(var, expr, body))
        return var

    def likely(self, expr: Value) -> Expr:
        """Return the condition unchanged; the branch hint has no effect."""
        return value_of(expr)

    def scope_attr(self, node: Any, attr_key: str, value: Any) -> None:
        """Attach an attribute to the rest of the current scope.

        `thread_extent` and `virtual_thread` of an axis emit a serial loop over its values. Hints,
        pragmas, `compute_scope` and `extern_scope` are accepted without effect.

        Raises:
            DefinitionError: If the attribute is unknown and may affect the result.
            TypeMismatchError: If `thread_extent` or `virtual_thread` is not given an axis.
        """
        if is_one_of(attr_key, ("thread_extent", "virtual_thread")):
            var = node if isinstance(node, Var) else getattr(node, "var", None)
            if not isinstance(var, Var):
                raise TypeMismatchError(
                    "ir_builder.scope_attr: {attr_key} requires an axis, got {node!r}; create one "
                    "with te.thread_axis",
                    kind="statements", attr_key=attr_key, node=node,
                )
            self._around(_wrap(var, integer(value, "ir_builder.scope_attr: the extent")))
        elif not isinstance(attr_key, str) or not attr_key.startswith(_MARKS):
            raise DefinitionError(
                "ir_builder.scope_attr: unknown attribute {attr_key!r}; use 'thread_extent', "
                "'virtual_thread', 'compute_scope', 'extern_scope', or a name that begins with "
                "'pragma_' or 'hint_'",
                kind="statements", attr_key=attr_key,
            )

    @contextmanager
    def for_range(
        self,
        begin: Value,
        end: Value,
        name: str = "i",
        dtype: str | None = None,
        kind: str = "serial",
    ) -> Iterator[Var]:
        """Emit a loop around the statements of the `with` block, and yield the loop variable.

        Args:
            begin: First value.
            end: End of the half-open range.
            name: Name of the loop variable.
            dtype: Ignored, for compatibility with TVM; loop variables are int64.
            kind: `serial`, `parallel`, `vectorize` or `unroll`.

        Raises:
            DefinitionError: If the kind does not exist.
            TypeMismatchError: If a bound is not an integer.
        """
        where = "ir_builder.for_range"
        if not is_one_of(kind, LOOP_KINDS):
            raise DefinitionError(
                "{where}: unknown loop kind {form!r}; use serial, parallel, vectorize or unroll",
                kind="unknown-choice", where=where, form=kind,
            )
        first, last = integer(begin, f"{where}: begin"), integer(end, f"{where}: end")
        var = Var(name_of(name, where), INT64)
        with self._scope() as parts:
            yield var
        self.emit(For(var, first, last - first, LOOP_KINDS[kind], _join(parts)))

    @contextmanager
    def new_scope(self) -> Iterator[None]:
        """Open a scope; buffers and variables of the `with` block end with the block."""
        with self._scope() as parts:
            yield
        self.emit(_join(parts))

    @contextmanager
    def if_scope(self, cond: Value) -> Iterator[None]:
        """Execute the statements of the `with` block if a condition holds."""
        if_stmt(cond, seq())  # raises before the block runs if `cond` is not a condition
        with self._scope() as parts:
            yield
        self.emit(if_stmt(cond, _join(parts)))

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """Execute the statements of the `with` block if the preceding `if_scope` does not hold.

        Raises:
            DefinitionError: If no `if_scope` directly precedes the block.
        """
        before = self._scopes[-1][-1] if self._scopes[-1] else None
        if not isinstance(before, IfThenElse) or before.else_case is not None:
            raise DefinitionError(
                "ir_builder.else_scope: no if_scope directly before it; place it directly after "
                "one",
                kind="statements",
            )
        with self._scope() as parts:
            yield
        self._scopes[-1][-1] = IfThenElse(before.condition, before.then_case, _join(parts))

    def while_loop(self, condition: Value) -> Any:
        """Raise, because loops need an extent that is known at their start.

        Raises:
            DefinitionError: Always.
        """
        raise DefinitionError(
            "ir_builder.while_loop: loops with a data-dependent trip count are not supported; use "
            "for_range with the maximum trip count, and if_scope inside",
            kind="statements",
        )

    @contextmanager
    def _scope(self) -> Iterator[list[Stmt | Rest]]:
        parts: list[Stmt | Rest] = []
        self._scopes.append(parts)
        depth = len(self._scopes)
        try:
            yield parts
        finally:
            del self._scopes[depth - 1 :]

    def _around(self, rest: Rest) -> None:
        self._scopes[-1].append(rest)


def create() -> IRBuilder:
    """Return a new statement builder, for `te.extern` and intrinsics.

    Example:
        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> def sums(ins, outs):
        ...     ib = create()
        ...     a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        ...     b[0] = a[0]
        ...     with ib.for_range(1, 8, name="i") as i:
        ...         b[i] = b[i - 1] + a[i]
        ...     return ib.get()
        >>> te.extern((8,), [A], sums, name="B")
        Tensor(B, shape=(8,), dtype=float32)
    """
    return IRBuilder()


def _join(parts: Sequence[Stmt | Rest]) -> Stmt:
    """Join statements in order; each wrapper encloses all statements that follow it."""
    body = seq()
    for part in reversed(parts):
        body = seq(part, body) if isinstance(part, Stmt) else part(body)
    return body


def _wrap(var: Var, extent: Expr) -> Rest:
    loop_var = Var(var.name, INT64)
    return lambda body: For(
        loop_var, index_value(0), extent, ForKind.SERIAL, substitute(body, {var: loop_var}))
