"""Expansion of functions and of control flow into plain nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tecomp.errors import ModelError
from tecomp.onnx.node import Array, OpNode, TensorSequence

MAX_UNROLLED = 64
"""Iterations of loops that are expanded; the bodies of longer loops are programs of their own."""
_UNIQUE = count()


@dataclass(frozen=True)
class Work:
    """Node to translate.

    Attributes:
        proto: The node.
        opsets: Version of the operator set of each domain.
        path: Names of the nodes whose expansion contains this one, for messages.
        depth: Number of enclosing expansions.
    """

    proto: Any
    opsets: Mapping[str, int] = field(default_factory=dict)
    path: str = ""
    depth: int = 0

    @property
    def name(self) -> str:
        """Name of the node, after the nodes whose expansion contains it."""
        proto = self.proto
        local = proto.name or next((name for name in proto.output if name), proto.op_type)
        return f"{self.path}{local.rpartition('!')[2]}"

    def inner(self, proto: Any, opsets: Mapping[str, int] | None = None) -> Work:
        """Return a node of the expansion of this one."""
        inherited = self.opsets if opsets is None else opsets
        return Work(proto, inherited, f"{self.name}/", self.depth + 1)


def attribute_value(item: Any) -> Any:
    """Return the value of an attribute, with strings as text."""
    value = helper.get_attribute_value(item)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, list) and value and isinstance(value[0], bytes):
        return [text.decode("utf-8", "replace") for text in value]
    return value


def subgraphs_of(proto: Any) -> list[Any]:
    """Return the graphs among the attributes of a node."""
    return [graph for item in proto.attribute
            for graph in ([item.g] if item.HasField("g") else item.graphs)]


def read_names(proto: Any) -> set[str]:
    """Return the names that a node reads, also in its graphs."""
    found = {name for name in proto.input if name}
    for graph in subgraphs_of(proto):
        found |= free_names(graph)
    return found


def free_names(graph: Any) -> set[str]:
    """Return the names that a graph reads, but does not define."""
    defined = {value.name for value in graph.input} | {item.name for item in graph.initializer}
    found = set()
    for node in graph.node:
        found |= read_names(node) - defined
        defined |= {*node.output}
    return found | ({value.name for value in graph.output} - defined)


def rename_node(proto: Any, names: Mapping[str, str]) -> Any:
    """Return a node in which names are replaced, also in its graphs."""
    node = onnx.NodeProto()
    node.CopyFrom(proto)
    del node.input[:], node.output[:]
    node.input.extend(names.get(name, name) for name in proto.input)
    node.output.extend(names.get(name, name) for name in proto.output)
    for graph in subgraphs_of(node):
        _rename_graph(graph, names)
    return node


def _rename_graph(graph: Any, names: Mapping[str, str]) -> None:
    defined = {value.name for value in graph.input} | {item.name for item in graph.initializer}
    defined |= {name for node in graph.node for name in node.output}
    outer = {old: new for old, new in names.items() if old not in defined}
    for node in graph.node:
        node.CopyFrom(rename_node(node, outer))
    for value in graph.output:
        value.name = outer.get(value.name, value.name)


def inline_graph(
    work: Work, graph: Any, inputs: Sequence[str], outputs: Sequence[str],
    opsets: Mapping[str, int] | None = None,
) -> list[Work]:
    """Return the nodes of a graph or function with names of their own.

    Args:
        work: OpNode that contains the graph.
        graph: Graph or function.
        inputs: Names of the values of the inputs; empty for absent ones.
        outputs: Names for the values of the outputs; empty for unused ones.
        opsets: Versions of operator sets. Default: those of the node.
    """
    prefix = f"{next(_UNIQUE)}!"
    is_function = isinstance(graph, onnx.FunctionProto)
    formal = [*graph.input] if is_function else [value.name for value in graph.input]
    names = dict.fromkeys(formal, "") | dict(zip(formal, inputs, strict=False))
    found = []
    for item in [] if is_function else graph.initializer:
        names[item.name] = prefix + item.name
        found.append(work.inner(helper.make_node("Constant", [], [prefix + item.name], value=item)))
    names[""] = ""
    for node in graph.node:
        for name in node.output:
            if name:
                names[name] = prefix + name
        found.append(work.inner(rename_node(node, names), opsets))
    results = [*graph.output] if is_function else [value.name for value in graph.output]
    for result, name in zip(results, outputs, strict=False):
        if name:
            found.append(work.inner(
                helper.make_node("Identity", [names.get(result, result)], [name])))
    return found


def _with_attributes(function: Any, node: Any, defaults: Mapping[str, Any]) -> Any:
    """Return a function in which references to attributes are replaced by those of a call."""
    values = dict(defaults)
    values |= {item.name: item for item in function.attribute_proto}
    values |= {item.name: item for item in node.attribute}
    result = onnx.FunctionProto()
    result.CopyFrom(function)

    def replace(nodes: Any) -> None:
        for inner in nodes:
            items = [*inner.attribute]
            del inner.attribute[:]
            for item in items:
                if not item.ref_attr_name:
                    inner.attribute.append(item)
                elif item.ref_attr_name in values:
                    new = inner.attribute.add()
                    new.CopyFrom(values[item.ref_attr_name])
                    new.name = item.name
            for graph in subgraphs_of(inner):
                replace(graph.node)

    replace(result.node)
    return result


def expand_function(
    work: Work, functions: Mapping[tuple[str, str], Any], node: OpNode
) -> list[Work] | None:
    """Return the nodes that define an operator, or None if it is no function.

    Args:
        work: OpNode.
        functions: Functions of the model, by domain and name.
        node: The node with its values, whose types some functions depend on.

    Raises:
        ModelError: If functions contain themselves.
    """
    proto = work.proto
    if work.depth > 50:
        raise node.error("functions contain themselves")
    function = functions.get((proto.domain, proto.op_type))
    defaults: dict[str, Any] = {}
    if function is None:
        function, defaults = _defined_by_onnx(work, node)
    if function is None:
        return None
    opsets = {item.domain: item.version for item in function.opset_import} or work.opsets
    return inline_graph(
        work, _with_attributes(function, proto, defaults), [*proto.input], [*proto.output], opsets)


def _defined_by_onnx(work: Work, node: OpNode) -> tuple[Any, dict[str, Any]]:
    proto, domain = work.proto, node.domain
    try:
        schema = onnx.defs.get_schema(proto.op_type, node.opset, domain)
    except onnx.defs.SchemaError:
        return None, {}
    defaults = {
        name: item.default_value for name, item in schema.attributes.items()
        if item.default_value.name
    }
    function = onnx.FunctionProto()
    try:
        if schema.has_function:
            version = max(v for v in schema.function_opset_versions if v <= max(
                node.opset, schema.function_opset_versions[0]))
            function.ParseFromString(schema.get_function_with_opset_version(version))
            return function, defaults
        if not schema.has_context_dependent_function:
            return None, {}
        versions = schema.context_dependent_function_opset_versions
        version = max(v for v in versions if v <= max(node.opset, versions[0]))
        call = onnx.NodeProto()
        call.CopyFrom(proto)
        present = {item.name for item in proto.attribute}
        call.attribute.extend(item for name, item in defaults.items() if name not in present)
        function.ParseFromString(schema.get_context_dependent_function_with_opset_version(
            version, call.SerializeToString(), [_type_of(x) for x in node.inputs]))
    except (RuntimeError, ValueError):  # the builder of ONNX rejects these types or attributes
        return None, {}
    return (function, defaults) if function.node else (None, {})


def _type_of(value: Any) -> bytes:
    """Return the type of a value as ONNX describes it."""
    if isinstance(value, TensorSequence):
        item = value[0] if value else np.zeros(0, np.float32)
        inner = onnx.TypeProto.FromString(_type_of(item))
        return bytes(helper.make_sequence_type_proto(inner).SerializeToString())
    if value is None:
        return b""
    is_sizes = isinstance(value, np.ndarray) and value.dtype == object
    name = "int64" if is_sizes else str(value.dtype)
    try:
        kind = helper.np_dtype_to_tensor_dtype(numpy_dtype(name))
    except (TypeError, ValueError, KeyError):
        kind = onnx.TensorProto.STRING
    shape = [n if isinstance(n, int) else None for n in value.shape]
    return bytes(helper.make_tensor_type_proto(kind, shape).SerializeToString())


def numpy_dtype(name: str) -> Any:
    """Return a dtype of NumPy by name, also those of the package ml_dtypes."""
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def has_text_labels(work: Work) -> bool:
    """Return whether a node is a classifier whose labels are strings."""
    return work.proto.op_type.endswith("Classifier") and any(
        item.name == "classlabels_strings" and item.strings for item in work.proto.attribute)


def split_labels(work: Work) -> list[Work]:
    """Return a classifier with labels that are strings as one with numbers, and an encoder."""
    classifier = onnx.NodeProto()
    classifier.CopyFrom(work.proto)
    labels: list[Any] = []
    for item in [*classifier.attribute]:
        if item.name == "classlabels_strings":
            labels = [*item.strings]
            classifier.attribute.remove(item)
    is_linear = classifier.op_type == "LinearClassifier"
    numbers = [*range(len(labels))]
    classifier.attribute.append(helper.make_attribute(
        "classlabels_ints" if is_linear else "classlabels_int64s", numbers))
    name = f"{next(_UNIQUE)}!label"
    result, classifier.output[0] = classifier.output[0], name
    encoder = helper.make_node(
        "LabelEncoder", [name], [result], domain=work.proto.domain, keys_int64s=numbers,
        values_strings=labels)
    return [work.inner(classifier), *([work.inner(encoder)] if result else [])]


def constant_truth(graph: Any, is_known: Callable[[str], bool | None]) -> bool | None:
    """Return the condition that the body of a loop returns, or None if data decides it.

    Args:
        graph: Body of a loop.
        is_known: Function that returns the truth of a name outside of the body, or None.
    """
    makers = {name: node for node in graph.node for name in node.output}
    weights = {item.name: item for item in graph.initializer}
    name = graph.output[0].name
    while name in makers and makers[name].op_type == "Identity" and makers[name].domain == "":
        name = makers[name].input[0]
    if name == graph.input[1].name:
        return True
    if name in weights:
        return bool(numpy_helper.to_array(weights[name]).all())
    if name in makers:
        node = makers[name]
        if node.op_type != "Constant":
            return None
        values = {item.name: attribute_value(item) for item in node.attribute}
        return bool(numpy_helper.to_array(values["value"]).all()) if "value" in values else None
    return is_known(name)


def unroll_loop(work: Work, trips: int, inputs: Sequence[str]) -> list[Work]:
    """Return the iterations of a loop with a known number of them.

    Args:
        work: Loop.
        trips: Number of iterations.
        inputs: Names of the initial states.
    """
    proto = work.proto
    body = next(item.g for item in proto.attribute if item.name == "body")
    states, results = [*inputs], [*proto.output]
    scans: list[list[str]] = [[] for _ in range(len(body.output) - 1 - len(states))]
    found = []
    for trip in range(trips):
        prefix = f"{next(_UNIQUE)}!"
        constants = []
        for name, value in (("trip", np.array(trip)), ("condition", np.array(True))):
            constants.append(prefix + name)
            item = numpy_helper.from_array(value, prefix + name)
            found.append(work.inner(helper.make_node("Constant", [], [prefix + name], value=item)))
        outputs = [f"{prefix}{value.name}" for value in body.output[1:]]
        found += inline_graph(work, body, [*constants, *states], ["", *outputs])
        states = outputs[:len(states)]
        for scan, name in zip(scans, outputs[len(states):], strict=True):
            scan.append(name)
    for state, name in zip(states, results, strict=False):
        if name:
            found.append(work.inner(helper.make_node("Identity", [state], [name])))
    for scan, name in zip(scans, results[len(states):], strict=False):
        found += _stacked(work, scan, name, 0)
    return found


def _stacked(work: Work, parts: Sequence[str], name: str, axis: int) -> list[Work]:
    """Return the nodes that stack values along a new axis."""
    if not name:
        return []
    sequence = f"{next(_UNIQUE)}!sequence"
    return [
        work.inner(helper.make_node("SequenceConstruct", parts, [sequence])),
        work.inner(helper.make_node(
            "ConcatFromSequence", [sequence], [name], axis=axis, new_axis=1)),
    ]


@dataclass(frozen=True)
class ScanAxes:
    """Axes and directions of the inputs and outputs that a Scan iterates over."""

    inputs: Sequence[int]
    outputs: Sequence[int]
    are_inputs_reversed: Sequence[int]
    are_outputs_reversed: Sequence[int]

    @staticmethod
    def of_node(node: OpNode) -> ScanAxes:
        """Return the axes of a Scan; the first ones by default."""
        body, count = node.attribute("body"), node.attribute("num_scan_inputs")
        results = len(body.output) - (len(body.input) - count)
        return ScanAxes(
            node.attribute("scan_input_axes", [0] * count),
            node.attribute("scan_output_axes", [0] * results),
            node.attribute("scan_input_directions", node.attribute("directions", [0] * count)),
            node.attribute("scan_output_directions", [0] * results),
        )


def unroll_scan(work: Work, trips: int, axes: ScanAxes) -> list[Work]:
    """Return the iterations of a Scan over axes of constant size."""
    proto = work.proto
    body = next(item.g for item in proto.attribute if item.name == "body")
    count = len(proto.input) - len(axes.inputs)
    states, results = [*proto.input[:count]], [*proto.output]
    scans: list[list[str]] = [[] for _ in axes.outputs]
    found = []
    for trip in range(trips):
        prefix, rows = f"{next(_UNIQUE)}!", []
        for k, name in enumerate(proto.input[count:]):
            place = trips - 1 - trip if axes.are_inputs_reversed[k] else trip
            index = numpy_helper.from_array(np.array(place), f"{prefix}at{k}")
            rows.append(f"{prefix}row{k}")
            found += [
                work.inner(helper.make_node("Constant", [], [index.name], value=index)),
                work.inner(helper.make_node(
                    "Gather", [name, index.name], [rows[-1]], axis=axes.inputs[k])),
            ]
        outputs = [f"{prefix}{value.name}" for value in body.output]
        found += inline_graph(work, body, [*states, *rows], outputs)
        states = outputs[:count]
        for scan, name in zip(scans, outputs[count:], strict=True):
            scan.append(name)
    for state, name in zip(states, results, strict=False):
        if name:
            found.append(work.inner(helper.make_node("Identity", [state], [name])))
    for k, (scan, name) in enumerate(zip(scans, results[count:], strict=False)):
        parts = scan[::-1] if axes.are_outputs_reversed[k] else scan
        found += _stacked(work, parts, name, axes.outputs[k])
    return found


Body = Callable[[Sequence[Any]], list[Any]]


def run_loop(node: OpNode, inputs: Sequence[Any], body: Body) -> list[Any]:
    """Run a loop whose number of iterations data decides.

    Args:
        node: Loop.
        inputs: Number of iterations, condition and initial states.
        body: Function of the number of the iteration, the condition and the states.
    """
    limit, condition, *states = inputs
    trips = 2**63 - 1 if limit is None else int(np.asarray(limit).reshape(()))
    goes_on = condition is None or bool(np.asarray(condition).all())
    scans: list[list[Array]] | None = None
    trip = 0
    while trip < trips and goes_on:
        found = body([np.array(trip, np.int64), np.array(True), *states])
        goes_on = bool(np.asarray(found[0]).all())
        states, rows = found[1:1 + len(states)], found[1 + len(states):]
        scans = scans or [[] for _ in rows]
        for scan, row in zip(scans, rows, strict=True):
            scan.append(row)
        trip += 1
    if scans is None:
        scans = [[] for _ in node.attribute("body").output[1 + len(states):]]
    return [*states, *(_stack(node, k, scan, len(states)) for k, scan in enumerate(scans))]


def _stack(node: OpNode, k: int, rows: Sequence[Array], states: int) -> Array:
    if rows:
        return np.stack(rows)
    kind = node.attribute("body").output[1 + states + k].type.tensor_type
    shape = [d.dim_value for d in kind.shape.dim]
    return np.zeros([0, *shape], helper.tensor_dtype_to_np_dtype(kind.elem_type or 1))


def run_scan(node: OpNode, inputs: Sequence[Any], body: Body) -> list[Any]:
    """Run a Scan over axes whose size is not known when the model is loaded.

    Raises:
        ModelError: If the axes differ in size.
    """
    axes = ScanAxes.of_node(node)
    if node.opset < 9:  # a first axis of batches, after an input with lengths
        rows = [run_scan_once(node, [x[k] for x in inputs[1:]], body, axes)
                for k in range(len(inputs[1]))]
        return [np.stack(parts) for parts in zip(*rows, strict=True)]
    return run_scan_once(node, inputs, body, axes)


def run_scan_once(node: OpNode, inputs: Sequence[Any], body: Body, axes: ScanAxes) -> list[Any]:
    """Run a Scan without an axis of batches.

    Raises:
        ModelError: If the axes differ in size.
    """
    count = len(inputs) - len(axes.inputs)
    states = [*inputs[:count]]
    over = [np.moveaxis(x, axis, 0) for x, axis in zip(inputs[count:], axes.inputs, strict=True)]
    over = [x[::-1] if is_reversed else x
            for x, is_reversed in zip(over, axes.are_inputs_reversed, strict=True)]
    trips = {len(x) for x in over}
    if len(trips) != 1:
        raise node.error("the axes of the inputs have sizes {sizes}", sizes=sorted(trips))
    scans: list[list[Array]] = [[] for _ in axes.outputs]
    for trip in range(trips.pop()):
        found = body([*states, *(np.ascontiguousarray(x[trip]) for x in over)])
        states = found[:count]
        for scan, row in zip(scans, found[count:], strict=True):
            scan.append(row)
    results = []
    for k, scan in enumerate(scans):
        rows = scan[::-1] if axes.are_outputs_reversed[k] else scan
        if not rows:
            raise ModelError(
                "onnx: node {node} (Scan): the axis of the inputs is empty",
                kind="unsupported-node", node=node.name)
        results.append(np.stack(rows, axes.outputs[k]))
    return [*states, *results]
