"""`te.extern`, `decl_buffer`, `te.call_packed` and `te.call_extern`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from tecomp.compute.expr_like import Value, value_of
from tecomp.compute.ir_builder import BufferVar
from tecomp.compute.iter_var import IterKind, IterVar, make_axis
from tecomp.compute.operation import ComputeOp
from tecomp.compute.shape_validation import attributes_of, dtype_of, extent_of, name_of, shape_of
from tecomp.compute.statement_builder import Operand, check_scope, check_statement, integer
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.compute.tvm_compat import tag_of
from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir.extern.c_function import CArgument
from tecomp.ir.extern.registry import (
    CallSignature,
    NumberType,
    c_function,
    callee_of,
    function_of,
    get_global_func,
)
from tecomp.ir.nodes.argument_checks import as_int, check_function, check_list, is_one_of
from tecomp.ir.nodes.dtype import INT64, DType
from tecomp.ir.nodes.expr import Call, Expr, Var, const
from tecomp.ir.nodes.operators import outside_call
from tecomp.ir.nodes.printer import Pieces, PrintedName
from tecomp.ir.nodes.stmt import (
    ArrayArgument,
    Buffer,
    BufferStore,
    CallingConvention,
    Extent,
    ExternCall,
    Passed,
    Stmt,
)
from tecomp.ir.traversal.rewrite import free_variables, nodes_of
from tecomp.source_locations import user_location

# Alignment options of TVM, without effect because the schedule determines addresses of operands.
ALIGNMENT = ("offset_factor", "data_alignment")

_MIN_INT64 = -(2**63)


def decl_buffer(
    shape: Sequence[Extent],
    dtype: str = "float32",
    name: str = "buffer",
    *,
    scope: str = "",
    strides: Sequence[Extent] | None = None,
    elem_offset: Extent | None = None,
    data_alignment: int = -1,
    offset_factor: int = 0,
) -> Buffer:
    """Declare the memory requirements of a tensor, for `binds`.

    Args:
        shape: Extents in elements.
        dtype: Dtype of the elements.
        name: Name in error messages.
        scope: Required memory; empty for any memory.
        strides: Stride of each axis in elements: ints, which may be 0 or negative, or variables.
            For `tecomp.build`, variables are bound to the strides of the passed arrays. For an
            intrinsic, variables match any strides, which `operand.strides` returns.
        elem_offset: Offset of the first element in the array, in elements. If it is not 0, calls
            of `tecomp.build` pass a one-dimensional array that contains the tensor. A variable
            that no argument determines is 0, as for operands of an intrinsic. Default: 0.
        data_alignment: Accepted without effect; the schedule determines the addresses of operands.
        offset_factor: Accepted without effect, as `data_alignment`.

    Raises:
        DefinitionError: If an extent or `elem_offset` is not a size, or the number of strides
            differs from the number of axes.
        TypeMismatchError: If an argument has the wrong type.

    >>> from tecomp import te
    >>> te.decl_buffer((16,), "float32", "a", scope="local").scope
    'local'
    """
    where = f"te.decl_buffer {name_of(name, 'te.decl_buffer')}"
    check_scope(scope, where)
    for number, arg_name in ((data_alignment, "data_alignment"), (offset_factor, "offset_factor")):
        if as_int(number) is None:
            raise TypeMismatchError(
                "{where}: {subject} must be an integer, got {number!r}",
                kind="invalid-type", where=where, subject=arg_name, number=number,
            )
    start = extent_of(0 if elem_offset is None else elem_offset, f"{where}: elem_offset")
    extents = shape_of(shape, where)
    steps = None if strides is None else _strides_of(strides, where)
    if steps is not None and len(steps) != len(extents):
        raise DefinitionError(
            "{where}: buffer has {extent_count} axes, but {given_count} strides; pass one stride "
            "per axis",
            kind="count-mismatch", where=where, extent_count=len(extents), given_count=len(steps),
        )
    kind = dtype_of(dtype, where)
    return Buffer(name, extents, kind, scope, strides=steps, elem_offset=start)


def _strides_of(strides: Any, where: str) -> tuple[Extent, ...]:
    if isinstance(strides, str | bytes) or not isinstance(strides, Sequence):
        raise TypeMismatchError(
            "{where}: strides is {value!r}; pass a list of integers and te.var variables",
            kind="invalid-type", where=where, value=strides,
        )
    return tuple(
        extent_of(n, f"{where}: the stride of axis {k}", least=_MIN_INT64)
        for k, n in enumerate(strides)
    )


def check_without_gaps(buffer: Buffer, where: str) -> None:
    """Raise if a buffer declares other strides or another offset than functions receive.

    Raises:
        DefinitionError: If a constant stride differs from the contiguous stride of its axis, or the
            offset is neither 0 nor a variable.
    """
    if buffer.has_offset and not isinstance(buffer.elem_offset, Var):
        raise DefinitionError(
            "{where}: elem_offset is {elem_offset}, but functions receive the address of the first "
            "element; omit elem_offset, or pass a te.var, which is 0",
            kind="invalid-type", where=where, elem_offset=buffer.elem_offset,
        )
    strides = Operand(buffer).strides
    for axis, (declared, actual) in enumerate(zip(buffer.strides or (), strides, strict=False)):
        if isinstance(declared, int) and isinstance(actual, int) and declared != actual:
            raise DefinitionError(
                "{where}: stride of axis {axis} is {requested_stride}, but functions receive "
                "contiguous operands, where it is {actual_stride}; pass a te.var, and read the "
                "stride from operand.strides",
                where=where, axis=axis, requested_stride=declared, actual_stride=actual,
            )


_FLOAT64 = DType("float64")
_NO_VALUE = ("", "void", "handle")


def call_packed(name: str, *args: Any, multiply_adds: Value | None = None) -> Stmt:
    """Return a statement that calls a registered Python function.

    The function receives NumPy views of the memory of the operands. Views of inputs are read-only,
    and no view may be kept after the call. The function runs with the Python GIL held, also in
    parallel loops. Its exceptions propagate to the caller of the kernel.

    Args:
        name: Name in `tecomp.register_func`. The function must be registered when the kernel is
            built or loaded.
        args: Whole operands, `operand.access_ptr(...)`, numbers and strings.
        multiply_adds: Number of multiply-adds of the call, for `kernel.report()`. Default: unknown.

    Raises:
        DefinitionError: If the function is already registered and takes a different number of
            arguments.
        TypeMismatchError: If an argument has an unsupported type.

    Example:
        >>> import tecomp
        >>> from tecomp import te
        >>> @tecomp.register_func("example.sorted", override=True)
        ... def sorted_rows(x, y):
        ...     y[...] = x
        ...     y.sort()
        >>> A = te.placeholder((4, 16), name="A")
        >>> te.extern((4, 16), [A], lambda ins, outs: te.call_packed(
        ...     "example.sorted", ins[0], outs[0]), name="B")
        Tensor(B, shape=(4, 16), dtype=float32)
    """
    where = "te.call_packed"
    _check_name(name, where)
    call = ExternCall(name, CallingConvention.PACKED, tuple(
        _convert_argument(arg, f"{where} {name}: argument {k}") for k, arg in enumerate(args)
    ), _work(multiply_adds, f"{where} {name}"))
    if get_global_func(name, allow_missing=True) is not None:
        function_of(callee_of(call, where))
    return call


def call_extern(
    dtype: str, name: str, *args: Any, multiply_adds: Value | None = None
) -> Stmt:
    """Return a statement that calls a C function registered as a `tecomp.CFunction`.

    The function receives addresses and numbers, and runs on the calling thread without Python. Its
    return value is ignored.

    Args:
        dtype: Return dtype of the function, also `void` or `handle`.
        name: Name in `tecomp.register_func`.
        args: `operand.access_ptr("r")` or `("w")`, which passes the address of contiguous row-major
            elements; operands; numbers.
        multiply_adds: Number of multiply-adds of the call, for `kernel.report()`. Default: unknown.

    Raises:
        DefinitionError: If the function is not registered, or has a different signature.
        TypeMismatchError: If an argument has an unsupported type.

    >>> import ctypes
    >>> from tecomp import CFunction, register_func, te
    >>> copy = CFunction(ctypes.CDLL(None), "memcpy", ["handle", "const handle", "uint64"])
    >>> _ = register_func("example.memcpy", copy, override=True)
    >>> def copied(ins, outs):
    ...     to, given = outs[0].access_ptr("w"), ins[0].access_ptr("r")
    ...     return te.call_extern("handle", "example.memcpy", to, given, 32)
    >>> te.extern((8,), te.placeholder((8,), name="A"), copied, name="C")
    Tensor(C, shape=(8,), dtype=float32)
    """
    where = "te.call_extern"
    _check_name(name, where)
    if not is_one_of(dtype, _NO_VALUE):
        dtype_of(dtype, f"{where} {name}")
    declared = c_function(name, where).arguments
    values = [
        _number_as(arg, declared[k]) if k < len(declared) else arg for k, arg in enumerate(args)
    ]
    call = ExternCall(name, CallingConvention.C, tuple(
        _convert_argument(arg, f"{where} {name}: argument {k}") for k, arg in enumerate(values)
    ), _work(multiply_adds, f"{where} {name}"))
    function_of(callee_of(call, where))
    return call


def call_pure_extern(dtype: str, name: str, *args: Any) -> Expr:
    """Return the result of a pure C function of numbers, as an expression.

    The compiler may evaluate the call any number of times for each element. A vectorized loop calls
    the function once per lane.

    Args:
        dtype: Result dtype.
        name: Name in `tecomp.register_func` of a `tecomp.CFunction` with `result=`, or name of a
            function of the C math library, such as `expf` or `pow`.
        args: Numbers; Python numbers take the dtypes of the parameters.

    Raises:
        DefinitionError: If the function is not registered, or has a different signature.

    Example:
        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> te.compute((8,), lambda i: te.call_pure_extern("float32", "cbrtf", A[i]))
        Tensor(compute, shape=(8,), dtype=float32)
    """
    where = "te.call_pure_extern"
    _check_name(name, where)
    result = dtype_of(dtype, f"{where} {name}")
    declared = c_function(name, where).arguments
    values = tuple(
        value_of(_number_as(arg, declared[k]) if k < len(declared) else arg)
        for k, arg in enumerate(args)
    )
    kinds = tuple(NumberType(value.dtype) for value in values)
    function_of(CallSignature(name, CallingConvention.C, kinds, where, result))
    return Call(outside_call(name), values, result)


def _check_name(name: object, where: str) -> None:
    if not isinstance(name, str) or not name:
        raise TypeMismatchError(
            "{where}: function name must be a string, got {name!r}; pass the name that it is "
            "registered under",
            kind="external-function", where=where, name=name,
        )


def _work(multiply_adds: Value | None, where: str) -> Expr | None:
    return None if multiply_adds is None else integer(multiply_adds, f"{where}: multiply_adds")


def _convert_argument(arg: Any, where: str) -> Passed:
    if isinstance(arg, BufferVar):
        arg = arg.operand
    if isinstance(arg, Operand):
        return arg.array(is_written=not arg.is_input)
    if isinstance(arg, ArrayArgument | str):
        return arg
    if isinstance(arg, Stmt | Sequence):
        raise TypeMismatchError(
            "{where} is {value!r} ({type}); pass operands, operand.access_ptr(...), numbers and "
            "strings as separate arguments",
            kind="external-function", where=where, value=arg, type=type(arg).__name__,
        )
    number = _literal(arg)
    return value_of(arg) if number is None else number


def _literal(value: Any) -> Expr | None:
    """Return a Python int or float as an int64 or float64 constant, or None for other values."""
    if isinstance(value, bool | np.generic):
        return None
    if isinstance(value, int):
        return const(value, INT64)
    return const(value, _FLOAT64) if isinstance(value, float) else None


def _number_as(value: Any, declared: CArgument) -> Any:
    """Convert a Python number to the dtype of a C parameter; return other values unchanged."""
    is_number = isinstance(value, bool | int | float)
    if not is_number or declared.is_pointer:
        return value
    kind = DType(declared.dtype)
    if isinstance(value, float) and kind.is_integer:
        return value
    return const(value, kind)


_ANYWHERE = "anywhere"


@dataclass(frozen=True, slots=True, eq=False)
class ExternOp(ComputeOp):
    """Tensors computed by an opaque statement, which runs as a whole and has no loops to schedule.

    The body declares the reads: each input at unknown indices. If the outputs have different
    shapes, they have no common axes, and the operation has no axes.

    Attributes:
        buffers: Buffers of the inputs, followed by the buffers of the outputs.
        statement: Statement that stores the outputs.

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
        """No loops, because the statement is opaque to the schedule."""
        return ()

    @property
    def shapes(self) -> tuple[tuple[Extent, ...], ...]:
        """Shape of each output."""
        return tuple(buffer.shape for buffer in self.buffers[-len(self.body):])

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Input tensors in buffer order; a tensor may occur several times."""
        first = self.body[0]
        assert isinstance(first, Call)
        return tuple(load.tensor for load in first.args if isinstance(load, TensorLoad))

    def print_tokens(self) -> Pieces:
        """Yield the pieces of the printed text, `E = extern(A, B)`."""
        for k, tensor in enumerate(self.outputs):
            yield ", " if k else ""
            yield PrintedName(tensor)
        yield " = extern("
        for k, tensor in enumerate(self.inputs):
            yield ", " if k else ""
            yield PrintedName(tensor)
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
    """Define tensors by statements, for computations that are not expressions of an index.

    Args:
        shape: Shape of the result, or a list of shapes for several tensors.
        inputs: Tensors that the statements read.
        fcompute: Function that is called once with a list of operands for `inputs` and a list of
            operands for the results. It returns the statement that stores all results, made of
            `operand.store(index, value)`, `te.for_range`, `te.if_stmt`, `te.allocate` and
            `te.stmt_seq`.
        name: Name of the result in printed text.
        dtype: Dtype of the result, or a list of dtypes. Default: the dtypes of `out_buffers`, or
            the common dtype of the inputs.
        in_buffers: `te.decl_buffer` for each input, with its shape and dtype. The buffer names the
            operand; memory and layout come from the schedule.
        out_buffers: `te.decl_buffer` for each result, as `in_buffers`; also gives the dtypes.
        tag: Text stored with the operation. Default: the tag of the enclosing `te.tag_scope`.
        attrs: Attributes stored with the operation.

    Returns:
        The result, or a list of tensors if there are several.

    Raises:
        DefinitionError: If the dtypes cannot be derived, or the statement accesses anything except
            its operands and allocated memory, stores to an input, or does not store a result.
        TypeMismatchError: If `fcompute` does not return a statement.

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
    read = tuple(inputs) if isinstance(inputs, list | tuple) else (inputs,)
    for tensor in read:
        if not isinstance(tensor, Tensor):
            raise TypeMismatchError(
                "{where}: inputs must be tensors, got {tensor!r} ({type})",
                kind="invalid-type", where=where, tensor=tensor, type=type(tensor).__name__,
            )
    shapes = _shapes(shape, where)
    outs = _declared_buffers(out_buffers, f"{where}: out_buffers")
    if dtype is None and len(outs) == len(shapes):
        dtype = [buffer.dtype for buffer in outs]
    types = _types(dtype, read, len(shapes), where)
    same_shape = all(list(map(str, dims)) == list(map(str, shapes[0])) for dims in shapes)
    axis_shape = shapes[0] if same_shape else ()
    axis = tuple(make_axis(f"i{k}", 0, n, IterKind.DATA) for k, n in enumerate(axis_shape))
    results = [name if len(types) == 1 else f"{name}_v{k}" for k in range(len(types))]
    ins = [Buffer(t.name, t.shape, t.dtype, "") for t in read]
    targets = [Buffer(n, dims, t, "") for n, dims, t in zip(results, shapes, types, strict=True)]
    buffers = (
        *_name_buffers(ins, _declared_buffers(in_buffers, f"{where}: in_buffers"),
        f"{where}: in_buffers"),
        *_name_buffers(targets, outs, f"{where}: out_buffers"),
    )
    statement = _statement(fcompute, buffers, len(read), where)
    location = user_location()
    loads = tuple(
        TensorLoad(t, tuple(Call(_ANYWHERE, (), INT64) for _ in t.shape), location) for t in read
    )
    body: tuple[Expr, ...] = tuple(Call("extern", loads, kind) for kind in types)
    outputs = ExternOp(
        name, axis, body, tag_of(tag, where), attributes_of(attrs, where), location,
        buffers=buffers, statement=statement,
    ).outputs
    return outputs[0] if len(outputs) == 1 else list(outputs)


def _declared_buffers(value: object, where: str) -> tuple[Buffer, ...]:
    """Return the buffers that the user declared for operands; empty for None."""
    buffers: Any = () if value is None else [value] if isinstance(value, Buffer) else value
    check_list(
        buffers, Buffer, where, "pass a list of buffers from te.decl_buffer", TypeMismatchError)
    return tuple(buffers)


def _name_buffers(base: Sequence[Buffer], decls: Sequence[Buffer], where: str) -> Iterator[Buffer]:
    """Yield the buffers of operands under their declared names.

    Raises:
        DefinitionError: If a declared buffer does not match its tensor.
    """
    if decls and len(decls) != len(base):
        raise DefinitionError(
            "{where}: got {given_count} for {own_count} tensors; pass one buffer per tensor",
            kind="count-mismatch", where=where, given_count=len(decls), own_count=len(base),
        )
    for buffer, decl in zip(base, decls or base, strict=True):
        same_shape = list(map(str, buffer.shape)) == list(map(str, decl.shape))
        if not same_shape or buffer.dtype != decl.dtype or decl.scope not in ("", "global"):
            raise DefinitionError(
                "{where}: `{parameter}` does not match `{buffer}`; declare its shape and dtype, "
                "and select its memory with set_scope",
                kind="statements", where=where, parameter=decl, buffer=buffer,
            )
        check_without_gaps(decl, f"{where}: {decl.name}")
        yield Buffer(decl.name, buffer.shape, buffer.dtype, "")


def _shapes(shape: Any, where: str) -> list[tuple[Extent, ...]]:
    """Return the shape of each result."""
    are_several = isinstance(shape, list | tuple) and shape and isinstance(shape[0], list | tuple)
    return [shape_of(item, where) for item in (shape if are_several else [shape])]


def _types(
    dtype: object, inputs: Sequence[Tensor], count: int, where: str
) -> tuple[DType, ...]:
    if dtype is None:
        known = dict.fromkeys(tensor.dtype for tensor in inputs)
        if len(known) != 1:
            raise DefinitionError(
                "{where}: the dtype of the result cannot be inferred from the inputs ({known}); "
                "pass dtype=",
                kind="statements", where=where, known=", ".join(known) or "none",
            )
        return tuple(known) * count
    dtypes = list(dtype) if isinstance(dtype, list | tuple) else [dtype] * count
    if len(dtypes) != count:
        raise DefinitionError(
            "{where}: got {many_count} dtypes for {count} results; pass one per result",
            kind="count-mismatch", where=where, many_count=len(dtypes), count=count,
        )
    return tuple(dtype_of(item, where) for item in dtypes)


def _statement(
    fcompute: Callable[..., Stmt], buffers: Sequence[Buffer], n_inputs: int, where: str
) -> Stmt:
    """Call the user function with operands for the buffers, and validate its statement."""
    check_function(
        fcompute, 2, f"{where}: fcompute", "pass a function of the inputs and the outputs",
        TypeMismatchError,
    )
    operands = [Operand(buffer, k < n_inputs) for k, buffer in enumerate(buffers)]
    statement = fcompute(operands[:n_inputs], operands[n_inputs:])
    _check(statement, buffers, n_inputs, where)
    return statement


def _check(statement: object, buffers: Sequence[Buffer], n_inputs: int, where: str) -> None:
    if not isinstance(statement, Stmt):
        raise TypeMismatchError(
            "{where}: fcompute returned {statement!r} ({type}); return a statement: "
            "outs[0].store(index, value), te.for_range, te.if_stmt, te.allocate or te.stmt_seq",
            kind="statements", where=where, statement=statement, type=type(statement).__name__,
        )
    loads = nodes_of(TensorLoad, statement)
    if loads:
        raise DefinitionError(
            "{where}: fcompute reads the tensor {tensor} directly; add it to inputs, and read its "
            "operand",
            kind="statements", where=where, tensor=loads[0].tensor.name,
        )
    params = [var for var in free_variables(statement) if not isinstance(var, IterVar)]
    check_statement(statement, buffers, params, where, "bind it with te.for_range")
    written = {node.buffer.data for node in nodes_of(BufferStore, statement)}
    for k, buffer in enumerate(buffers):
        if k < n_inputs and buffer.data in written:
            raise DefinitionError(
                "{where}: fcompute stores to the input {buffer}; store to its outputs, or to "
                "memory from te.allocate",
                kind="statements", where=where, buffer=buffer.name,
            )
        if k >= n_inputs and buffer.data not in written:
            raise DefinitionError(
                "{where}: fcompute does not store to {buffer}; store every element of each result",
                kind="statements", where=where, buffer=buffer.name,
            )
