"""Parse printed functions, index maps and pad values."""

from __future__ import annotations

import ast
from typing import NoReturn

from tecomp.errors import ParseError
from tecomp.ir.nodes.dtype import HANDLE, INT64
from tecomp.ir.nodes.expr import BufferLoad, Const, Expr, Var
from tecomp.ir.nodes.stmt import (
    Allocate,
    ArrayArgument,
    Buffer,
    BufferRealize,
    BufferStore,
    CallingConvention,
    DeclBuffer,
    ExternCall,
    For,
    ForKind,
    IfThenElse,
    IndexMapNode,
    Let,
    OperandTransfer,
    PadValue,
    Passed,
    Prefetch,
    PrimFunc,
    Range,
    Stmt,
    TensorOp,
    array_argument,
    seq,
)
from tecomp.ir.parser.expr_parser import ParseContext, entries, parse_buffer, parse_expr

_LOOPS = {kind.value: kind for kind in ForKind}
_CALLS = ("store", "prefetch", "reads", "writes", *(each.value for each in CallingConvention))


def parse(text: str) -> PrimFunc:
    r"""Parse the printed form of a function.

    Python's parser limits the nesting to 99 statements and about 900 operators. The printer has
    no such limit.

    >>> print(parse('def f(A: Buffer("float32", (4,))):\n    A[0] = float32(1.0)'))
    def f(A: Buffer("float32", (4,))):
        A[0] = float32(1.0)

    Raises:
        ParseError: If `text` is not a printed function; the message has line, column and source.
    """
    if not isinstance(text, str):
        raise ParseError("parse: expected the printed form of a function, got {text!r}", text=text)
    source = ParseContext(text)
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        _refuse_syntax(error)
    except (RecursionError, MemoryError):
        raise ParseError("line 1, column 1: the text is nested too deeply for Python") from None
    except ValueError as error:
        raise ParseError("line 1, column 1: {reason}", reason=error) from None
    match tree.body:
        case [ast.FunctionDef() as definition]:
            return _function(source, definition)
        case _:
            raise ParseError("line 1, column 1: expected one `def name(...):`")


def parse_index_map(text: str) -> IndexMapNode:
    """Parse the printed form of an index map.

    Raises:
        ParseError: If `text` is not a printed index map.
    """
    return _index_map(ParseContext(text), _expression(text))


def parse_pad_value(text: str) -> PadValue:
    """Parse the printed form of a padding value.

    Raises:
        ParseError: If `text` is not a printed padding value.
    """
    return _pad_value(ParseContext(text), _expression(text))


def _expression(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        _refuse_syntax(error)


def _refuse_syntax(error: SyntaxError) -> NoReturn:
    part = (error.text or "").strip()
    where = f"line {error.lineno or 1}, column {error.offset or 1}"
    if part:
        raise ParseError(
            "{where}: {reason}: `{source}`", where=where, reason=error.msg, source=part
        ) from None
    raise ParseError("{where}: {reason}", where=where, reason=error.msg) from None


def _function(source: ParseContext, node: ast.FunctionDef) -> PrimFunc:
    decorators: dict[str, ast.Call] = {}
    for decorator in node.decorator_list:
        match decorator:
            case ast.Call(func=ast.Name(id="layout_transform_map" | "pad_value" as name), args=[]):
                decorators[name] = decorator
            case ast.Call(func=ast.Name(id="sites" as name), keywords=[]):
                decorators[name] = decorator
            case _:
                source.refuse(decorator, "unknown decorator")
    # Decorators may also refer to buffers of the body by name.
    named = {
        str(entry.arg): Var(str(entry.arg), HANDLE)
        for call in decorators.values()
        for entry in call.keywords
    }
    sizes, params = _parameters(source, node, named)
    inside: dict[str, Var | Buffer] = {p.name: p for p in (*sizes, *params)}
    with source.bound(inside):
        maps = tuple(
            (
                named[str(entry.arg)],
                tuple(_index_map(source, item) for item in entries(source, entry.value)),
            )
            for entry in _entries_of(decorators, "layout_transform_map")
        )
        pads = tuple(
            (named[str(entry.arg)], _pad_value(source, entry.value))
            for entry in _entries_of(decorators, "pad_value")
        )
        sites = decorators["sites"].args if "sites" in decorators else []
        body = _Body(source, named).block(node.body)
    return PrimFunc(
        node.name, params, body, sizes, maps, pads, tuple(source.string(site) for site in sites)
    )


def _entries_of(decorators: dict[str, ast.Call], name: str) -> list[ast.keyword]:
    return decorators[name].keywords if name in decorators else []


def _parameters(
    source: ParseContext, node: ast.FunctionDef, named: dict[str, Var]
) -> tuple[tuple[Var, ...], tuple[Buffer | Var, ...]]:
    """Return the sizes and the parameters; shapes may refer to any variable among them."""
    known: dict[str, Var | Buffer] = {}
    names: set[str] = set()
    args = node.args
    if args.vararg or args.kwarg or args.posonlyargs or args.defaults or any(args.kw_defaults):
        source.refuse(node, "expected parameters with only a name and a type")
    for arg in (*node.args.args, *node.args.kwonlyargs):
        if arg.arg in names:
            source.refuse(arg, "duplicate parameter name")
        names.add(arg.arg)
        match arg.annotation:
            case ast.Constant():
                known[arg.arg] = Var(arg.arg, source.dtype(arg.annotation))
            case None:
                source.refuse(arg, "a parameter must have a type")
            case _:
                if arg in node.args.kwonlyargs:
                    source.refuse(arg, "a size must not be a buffer")
    for arg in node.args.args:
        if arg.arg not in known and arg.annotation is not None:
            with source.bound(known):
                data = named.get(arg.arg)
                known[arg.arg] = parse_buffer(source, arg.arg, arg.annotation, data)
    sizes = tuple(v for a in node.args.kwonlyargs if isinstance(v := known[a.arg], Var))
    return sizes, tuple(known[arg.arg] for arg in node.args.args)


def _lambda(source: ParseContext, node: ast.expr) -> tuple[ast.Lambda, tuple[Var, ...]]:
    if not isinstance(node, ast.Lambda):
        source.refuse(node, "expected a lambda")
    names = [arg.arg for arg in node.args.args]
    types = [source.dtype(default) for default in node.args.defaults] or [INT64] * len(names)
    if len(types) != len(names):
        source.refuse(node, "either all arguments of a lambda must have a type or none")
    return node, tuple(map(Var, names, types))


def _index_map(source: ParseContext, node: ast.expr) -> IndexMapNode:
    function, variables = _lambda(source, node)
    outputs: list[ast.expr] = []
    separators: list[int] = []
    for entry in entries(source, function.body):
        if isinstance(entry, ast.Name) and entry.id == "AXIS_SEPARATOR":
            separators.append(len(outputs) - 1)
        else:
            outputs.append(entry)
    with source.bound({var.name: var for var in variables}):
        final = tuple(parse_expr(source, output) for output in outputs)
    return IndexMapNode(variables, final, tuple(separators))


def _pad_value(source: ParseContext, node: ast.expr) -> PadValue:
    function, variables = _lambda(source, node)
    with source.bound({var.name: var for var in variables}):
        match function.body:
            case ast.IfExp(test, body, ast.Constant(None)):
                return PadValue(variables, parse_expr(source, body), parse_expr(source, test))
        return PadValue(variables, parse_expr(source, function.body))


class _Body:
    """Parser of statements; recursion is safe, because Python limits nesting to 100 statements."""

    def __init__(self, source: ParseContext, named: dict[str, Var]) -> None:
        self.source = source
        self.named = named

    def block(self, nodes: list[ast.stmt]) -> Stmt:
        """Parse statements in order; a named value is in scope for all following statements."""
        outer_names = self.source.names
        self.source.names = dict(outer_names)
        lets: list[tuple[Var, Expr]] = []
        parts: list[list[Stmt]] = [[]]
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    if name in self.source.names:
                        self.source.refuse(node, "name is already defined in this scope")
                    lets.append(self.value(name, value))
                    parts.append([])
                case _:
                    parts[-1].append(self.statement(node))
        self.source.names = outer_names
        body = seq(*parts.pop())
        while lets:
            body = seq(*parts.pop(), Let(*lets.pop(), body))
        return body

    def value(self, name: str, node: ast.expr) -> tuple[Var, Expr]:
        self.source.parts = {}
        value = parse_expr(self.source, node)
        var = Var(name, value.dtype)
        self.source.names[name] = var
        return var, value

    def statement(self, node: ast.stmt) -> Stmt:
        self.source.parts = {}
        match node:
            case ast.Pass():
                return seq()
            case ast.For(target=ast.Name(id=name), orelse=[]):
                return self.loop(node, name)
            case ast.If():
                return self.condition(node)
            case ast.With(items=[ast.withitem(ast.Call() as call, ast.Name(id=name))]):
                return self.scope(node, call, name)
            case ast.With(items=[ast.withitem(ast.Call(func=ast.Name(id="TensorOp")) as call)]):
                return self.operation(node, call)
            case ast.Assign(targets=[ast.Subscript() as place], value=value):
                return self.store(place, value)
            case ast.Expr(ast.Call(func=ast.Name(id=word)) as call) if word in _CALLS:
                return self.call(call, word)
            case _:
                self.source.refuse(node, "unsupported statement")

    def call(self, call: ast.Call, callee: str) -> Stmt:
        match callee:
            case "store":
                mask = self.source.arguments(call, 2, None, ("where",)).get("where")
                return self.store(call.args[0], call.args[1], mask)
            case "prefetch":
                self.source.arguments(call, 1, None, ())
                return Prefetch(self.place(call.args[0]))
            case "reads" | "writes":
                self.source.arguments(call, 1, None, ())
                return OperandTransfer(self.place(call.args[0]), callee == "writes")
        return self.outside_call(call, CallingConvention(callee))

    def outside_call(self, call: ast.Call, convention: CallingConvention) -> Stmt:
        kwargs = self.source.arguments(call, 1, len(call.args) or 1, ("multiply_adds",))
        name, *args = call.args
        operands = tuple(map(self.passed, args))
        self.source.parts = {}
        work = parse_expr(self.source, kwargs["multiply_adds"]) if kwargs else None
        return ExternCall(self.source.string(name), convention, operands, work)

    def passed(self, node: ast.expr) -> Passed:
        self.source.parts = {}
        match node:
            case ast.Call(func=ast.Name(id="reads" | "writes" as word)) as call:
                self.source.arguments(call, 2)
                return self.array(call, is_written=word == "writes")
            case ast.Constant(str(text)):
                return text
        return parse_expr(self.source, node)

    def array(self, call: ast.Call, *, is_written: bool) -> ArrayArgument:
        element, extents = call.args
        if not isinstance(element, ast.Lambda):
            self.source.refuse(element, "expected a function of indices")
        shape = tuple(parse_expr(self.source, n) for n in entries(self.source, extents))
        variables = {arg.arg: Var(arg.arg) for arg in element.args.args}
        with self.source.bound(dict(variables)):
            self.source.parts = {}
            load = self.place(element.body)
        return array_argument(
            load.buffer, tuple(variables.values()), shape, load.indices, is_written=is_written)

    def operation(self, node: ast.With, call: ast.Call) -> Stmt:
        kwargs = self.source.arguments(call, 1, None, ("tile", "unit", "mode"))
        match node.body:
            case [
                ast.With(
                    items=[ast.withitem(ast.Call(func=ast.Name(id="Operands")))], body=first
                ),
                *rest,
            ]:
                operands = self.block(first)
            case _:
                self.source.refuse(node, "expected `with Operands():` first")
        tile = tuple(map(self.source.integer, entries(self.source, kwargs.get("tile"))))
        unit, mode = (
            self.source.string(kwargs[key]) if key in kwargs else "" for key in ("unit", "mode"))
        name = self.source.string(call.args[0])
        return TensorOp(name, operands, self.block(rest), tile, unit, mode)

    def condition(self, node: ast.If) -> Stmt:
        test = parse_expr(self.source, node.test)
        other = self.block(node.orelse) if node.orelse else None
        return IfThenElse(test, self.block(node.body), other)

    def store(self, target: ast.expr, value: ast.expr, mask: ast.expr | None = None) -> Stmt:
        access = self.place(target)
        stored = parse_expr(self.source, value)
        predicate = None if mask is None else parse_expr(self.source, mask)
        return BufferStore(access.buffer, stored, access.indices, predicate)

    def place(self, node: ast.expr) -> BufferLoad:
        where = parse_expr(self.source, node)
        if not isinstance(where, BufferLoad):
            self.source.refuse(node, "expected an element of a buffer")
        return where

    def loop(self, node: ast.For, name: str) -> Stmt:
        match node.iter:
            case ast.Call(func=ast.Name(id=word)) as call if word in _LOOPS:
                kwargs = self.source.arguments(call, 1, None, ("extent", "dtype", "thread"))
            case _:
                self.source.refuse(node.iter, "expected one of {loops}", loops=", ".join(_LOOPS))
        first = parse_expr(self.source, call.args[0])
        extent = parse_expr(self.source, kwargs["extent"]) if "extent" in kwargs else first
        start = first if "extent" in kwargs else Const(0, extent.dtype)
        dtype = self.source.dtype(kwargs["dtype"]) if "dtype" in kwargs else extent.dtype
        thread = self.source.string(kwargs["thread"]) if "thread" in kwargs else ""
        var = Var(name, dtype)
        with self.source.bound({name: var}):
            return For(var, start, extent, _LOOPS[word], self.block(node.body), thread)

    def scope(self, node: ast.With, call: ast.Call, name: str) -> Stmt:
        kind = call.func.id if isinstance(call.func, ast.Name) else ""
        of_region = ("bounds", "aligns", "ahead", "carried")
        known = {"Let": ("dtype",), "BufferRealize": of_region}.get(kind, ())
        kwargs = self.source.arguments(call, 1, None, known)
        if kind == "Let":
            value = parse_expr(self.source, call.args[0])
            dtype = kwargs.get("dtype")
            var = Var(name, value.dtype if dtype is None else self.source.dtype(dtype))
            return Let(var, value, self.inside(node, name, var))
        if kind not in ("Allocate", "DeclBuffer", "BufferRealize"):
            self.source.refuse(call, "unknown statement")
        buffer = parse_buffer(self.source, name, call.args[0], self.named.get(name))
        body = self.inside(node, name, buffer)
        if kind == "BufferRealize":
            bounds = tuple(map(self.range, entries(self.source, kwargs.get("bounds"))))
            aligns = tuple(map(self.align, entries(self.source, kwargs.get("aligns"))))
            ahead, carried = (
                parse_expr(self.source, kwargs[loop]) if loop in kwargs else None
                for loop in ("ahead", "carried")
            )
            return BufferRealize(buffer, bounds, body, aligns, ahead, carried)
        return Allocate(buffer, body) if kind == "Allocate" else DeclBuffer(buffer, body)

    def inside(self, node: ast.With, name: str, meaning: Var | Buffer) -> Stmt:
        with self.source.bound({name: meaning}):
            return self.block(node.body)

    def range(self, node: ast.expr) -> Range:
        pair = entries(self.source, node)
        if len(pair) != 2:
            self.source.refuse(node, "expected (min, extent)")
        return Range(parse_expr(self.source, pair[0]), parse_expr(self.source, pair[1]))

    def align(self, node: ast.expr) -> tuple[int, int, int]:
        values = [self.source.integer(entry) for entry in entries(self.source, node)]
        if len(values) != 3:
            self.source.refuse(node, "expected (axis, factor, offset)")
        return values[0], values[1], values[2]
