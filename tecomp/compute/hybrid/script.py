"""`te.hybrid.script`, and the definitions that it produces."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from types import FunctionType
from typing import Any

import numpy as np

from tecomp.compute.define import compute
from tecomp.compute.extern import extern
from tecomp.compute.hybrid.expression_parser import PYTHON, Array, Source
from tecomp.compute.hybrid.statement_parser import Reader
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
    over_elements,
    seq,
)
from tecomp.ir.nodes.structural_equality import same
from tecomp.ir.traversal.rewrite import bottom_up, substitute, walk


def defined(function: Any, arguments: Sequence[Any]) -> Any:
    """The tensor that a function defines for tensors, numbers and lists of them; or a list.

    Raises:
        DefinitionError: something in the function is outside of the subset.
    """
    inputs, reader, returned = _read_once(function, arguments, ())
    if reader.changed:
        changed = [t for t, operand in inputs.items()
                   if any(operand.buffer is each for each in reader.changed)]  # fmt: skip
        inputs, reader, returned = _read_once(function, arguments, changed)
    statement = reader.builder.get()
    outputs = [each.operand.buffer for each in returned]
    missing = [b.name for b in reader.outputs if all(b is not each for each in outputs)]
    if missing:
        raise DefinitionError(
            f"te.hybrid {function.source.name}: {missing[0]} is an output_tensor and not returned; "
            "return it, or allocate it",
            kind="hybrid",
        )
    if any(all(b is not each for each in reader.outputs) for b in outputs):
        raise DefinitionError(
            f"te.hybrid {function.source.name}: it returns what is no output_tensor of its own; "
            "copy that to one, element by element",
            kind="hybrid",
        )
    made = _plain(statement, outputs, inputs)
    return made if made is not None else _opaque(function.source.name, statement, outputs, inputs)


def _read_once(
    function: Any, arguments: Sequence[Any], changed: Sequence[Tensor]
) -> tuple[dict[Tensor, Operand], Reader, list[Array]]:
    """The inputs of a function, what read it, and what it returns.

    Inputs that are `changed` are copied first: the arrays of a caller stay as they are.
    """
    inputs: dict[Tensor, Operand] = {}
    copies: dict[Tensor, Operand] = {}
    reader = Reader(function.source, IRBuilder())

    def argument(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return tuple(map(argument, value))
        if not isinstance(value, Tensor):
            is_index = isinstance(value, Const) and value.dtype == "int64"
            return int(value.value) if is_index else value
        if value not in inputs:
            buffer = Buffer(value.name, value.shape, value.dtype, "")
            inputs[value] = Operand(buffer, is_input=True)
            if any(value == each for each in changed):
                copies[value] = _copied(inputs[value], reader.builder)
        return Array(copies.get(value, inputs[value]))

    returned = reader.run([argument(each) for each in arguments])
    return inputs, reader, returned


def _copied(given: Operand, builder: IRBuilder) -> Operand:
    memory: Operand = builder.allocate(str(given.dtype), given.shape, given.name).operand
    variables = tuple(Var(f"i{k}") for k in range(len(given.shape)))
    element = BufferLoad(given.buffer, variables)
    builder.emit(over_elements(
        variables, given.buffer.shape, BufferStore(memory.buffer, element, variables)))
    return memory


def _plain(
    statement: Stmt, outputs: Sequence[Buffer], inputs: Mapping[Tensor, Operand]
) -> Tensor | None:
    """A `te.compute` for loops that store each element of one tensor once; None for all else."""
    if len(outputs) != 1:
        return None
    (out,) = outputs
    loops, body = _loops(statement)
    if any(loop.kind is not ForKind.SERIAL or not is_const(loop.min, 0) for loop in loops):
        return None
    found = _stored(body, out)
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
    if not all(same(simplify(by_var[var].extent), simplify(index_value(n)))
               for var, n in extents if var is not None):
        return None
    variables = [var for var in axes if var is not None]
    tensors = {operand.buffer.data: tensor for tensor, operand in inputs.items()}
    # The axes of the tensor are its loops; their order is the schedule's.
    made: Tensor = compute(
        out.shape,
        lambda *own: cast_value(_read(value, dict(zip(variables, own, strict=True)), tensors),
                                out.dtype),
        name=out.name, varargs_names=[var.name for var in variables],
    )
    return made


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


def _stored(body: Stmt, out: Buffer) -> tuple[tuple[Expr, ...], Expr] | None:
    """The one place that a statement stores to in any case, and the value."""
    match body:
        case BufferStore(buffer, value, indices) if buffer.data is out.data:
            return indices, value
        case Let(var, value, inner):
            found = _stored(inner, out)
            return None if found is None else (found[0], substitute(found[1], {var: value}))
        case IfThenElse(condition, then, other) if other is not None:
            first, second = _stored(then, out), _stored(other, out)
            if first is None or second is None or not all(
                same(a, b) for a, b in zip(first[0], second[0], strict=True)
            ):
                return None
            return first[0], if_then_else(condition, first[1], second[1])
    return None


def _read(value: Expr, axes: Mapping[Var, Expr], tensors: Mapping[Var, Tensor]) -> Expr:
    """A value in terms of axes and elements of tensors."""

    def rule(node: Any) -> Any:
        match node:
            case Cast(_, Var() as var) if var in axes and node.dtype == axes[var].dtype:
                return axes[var]
            case BufferLoad(buffer, indices):
                return tensors[buffer.data][tuple(map(_index, indices))]
        return None

    return substitute(bottom_up(value, rule), dict(axes))


def _index(index: Expr) -> Expr:
    """An index in the type that it was written in."""
    return index.value if isinstance(index, Cast) and index.value.dtype.is_integer else index


def _opaque(
    name: str, statement: Stmt, outputs: Sequence[Buffer], inputs: Mapping[Tensor, Operand]
) -> Any:
    """A `te.extern`; results that are read before they are stored begin as zeros, as in Python."""
    read = {node.buffer.data for node in walk(statement) if isinstance(node, BufferLoad)}
    zeros = [_zeros(out) for out in outputs if out.data in read]
    whole = seq(*zeros, statement)

    def statements(ins: Sequence[Operand], outs: Sequence[Operand]) -> Stmt:
        own = [*(operand.buffer for operand in inputs.values()), *outputs]
        places = {mine.data: given.buffer for mine, given in zip(own, [*ins, *outs], strict=True)}

        def rule(node: Any) -> Any:
            match node:
                case BufferLoad(buffer, indices) if buffer.data in places:
                    return BufferLoad(places[buffer.data], indices)
                case BufferStore(buffer, value, indices) if buffer.data in places:
                    return BufferStore(places[buffer.data], value, indices)
            return None

        made: Stmt = bottom_up(whole, rule)
        return made

    made = extern(
        [out.shape for out in outputs], list(inputs), statements,
        name=outputs[0].name if len(outputs) == 1 else name,
        dtype=[out.dtype for out in outputs],
    )
    return made


def _zeros(out: Buffer) -> Stmt:
    variables = tuple(Var(f"i{k}") for k in range(len(out.shape)))
    return over_elements(variables, out.shape, BufferStore(out, const(0, out.dtype), variables))


class HybridFunction:
    """A function that `te.hybrid.script` has made.

    Called with tensors it defines tensors, called with arrays it computes them, as Python.
    """

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self._source: Source | None = None
        update_wrapper(self, function)

    @property
    def source(self) -> Source:
        """The text, as a syntax tree.

        Raises:
            DefinitionError: there is no text.
        """
        if self._source is None:
            self._source = _source(self.function)
        return self._source

    def __call__(self, *args: Any) -> Any:
        """The tensors that it defines, for tensors; the arrays that it computes, for arrays.

        Raises:
            DefinitionError: something in it is outside of the subset; says which line.
            TypeMismatchError: there are neither tensors nor arrays, and Python does not run it.
        """
        if any(map(_is_symbolic, args)):
            return defined(self, args)
        try:
            return self._python()(*args)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            if any(map(_is_array, args)):
                raise
            given = ", ".join(map(repr, args))
            raise TypeMismatchError(
                f"te.hybrid {self.function.__name__}: called with ({given}) it runs as Python, "
                f"which says: {error}; give tensors to define tensors, or arrays",
                kind="hybrid",
            ) from error

    def _python(self) -> Callable[..., Any]:
        """The function as Python runs it, which knows the names of hybrid functions."""
        known = {**self.function.__globals__, **PYTHON}
        return FunctionType(
            self.function.__code__, known, self.function.__name__, self.function.__defaults__,
            self.function.__closure__,
        )


def script(pyfunc: Callable[..., Any]) -> HybridFunction:
    """Make a function that defines tensors by loops over elements; also as a decorator.

    Its text is read when it is called with tensors, `te.var` sizes or `te.const` numbers: loops
    (`range`, `parallel`, `vectorize`, `unroll`, `bind`; `const_range` is written out), `if`,
    assignments to elements of `output_tensor(shape, dtype)` and `allocate(shape, dtype, scope)`,
    local variables, arithmetic, and mathematical functions. It returns its output tensors. An input
    that it stores to is copied first. Called with NumPy arrays, Python runs it; only then it looks
    at `assert`.

    A function whose loops store each element of one tensor once gives a `te.compute`, whose axes
    are its loops. All others give a `te.extern`: it has no loops that a schedule could change.

    Raises:
        TypeMismatchError: it is no Python function.

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
            f"te.hybrid.script: the function is {pyfunc!r}; give a Python function", kind="hybrid"
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


def _source(function: FunctionType) -> Source:
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise DefinitionError(
            f"te.hybrid {function.__name__}: its text is not there to be read; write it in a file",
            kind="hybrid",
        ) from None
    text = textwrap.dedent("".join(lines))
    try:
        tree: ast.stmt | None = ast.parse(text).body[0]
    except SyntaxError:
        # A lambda has the lines of what is around it.
        tree = None
    if not isinstance(tree, ast.FunctionDef):
        raise DefinitionError(
            f"te.hybrid {function.__name__}: it is no `def`; write a function with statements",
            kind="hybrid",
        )
    outside = inspect.getclosurevars(function)
    known = {
        name: value for name, value in {**outside.globals, **outside.nonlocals}.items()
        if isinstance(value, bool | int | float | str | tuple | list | np.generic | HybridFunction)
    }
    return Source(function.__name__, tree, text, first, known)
