"""Replay a stored schedule trace on a computation of the same form."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from inspect import signature
from types import UnionType
from typing import Any

from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.compute.tensor_intrin import TensorIntrin
from tecomp.errors import ParseError, ScheduleError
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.expr import Expr, Var
from tecomp.ir.parser.func_parser import parse_index_map, parse_pad_value
from tecomp.ir.traversal.rewrite import substitute
from tecomp.poly.maps.index_map import IndexMap
from tecomp.scheduling.schedule import Handle, Schedule, create_schedule
from tecomp.scheduling.schedule.primitive_calls import PRIMITIVES
from tecomp.scheduling.threads import thread_axis
from tecomp.scheduling.trace import VERSION
from tecomp.scheduling.transform_layout import pad_function


def replay(
    text: str,
    outputs: Handle | Sequence[Handle],
    intrinsics: Mapping[str, TensorIntrin] | None = None,
) -> Schedule:
    """Create a schedule of `outputs` and apply the calls of a stored trace.

    Args:
        text: JSON text from `trace.to_json()`.
        outputs: Output operation or tensor, or a list of outputs.
        intrinsics: Intrinsics passed to `tensorize`, by their names in the trace
            (`trace.intrinsics`).

    Raises:
        ParseError: If `text` is not a valid trace.
        ScheduleError: If the computation does not have the stages of the trace, an intrinsic is
            missing, or a primitive raises.

    >>> from tecomp import te
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    >>> s = te.create_schedule(B)
    >>> outer, inner = s[B].split(B.op.axis[0], factor=4)
    >>> replay(s.trace.to_json(), B).trace.to_json() == s.trace.to_json()
    True
    """
    document = _document(text)
    schedule = create_schedule(outputs)
    recorded = _field(document, "outputs")
    if list(schedule.trace.outputs) != recorded:
        raise ScheduleError(
            "replay: the trace was recorded for outputs {description}, got {outputs}",
            kind="replay", description=recorded, outputs=list(schedule.trace.outputs),
        )
    check_kind(
        intrinsics, Mapping | None, "replay: intrinsics",
        "pass a dict from names to intrinsics of te.decl_tensor_intrin", ScheduleError,
    )
    values: dict[str, Any] = dict(intrinsics or {})
    for step in _field(document, "steps", list):
        _run(schedule, values, step)
    return schedule


def _run(schedule: Schedule, values: dict[str, Any], step: Any) -> None:
    """Execute one recorded call, and bind its results to their names in the trace."""
    call, stage = _field(step, "call", str), _field(step, "stage", str | None)
    if call not in CALLS:
        raise ParseError("replay: unknown primitive {call!r}", kind="trace-text", call=call)
    for required in _field(step, "needs", list):
        values.update(_required_names(schedule, required))
    owner = schedule if stage is None else schedule[schedule.tensor(stage)]
    method = getattr(owner, call, None)
    if method is None:
        whose = "a schedule" if stage is None else "a stage"
        raise ParseError(
            "replay: the trace is malformed: {whose} has no primitive {call}",
            kind="trace-text", whose=whose, call=call,
        )
    args = [_decode(schedule, values, value) for value in _field(step, "args", list)]
    kwargs = {
        name: _decode(schedule, values, v) for name, v in _field(step, "kwargs", dict).items()
    }
    try:
        signature(method).bind(*args, **kwargs)
    except TypeError as error:
        raise ParseError(
            "replay: the trace is malformed: {call}: {reason}",
            kind="trace-text", call=call, reason=error,
        ) from None
    result = method(*args, **kwargs)
    results = result if isinstance(result, tuple) else (result,)
    values.update(zip(_names(step, "results"), results, strict=False))


def _names(document: Any, field: str) -> list[str]:
    names = _field(document, field, list)
    for name in names:
        if not isinstance(name, str):
            raise ParseError(
                "replay: the trace is malformed: {field!r} contains {name!r}, expected str",
                kind="trace-text", field=field, name=name,
            )
    return list(names)


def _field(document: Any, name: str, kind: type | UnionType | None = None) -> Any:
    if not isinstance(document, dict) or name not in document:
        raise ParseError(
            "replay: the trace is malformed: field {name!r} is missing",
            kind="trace-text", name=name,
        )
    if kind is not None and not isinstance(document[name], kind):
        expected = kind.__name__ if isinstance(kind, type) else str(kind)
        raise ParseError(
            "replay: the trace is malformed: {name!r} is {document!r}, expected {expected}",
            kind="trace-text", name=name, document=document[name], expected=expected,
        )
    return document[name]


CALLS = frozenset(PRIMITIVES)
"""Names of all primitives."""


def _document(text: str) -> dict[str, Any]:
    if not isinstance(text, str):
        raise ParseError(
            "replay: expected the JSON text of a trace, got {text!r}",
            kind="trace-text", text=text,
        )
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ParseError(
            "replay: the text is not valid JSON: {reason}",
            kind="trace-text", reason=error,
        ) from None
    except RecursionError:
        raise ParseError(
            "replay: the text is nested too deeply; pass what `trace.to_json()` returns",
            kind="trace-text",
        ) from None
    if not isinstance(document, dict) or document.get("tecomp_trace") != VERSION:
        raise ParseError(
            "replay: the text is not a trace of version {version}",
            kind="trace-text", version=VERSION,
        )
    return document


def _required_names(schedule: Schedule, required: dict[str, Any]) -> dict[str, Any]:
    kind = _field(required, "kind", str)
    if kind not in ("axis", "reduce_axis"):
        return {}
    owner, names = _field(required, "owner", str), _names(required, "names")
    op: Operation = schedule[schedule.tensor(owner)].op
    axes = getattr(op, kind)
    if len(names) != len(axes):
        raise ScheduleError(
            "replay: the trace has {name_count} axes in {owner}.op.{attribute}, but the "
            "computation has {axis_count}; replay it on a computation of the same form",
            kind="replay", name_count=len(names), owner=owner, attribute=kind, axis_count=len(axes),
        )
    return dict(zip(names, axes, strict=True))


def _decode(  # noqa: C901  (a case for each kind of argument)
    schedule: Schedule, values: dict[str, Any], value: Any
) -> Any:
    match value:
        case {"axis": str(name)} | {"group": str(name)}:
            return _field(values, name)
        case {"intrinsic": str(name)}:
            return _intrinsic(values, name)
        case {"float": str(text)}:
            return _float(text)
        case {"stage": str(name)} | {"tensor": str(name)}:
            return _tensor(schedule, name, value.get("output", 0))
        case {"map": str(text)}:
            return _index_map([text, *_field(value, "then", list)] if "then" in value else [text])
        case {"value": str(text)}:
            return pad_function(parse_pad_value(text))
        case {"expr": str(text)}:
            return _expression(schedule, text)
        case {"condition": str(text), "of": [*of]}:
            return _condition(text, [_variable(schedule, values, var) for var in of])
        case list():
            return [_decode(schedule, values, item) for item in value]
        case dict():
            raise ParseError(
                "replay: the trace is malformed: {value!r} is not a valid argument",
                kind="trace-text", value=value,
            )
    return value


def _index_map(texts: list[Any]) -> IndexMap:
    """Parse index maps and compose them in order."""
    first, *others = (IndexMap.lift(parse_index_map(str(text))) for text in texts)
    for other in others:
        first = first.then(other)
    return first


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ParseError("replay: `{text}` is not a number", kind="trace-text", text=text) from None


def _tensor(schedule: Schedule, name: str, output: Any) -> Tensor:
    count = schedule.tensor(name).op.num_outputs
    if not isinstance(output, int) or isinstance(output, bool) or not 0 <= output < count:
        raise ParseError(
            "replay: the trace is malformed: output {output!r} of {name} is out of range; it has "
            "{count} outputs",
            kind="trace-text", output=output, name=name, count=count,
        )
    return schedule.tensor(name, output)


def _intrinsic(values: dict[str, Any], name: str) -> TensorIntrin:
    found = values.get(name)
    if not isinstance(found, TensorIntrin):
        raise ScheduleError(
            "replay: the trace uses the intrinsic {name}; pass it in intrinsics=",
            kind="replay", name=name,
        )
    return found


def _variable(schedule: Schedule, values: dict[str, Any], value: Any) -> Any:
    """Decode a variable of a condition: a thread axis, a size or an axis."""
    match value:
        case {"thread": str(tag)}:
            return thread_axis(tag)
        case {"size": str(name)}:
            return schedule.size(name)
    return _decode(schedule, values, value)


def _condition(text: str, variables: list[Any]) -> Expr:
    """Parse a condition over v0, v1 ..., and substitute the variables `variables` for them."""
    if not all(isinstance(var, Var) for var in variables):
        raise ParseError(
            "replay: the trace is malformed: {of!r} must be variables",
            kind="trace-text", of=variables,
        )
    typed = ", ".join(f'v{k}="{var.dtype}"' for k, var in enumerate(variables))
    parsed = parse_pad_value(f"lambda {typed}: {text}" if variables else f"lambda: {text}")
    return substitute(parsed.value, dict(zip(parsed.indices, variables, strict=True)))


def _expression(schedule: Schedule, text: str) -> Expr:
    """Parse an expression of the size variables of the computation."""
    try:
        nodes = list(ast.walk(ast.parse(text, mode="eval")))
    except SyntaxError:
        raise ParseError(
            "replay: `{text}` is not a valid expression",
            kind="trace-text", text=text,
        ) from None
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    names = {n.id for n in nodes if isinstance(n, ast.Name) and id(n) not in called}
    sizes = [schedule.size(name) for name in sorted(names)]
    typed = ", ".join(f'{size.name}="{size.dtype}"' for size in sizes)
    parsed = parse_pad_value(f"lambda {typed}: {text}")
    return substitute(parsed.value, dict(zip(parsed.indices, sizes, strict=True)))
