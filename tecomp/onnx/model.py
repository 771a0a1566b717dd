"""Load ONNX models as compiled programs, and the backend interface of ONNX."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.base import Backend as _Backend
from onnx.backend.base import BackendRep

import tecomp
from tecomp import te
from tecomp.driver import CompiledProgram
from tecomp.errors import CallError, ModelError
from tecomp.onnx import attention, elementwise, host, layers, learning, quantized, recurrent, shapes
from tecomp.onnx.control_flow import Work
from tecomp.onnx.importer import Importer
from tecomp.onnx.node import HOST_OPERATORS, MICROSOFT, OPERATORS, as_plain, is_function
from tecomp.onnx.plan import ModelContext, Plan, ProgramStep

_REGISTERED = attention, elementwise, host, layers, learning, quantized, recurrent, shapes
_MOVED = {"SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization"}


class Model:
    """A compiled model.

    Attributes:
        inputs: Names of the inputs, without weights.
        outputs: Names of the outputs.
        plan: Steps of the model: programs, functions of the host between them, and parts that are
            compiled when data has decided their shapes.

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
        self, inputs: Sequence[str], outputs: Sequence[str], optional: Collection[str], plan: Plan
    ) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.plan = plan
        self._optional = optional
        programs = self.programs
        is_one = len(plan.steps) == len(programs) == 1 and [x.name for x in plan.outputs] == [
            *plan.steps[0].outputs] and [*plan.steps[0].inputs] == [*inputs]
        self._only = programs[0] if is_one else None

    @property
    def programs(self) -> tuple[CompiledProgram, ...]:
        """Programs that are compiled so far, in execution order."""
        return tuple(step.program for step in self.plan.steps if isinstance(step, ProgramStep))

    @property
    def program(self) -> CompiledProgram:
        """Program of a model that consists of one.

        Raises:
            CallError: If the model consists of several programs.
        """
        if self._only is None:
            raise CallError(
                "model.program: the model consists of {count} steps, because data decides shapes; "
                "read `model.programs`", kind="invalid-value", count=len(self.plan.steps),
            )
        return self._only

    def __call__(self, *arrays: Any) -> Any:
        """Return the outputs for inputs in order: one array, or a tuple of several.

        Raises:
            CallError: If an array does not fit its input.
        """
        if self._only is not None:
            return self._only(*arrays)
        if len(arrays) != len(self.inputs):
            raise CallError(
                "model: expected {expected} arrays ({inputs}), got {count}", kind="argument-count",
                expected=len(self.inputs), inputs=", ".join(self.inputs), count=len(arrays),
            )
        found = self._run(dict(zip(self.inputs, arrays, strict=True)))
        return tuple(found) if len(found) > 1 else found[0]

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outputs by name for inputs by name.

        Args:
            feeds: Array of each input; a list for a sequence, None for an absent optional value.

        Raises:
            CallError: If an input is missing or unknown, or an array does not fit its input.
        """
        if {*feeds} | {*self._optional} != {*self.inputs} | {*self._optional}:
            raise CallError(
                "run: the inputs are {inputs}, got {names}; pass an array for each input",
                kind="argument-list", inputs=", ".join(self.inputs), names=", ".join(feeds),
            )
        return dict(zip(self.outputs, self._run(feeds), strict=True))

    def _run(self, feeds: Mapping[str, Any]) -> list[Any]:
        env = {name: _as_input(feeds.get(name)) for name in self.inputs}
        if self._only is not None:
            found = self._only(*env.values())
            return [*found] if isinstance(found, tuple) else [found]
        return [_as_output(value) for value in self.plan.run(env)]

    def __repr__(self) -> str:
        return f"<Model ({', '.join(self.inputs)}) -> {', '.join(self.outputs)}>"


def _as_input(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_input(item) for item in value]
    return None if value is None else as_plain(value)


def _as_output(value: Any) -> Any:
    """Return a result; strings are objects, as in other packages."""
    if isinstance(value, list):
        return [_as_output(item) for item in value]
    is_text = isinstance(value, np.ndarray) and value.dtype.kind == "U"
    return value.astype(object) if is_text else value


def supported_operators(domain: str = "") -> tuple[str, ...]:
    """Return the names of the operators of a domain that models may contain.

    Args:
        domain: Domain; empty for `ai.onnx`.

    >>> "Conv" in supported_operators()
    True
    >>> "MatMulNBits" in supported_operators("com.microsoft")
    True
    """
    local = {name for table in (OPERATORS, HOST_OPERATORS) for place, name, _ in table
           if place == domain}
    if domain:
        return tuple(sorted(local))
    defined = {schema.name for schema in onnx.defs.get_all_schemas()
               if schema.domain == "" and is_function("", schema.name)}
    return tuple(sorted(local | defined | {"Constant", "Identity", "If", "Loop", "Scan"}))


def load(
    model: Any, target: str | tecomp.Target = "cpu",
    shapes: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> Model:
    """Load an ONNX model and compile it.

    Symbolic dimensions remain symbolic: one compilation serves all sizes. Operators whose inputs
    are known are computed once, while the model is loaded. Nodes whose shapes depend on data run on
    the host between programs, or are compiled when the data is present.

    Args:
        model: Path of a file, its bytes, or an `onnx.ModelProto`.
        target: Target.
        shapes: Shapes of inputs, by name, in place of those of the model. Default: none.

    Raises:
        ModelError: If the model is malformed, or nodes are not supported; the error lists all of
            these.

    >>> from onnx import TensorProto, helper
    >>> x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in "xy")
    >>> graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "g", [x], [y])
    >>> load(helper.make_model(graph))
    <Model (x) -> y>
    """
    return translate_model(read_model(model), ModelContext(target), shapes)


def translate_model(
    proto: onnx.ModelProto, context: ModelContext, shapes: Mapping[str, Sequence[int]]
) -> Model:
    """Translate a model that the checker accepts, for the target of a context.

    Raises:
        ModelError: If nodes are not supported.
    """
    functions = {(item.domain, item.name): item for item in proto.functions}
    context = replace(context, functions=functions)
    graph = proto.graph
    outputs = [value.name for value in graph.output]
    importer = Importer(context, outputs)
    sizes: dict[str, te.Var] = {}
    for item in graph.initializer:
        importer.values[item.name] = as_plain(numpy_helper.to_array(item))
    inputs = [value for value in graph.input if value.name not in importer.values]
    for value in inputs:
        kind = value.type.tensor_type
        if value.type.HasField("tensor_type") and (
            value.name in shapes or kind.HasField("shape")):
            importer.values[value.name] = _declare(importer, value, shapes.get(value.name), sizes)
        else:
            importer.unknown.add(value.name)
    opsets = {item.domain: item.version for item in proto.opset_import}
    if "ai.onnx" in opsets:
        opsets.setdefault("", opsets["ai.onnx"])
    try:
        plan = importer.plan(Work(node, opsets) for node in graph.node)
    except RecursionError:
        raise ModelError(
            "onnx: the graphs of the model are nested too deeply", kind="invalid-model") from None
    optional = {value.name for value in inputs if value.type.HasField("optional_type")}
    return Model([value.name for value in inputs], outputs, optional, plan)


def _declare(
    importer: Importer, value: Any, shape: Sequence[int] | None, sizes: dict[str, te.Var]
) -> Any:
    """Return the value of an input of a model."""
    kind = value.type.tensor_type
    if shape is None:
        shape = [_extent(value.name, k, d, sizes) for k, d in enumerate(kind.shape.dim)]
    try:
        dtype = str(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
    except KeyError:
        raise ModelError(
            "onnx: the input {name} has the unknown element type {dtype}", kind="invalid-model",
            name=value.name, dtype=kind.elem_type) from None
    return importer.declare(value.name, dtype, shape)


def _extent(name: str, axis: int, dim: Any, sizes: dict[str, te.Var]) -> Any:
    if dim.HasField("dim_value"):
        if dim.dim_value < 0:
            raise ModelError(
                "onnx: the axis {axis} of input {name} has the negative size {size}",
                kind="invalid-model", axis=axis, name=name, size=dim.dim_value)
        return dim.dim_value
    text = dim.dim_param or f"{name}_{axis}"
    text = text.decode(errors="replace") if isinstance(text, bytes) else text  # malformed
    return sizes.setdefault(text, te.var(text, "int64"))


def read_model(model: Any) -> onnx.ModelProto:
    """Return a model that the checker of ONNX accepts.

    Args:
        model: Path of a file, its bytes, or an `onnx.ModelProto`.

    Raises:
        ModelError: If the model is malformed, or newer than the package onnx.
    """
    is_path = isinstance(model, str | PathLike)
    if not isinstance(model, onnx.ModelProto | bytes) and not is_path:
        raise ModelError(
            "onnx: expected a path, bytes or a ModelProto, got {kind_name}",
            kind="model", kind_name=type(model).__name__,
        )
    try:
        if is_path:
            proto = onnx.load(fspath(model), load_external_data=False)
            moved = _move_operators(proto)
            if not moved:
                # The checker reads external data too, and rejects paths that leave the folder.
                onnx.checker.check_model(fspath(model))
            onnx.load_external_data_for_model(proto, str(Path(fspath(model)).parent))
            if moved:
                onnx.checker.check_model(proto)
        else:
            proto = onnx.load_model_from_string(model) if isinstance(model, bytes) else model
            if any(node.op_type in _MOVED for node in proto.graph.node):
                proto = onnx.ModelProto.FromString(proto.SerializeToString())
                _move_operators(proto)
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


def _move_operators(proto: onnx.ModelProto) -> bool:
    """Move operators that exporters wrongly put into `ai.onnx` to `com.microsoft`."""
    found = [node for node in proto.graph.node if node.op_type in _MOVED and not node.domain]
    for node in found:
        node.domain = MICROSOFT
    if found and all(item.domain != MICROSOFT for item in proto.opset_import):
        proto.opset_import.append(onnx.helper.make_opsetid(MICROSOFT, 1))
    return bool(found)


def _malformed(error: Exception) -> ModelError:
    text = " ".join(str(error).split())[:300]
    return ModelError(
        "onnx: the model is malformed: {reason}", kind="invalid-model", reason=text)


class PreparedModel(BackendRep):  # type: ignore[misc]
    """Model that is compiled once, or once per value of inputs that decide shapes.

    Attributes:
        model: The compiled model.
    """

    def __init__(self, proto: onnx.ModelProto, target: str) -> None:
        self.model = load(proto, target)

    def run(self, inputs: Any, **parameters: Any) -> tuple[Any, ...]:
        """Return the outputs for inputs in order, or by name.

        Raises:
            ModelError: If nodes are not supported for these values.
            CallError: If an array does not fit its input.
        """
        names = self.model.inputs
        feeds = inputs if isinstance(inputs, dict) else dict(zip(names, inputs, strict=False))
        return tuple(self.model.run(feeds).values())


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
    ) -> tuple[Any, ...]:
        """Compile and run a model once."""
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether models run on a device, which is only the CPU."""
        return device == "CPU"
