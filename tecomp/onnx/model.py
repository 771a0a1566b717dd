"""Load ONNX models as compiled programs, and the backend interface of ONNX."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
import onnx.inliner
import onnx.shape_inference
from onnx import numpy_helper
from onnx.backend.base import Backend as _Backend
from onnx.backend.base import BackendRep
from onnx.reference import ReferenceEvaluator

import tecomp
from tecomp import te, topi
from tecomp.driver import CompiledProgram
from tecomp.errors import CallError, ModelError, TecompError
from tecomp.onnx import elementwise, layers, quantized, shapes
from tecomp.onnx.node import OPERATORS, Array, Node, Value
from tecomp.operations import ELEMENT_TYPES

_REGISTERED = elementwise, layers, quantized, shapes
_NEVER_FOLDED = {
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
    "RandomUniformLike",
}
"""Operators whose result is not a function of their inputs."""


class Model:
    """A compiled model.

    Attributes:
        inputs: Names of the inputs, without weights.
        outputs: Names of the outputs.
        program: Compiled program.

    >>> import numpy as np, onnx
    >>> from onnx import TensorProto, helper
    >>> x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 3]) for n in "xy")
    >>> graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    >>> model = load(helper.make_model(graph))
    >>> model.inputs, model.outputs
    (('x',), ('y',))
    >>> model.run({"x": np.array([[-1, 0, 2]], "float32")})["y"].tolist()
    [[0.0, 0.0, 2.0]]
    >>> model.program.kernels[0].group.result.name
    'T_relu'
    """

    def __init__(
        self, inputs: Sequence[str], outputs: Sequence[str], program: CompiledProgram
    ) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.program = program

    def __call__(self, *arrays: Any) -> Any:
        """Return the outputs for inputs in order: one array, or a tuple of several.

        Raises:
            CallError: If an array does not fit its input.
        """
        return self.program(*arrays)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """Return the outputs by name for inputs by name.

        Args:
            feeds: Array of each input.

        Raises:
            CallError: If an input is missing or unknown, or an array does not fit its input.
        """
        if {*feeds} != {*self.inputs}:
            raise CallError(
                "run: the inputs are {inputs}, got {names}; pass an array for each input",
                kind="argument-list", inputs=", ".join(self.inputs), names=", ".join(feeds),
            )
        found = self.program(*(np.asarray(feeds[name]) for name in self.inputs))
        results = found if isinstance(found, tuple) else (found,)
        return dict(zip(self.outputs, results, strict=True))

    def __repr__(self) -> str:
        return f"<Model ({', '.join(self.inputs)}) -> {', '.join(self.outputs)}>"


def supported_operators() -> tuple[str, ...]:
    """Return the names of the operators of the domain `ai.onnx` that models may contain.

    >>> "Conv" in supported_operators()
    True
    """
    return tuple(sorted({*OPERATORS, "Constant"}))


def load(
    model: Any, target: str | tecomp.Target = "cpu",
    shapes: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> Model:
    """Load an ONNX model and compile it.

    Symbolic dimensions remain symbolic: one compilation serves all sizes. Operators whose inputs
    are known are computed once, while the model is loaded.

    Args:
        model: Path of a file, its bytes, or an `onnx.ModelProto`.
        target: Target.
        shapes: Shapes of inputs, by name, in place of those of the model. Default: none.

    Raises:
        ModelError: If the model is malformed, an input has no shape, or nodes are not supported;
            the error lists all of these.

    >>> from onnx import TensorProto, helper
    >>> x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in "xy")
    >>> graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "g", [x], [y])
    >>> load(helper.make_model(graph))
    <Model (x) -> y>
    """
    proto = _without_functions(_checked_proto(model))
    importer = _Importer(proto, shapes)
    outputs = importer.outputs()
    program = tecomp.compile(
        outputs, list(importer.inputs.values()), target, constants=importer.constants_read(outputs))
    names = [value.name for value in proto.graph.output]
    return Model(list(importer.inputs), names, program)


def _checked_proto(model: Any) -> onnx.ModelProto:
    """Return a model that ONNX's checker accepts."""
    is_path = isinstance(model, str | PathLike)
    if not isinstance(model, onnx.ModelProto | bytes) and not is_path:
        raise ModelError(
            "onnx: expected a path, bytes or a ModelProto, got {kind_name}",
            kind="model", kind_name=type(model).__name__,
        )
    try:
        if is_path:
            # The checker reads external data too, and rejects paths that leave the folder.
            onnx.checker.check_model(fspath(model))
            proto = onnx.load(fspath(model))
        else:
            proto = onnx.load_model_from_string(model) if isinstance(model, bytes) else model
            onnx.checker.check_model(proto)
    except Exception as error:  # the parser of protocol buffers has exceptions of several packages
        raise _malformed(error) from None
    newest = onnx.defs.onnx_opset_version()
    for item in proto.opset_import:
        if item.domain in ("", "ai.onnx") and item.version > newest:
            raise ModelError(
                "onnx: the model has operator set {version}, but the installed package onnx knows "
                "versions up to {newest}; upgrade onnx, or export for an older version",
                kind="invalid-model", version=item.version, newest=newest,
            )
    return proto


def _without_functions(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Expand functions of the model, and operators that ONNX defines by others if we do not."""
    missing = {
        (node.domain, node.op_type) for node in proto.graph.node
        if node.op_type not in OPERATORS and node.domain in ("", "ai.onnx")
    }
    defined = [key for key in sorted(missing) if _is_function(*key)]
    local = [(function.domain, function.name) for function in proto.functions]
    if not defined and not local:
        return proto
    with_defaults = onnx.ModelProto()
    with_defaults.CopyFrom(proto)
    for node in with_defaults.graph.node:
        if (node.domain, node.op_type) in defined:
            _add_defaults(node)
    try:
        return onnx.inliner.inline_selected_functions(
            onnx.shape_inference.infer_shapes(with_defaults), [*local, *defined],
            inline_schema_functions=True,
        )
    except RuntimeError:  # the types of operands are unknown; the nodes are reported later
        return proto


def _add_defaults(node: Any) -> None:
    """Add the default attributes, which the expansion of ONNX leaves out."""
    present = {attribute.name for attribute in node.attribute}
    for name, attribute in onnx.defs.get_schema(node.op_type, node.domain).attributes.items():
        if name not in present and attribute.default_value.name:
            node.attribute.append(attribute.default_value)


def _is_function(domain: str, name: str) -> bool:
    if not onnx.defs.has(name, domain):
        return False
    schema = onnx.defs.get_schema(name, domain)
    return bool(schema.has_function or schema.has_context_dependent_function)


def _malformed(error: Exception) -> ModelError:
    text = " ".join(str(error).split())[:300]
    return ModelError(
        "onnx: the model is malformed: {reason}", kind="invalid-model", reason=text)


class _Importer:
    """Translation of a graph.

    Attributes:
        inputs: Placeholder of each input.
        constants: Arrays of placeholders that are constants.
        values: Value of each name.
        problems: Nodes that are not supported, with the reasons.
    """

    def __init__(self, proto: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> None:
        self.graph = proto.graph
        self.opsets = {item.domain: item.version for item in proto.opset_import}
        self.opset = self.opsets.get("", self.opsets.get("ai.onnx", 1))
        self.constants: dict[te.Tensor, Array] = {}
        self.values: dict[str, Value | None] = {"": None}
        self.problems: list[str] = []
        self.sizes: dict[str, te.Var] = {}
        for item in self.graph.initializer:
            self.values[item.name] = numpy_helper.to_array(item)
        self.inputs = {
            value.name: self._placeholder(value, shapes.get(value.name))
            for value in self.graph.input if value.name not in self.values
        }
        self.values.update(self.inputs)

    def outputs(self) -> list[te.Tensor]:
        """Translate all nodes and return the outputs.

        Raises:
            ModelError: If nodes are not supported.
        """
        for proto in self.graph.node:
            if all(name in self.values for name in proto.input):
                self._translate(proto)
            else:
                self._check_known(proto)
        if self.problems:
            raise ModelError(
                "onnx: {count} nodes are not supported:\n{problems}",
                kind="unsupported-node", count=len(self.problems),
                problems="\n".join(f"  {text}" for text in self.problems),
            )
        return [self._output(value.name) for value in self.graph.output]

    def constants_read(self, outputs: Iterable[te.Tensor]) -> dict[te.Tensor, Array]:
        """Return the constants on which outputs depend."""
        reached, pending = set[te.Tensor](), [*outputs]
        while pending:
            x = pending.pop()
            if x not in reached:
                reached.add(x)
                pending += x.op.input_tensors
        return {x: array for x, array in self.constants.items() if x in reached}

    def _placeholder(self, value: Any, shape: Sequence[int] | None) -> te.Tensor:
        kind = value.type.tensor_type
        if not value.type.HasField("tensor_type") or (
            shape is None and not kind.HasField("shape")
        ):
            raise ModelError(
                "onnx: the input {name} is not a tensor of known rank; pass its shape in `shapes`",
                kind="invalid-model", name=value.name,
            )
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        if str(dtype) not in {row.name for row in ELEMENT_TYPES}:
            raise ModelError(
                "onnx: the elements of input {name} have dtype {dtype}, which is not supported; "
                "convert them before",
                kind="unsupported-node", name=value.name, dtype=dtype,
            )
        if shape is None:
            shape = [self._extent(value.name, k, d) for k, d in enumerate(kind.shape.dim)]
        tensor: te.Tensor = te.placeholder(tuple(shape), str(dtype), name=value.name)
        return tensor

    def _extent(self, name: str, axis: int, dim: Any) -> Any:
        if dim.HasField("dim_value"):
            return dim.dim_value
        text = dim.dim_param or f"{name}_{axis}"
        return self.sizes.setdefault(text, te.var(text, "int64"))

    def _translate(self, proto: Any) -> None:
        inputs = [self.values[name] for name in proto.input]
        attributes = {item.name: _attribute(item) for item in proto.attribute}
        name = proto.name or proto.output[0]
        outputs = [*proto.output]
        while outputs and not outputs[-1]:
            outputs.pop()
        node = Node(
            proto.op_type, name, inputs, attributes, len(outputs), self.opset, self.constants)
        try:
            found = self._values_of(node, proto)
        except ModelError as error:
            self.problems.append(str(error.message).removeprefix("onnx: "))
            return
        except TecompError as error:
            self.problems.append(f"node {name} ({proto.op_type}): {error.message}")
            return
        self.values.update(zip(outputs, found, strict=False))

    def _values_of(self, node: Node, proto: Any) -> Sequence[Value]:
        """Return the outputs of a node."""
        known = [value for value in node.inputs if value is not None]
        if proto.domain not in ("", "ai.onnx"):
            raise node.error("the domain {domain} is not supported", domain=proto.domain)
        if node.kind not in _NEVER_FOLDED and all(
            isinstance(x, np.ndarray) and x.dtype != object for x in known
        ):
            return self._folded(node, proto)
        if (sizes := shapes.of_sizes(node)) is not None:
            return [sizes]
        if node.kind not in OPERATORS:
            raise node.error("the operator is not supported")
        found = OPERATORS[node.kind](node)
        return found if isinstance(found, list | tuple) else [found]  # type: ignore[list-item]

    def _folded(self, node: Node, proto: Any) -> Sequence[Value]:
        """Compute a node whose inputs are known."""
        feeds = {
            name: value for name, value in zip(proto.input, node.inputs, strict=True) if name
        }
        try:
            evaluator = ReferenceEvaluator(proto, opsets=self.opsets)
            return [np.asarray(x) for x in evaluator.run(None, feeds)]
        except Exception as error:
            text = " ".join(str(error).split())[:200]
            raise node.error("its constant value cannot be computed: {text}", text=text) from None

    def _check_known(self, proto: Any) -> None:
        """Record an operator that is not supported, also if it depends on others."""
        if proto.op_type not in OPERATORS:
            name = proto.name or proto.output[0]
            self.problems.append(f"node {name} ({proto.op_type}): the operator is not supported")

    def _output(self, name: str) -> te.Tensor:
        value = self.values[name]
        if isinstance(value, np.ndarray):
            tensor = te.placeholder(value.shape, str(value.dtype), name=name)
            self.constants[tensor] = value
            value = tensor
        assert value is not None
        is_input = value in self.constants or any(value is x for x in self.inputs.values())
        return topi.identity(value) if is_input else value


def _attribute(item: Any) -> Any:
    value = onnx.helper.get_attribute_value(item)
    return value.decode() if isinstance(value, bytes) else value



class PreparedModel(BackendRep):  # type: ignore[misc]
    """Model that is compiled once, or once per value of inputs that decide shapes.

    Attributes:
        proto: The model.
        compiled: Compiled models, by the inputs that are constants in them; the key of a model that
            serves all values is empty.
    """

    def __init__(self, proto: onnx.ModelProto, target: str) -> None:
        self.proto = proto
        self.target = target
        self.compiled: dict[tuple[bytes, ...], Model] = {}
        try:
            self.compiled[()] = load(proto, target)
        except ModelError as error:
            if error.kind != "unsupported-node" or len(proto.graph.input) < 2:
                raise

    def run(self, inputs: Any, **parameters: Any) -> tuple[Array, ...]:
        """Return the outputs for inputs in order, or by name.

        Raises:
            ModelError: If nodes are not supported for these values.
            CallError: If an array does not fit its input.
        """
        weights = {item.name for item in self.proto.graph.initializer}
        names = [value.name for value in self.proto.graph.input if value.name not in weights]
        feeds = inputs if isinstance(inputs, dict) else dict(zip(names, inputs, strict=True))
        feeds = {name: np.asarray(value) for name, value in feeds.items()}
        if () in self.compiled:
            return tuple(self.compiled[()].run(feeds).values())
        sizes = {name: x for name, x in feeds.items() if x.dtype.kind in "iub"}
        vectors = {name: x for name, x in [*feeds.items()][1:] if x.ndim <= 1}
        try:
            return self._run_with(sizes, feeds)
        except ModelError:
            if vectors.keys() <= sizes.keys():
                raise
        # Scales of images are floats that decide shapes.
        return self._run_with(sizes | vectors, feeds)

    def _run_with(self, fixed: dict[str, Array], feeds: dict[str, Array]) -> tuple[Array, ...]:
        """Return the outputs of the model in which some inputs are constants."""
        key = tuple(
            f"{name} {x.dtype} {x.shape} ".encode() + x.tobytes() for name, x in fixed.items())
        if key not in self.compiled:
            self.compiled[key] = load(_with_constants(self.proto, fixed), self.target)
        rest = {name: x for name, x in feeds.items() if name not in fixed}
        return tuple(self.compiled[key].run(rest).values())


def _with_constants(proto: onnx.ModelProto, arrays: dict[str, Array]) -> onnx.ModelProto:
    """Return a model in which inputs are constants."""
    found = onnx.ModelProto()
    found.CopyFrom(proto)
    found.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in arrays.items())
    return found


class Backend(_Backend):  # type: ignore[misc]
    """Backend of ONNX that compiles models for the CPU.

    A model in which inputs decide shapes is compiled when it runs, once per value of the inputs
    that are integers or, if that does not suffice, vectors.

    >>> import numpy as np, onnx
    >>> from onnx import TensorProto, helper
    >>> x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in "xy")
    >>> graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", [x], [y])
    >>> prepared = Backend.prepare(helper.make_model(graph))
    >>> prepared.run([np.array([1, 2, 3], "float32")])
    (array([-1., -2., -3.], dtype=float32),)
    """

    @classmethod
    def prepare(
        cls, model: onnx.ModelProto, device: str = "CPU", **parameters: Any
    ) -> PreparedModel:
        """Return a model that can run.

        Raises:
            ModelError: If the model is malformed or contains nodes that are not supported.
        """
        return PreparedModel(model, device.lower())

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: Sequence[Any], device: str = "CPU", **parameters: Any
    ) -> tuple[Array, ...]:
        """Compile and run a model once."""
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether models run on a device, which is only the CPU."""
        return device == "CPU"
