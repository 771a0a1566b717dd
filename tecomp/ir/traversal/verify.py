"""Verify that a function is well formed IR; runs after lowering, or after each pass in tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from tecomp.errors import InternalError
from tecomp.ir.nodes.dtype import HANDLE, INT64, DType
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Not,
    Ramp,
    Select,
    Var,
)
from tecomp.ir.nodes.operators import INTRINSICS, outside_function, result_type
from tecomp.ir.nodes.stmt import (
    Allocate,
    ArrayArgument,
    Buffer,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    ExternCall,
    For,
    IfThenElse,
    IndexMapNode,
    Let,
    OperandTransfer,
    PadValue,
    Passed,
    Prefetch,
    PrimFunc,
    SeqStmt,
    Stmt,
    TensorOp,
    view_problem,
)
from tecomp.ir.traversal.rewrite import Task, run_trampoline, walk


def verify(func: PrimFunc, *, flat: bool = False) -> None:
    """Check that `func` is well formed.

    Args:
        func: Function at any stage of lowering.
        flat: If True, buffers must be flattened: one index for each physical axis, and no
            `BufferRealize`, layout maps or pad values. Default: False.

    Raises:
        InternalError: If `func` is malformed; the message names the violated rule and the node.
    """
    checker = _Checker(func, flat)
    checker.signature()
    checker.body(func.body)


@dataclass
class _Checker:
    """Verifier state: variables and buffer views in scope at the current node."""

    func: PrimFunc
    flat: bool
    variables: set[Var] = field(default_factory=set)
    views: dict[Var, list[Buffer]] = field(default_factory=dict)
    memories: dict[Var, Buffer] = field(default_factory=dict)

    def refuse(self, node: object, template: str, /, **parameters: Any) -> NoReturn:
        text = str(node).splitlines()[0]
        raise InternalError(
            "{function}: " + template + ": `{node}`",
            function=self.func.name, node=text, **parameters,
        )

    def bind(self, var: Var) -> None:
        if var in self.variables:
            self.refuse(var, "variable is already bound in this scope")
        self.variables.add(var)

    def signature(self) -> None:
        func = self.func
        for var in (*func.sizes, *(p for p in func.params if isinstance(p, Var))):
            self.bind(var)
        for param in func.params:
            if isinstance(param, Buffer):
                self.buffer(param, is_argument=True)
                self.variables.add(param.data)
                self.memories[param.data] = param
                self.views.setdefault(param.data, []).append(param)
        if self.flat and (func.layout_maps or func.pad_values):
            self.refuse(func.name, "layout maps and pad values must be removed by flattening")
        described = (*func.layout_maps, *func.pad_values)
        allocated: set[Var] = set()
        if described:
            nodes = walk(func.body)
            allocated = {n.buffer.data for n in nodes if isinstance(n, Allocate | BufferRealize)}
        for data, spec in described:
            if data not in allocated and data not in self.views:
                self.refuse(data, "no buffer uses the memory of this layout map or pad value")
            for entry in spec if isinstance(spec, tuple) else (spec,):
                self.map(entry)

    def map(self, node: IndexMapNode | PadValue) -> None:
        inner = node.bound()
        self.variables.update(inner)
        exprs = node.final_indices if isinstance(node, IndexMapNode) else (node.value,)
        if isinstance(node, PadValue) and node.where is not None:
            self.scalar(node, node.where, "bool")
        for expr in exprs:
            self.expression(expr)
            if expr.dtype.lanes > 1 or (isinstance(node, IndexMapNode)
                    and not expr.dtype.is_integer):
                self.refuse(node, "expected a map to scalar values")
        self.variables.difference_update(inner)

    def buffer(self, buffer: Buffer, *, is_argument: bool = False) -> None:
        if buffer.data.dtype != HANDLE:
            self.refuse(buffer, "the memory of a buffer must be an address")
        if buffer.strides is not None and len(buffer.strides) != len(buffer.shape):
            self.refuse(buffer, "a buffer must have one stride per axis")
        if buffer.flat and (not is_argument or buffer.strides is None or buffer.axis_separators):
            self.refuse(
                buffer, "only an argument with strides and one physical axis may be flat=True")
        for extent in buffer.entries:
            if isinstance(extent, Expr):
                self.expression(extent)
                if not (extent.dtype.is_integer and extent.dtype.lanes == 1):
                    self.refuse(buffer, "extents, strides and offsets must be integers")
        nonnegative = buffer.shape if is_argument else (*buffer.shape, *(buffer.strides or ()))
        if any(isinstance(n, int) and n < 0 for n in (*nonnegative, buffer.elem_offset)):
            self.refuse(buffer, "extents, strides and offsets must not be negative")

    def body(self, root: Stmt) -> None:
        """Check the statements in order."""
        run_trampoline(self.statement(root))

    def statement(self, node: Stmt) -> Task:
        match node:
            case SeqStmt():
                for stmt in node.stmts:
                    yield self.statement(stmt)
            case IfThenElse():
                yield self.branches(node)
            case For() | Let():
                yield self.binding(node)
            case TensorOp():
                yield self.operation(node)
            case BufferStore():
                self.store(node)
            case Prefetch() | OperandTransfer():
                self.place(node)
            case ExternCall():
                self.call(node)
            case Allocate() | BufferRealize() | DeclBuffer():
                yield self.scope(node)
            case _:
                self.refuse(
                    node,
                    "unsupported statement {type}",
                    type=type(node).__name__,
                )

    def branches(self, node: IfThenElse) -> Task:
        self.scalar(node, node.condition, "bool")
        yield self.statement(node.then_case)
        if node.else_case is not None:
            yield self.statement(node.else_case)

    def place(self, node: Prefetch | OperandTransfer) -> None:
        self.expression(node.element)
        if (
            not isinstance(node.element, BufferLoad)
            or node.element.dtype != node.element.buffer.dtype
        ):
            self.refuse(node, "a prefetch or move must refer to one element")

    def operation(self, node: TensorOp) -> Task:
        for part in walk(node.operands):
            if isinstance(part, Stmt) and not isinstance(part, OperandTransfer | For | IfThenElse
                    | SeqStmt):
                self.refuse(node, "its operands must be loops of reads() and writes()")
        yield self.statement(node.operands)
        yield self.statement(node.body)

    def call(self, node: ExternCall) -> None:
        for argument in node.arguments:
            self.passed(node, argument)
        if node.multiply_adds is not None:
            self.scalar(node, node.multiply_adds, "int64")

    def passed(self, node: ExternCall, argument: Passed) -> None:
        if isinstance(argument, ArrayArgument):
            self.array(argument)
        elif isinstance(argument, Expr):
            self.expression(argument)
            if argument.dtype.lanes > 1 or argument.dtype == HANDLE:
                self.refuse(
                    node,
                    "{dtype} is not a valid number argument of a function",
                    dtype=argument.dtype,
                )
        elif isinstance(argument, Stmt):
            self.refuse(
                node,
                "a {type} is not a valid argument of a function",
                type=type(argument).__name__,
            )

    def array(self, node: ArrayArgument) -> None:
        if len(node.variables) != len(node.shape):
            self.refuse(node, "an array must have one variable per axis")
        for extent in node.shape:
            self.scalar(node, extent, "int64")
        for var in node.variables:
            if var.dtype != INT64:
                self.refuse(
                    node,
                    "indices must be int64, but {var} is {dtype}",
                    var=var.name, dtype=var.dtype,
                )
            self.bind(var)
        element = node.element
        self.expression(element)
        if element.dtype != element.buffer.dtype or element.predicate is not None:
            self.refuse(node, "an argument must refer to one element")
        if isinstance(node.access, BufferStore):
            self.store(node.access)
        self.variables.difference_update(node.variables)

    def binding(self, node: For | Let) -> Task:
        var = node.bound()[0]
        for value in (node.min, node.extent) if isinstance(node, For) else (node.value,):
            self.expression(value)
            if value.dtype != var.dtype:
                self.refuse(
                    node,
                    "{var} is {dtype}, but its value is {value_dtype}",
                    var=var.name, dtype=var.dtype, value_dtype=value.dtype,
                )
        if isinstance(node, For) and var.dtype != INT64:
            self.refuse(
                node,
                "loop variables must be int64, but {var} is {dtype}",
                var=var.name, dtype=var.dtype,
            )
        self.bind(var)
        yield self.statement(node.body)
        self.variables.discard(var)

    def scope(self, node: Allocate | BufferRealize | DeclBuffer) -> Task:
        buffer = node.buffer
        self.buffer(buffer)
        if buffer.has_offset and (self.flat or not isinstance(node, DeclBuffer)):
            self.refuse(
                node, "only arguments, and views before flattening, may have an elem_offset")
        if isinstance(node, BufferRealize):
            self.realize(node)
        if isinstance(node, DeclBuffer):
            if buffer.data not in self.variables:
                self.refuse(node, "a view must refer to existing memory")
            self.view(node)
        else:
            self.bind(buffer.data)
            self.memories[buffer.data] = buffer
        self.views.setdefault(buffer.data, []).append(buffer)
        yield self.statement(node.body)
        self.views[buffer.data].pop()
        if not isinstance(node, DeclBuffer):
            self.variables.discard(buffer.data)

    def view(self, node: DeclBuffer) -> None:
        buffer, memory = node.buffer, self.memories.get(node.buffer.data)
        if memory is None:
            return
        is_mapped = any(data is buffer.data for data, _ in self.func.layout_maps)
        # Layout maps change the extents, so only the ranks are compared while maps are pending.
        if is_mapped and len(buffer.axis_separators) == len(memory.axis_separators):
            return
        if problem := view_problem(buffer, memory):
            self.refuse(node, "{problem}", problem=problem)

    def realize(self, node: BufferRealize) -> None:
        if self.flat:
            self.refuse(node, "BufferRealize must be removed by flattening")
        if len(node.bounds) != len(node.buffer.shape):
            self.refuse(node, "expected one range per axis")
        for bound in node.bounds:
            self.scalar(node, bound.min, "int64")
            self.scalar(node, bound.extent, "int64")
        for loop in (node.ahead, node.carried):
            if loop is not None:
                self.scalar(node, loop, "int64")

    def store(self, node: BufferStore) -> None:
        self.access(node)
        self.expression(node.value)
        expected = node.buffer.element_at(node.indices)
        if node.value.dtype != expected:
            self.refuse(
                node,
                "stored value is {dtype}, expected {expected}",
                dtype=node.value.dtype, expected=expected,
            )

    def access(self, node: BufferLoad | BufferStore) -> None:
        buffer = node.buffer
        known = self.views.get(buffer.data, ())
        if buffer not in known:
            self.refuse(node, "buffer is not declared where it is used")
        expected = len(buffer.axis_separators) + 1 if self.flat else buffer.index_count
        if len(node.indices) != expected or buffer.index_count != expected:
            self.refuse(
                node,
                "got {index_count} indices, expected {expected}",
                index_count=len(node.indices), expected=expected,
            )
        for index in node.indices:
            if isinstance(node, BufferStore):
                self.expression(index)
            # Indices of a gather may have the dtype in which they are stored.
            if index.dtype != INT64 and not (index.dtype.lanes > 1 and index.dtype.is_integer):
                self.refuse(node, "an index must be int64, got {dtype}", dtype=index.dtype)
        if expected > 1 and any(index.dtype.lanes > 1 for index in node.indices[:-1]):
            self.refuse(node, "only the last index may have lanes")
        self.predicate(node)

    def predicate(self, node: BufferLoad | BufferStore) -> None:
        if node.predicate is None:
            return
        if isinstance(node, BufferStore):
            self.expression(node.predicate)
        index = node.indices[-1].dtype.lanes if node.indices else 1
        lanes = (index, node.buffer.element_at(node.indices).lanes)
        found = node.predicate.dtype
        if not found.is_bool or found.lanes not in lanes:
            self.refuse(
                node,
                "predicate is {found} for {lane} lanes",
                found=found, lane=lanes[1],
            )

    def scalar(self, node: object, expr: Expr, dtype: str) -> None:
        self.expression(expr)
        if expr.dtype != dtype:
            self.refuse(
                node, "got {dtype}, expected {expected_dtype}", dtype=expr.dtype,
                expected_dtype=dtype,
            )

    def expression(self, root: Expr) -> None:
        for node in walk(root):
            rule = _RULES.get(type(node))
            if rule is None:
                self.refuse(
                    node,
                    "unsupported expression {type}",
                    type=type(node).__name__,
                )
            if problem := rule(self, node):
                self.refuse(node, "{problem}", problem=problem)


def _var(checker: _Checker, node: Var) -> str:
    return "" if node in checker.variables else "variable is not bound where it is used"


def _const(checker: _Checker, node: Const) -> str:
    return "a literal must be a scalar" if node.dtype.lanes > 1 else ""


def _cast(checker: _Checker, node: Cast) -> str:
    return _lanes(node.dtype, node.value.dtype)


def _lanes(a: DType, b: DType) -> str:
    return "" if a.lanes == b.lanes else f"{a} and {b} have different lanes"


def _operands(checker: _Checker, node: Binary | Compare) -> str:
    if node.a.dtype != node.b.dtype:
        return f"operands of {node.a.dtype} and {node.b.dtype} have different dtypes"
    if not isinstance(node, Binary):
        return ""
    kind, op = node.a.dtype, node.op
    logic = op in (BinOp.AND, BinOp.OR)
    if (logic and not kind.is_bool) or (op is BinOp.DIV and not kind.is_float):
        return f"`{op.value}` is not defined for {kind}"
    return ""


def _not(checker: _Checker, node: Not) -> str:
    return "" if node.dtype.is_bool else f"`not` is not defined for {node.dtype}"


def _select(checker: _Checker, node: Select) -> str:
    if not node.condition.dtype.is_bool:
        return f"the condition is {node.condition.dtype}"
    if node.a.dtype != node.b.dtype:
        return f"operands of {node.a.dtype} and {node.b.dtype} have different dtypes"
    return _lanes(node.condition.dtype, node.a.dtype)


def _call(checker: _Checker, node: Call) -> str:
    kind = INTRINSICS.get(node.name)
    types = [arg.dtype for arg in node.args]
    if outside_function(node.name) is not None:
        vectors = [dtype for dtype in (node.dtype, *types) if dtype.lanes > 1]
        return f"a C function must take and return numbers, got {vectors[0]}" if vectors else ""
    if kind is None or len(types) != kind.arguments:
        return f"unknown function {node.name} of {len(types)} arguments"
    if kind.takes == "bits":
        return _same_bits(node)
    if result_type(node.name, types) != node.dtype:
        return f"the call of {node.name} has the type {node.dtype}"
    if kind.takes == "alike":
        return "" if len(set(types)) == 1 else f"{node.name} does not take {', '.join(types)}"
    if kind.takes == "groups":
        return ""  # `result_type` has already checked the operands
    if kind.takes == "special":
        return _if_then_else(node) if node.name == "if_then_else" else _check_index(checker, node)
    fits = {
        "float": all(t.is_float for t in types), "int": all(t.is_integer for t in types),
        "number": all(t.is_float or t.is_integer for t in types),
    }[kind.takes]
    return "" if fits and len(set(types)) == 1 else f"{node.name} does not take {', '.join(types)}"


def _same_bits(node: Call) -> str:
    types = node.args[0].dtype, node.dtype
    bits = {dtype.bits * dtype.lanes for dtype in types}
    if len(bits) > 1 or any(dtype.is_bool for dtype in types):
        return f"{types[0]} cannot be reinterpreted as {types[1]}"
    return ""


def _if_then_else(node: Call) -> str:
    test, a, b = (arg.dtype for arg in node.args)
    if not test.is_bool or a != b:
        return f"if_then_else does not take {test}, {a}, {b}"
    return "" if test.lanes == 1 else _lanes(test, a)


def _check_index(checker: _Checker, node: Call) -> str:
    index, extent, site = node.args
    number = site.value if isinstance(site, Broadcast) else site
    known = range(len(checker.func.sites))
    if not isinstance(number, Const) or number.value not in known:
        return f"a site is a literal below {len(known)}"
    fits = index.dtype.is_integer and extent.dtype.is_integer
    lanes = extent.dtype.lanes in (1, index.dtype.lanes)
    return "" if fits and lanes else f"checks {index.dtype} against {extent.dtype}"


def _load(checker: _Checker, node: BufferLoad) -> str:
    checker.access(node)
    return ""


def _ramp(checker: _Checker, node: Ramp) -> str:
    base, stride = node.base.dtype, node.stride.dtype
    if node.lanes < 2 or base != stride or base.lanes > 1 or not base.is_integer:
        return f"a ramp of {node.lanes} lanes from {base} by {stride}"
    return ""


def _broadcast(checker: _Checker, node: Broadcast) -> str:
    return "" if node.lanes > 1 else f"a broadcast to {node.lanes} lanes"


_RULES: dict[type[Any], Callable[[_Checker, Any], str]] = {
    Var: _var,
    Const: _const,
    Cast: _cast,
    Binary: _operands,
    Compare: _operands,
    Not: _not,
    Select: _select,
    Call: _call,
    BufferLoad: _load,
    Ramp: _ramp,
    Broadcast: _broadcast,
}
