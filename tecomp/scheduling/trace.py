"""Schedule traces, and their JSON and Python text."""

from __future__ import annotations

import ast
import json
import keyword
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.tensor import Tensor
from tecomp.compute.tensor_intrin import TensorIntrin
from tecomp.errors import ScheduleError, safe_repr
from tecomp.ir.nodes.argument_checks import is_one_of
from tecomp.ir.nodes.dtype import SCALARS
from tecomp.ir.nodes.expr import Const, Expr, Var
from tecomp.ir.nodes.printer import format_count, take_name
from tecomp.ir.traversal.rewrite import free_variables, substitute
from tecomp.scheduling.state import GroupKey, ScheduleState
from tecomp.scheduling.threads import ThreadAxis

_TYPE = re.compile(rf"(?:{'|'.join(SCALARS)})(?:x\d+)?")


def te_text(printed: str) -> str:
    """Convert a printed expression or lambda to Python code that uses the names of `te`.

    >>> te_text("lambda i, j: [j // 4, AXIS_SEPARATOR, i, j % 4]")
    'lambda i, j: [j // 4, te.AXIS_SEPARATOR, i, j % 4]'
    >>> te_text('exp(cast("float32", i)) + float32(0.5)')
    "te.exp(te.cast(i, 'float32')) + te.const(0.5, 'float32')"
    >>> te_text("i > 2 and not j == 0")
    'te.all(i > 2, te.logical_not(j == 0))'
    """
    tree = ast.parse(printed, mode="eval")
    for node in ast.walk(tree):
        _with_functions(node)
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name(name), [value]) if _TYPE.fullmatch(name):
                node.func = _te("const")
                node.args = [_number(value), ast.Constant(name)]
            case ast.Call(ast.Name("cast"), [kind, value]):
                node.func = _te("cast")
                node.args = [value, kind]
            case ast.Call(ast.Name(name)):
                node.func = _te(name)
            case ast.Name("AXIS_SEPARATOR"):
                node.id = "te.AXIS_SEPARATOR"
    return ast.unparse(tree)


def float_text(value: float) -> str:
    """Return Python source for a float; inf and nan become `float('inf')` and `float('nan')`."""
    text = repr(value)
    return text if text.strip("-")[0].isdigit() else f"float({text!r})"


def _with_functions(node: ast.AST) -> None:
    """Replace the operators `and`, `or` and `not` in the fields of a node by function calls.

    Python would convert the operands of these operators to truth values.
    """
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            value[:] = [_as_function(item) for item in value]
        elif isinstance(value, ast.expr):
            setattr(node, name, _as_function(value))


def _as_function(node: Any) -> Any:
    match node:
        case ast.BoolOp(ast.And(), values):
            return ast.Call(ast.Name("all"), values, [])
        case ast.BoolOp(ast.Or(), values):
            return ast.Call(ast.Name("any"), values, [])
        case ast.UnaryOp(ast.Not(), value):
            return ast.Call(ast.Name("logical_not"), [value], [])
    return node


def _te(name: str) -> ast.expr:
    return ast.Attribute(ast.Name("te"), name)


def _number(value: ast.expr) -> ast.expr:
    """Wrap a string constant such as `"inf"` or `"nan"` in a call of `float`."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return ast.Call(ast.Name("float"), [value], [])
    return value


VERSION = 1
Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True, slots=True)
class Need:
    """Names that a call uses for the first time: a tensor, a size, or the axes of a stage.

    Attributes:
        owner: Name of the tensor or size, or of the stage that owns the axes.
        kind: "tensor", "size", "axis" or "reduce_axis".
        names: Names to bind.
    """

    owner: str
    kind: str
    names: tuple[str, ...]

    def to_json(self) -> Json:
        """Return the JSON form of the names."""
        return {"owner": self.owner, "kind": self.kind, "names": list(self.names)}

    def to_python(self) -> str:
        """Return the Python assignment that binds the names."""
        if self.kind in ("tensor", "size"):
            return f'{self.owner} = s.{self.kind}("{self.owner}")'
        comma = "," if len(self.names) == 1 else ""
        return f"{', '.join(self.names)}{comma} = s[{self.owner}].op.{self.kind}"


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One recorded primitive call.

    Attributes:
        call: Name of the primitive.
        stage: Name of the stage of the call; None for a method of the schedule.
        args: Positional arguments, with axes and tensors encoded by name.
        kwargs: Keyword arguments.
        results: Names of the returned values.
        required_names: Names that the arguments use for the first time.
        returns_many: Whether the call returns a tuple.
    """

    call: str
    stage: str | None
    args: tuple[Json, ...]
    kwargs: tuple[tuple[str, Json], ...]
    results: tuple[str, ...]
    required_names: tuple[Need, ...]
    returns_many: bool

    def to_json(self) -> Json:
        """Return the JSON form of the call."""
        return {
            "needs": [required.to_json() for required in self.required_names],
            "call": self.call,
            "stage": self.stage,
            "args": list(self.args),
            "kwargs": dict(self.kwargs),
            "results": list(self.results),
        }

    def to_python(self) -> str:
        """Return the call as one line of Python."""
        owner = "s" if self.stage is None else f"s[{self.stage}]"
        arguments = [_python(a) for a in self.args]
        arguments += [f"{name}={_python(value)}" for name, value in self.kwargs]
        call = f"{owner}.{self.call}({', '.join(arguments)})"
        if not self.results:
            return call
        comma = "," if self.returns_many and len(self.results) == 1 else ""
        return f"{', '.join(self.results)}{comma} = {call}"


@dataclass(frozen=True, slots=True)
class Trace:
    """Recorded calls of one schedule in order, with the names of its tensors and axes.

    `print(s.trace)` shows a Python function that recreates the schedule from its outputs.

    Attributes:
        outputs: Names of the output operations.
        operations: Operations by name.
        axes: Names of the axes used so far.
        bound_names: Names of tensors and sizes that the Python text has bound so far.
        sizes: Names of all size variables of the computation.
        steps: Recorded calls.
        intrinsics: Intrinsics passed to `tensorize`, by name.
        groups: Names of the stage groups.

    >>> from tecomp import te
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    >>> s = te.create_schedule(B)
    >>> outer, inner = s[B].split(B.op.axis[0], factor=4)
    >>> trace = s.trace
    >>> print(trace, end="")
    def schedule(B):
        s = te.create_schedule(B.op)
        i, = s[B].op.axis
        i_outer, i_inner = s[B].split(i, factor=4)
        return s
    >>> trace.outputs, list(trace.operations), [trace.axes[axis] for axis in (outer, inner)]
    (('B',), ['A', 'B'], ['i_outer', 'i_inner'])
    >>> len(trace.steps), trace.sizes, trace.intrinsics, trace.groups, sorted(trace.bound_names)
    (1, frozenset(), {}, {}, ['B'])
    """

    outputs: tuple[str, ...]
    operations: Mapping[str, Operation]
    axes: Mapping[IterVar, str]
    bound_names: frozenset[str]
    sizes: frozenset[str]
    steps: tuple[TraceStep, ...] = ()
    intrinsics: Mapping[str, TensorIntrin] = field(default_factory=dict)
    groups: Mapping[GroupKey, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Trace of {', '.join(self.outputs)}: {format_count(len(self.steps), 'call')}>"

    @classmethod
    def start(cls, state: ScheduleState) -> Trace:
        """Return the empty trace of a schedule state."""
        sizes = frozenset(state.sizes)
        names = _TraceNames({}, sizes)
        for stage in state:
            names.operation(stage.key, stage.name)
        outputs = tuple(names.of(op) for op in state.outputs)
        return cls(outputs, names.operations, {}, frozenset(outputs), sizes)

    def operation(self, name: str) -> Operation:
        """Return the operation named `name` in the trace.

        Raises:
            ScheduleError: If no operation has this name.

        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> te.create_schedule(A).trace.operation("A") is A.op
        True
        """
        if not is_one_of(name, self.operations):
            known = ", ".join(self.operations)
            raise ScheduleError(
                "the schedule has no tensor {name!r}; its tensors are {known}",
                kind="not-in-schedule", name=name, known=known,
            )
        return self.operations[name]

    def then(
        self,
        before: ScheduleState,
        after: ScheduleState,
        call: str,
        stage: Operation | None,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Any,
    ) -> Trace:
        """Return this trace extended by one call."""
        writer = _StepEncoder(self, before, after, stage)
        owner = None if stage is None else writer.operation(stage)
        encode = partial(writer.argument, call)
        plain_args = tuple(encode(k, value) for k, value in enumerate(args))
        plain_kwargs = tuple((name, encode(name, value)) for name, value in kwargs.items())
        results = writer.results(result)
        step = TraceStep(
            call, owner, plain_args, plain_kwargs, results, tuple(writer.required_names),
            isinstance(result, tuple),
        )
        return replace(
            self,
            operations=writer.names.operations,
            axes=writer.axes,
            bound_names=frozenset(writer.bound_names),
            steps=(*self.steps, step),
            intrinsics=writer.intrinsics,
            groups=writer.groups,
        )

    def to_json(self) -> str:
        """Return the calls as JSON text, the input of `replay`.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> outer, inner = s[B].split(B.op.axis[0], factor=4)
        >>> tecomp.replay(s.trace.to_json(), [B])[B]
        Stage(B: i.outer, i.inner)
        """
        steps = [step.to_json() for step in self.steps]
        document = {"tecomp_trace": VERSION, "outputs": list(self.outputs), "steps": steps}
        return json.dumps(document, indent=1)

    def to_python(self) -> str:
        """Return the source of a function that recreates the schedule from outputs and intrinsics.

        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
        >>> print(te.create_schedule(B).trace.to_python(), end="")
        def schedule(B):
            s = te.create_schedule(B.op)
            return s
        """
        outputs = ", ".join(self.outputs)
        params = ", ".join([outputs, *self.intrinsics])
        ops = ", ".join(f"{name}.op" for name in self.outputs)
        lines = [
            f"def schedule({params}):",
            f"    s = te.create_schedule({ops if len(self.outputs) == 1 else f'[{ops}]'})",
        ]
        for step in self.steps:
            lines += [f"    {required.to_python()}" for required in step.required_names]
            lines.append(f"    {step.to_python()}")
        return "\n".join([*lines, "    return s"]) + "\n"

    def __str__(self) -> str:
        return self.to_python()


class _TraceNames:
    """Generator of unique Python identifiers for operations and axes."""

    def __init__(self, operations: Mapping[str, Operation], taken: Iterable[str]) -> None:
        self.operations = dict(operations)
        self.taken = {"s", "te", "schedule", "float", *operations, *taken}

    def fresh(self, wish: str) -> str:
        base = re.sub(r"\W", "_", wish)
        base = base if base.isidentifier() and not keyword.iskeyword(base) else f"v_{base}"
        return take_name(base, self.taken)

    def operation(self, op: Operation, wish: str) -> str:
        name = self.fresh(wish)
        self.operations[name] = op
        return name

    def of(self, op: Operation) -> str:
        return next(name for name, known in self.operations.items() if known is op)


class _StepEncoder:
    """Encoder of the arguments and results of one call, which names new objects."""

    def __init__(
        self, trace: Trace, before: ScheduleState, after: ScheduleState, stage: Operation | None
    ) -> None:
        self.names = _TraceNames(
            trace.operations,
            {*trace.axes.values(), *trace.sizes, *trace.intrinsics, *trace.groups.values()},
        )
        self.groups = dict(trace.groups)
        self.intrinsics = dict(trace.intrinsics)
        self.axes = dict(trace.axes)
        self.bound_names = set(trace.bound_names)
        self.required_names: list[Need] = []
        self.before = before
        self.layout = None if stage is None else after.stage(stage).layout
        self.n_maps = 0 if stage is None else len(before.stage(stage).layout.maps)

    def operation(self, op: Operation) -> str:
        name = self.names.of(self.before.stage(op).key)
        if name not in self.bound_names:
            self.bound_names.add(name)
            self.required_names.append(Need(name, "tensor", (name,)))
        return name

    def argument(self, call: str, name: str | int, value: Any) -> Json:
        """Encode an argument of `call`, identified by its position or keyword."""
        return self._layout_argument(name, value) if call == "transform_layout" else (
            self.encode(value))

    def _condition(self, value: Expr) -> Json:
        """Encode a condition as text over v0, v1 ..., with the list of these variables."""
        free = list(free_variables(value))
        names: dict[Var, Expr] = {var: Var(f"v{k}", var.dtype) for k, var in enumerate(free)}
        return {"condition": str(substitute(value, names)), "of": [self._variable(v) for v in free]}

    def _variable(self, var: Var) -> Json:
        if isinstance(var, ThreadAxis):
            return {"thread": var.tag}
        if isinstance(var, IterVar):
            return self._axis(var)
        self._sizes(var)
        return {"size": var.name}

    def encode(self, value: Any) -> Json:
        match value:
            case IterVar():
                return self._axis(value)
            case GroupKey():
                return {"group": self.groups[value]}
            case Tensor() | Operation() | TensorIntrin():
                return self._named(value)
            case list() | tuple():
                return [self.encode(item) for item in value]
            case float() if not math.isfinite(value):
                return {"float": repr(value)}
            case None | bool() | int() | float() | str():
                return value
            case np.generic():
                return self.encode(value.item())
            case Expr():
                return self._expression(value)
        raise AssertionError(f"{safe_repr(value)} is no argument of a primitive")

    def _expression(self, value: Expr) -> Json:
        if value.dtype.is_bool:
            return self._condition(value)
        if isinstance(value, Const):
            return self.encode(value.value)
        self._sizes(value)
        return {"expr": str(value)}

    def _named(self, value: Tensor | Operation | TensorIntrin) -> Json:
        if isinstance(value, TensorIntrin):
            return {"intrinsic": self._intrinsic(value)}
        if isinstance(value, Operation):
            return {"stage": self.operation(value)}
        return {"tensor": self.operation(value.op), "output": value.value_index}

    def _intrinsic(self, intrin: TensorIntrin) -> str:
        for name, known in self.intrinsics.items():
            if known is intrin:
                return name
        name = self.names.fresh(intrin.name)
        self.intrinsics[name] = intrin
        return name

    def _axis(self, axis: IterVar) -> Json:
        if axis in self.axes:
            return {"axis": self.axes[axis]}
        for stage in self.before:
            if not isinstance(stage.op, ComputeOp):
                continue
            for kind in ("axis", "reduce_axis"):
                family: tuple[IterVar, ...] = getattr(stage.op, kind)
                if axis in set(family):
                    self._introduce(stage.key, kind, family)
                    return {"axis": self.axes[axis]}
        raise AssertionError(f"{axis} belongs to no stage")

    def _sizes(self, value: Expr) -> None:
        """Record the size variables of an expression as needed names."""
        for var in free_variables(value):
            if var.name not in self.bound_names:
                self.bound_names.add(var.name)
                self.required_names.append(Need(var.name, "size", (var.name,)))

    def _introduce(self, key: Operation, kind: str, family: tuple[IterVar, ...]) -> None:
        owner = self.operation(key)
        names = tuple(self.names.fresh(axis.name) for axis in family)
        self.axes.update(zip(family, names, strict=True))
        self.required_names.append(Need(owner, kind, names))

    def _layout_argument(self, name: str | int, value: Any) -> Json:
        """Encode an argument of transform_layout; functions become the maps that they gave."""
        assert self.layout is not None
        if name == 0:
            first, *others = map(str, self.layout.maps[self.n_maps :])
            return {"map": first, "then": list[Json](others)} if others else {"map": first}
        if name == "pad_value" and callable(value):
            assert self.layout.pad_value is not None
            return {"value": str(self.layout.pad_value)}
        return self.encode(value)

    def results(self, result: Any) -> tuple[str, ...]:
        items = result if isinstance(result, tuple) else (result,)
        names = []
        for item in items:
            if isinstance(item, IterVar):
                if item not in self.axes:
                    self.axes[item] = self.names.fresh(item.name)
                names.append(self.axes[item])
            elif isinstance(item, Tensor):
                name = self.names.operation(item.op, item.op.name)
                self.bound_names.add(name)
                names.append(name)
            elif isinstance(item, GroupKey):
                self.groups[item] = self.names.fresh("group")
                names.append(self.groups[item])
        return tuple(names)


def _python(value: Json) -> str:
    match value:
        case {"axis": name} | {"stage": name} | {"intrinsic": name} | {"group": name}:
            return str(name)
        case {"tensor": name, "output": output}:
            return str(name) if output == 0 else f'{name}.op.output({output})'
        case {"map": text, "then": [*others]}:
            first, *later = (f"te.IndexMap.from_func({te_text(str(t))})" for t in (text, *others))
            return first + "".join(f".then({part})" for part in later)
        case {"map": text} | {"value": text} | {"expr": text}:
            return te_text(str(text))
        case {"condition": text, "of": [*of]}:
            names = ", ".join(f"v{k}" for k in range(len(of)))
            return f"(lambda {names}: {te_text(str(text))})({', '.join(map(_python, of))})"
        case {"thread": tag}:
            return f"te.thread_axis({str(tag)!r})"
        case {"size": name}:
            return str(name)
        case {"float": text}:
            return float_text(float(str(text)))
        case list():
            return f"[{', '.join(map(_python, value))}]"
    return repr(value)
