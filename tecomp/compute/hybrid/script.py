"""`te.hybrid.script`, and the conversion of hybrid functions to tensor definitions.

The parser is imported with the first hybrid function, because most programs have none.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from tecomp.compute.define import compute
from tecomp.compute.extern import extern
from tecomp.compute.intrinsics import cast as cast_value
from tecomp.compute.ir_builder import IRBuilder
from tecomp.compute.operators import if_then_else
from tecomp.compute.statement_builder import Operand
from tecomp.compute.tensor import Tensor
from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.expr import BufferLoad, Cast, Const, Expr, Var, const, index_value, is_const
from tecomp.ir.nodes.stmt import (
    Buffer,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    Let,
    Stmt,
    loops_over_elements,
    seq,
)
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import bottom_up, nodes_of, substitute, walk

if TYPE_CHECKING:
    from tecomp.compute.hybrid.expression_parser import HybridArray, HybridSource
    from tecomp.compute.hybrid.statement_parser import StatementParser

_MAX_DEPTH = 100  # of nested lists: Python's recursion limit is 1,000 calls


def define_outputs(function: Any, arguments: Sequence[Any]) -> Any:
    """Return the tensor, or the list of tensors, that a hybrid function defines.

    Args:
        function: Hybrid function.
        arguments: Tensors, numbers, and lists of them.

    Raises:
        DefinitionError: If the function is outside of the supported subset, returns anything
            except its output tensors, or does not return one of them.
    """
    inputs, reader, returned = _read_once(function, arguments, ())
    if reader.mutated_buffers:
        changed = [t for t, operand in inputs.items()
                   if any(operand.buffer is item for item in reader.mutated_buffers)]  # fmt: skip
        inputs, reader, returned = _read_once(function, arguments, changed)
    statement = reader.builder.get()
    outputs = [item.operand.buffer for item in returned]
    missing = [b.name for b in reader.outputs if all(b is not item for item in outputs)]
    if missing:
        raise DefinitionError(
            "te.hybrid {source}: output_tensor {missing} is not returned; return it, or create it "
            "with allocate",
            kind="hybrid", source=function.source.name, missing=missing[0],
        )
    if any(all(b is not item for item in reader.outputs) for b in outputs):
        raise DefinitionError(
            "te.hybrid {source}: the returned value is not an output_tensor of this function; copy "
            "it to one, element by element",
            kind="hybrid", source=function.source.name,
        )
    value = _as_te_compute(statement, outputs, inputs)
    return value if value is not None else _opaque(function.source.name, statement, outputs, inputs)


def _read_once(
    function: Any, arguments: Sequence[Any], changed: Sequence[Tensor]
) -> tuple[dict[Tensor, Operand], StatementParser, list[HybridArray]]:
    """Return the inputs of a function, its reader, and the arrays that it returns.

    Inputs in `changed` are copied first, so that the arrays of the caller are not modified.
    """
    from tecomp.compute.hybrid.expression_parser import HybridArray
    from tecomp.compute.hybrid.statement_parser import StatementParser

    inputs: dict[Tensor, Operand] = {}
    copies: dict[Tensor, Operand] = {}
    reader = StatementParser(function.source, IRBuilder())

    def argument(value: Any, depth: int = 0) -> Any:
        if isinstance(value, list | tuple):
            if depth == _MAX_DEPTH:
                raise DefinitionError(
                    "te.hybrid {source}: an argument has more than {max_depth} levels of nested "
                    "lists; pass lists of fewer levels",
                    kind="hybrid", source=function.source.name, max_depth=_MAX_DEPTH,
                )
            return tuple(argument(item, depth + 1) for item in value)
        if not isinstance(value, Tensor):
            is_index = isinstance(value, Const) and value.dtype == "int64"
            return int(value.value) if is_index else value
        if value not in inputs:
            buffer = Buffer(value.name, value.shape, value.dtype, "")
            inputs[value] = Operand(buffer, is_input=True)
            if any(value == item for item in changed):
                copies[value] = _copy(inputs[value], reader.builder)
        return HybridArray(copies.get(value, inputs[value]))

    returned = reader.run([argument(item) for item in arguments])
    return inputs, reader, returned


def _copy(source: Operand, builder: IRBuilder) -> Operand:
    memory: Operand = builder.allocate(str(source.dtype), source.shape, source.name).operand
    variables = tuple(Var(f"i{k}") for k in range(len(source.shape)))
    element = BufferLoad(source.buffer, variables)
    builder.emit(loops_over_elements(
        variables, source.buffer.shape, BufferStore(memory.buffer, element, variables)))
    return memory


def _as_te_compute(
    statement: Stmt, outputs: Sequence[Buffer], inputs: Mapping[Tensor, Operand]
) -> Tensor | None:
    """Return a `te.compute` if the loops store each element of one tensor once, else None."""
    if len(outputs) != 1:
        return None
    (out,) = outputs
    loops, body = _loops(statement)
    if any(loop.kind is not ForKind.SERIAL or not is_const(loop.min, 0) for loop in loops):
        return None
    found = _match_single_store(body, out)
    if found is None:
        return None
    indices, value = found
    by_var = {loop.loop_var: loop for loop in loops}
    axes = [_variable(index) for index in indices]
    if len(loops) != len(axes) or set(by_var) != set(axes) or any(
        isinstance(node, BufferLoad) and node.buffer.data is out.data for node in walk(value)
    ):
        return None
    extents = zip(axes, out.shape, strict=True)
    if not all(structural_equal(simplify(by_var[var].extent), simplify(index_value(n)))
               for var, n in extents if var is not None):
        return None
    variables = [var for var in axes if var is not None]
    tensors = {operand.buffer.data: tensor for tensor, operand in inputs.items()}
    # The loops become the axes of the tensor; the schedule determines their order.
    result: Tensor = compute(
        out.shape,
        lambda *args: cast_value(_read(value, dict(zip(variables, args, strict=True)), tensors),
                                out.dtype),
        name=out.name, varargs_names=[var.name for var in variables],
    )
    return result


def _loops(statement: Stmt) -> tuple[list[For], Stmt]:
    loops: list[For] = []
    while isinstance(statement, For):
        loops.append(statement)
        statement = statement.body
    return loops, statement


def _variable(index: Expr) -> Var | None:
    while isinstance(index, Cast):
        index = index.value
    return index if isinstance(index, Var) else None


def _match_single_store(body: Stmt, out: Buffer) -> tuple[tuple[Expr, ...], Expr] | None:
    """Return index and value of the only store of a statement on every path, or None."""
    match body:
        case BufferStore(buffer, value, indices) if buffer.data is out.data:
            return indices, value
        case Let(var, value, inner):
            found = _match_single_store(inner, out)
            return None if found is None else (found[0], substitute(found[1], {var: value}))
        case IfThenElse(condition, then, other) if other is not None:
            first, second = _match_single_store(then, out), _match_single_store(other, out)
            if first is None or second is None or not all(
                structural_equal(a, b) for a, b in zip(first[0], second[0], strict=True)
            ):
                return None
            return first[0], if_then_else(condition, first[1], second[1])
    return None


def _read(value: Expr, axes: Mapping[Var, Expr], tensors: Mapping[Var, Tensor]) -> Expr:
    """Rewrite a value from loop variables and buffers to axes and tensors."""

    def rule(node: Any) -> Any:
        match node:
            case Cast(_, Var() as var) if var in axes and node.dtype == axes[var].dtype:
                return axes[var]
            case BufferLoad(buffer, indices):
                return tensors[buffer.data][tuple(map(_index, indices))]
        return None

    return substitute(bottom_up(value, rule), dict(axes))


def _index(index: Expr) -> Expr:
    """Return an index without its cast to the index dtype."""
    return index.value if isinstance(index, Cast) and index.value.dtype.is_integer else index


def _opaque(
    name: str, statement: Stmt, outputs: Sequence[Buffer], inputs: Mapping[Tensor, Operand]
) -> Any:
    """Return a `te.extern`; outputs that the statement reads are zeroed first, as in Python."""
    read = {node.buffer.data for node in nodes_of(BufferLoad, statement)}
    zeros = [_zeros(out) for out in outputs if out.data in read]
    full_body = seq(*zeros, statement)

    def statements(ins: Sequence[Operand], outs: Sequence[Operand]) -> Stmt:
        buffers = [*(operand.buffer for operand in inputs.values()), *outputs]
        mapping = {old.data: new.buffer for old, new in zip(buffers, [*ins, *outs], strict=True)}

        def rule(node: Any) -> Any:
            match node:
                case BufferLoad(buffer, indices) if buffer.data in mapping:
                    return BufferLoad(mapping[buffer.data], indices)
                case BufferStore(buffer, value, indices) if buffer.data in mapping:
                    return BufferStore(mapping[buffer.data], value, indices)
            return None

        body: Stmt = bottom_up(full_body, rule)
        return body

    tensors = extern(
        [out.shape for out in outputs], list(inputs), statements,
        name=outputs[0].name if len(outputs) == 1 else name,
        dtype=[out.dtype for out in outputs],
    )
    return tensors


def _zeros(out: Buffer) -> Stmt:
    variables = tuple(Var(f"i{k}") for k in range(len(out.shape)))
    return loops_over_elements(
        variables, out.shape, BufferStore(out, const(0, out.dtype), variables)
    )


class HybridFunction:
    """Hybrid function made by `te.hybrid.script`.

    A call with tensors defines tensors. A call with arrays runs the function as Python.
    """

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self._source: HybridSource | None = None
        update_wrapper(self, function)

    @property
    def source(self) -> HybridSource:
        """Parsed source of the function.

        Raises:
            DefinitionError: If the source text is not available, or is not a `def`.
        """
        if self._source is None:
            self._source = _source(self.function)
        return self._source

    def __call__(self, *args: Any) -> Any:
        """Define tensors if an argument is a tensor or expression, else run the Python function.

        Raises:
            DefinitionError: If the function is outside of the supported subset; the message gives
                the line.
            TypeMismatchError: If there are neither tensors nor arrays, and Python raises an error.
        """
        if any(map(_is_symbolic, args)):
            return define_outputs(self, args)
        try:
            return self._python()(*args)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            if any(map(_is_array, args)):
                raise
            arg_text = ", ".join(map(repr, args))
            raise TypeMismatchError(
                "te.hybrid {function}: call with ({arguments}) runs as plain Python, which failed: "
                "{reason}; pass tensors to define tensors, or arrays",
                kind="hybrid", function=self.function.__name__, arguments=arg_text, reason=error,
            ) from error

    def _python(self) -> Callable[..., Any]:
        """Return the Python function with the hybrid names in its globals."""
        from tecomp.compute.hybrid.expression_parser import PYTHON

        known = {**self.function.__globals__, **PYTHON}
        return FunctionType(
            self.function.__code__, known, self.function.__name__, self.function.__defaults__,
            self.function.__closure__,
        )


def script(pyfunc: Callable[..., Any]) -> HybridFunction:
    """Convert a Python function with loops over elements to a tensor definition; a decorator.

    A call with tensors, `te.var` sizes or `te.const` numbers parses the source of the function. The
    supported subset has loops (`range`, `parallel`, `vectorize`, `unroll`, `bind`, and
    `const_range`, which is expanded), `if`, assignments to elements of `output_tensor(shape,
    dtype)` and `allocate(shape, dtype, scope)`, local variables, arithmetic, and mathematical
    functions. The function returns its output tensors. An input that the function stores to is
    copied first. A call with NumPy arrays runs the function as Python; only then `assert` is
    evaluated.

    A function whose loops store each element of one tensor once gives a `te.compute` whose axes are
    the loops. Any other function gives a `te.extern`, which has no loops to schedule.

    Raises:
        TypeMismatchError: If `pyfunc` is not a Python function.

    Example:
        >>> from tecomp import te
        >>> @te.hybrid.script
        ... def outer(a, b):
        ...     c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
        ...     for i in range(a.shape[0]):
        ...         for j in range(b.shape[0]):
        ...             c[i, j] = a[i] * b[j]
        ...     return c
        >>> a, b = te.placeholder((3,), name="a"), te.placeholder((4,), name="b")
        >>> outer(a, b)
        Tensor(c, shape=(3, 4), dtype=float32)
    """
    if not isinstance(pyfunc, FunctionType):
        raise TypeMismatchError(
            "te.hybrid.script: expected a Python function, got {pyfunc!r}",
            kind="hybrid", pyfunc=pyfunc,
        )
    return HybridFunction(pyfunc)


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_symbolic, value))
    return isinstance(value, Tensor | Expr)


def _is_array(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_array, value))
    return isinstance(value, np.ndarray)


def _source(function: FunctionType) -> HybridSource:
    from tecomp.compute.hybrid.expression_parser import HybridSource

    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise DefinitionError(
            "te.hybrid {function}: source code is not available; define the function in a file",
            kind="hybrid", function=function.__name__,
        ) from None
    text = textwrap.dedent("".join(lines))
    try:
        tree: ast.stmt | None = ast.parse(text).body[0]
    except SyntaxError:
        # The source lines of a lambda contain the enclosing statement, which may not parse.
        tree = None
    if not isinstance(tree, ast.FunctionDef):
        raise DefinitionError(
            "te.hybrid {function}: not a `def` statement; define a function with statements",
            kind="hybrid", function=function.__name__,
        )
    outside = inspect.getclosurevars(function)
    known = {
        name: value for name, value in {**outside.globals, **outside.nonlocals}.items()
        if isinstance(value, bool | int | float | str | tuple | list | np.generic | HybridFunction)
    }
    return HybridSource(function.__name__, tree, text, first, known)
