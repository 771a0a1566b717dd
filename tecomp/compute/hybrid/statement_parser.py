"""Convert statements of hybrid functions to IR statements."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from tecomp.compute.expr_like import MAX_OPERATIONS
from tecomp.compute.hybrid.expression_parser import (
    FUNCTIONS,
    LOOPS,
    HybridArray,
    HybridSource,
    Variable,
    evaluate_node,
)
from tecomp.compute.ir_builder import IRBuilder
from tecomp.compute.shape_validation import dtype_of, shape_of
from tecomp.compute.statement_builder import Operand
from tecomp.errors import DefinitionError, TecompError
from tecomp.ir.nodes.dtype import INT32
from tecomp.ir.nodes.expr import BufferLoad, Expr, as_expr, cast
from tecomp.ir.nodes.printer import format_count
from tecomp.ir.nodes.stmt import Buffer
from tecomp.ir.traversal.rewrite import contains

_MAX_CALL_DEPTH = 32
"""Maximum depth of nested calls of hybrid functions."""


class StatementParser:
    """Converter of one hybrid function and of the functions that it calls.

    Attributes:
        source: Source of the function.
        builder: Builder that receives the statements.
        outputs: Buffers of the output tensors.
        mutated_buffers: Buffers of the inputs that the function stores to.
    """

    def __init__(
        self, source: HybridSource, builder: IRBuilder, caller: StatementParser | None = None
    ) -> None:
        self.source = source
        self.builder = builder
        self.outputs: list[Buffer] = []
        self.mutated_buffers: list[Buffer] = [] if caller is None else caller.mutated_buffers
        self._depth: int = 0 if caller is None else caller._depth + 1
        self._scopes: list[dict[str, Any]] = [dict(source.known)]
        self._often = _assigned_often(source.tree)

    def run(self, arguments: Sequence[Any]) -> list[HybridArray]:
        """Emit the statements of the function for the arguments, and return its results."""
        names = [arg.arg for arg in self.source.tree.args.args]
        if len(names) != len(arguments):
            raise DefinitionError(
                "te.hybrid {source}: function takes {arguments} ({names}), got {argument_count}; "
                "pass that many",
                kind="count-mismatch", source=self.source.name,
                arguments=format_count(len(names), "argument"), names=", ".join(names),
                argument_count=len(arguments),
            )
        self._scopes.append(dict(zip(names, arguments, strict=True)))
        *body, last = self.source.tree.body
        if not isinstance(last, ast.Return) or last.value is None:
            self.source.refuse(last, "is the last statement, but not a return; return the output "
                                     "tensors there")
        self.block(body)
        parts = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
        found = [self.value(part) for part in parts]
        for part, result in zip(parts, found, strict=True):
            if not isinstance(result, HybridArray) or result.indices:
                self.source.refuse(
                    part, "is returned, but is not an output_tensor; return a whole output_tensor")
        return found

    def block(self, nodes: Sequence[ast.stmt]) -> None:
        """Emit statements in order."""
        for node in nodes:
            try:
                self.statement(node)
            except TecompError as error:
                if error.message.startswith("te.hybrid "):
                    raise
                self.source.refuse(node, "is not a valid statement: {reason}", reason=error.message)

    def statement(self, node: ast.stmt) -> None:
        """Emit one statement."""
        match node:
            case ast.Pass() | ast.Assert() | ast.Expr(ast.Constant(str())):
                return
            case ast.Assign(targets=[target], value=value):
                self.assign(target, value)
            case ast.AugAssign(target=target, op=operator, value=value):
                load = ast.copy_location(_as_load(target), target)
                self.assign(target, ast.copy_location(ast.BinOp(load, operator, value), node))
            case ast.For(target=ast.Name(name), iter=ast.Call(ast.Name(word)), orelse=[]) if (
                word in LOOPS
            ):
                self.loop(node, name, word)
            case ast.If():
                self.branch(node)
            case _:
                self.source.refuse(
                    node,
                    "is not supported; supported statements are loops over range, parallel, "
                    "vectorize, unroll, bind and const_range, if, assignments, and a final return",
                )

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        """Emit a store to an element, or bind a name to a value."""
        if isinstance(target, ast.Subscript):
            entry = self.value(target, is_target=True)
            if not isinstance(entry, HybridArray) or len(entry.indices) != len(entry.operand.shape):
                self.source.refuse(target, "is not an element of a tensor")
            if entry.operand.is_input:
                self.mutated_buffers.append(entry.operand.buffer)
            self.builder.emit(entry.operand.store(entry.indices, self.number(value)))
            return
        if not isinstance(target, ast.Name):
            self.source.refuse(target, "is neither a name nor an element of a tensor")
        array = self.memory(target.id, value)
        self._define(target.id, self.value(value) if array is None else array)

    def _define(self, name: str, value: Any) -> None:
        known = self._scopes[-1]
        if isinstance(value, HybridArray | list | tuple | str):
            known[name] = value
        elif name in self._often:
            variable = self._found(name)
            if not isinstance(variable, Variable):
                first = as_expr(value)
                memory = self.builder.allocate(str(first.dtype), (1,), name)
                known[name] = variable = Variable(memory.operand)
            self.builder.emit(variable.operand.store(0, value))
        elif isinstance(value, Expr) and contains(BufferLoad, value):
            # The value reads memory, which may change before its use, so evaluate it here.
            known[name] = self.builder.let(name, value)
        else:
            known[name] = value

    def memory(self, name: str, node: ast.expr) -> HybridArray | None:
        """Create the array of a call of `output_tensor` or `allocate`; return None otherwise."""
        match node:
            case ast.Call(ast.Name("output_tensor" | "allocate" as word), given, options):
                pass
            case _:
                return None
        values = [self.value(argument) for argument in given]
        named = {str(keyword.arg): self.value(keyword.value) for keyword in options}
        fields = ("shape", "dtype") if word == "output_tensor" else ("shape", "dtype", "scope")
        call_args = {**dict(zip(fields, values, strict=False)), **named}
        if "shape" not in call_args or set(call_args) - set(fields) or len(values) > len(fields):
            self.source.refuse(node, "takes the arguments {fields}", fields=", ".join(fields))
        where = f"{word} {name}"
        shape, dtype = shape_of(call_args["shape"], where), call_args.get("dtype", "float32")
        if word == "allocate" or self._depth:
            scope = call_args.get("scope", "global")
            return HybridArray(self.builder.allocate(dtype, shape, name, scope=scope).operand)
        if len(self._scopes) > 2:
            self.source.refuse(node, "is inside a loop or an if; move it before them")
        buffer = Buffer(name, shape, dtype_of(dtype, where), "")
        self.outputs.append(buffer)
        return HybridArray(Operand(buffer))

    def loop(self, node: ast.For, name: str, kind: str) -> None:
        """Emit a loop; for `const_range`, emit the body once per value."""
        assert isinstance(node.iter, ast.Call)
        args = [self.value(argument) for argument in node.iter.args]
        bounds = args[1:] if kind == "bind" else args
        if node.iter.keywords or not 1 <= len(bounds) <= 2 or (kind == "bind" and len(bounds) > 1):
            self.source.refuse(node.iter, "expects an end, or a begin and an end")
        first, last = (0, bounds[0]) if len(bounds) == 1 else bounds
        if kind == "const_range":
            if not isinstance(first, int) or not isinstance(last, int):
                self.source.refuse(node.iter, "requires constant integer bounds")
            if last - first > MAX_OPERATIONS:
                self.source.refuse(
                    node.iter,
                    "has {detail} values, which exceeds the unroll limit of {most_operations}; use "
                    "range",
                    detail=last - first, most_operations=MAX_OPERATIONS,
                )
            for value in range(first, last):
                self._scopes[-1][name] = value
                self.block(node.body)
            return
        with self._scope(), self.builder.for_range(first, last, name, kind=LOOPS[kind]) as var:
            self._scopes[-1][name] = cast(INT32, var)
            self.block(node.body)

    def branch(self, node: ast.If) -> None:
        """Emit a conditional statement; a constant condition selects its branch."""
        test = self.value(node.test)
        if isinstance(test, bool | int):
            self.block(node.body if test else node.orelse)
            return
        with self._scope(), self.builder.if_scope(test):
            self.block(node.body)
        if node.orelse:
            with self._scope(), self.builder.else_scope():
                self.block(node.orelse)

    def value(self, node: ast.expr, *, is_target: bool = False) -> Any:
        """Evaluate an expression to a number, an IR expression, an array or a list."""
        return evaluate_node(self, node, is_target=is_target)

    def number(self, node: ast.expr) -> Any:
        """Evaluate an expression that must be a single number."""
        found = self.value(node)
        if isinstance(found, HybridArray | list | tuple | str):
            self.source.refuse(node, "is not a number; store elements one by one")
        return found

    def look_up(self, node: ast.Name) -> Any:
        """Return the value of a name."""
        found = self._found(node.id)
        if found is None:
            known = [*FUNCTIONS, *(name for scope in self._scopes for name in scope)]
            matches = () if node.id in FUNCTIONS else get_close_matches(node.id, known, n=1)
            suggestion = f"write `{matches[0]}` if that is meant; " if matches else ""
            self.source.refuse(
                node,
                "is not defined here; {meant}names assigned in a loop or an if are local to it",
                meant=suggestion,
            )
        return found

    def _found(self, name: str) -> Any:
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None)

    def call(self, function: Any, arguments: Sequence[Any]) -> Any:
        """Inline a call of another hybrid function, and return its results."""
        if self._depth == _MAX_CALL_DEPTH:
            raise DefinitionError(
                "te.hybrid {source}: call is nested in {most_calls} other calls; replace recursion "
                "with a loop",
                kind="hybrid", source=function.source.name, most_calls=_MAX_CALL_DEPTH,
            )
        found = StatementParser(function.source, self.builder, self).run(arguments)
        return found[0] if len(found) == 1 else tuple(found)

    @contextmanager
    def _scope(self) -> Iterator[None]:
        self._scopes.append({})
        yield
        self._scopes.pop()


def _assigned_often(tree: ast.FunctionDef) -> frozenset[str]:
    """Return the names that are assigned more than once, which are stored in memory."""
    count: Counter[str] = Counter()
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(name)]):
                count[name] += 1
            case ast.AugAssign(target=ast.Name(name)):
                count[name] += 2
    return frozenset(name for name, times in count.items() if times > 1)


def _as_load(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Subscript):
        return ast.Subscript(target.value, target.slice, ast.Load())
    return ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target
