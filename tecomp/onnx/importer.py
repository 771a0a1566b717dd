"""Translation of ONNX graphs to programs, host functions between them, and deferred nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

import tecomp
from tecomp import te, topi
from tecomp.compute.operation import ComputeOp
from tecomp.errors import ModelError, TecompError
from tecomp.ir.nodes.expr import Expr, Var
from tecomp.ir.nodes.printer import identifier
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.onnx import control_flow
from tecomp.onnx.control_flow import MAX_UNROLLED, Work, read_names
from tecomp.onnx.node import (
    HOST_OPERATORS,
    KERNEL_DTYPES,
    LEARNING,
    OPERATORS,
    Array,
    HostOperator,
    HostValue,
    OpNode,
    TensorSequence,
    UndeterminedError,
    UnknownConstantError,
    UnsupportedNodesError,
    Value,
    as_plain,
    find_definition,
    fold_node,
    has_symbols,
    is_function,
    is_host,
    with_sizes,
)
from tecomp.onnx.plan import (
    Argument,
    DeferredPart,
    HostStep,
    ModelContext,
    Plan,
    ProgramStep,
)
from tecomp.onnx.shapes import of_sizes

_CONTROL_FLOW = {"If", "Loop", "Scan"}
_SHAPED = {"ConstantOfShape", "Expand", "Reshape", "Slice", "Tile"}
_TRIAL_SIZES = 8, 1, 60
"""Values of symbolic sizes for which a node is tried before it is deferred."""
_UNIQUE = count()


class Importer:
    """Translation of a graph.

    Tensors have levels: programs of one level run before the host functions of that level, whose
    results have the next level.

    Attributes:
        context: Properties of the model.
        results: Names of the outputs.
        values: Value of each name.
        constants: Arrays of placeholders that are constants.
        problems: Names, operators and reasons of nodes that are not supported.
    """

    def __init__(self, context: ModelContext, results: Sequence[str]) -> None:
        self.context = context
        self.results = results
        self.values: dict[str, Value | None] = {"": None}
        self.constants: dict[te.Tensor, Array] = {}
        self.problems: list[tuple[str, str, str]] = []
        self.inputs: dict[str, te.Tensor] = {}
        self.unknown: set[str] = set()
        """Names in the environment whose type is not known."""
        self._levels: dict[te.Tensor, int] = {}
        self._host_levels: dict[str, int] = {}
        self._names: dict[te.Tensor, str] = {}
        self._binders: dict[Var, tuple[te.Tensor, int]] = {}
        self._boundaries: dict[te.Tensor, te.Tensor] = {}
        self._exports: dict[int, dict[te.Tensor, None]] = {}
        self._hosts: dict[int, list[HostStep]] = {}
        self._deferred: list[Work] = []
        self._fixed: set[str] = set()
        self._waiting: set[str] = set()
        self._notes: list[tuple[str, str, str]] = []

    def declare(self, name: str, dtype: str, shape: Sequence[Any], level: int = 0) -> Value:
        """Return the value of an input, or of the result of a host function."""
        if dtype not in KERNEL_DTYPES:
            self._host_levels[name] = level
            return HostValue(name, None if dtype == "object" else dtype, tuple(shape))
        local = name.rpartition("!")[2] or name
        tensor: te.Tensor = te.placeholder(tuple(shape), dtype, name=local)
        self._levels[tensor] = level
        self._names[tensor] = name
        self._bind(tensor)
        if level == 0:
            self.inputs[name] = tensor
        return tensor

    def _bind(self, tensor: te.Tensor) -> None:
        for axis, extent in enumerate(tensor.shape):
            if isinstance(extent, Var):
                self._binders.setdefault(extent, (tensor, axis))

    def plan(self, works: Iterable[Work]) -> Plan:
        """Translate nodes and return the steps that compute the outputs.

        Raises:
            ModelError: If nodes are not supported.
        """
        kept_values, works = dict(self.values), [*works]
        kept_unknown = {*self.unknown}
        pending = deque(works)
        while pending:
            self._process(pending.popleft(), pending)
        if self.problems:
            problems = [*dict.fromkeys(self.problems)]
            error = UnsupportedNodesError(
                "onnx: {count} nodes are not supported:\n{problems}",
                kind="unsupported-node", count=len(problems),
                problems="\n".join(
                    f"  node {name} ({kind}): {reason}" for name, kind, reason in problems))
            error.nodes = tuple(problems)
            raise error
        try:
            return self._steps()
        except TecompError as error:
            if isinstance(error, ModelError) or not self._binders:
                raise
            # A schedule requires constant sizes.
            return self._whole_deferred(works, kept_values, kept_unknown)

    def _whole_deferred(
        self, works: Sequence[Work], values: Mapping[str, Value | None], unknown: set[str]
    ) -> Plan:
        """Return a plan that compiles all nodes for each shape."""
        names = {name for work in works for name in read_names(work.proto)} | {*self.results}
        live = {name: self._argument(values[name]) for name in sorted(names & {*values})
                if values[name] is not None}
        live |= {name: Argument(name) for name in sorted(names & unknown)}
        part = self._part(works, live, (), self.results, replace(self.context, infers=False))
        return Plan([part], [Argument(name) for name in self.results],
                    [("model", "", "compiled for each shape: a kernel requires constant sizes")])

    # Nodes

    def _process(self, work: Work, pending: deque[Work]) -> None:
        proto = work.proto
        names = read_names(proto)
        if names & (self._waiting | self.unknown):
            self._defer(work)
            return
        if any(name not in self.values for name in names):
            self._check_known(work)
            return
        node = self._node(work)
        try:
            found = self._values_of(node, work)
        except UndeterminedError as error:
            name = proto.input[error.position] if error.position < len(proto.input) else ""
            if isinstance(self.values.get(name), np.ndarray | None):
                self.problems.append(self._problem(work, error))
            else:
                self._defer(work, [name], f"compiled for each value of `{name}`")
            return
        except Exception as error:  # malformed attributes violate types in many ways
            if self._is_symbolic(node) and self._runs_with_sizes(node):
                self._defer(work, (), "compiled for each shape")
                return
            self.problems.append(self._problem(work, error))
            return
        if isinstance(found, Expansion):
            pending.extendleft(reversed(found.works))
            return
        outputs = [*proto.output]
        for name, value in zip(outputs, found, strict=False):
            if name:
                self._enter(name, value)

    def _problem(self, work: Work, error: Exception) -> tuple[str, str, str]:
        if isinstance(error, ModelError) and "problem" in error.parameters:
            text = str(error.parameters["problem"])
        elif isinstance(error, TecompError):
            text = error.message
        else:
            text = f"its attributes or inputs are malformed ({type(error).__name__}: {error})"
        return work.name, work.proto.op_type, text

    def _node(self, work: Work) -> OpNode:
        proto = work.proto
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        opset = work.opsets.get(domain, work.opsets.get("ai.onnx", 1) if not domain else 1)
        outputs = [*proto.output]
        while outputs and not outputs[-1]:
            outputs.pop()
        attributes = {item.name: control_flow.attribute_value(item) for item in proto.attribute}
        return OpNode(
            proto.op_type, work.name, [self.values[name] for name in proto.input], attributes,
            len(outputs), opset, self.constants, domain, [bool(name) for name in proto.output])

    def _values_of(self, node: OpNode, work: Work) -> Sequence[Value | None] | Expansion:
        """Return the outputs of a node, or the nodes that define it.

        Raises:
            UndeterminedError: If a value that depends on data decides a shape.
            ModelError: If the node is not supported.
        """
        if node.kind == "Identity" and not node.domain:
            return [node.inputs[0]]
        if node.kind in _CONTROL_FLOW and not node.domain:
            return self._control_flow(node, work)
        if node.domain == LEARNING and control_flow.has_text_labels(work):
            return Expansion(control_flow.split_labels(work))
        definition = find_definition(OPERATORS, node.domain, node.kind, node.opset)
        host: HostOperator | None = find_definition(
            HOST_OPERATORS, node.domain, node.kind, node.opset)
        try:
            if (found := fold_node(node, work.proto, work.opsets)) is not None:
                return found
        except UnknownConstantError:
            if definition is None and host is None and not is_function(node.domain, node.kind):
                raise
        if (sizes := of_sizes(node)) is not None:
            return [sizes]
        if definition is None or (host is not None and any(map(is_host, node.inputs))):
            return self._without_definition(node, host, work)
        return self._translated(node, work, definition, host)

    def _without_definition(
        self, node: OpNode, host: HostOperator | None, work: Work
    ) -> Sequence[Value | None] | Expansion:
        if host is not None:
            return self._host(node, host, work)
        works = control_flow.expand_function(work, self.context.functions, node)
        if works is None:
            raise node.error(self._unknown_operator(node.domain))
        return Expansion(works)

    def _translated(
        self, node: OpNode, work: Work, definition: Any, host: HostOperator | None
    ) -> Sequence[Value | None] | Expansion:
        level = self._level(node.inputs)
        inputs, node.inputs = node.inputs, [self._at_level(x, level) for x in node.inputs]
        try:
            found = definition(node)
        except UndeterminedError:
            if host is None:
                raise
            node.inputs = inputs
            return self._host(node, host, work)
        except TecompError as error:
            if host is not None and node.kind not in _SHAPED and not self._is_symbolic(node):
                node.inputs = inputs
                return self._host(node, host, work)
            # Wrong shapes are errors; cases that a definition leaves out may be expanded.
            works = control_flow.expand_function(
                work, self.context.functions, node) if isinstance(error, ModelError) else None
            if works is None:
                raise
            return Expansion(works)
        results = [found] if not isinstance(found, list | tuple) or isinstance(
            found, TensorSequence) else [*found]
        for value in results:
            self._set_level(value, level)
        return results

    def _unknown_operator(self, domain: str) -> str:
        if domain and not any(key[0] == domain for key in [*OPERATORS, *HOST_OPERATORS]):
            return f"the domain {domain} is not supported"
        return "the operator is not supported"

    def _enter(self, name: str, value: Value | None) -> None:
        self.values[name] = value
        if isinstance(value, te.Tensor):
            self._names.setdefault(value, name)

    def _is_symbolic(self, node: OpNode) -> bool:
        return any(has_symbols(x) for x in node.inputs)

    def _runs_with_sizes(self, node: OpNode) -> bool:
        """Return whether a node is supported for some constant sizes."""
        definition = find_definition(OPERATORS, node.domain, node.kind, node.opset)
        if definition is None:
            return False
        for size in _TRIAL_SIZES:
            trial = OpNode(
                node.kind, node.name, [with_sizes(x, size) for x in node.inputs], node.attributes,
                node.outputs, node.opset, {}, node.domain, node.present)
            try:
                definition(trial)
            except UndeterminedError:
                return True
            except Exception:  # as for the node itself
                continue
            return True
        return False

    def _check_known(self, work: Work) -> None:
        """Record operators that are not supported, also if they depend on others."""
        proto = work.proto
        for graph in control_flow.subgraphs_of(proto):
            for inner in graph.node:
                self._check_known(work.inner(inner))
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        if (not domain and proto.op_type in {*_CONTROL_FLOW, "Constant", "Identity"}) or (
            proto.domain, proto.op_type) in self.context.functions:
            return
        if any(key[:2] == (domain, proto.op_type) for table in (OPERATORS, HOST_OPERATORS)
               for key in table):
            return
        if is_function(domain, proto.op_type):
            return
        self.problems.append((work.name, proto.op_type, self._unknown_operator(domain)))

    def _defer(self, work: Work, fixed: Iterable[str] = (), reason: str = "") -> None:
        self._check_known(work)
        self._deferred.append(work)
        self._fixed.update(fixed)
        self._waiting.update(name for name in work.proto.output if name)
        if reason:
            self._notes.append((work.proto.op_type, work.name, reason))

    def _part(
        self, works: Sequence[Work], live: Mapping[str, Argument], fixed: Iterable[str],
        results: Sequence[str], context: ModelContext | None = None,
    ) -> DeferredPart:
        """Return nodes that are translated when the values that they read are present."""
        context = self.context if context is None else context

        def build(part: DeferredPart, values: Mapping[str, Any]) -> Plan:
            importer = Importer(context, results)
            for name, value in values.items():
                is_known = name in part.fixed or not part.varies(name)
                importer.values[name] = importer.value_of(part, name, value, is_known)
            return importer.plan(works)

        return DeferredPart(
            build, live, fixed, results, context.is_processor and context.infers)

    def value_of(
        self, part: DeferredPart, name: str, value: Any, is_known: bool
    ) -> Value | None:
        """Return a value that a deferred part reads, as nodes see it."""
        if isinstance(value, list):
            return TensorSequence(
                self.value_of(part, f"{name}[{k}]", x, is_known) for k, x in enumerate(value))
        if value is None:
            return None
        x = as_plain(value)
        if is_known:
            return x
        return self.declare(name, str(x.dtype), _with_variables(part.extents(name, x)))

    # Control flow

    def _control_flow(self, node: OpNode, work: Work) -> Expansion | Sequence[Value | None]:
        if node.kind == "If":
            return Expansion(self._branch(node, work))
        body = node.attribute("body")
        if body is None:
            raise node.error("the attribute body is missing")
        if node.kind == "Scan":
            return self._scan(node, work, body)
        limit, condition = (node.inputs[k] if node.has(k) else None for k in (0, 1))
        if isinstance(condition, np.ndarray) and not condition.all():
            limit = np.array(0)
        truth = control_flow.constant_truth(body, self._truth)
        if isinstance(limit, np.ndarray) and limit.dtype != object and (
            condition is None or isinstance(condition, np.ndarray)) and truth is not None:
            trips = int(limit.reshape(-1)[0]) if truth else min(int(limit.reshape(-1)[0]), 1)
            are_scans_typed = trips > 0 or len(body.output) == 1 + len(work.proto.input) - 2
            if trips <= MAX_UNROLLED and are_scans_typed:
                works = control_flow.unroll_loop(work, max(trips, 0), [*work.proto.input[2:]])
                return Expansion(works)
        return self._run_body(node, work, body, control_flow.run_loop)

    def _truth(self, name: str) -> bool | None:
        value = self.values.get(name)
        return bool(value.all()) if isinstance(value, np.ndarray) and value.dtype == bool else None

    def _branch(self, node: OpNode, work: Work) -> list[Work]:
        condition = node.known(0)
        if condition.size != 1:
            raise node.error(
                "the condition must have one element, got {count}", count=condition.size)
        graph = node.attribute("then_branch" if condition.all() else "else_branch")
        if graph is None:
            raise node.error("a branch is missing")
        return control_flow.inline_graph(work, graph, [], [*work.proto.output])

    def _scan(self, node: OpNode, work: Work, body: Any) -> Expansion | Sequence[Value | None]:
        axes = control_flow.ScanAxes.of_node(node)
        first = node.inputs[len(node.inputs) - len(axes.inputs)]
        trips = first.shape[axes.inputs[0]] if isinstance(first, te.Tensor | np.ndarray) else None
        if isinstance(trips, int) and 0 < trips <= MAX_UNROLLED and node.opset >= 9:
            return Expansion(control_flow.unroll_scan(work, trips, axes))
        return self._run_body(node, work, body, control_flow.run_scan)

    def _run_body(self, node: OpNode, work: Work, body: Any, run: Any) -> Sequence[Value | None]:
        """Run the body of a loop as a plan of its own, once per iteration."""
        formal = [value.name for value in body.input]
        captured = {
            name: self._argument(self.values[name])
            for name in sorted(control_flow.free_names(body))}
        works = control_flow.inline_graph(
            work, body, formal, [f"{value.name}!" for value in body.output])
        live = captured | {name: Argument(name) for name in formal}
        part = self._part(works, live, (), [f"{x.name}!" for x in body.output])
        for inner in works:
            self._check_known(inner)
        names = [*captured]

        def function(node: OpNode, inputs: Sequence[Any]) -> Any:
            outer = dict(zip(names, inputs[len(node.inputs):], strict=True))
            return tuple(run(node, inputs[:len(node.inputs)], lambda values: part.compute(
                outer | dict(zip(formal, values, strict=True)))))

        extra = [self.values[name] for name in names]
        return self._host(node, HostOperator(function, lambda _: None), work, extra)

    # Steps

    def _host(
        self, node: OpNode, host: HostOperator, work: Work, extra: Sequence[Value | None] = ()
    ) -> Sequence[Value | None]:
        """Record a call of a host function, and return its results."""
        inputs = [*node.inputs, *extra]
        level = self._level(inputs)
        names = [*work.proto.output]
        self._hosts.setdefault(level, []).append(HostStep(
            node, host.function, [self._argument(x) for x in inputs], names))
        self._notes.append((node.kind, work.name, "runs on the host"))
        types = host.types(node)
        if types is None or not self.context.is_processor or not self.context.infers:
            self.unknown.update(name for name in names if name)
            return []
        found: list[Value | None] = []
        for name, kind in zip(names, types, strict=False):
            if not name:
                found.append(None)
            elif kind is None:
                self.unknown.add(name)
                found.append(None)
            else:
                shape = _with_variables(kind[1])
                found.append(self.declare(name, kind[0], shape, level + 1))
        return found

    def _level(self, values: Iterable[Value | None]) -> int:
        return max((self._level_of(value) for value in values), default=0)

    def _level_of(self, value: Value | None) -> int:
        if isinstance(value, te.Tensor):
            return self._levels.get(value, 0)
        if isinstance(value, HostValue):
            return self._host_levels.get(value.name, 0)
        if isinstance(value, TensorSequence):
            return self._level(value)
        if isinstance(value, np.ndarray) and value.dtype == object:
            tensors = [self._binders[var][0] for var in self._variables(value)]
            return max((self._levels.get(tensor, 0) for tensor in tensors), default=0)
        return 0

    def _variables(self, sizes: Iterable[Any]) -> list[Var]:
        values = sizes.flat if isinstance(sizes, np.ndarray) else sizes
        return [var for n in values if isinstance(n, Expr) for var in free_variables(n)
                if var in self._binders]

    def _set_level(self, value: Value | None, level: int) -> None:
        if isinstance(value, TensorSequence):
            for item in value:
                self._set_level(item, level)
        elif isinstance(value, te.Tensor) and value not in self._levels:
            self._levels[value] = level

    def _at_level(self, value: Value | None, level: int) -> Value | None:
        """Return a value as programs of a level read it."""
        if isinstance(value, TensorSequence):
            return TensorSequence(self._at_level(item, level) for item in value)
        if not isinstance(value, te.Tensor) or isinstance(value.op, te.PlaceholderOp) or (
            self._levels.get(value, 0) == level):
            return value
        if value not in self._boundaries:
            name = self._export(value)
            boundary: te.Tensor = te.placeholder(value.shape, str(value.dtype), name=value.name)
            self._levels[boundary] = self._levels.get(value, 0)
            self._names[boundary] = name
            self._boundaries[value] = boundary
        return self._boundaries[value]

    def _export(self, value: te.Tensor) -> str:
        """Return the name of a tensor in the environment, to which a program writes it."""
        name = self._names.setdefault(value, f"!{next(_UNIQUE)}")
        if not isinstance(value.op, te.PlaceholderOp) or value in self.constants:
            self._exports.setdefault(self._levels.get(value, 0), {})[value] = None
        return name

    def _argument(self, value: Value | None) -> Argument:
        if isinstance(value, te.Tensor):
            return Argument(self._export(value))
        if isinstance(value, HostValue):
            return Argument(value.name)
        if isinstance(value, TensorSequence):
            return Argument(items=tuple(self._argument(item) for item in value))
        if value is not None and value.dtype == object:
            places = {}
            for var in self._variables(value):
                tensor, axis = self._binders[var]
                places[identifier(var.name)] = (self._names[tensor], axis)
            return Argument(value=value, sizes=places)
        return Argument(value=value)

    def _output(self, name: str, present: set[te.Tensor]) -> Argument:
        if name in self._waiting or name in self.unknown:
            return Argument(name)
        value = self.values[name]
        if isinstance(value, np.ndarray) and value.dtype == object and value.ndim <= 1:
            level = self._level([value])
            value = OpNode("Shape", name, [value], {}, 1, 1).tensor(0)
            self._set_level(value, level)
        elif isinstance(value, np.ndarray) and str(value.dtype) in KERNEL_DTYPES:
            value = OpNode("Identity", name, [value], {}, 1, 1, self.constants).tensor(0)
        if not isinstance(value, te.Tensor):
            return self._argument(value)
        if isinstance(value.op, te.PlaceholderOp) or value in present:
            level = self._levels.get(value, 0)
            value = topi.identity(value)
            self._set_level(value, level)
        assert isinstance(value, te.Tensor)
        present.add(value)
        return self._argument(value)

    def _steps(self) -> Plan:
        present = set[te.Tensor]()
        outputs = [self._output(name, present) for name in self.results]
        part = self._deferred_part()
        steps: list[Any] = []
        last = max([*self._exports, *self._hosts], default=-1)
        is_alone = not self._hosts and part is None and last <= 0
        for level in range(last + 1):
            if level in self._exports and self.context.compiles:
                steps.append(self._program([*self._exports[level]], is_alone))
            steps += self._hosts.get(level, [])
        if part is not None:
            steps.append(part)
        return Plan(steps, outputs, self._notes)

    def _program(self, outputs: list[te.Tensor], is_alone: bool) -> ProgramStep:
        reached, pending = set[te.Tensor](), [*outputs]
        while pending:
            x = pending.pop()
            if x not in reached:
                reached.add(x)
                pending += x.op.input_tensors
        read = {x for x in reached if x in self._names and isinstance(x.op, te.PlaceholderOp)
                and x not in self.constants}
        if self._binders:
            sizes = [n for x in reached for n in x.shape]
            bodies = [part for x in reached if isinstance(x.op, ComputeOp) for part in x.op.body]
            variables = {*self._variables(sizes), *self._variables(bodies)}
            read |= {self._binders[var][0] for var in variables}
        inputs = [*self.inputs.values()] if is_alone else sorted(
            read, key=lambda x: self._names[x])
        program = tecomp.compile(
            outputs, inputs, self.context.target,
            constants={x: array for x, array in self.constants.items() if x in reached})
        return ProgramStep(
            program, [self._names[x] for x in inputs], [self._names[x] for x in outputs])

    def _deferred_part(self) -> DeferredPart | None:
        if not self._deferred:
            return None
        inner = {name for work in self._deferred for name in work.proto.output}
        names = {name for work in self._deferred for name in read_names(work.proto)} - inner
        live = {name: self._argument(self.values[name]) for name in sorted(names - self.unknown)}
        live |= {name: Argument(name) for name in sorted(names & self.unknown)}
        results = [name for name in self.results if name in self._waiting]
        return self._part(self._deferred, live, self._fixed, results)


def _with_variables(shape: Iterable[int | None]) -> list[Any]:
    """Return a shape in which unknown sizes are variables."""
    return [te.var(f"size{next(_UNIQUE)}", "int64") if n is None else n for n in shape]


@dataclass(frozen=True)
class Expansion:
    """Nodes that take the place of one."""

    works: list[Work]
