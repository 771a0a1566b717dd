"""Nodes of ONNX graphs with their values, and the table of operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from tecomp import te
from tecomp.driver.static_shapes import extent_at
from tecomp.errors import ModelError
from tecomp.ir.nodes.expr import Expr
from tecomp.ir.nodes.printer import identifier
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.operations import ELEMENT_TYPES

Array: TypeAlias = "np.ndarray[Any, Any]"
KERNEL_DTYPES = frozenset(row.name for row in ELEMENT_TYPES)
"""Dtypes that kernels compute with."""
_MAX_KNOWN_ELEMENTS = 2**28
"""Elements of a constant that is computed while a model is loaded: 1 GiB of float32."""
_EXPANDING = {"ConstantOfShape", "Expand", "Tile", "OneHot", "Resize", "Upsample", "Pad", "Range",
              "EyeLike", "RandomNormal", "RandomUniform"}
MICROSOFT, LEARNING, TRAINING = "com.microsoft", "ai.onnx.ml", "ai.onnx.preview.training"


@dataclass(frozen=True, eq=False)
class HostValue:
    """Value that only host functions read, such as strings.

    Attributes:
        name: Name in the environment of a run.
        dtype: Dtype; None if it is unknown.
        shape: Shape.
    """

    name: str
    dtype: str | None = None
    shape: tuple[Any, ...] = ()


class TensorSequence(list["Value | None"]):
    """Sequence of values, whose length is known when the model is loaded."""


Value: TypeAlias = "te.Tensor | Array | TensorSequence | HostValue"
"""Value of a graph: a tensor to compute, an array that is known when the model is loaded, a
sequence of values, or a value of host functions.

Arrays of objects hold sizes, some of which are symbolic. Arrays of strings have the kind `U`.
"""


class UndeterminedError(ModelError):
    """Error raised for an input that decides a shape, but depends on data.

    Attributes:
        position: Position of the input.
    """

    position = 0


class UnsupportedNodesError(ModelError):
    """Error raised for all nodes that are not supported.

    Attributes:
        nodes: Name, operator and reason of each node.
    """

    nodes: tuple[tuple[str, str, str], ...] = ()


class UnknownConstantError(ModelError):
    """Error raised for a node with known inputs that the evaluator of ONNX cannot compute."""


@dataclass
class OpNode:
    """Node of a graph.

    Attributes:
        kind: Operator.
        name: Name of the node; the name of its first output if it has none.
        inputs: Values of the inputs; None for optional inputs that are absent.
        attributes: Values of the attributes.
        outputs: Number of outputs.
        opset: Version of the operator set of the domain.
        constants: Arrays of the program's constants, by placeholder.
        domain: Domain; empty for `ai.onnx`.
        present: Whether each output is used.
    """

    kind: str
    name: str
    inputs: Sequence[Value | None]
    attributes: Mapping[str, Any]
    outputs: int
    opset: int
    constants: dict[te.Tensor, Array] = field(default_factory=dict)
    domain: str = ""
    present: Sequence[bool] = ()

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute."""
        return self.attributes.get(name, default)

    def has(self, position: int) -> bool:
        """Return whether an optional input is present."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def returns(self, position: int) -> bool:
        """Return whether an output is used."""
        return position < len(self.present) and self.present[position]

    def tensor(self, position: int) -> te.Tensor:
        """Return an input as a tensor; a known array becomes a constant of the program.

        Raises:
            ModelError: If the input is absent, or contains symbolic sizes.
        """
        value = self.inputs[position] if position < len(self.inputs) else None
        if value is None:
            raise self.error("the input {position} is missing", position=position)
        return self.as_tensor(value, position)

    def as_tensor(self, value: Value, position: int = 0) -> te.Tensor:
        """Return a value as a tensor; a known array becomes a constant of the program.

        Raises:
            ModelError: If the value is not a tensor of a dtype that kernels compute with.
        """
        if isinstance(value, te.Tensor):
            return value
        if isinstance(value, TensorSequence):
            raise self.error("the input {position} is a sequence", position=position)
        if isinstance(value, HostValue) or value.dtype.kind == "U":
            raise self.error("the input {position} is a string or has a dtype that kernels lack",
                             position=position)
        if value.dtype == object:
            return self._tensor_of_sizes(value, position)
        if str(value.dtype) not in KERNEL_DTYPES:
            raise self.error("the dtype {dtype} is not supported", dtype=value.dtype)
        name = f"{self.name}_{position}"
        tensor: te.Tensor = te.placeholder(value.shape, str(value.dtype), name=name)
        self.constants[tensor] = value
        return tensor

    def _tensor_of_sizes(self, sizes: Array, position: int) -> te.Tensor:
        """Return sizes, some of which are symbolic, as an int64 tensor."""
        if sizes.ndim > 1:
            raise self.error("the input {position} has symbolic sizes", position=position)
        elements = [te.cast(n, "int64") if not isinstance(n, int | np.integer) else
                    te.const(int(n), "int64") for n in sizes.reshape(-1)]

        def element(*index: te.Expr) -> te.Expr:
            found = elements[-1]
            for k, value in enumerate(elements[:-1]):
                found = te.select(index[0] == k, value, found)
            return found

        result: te.Tensor = te.compute(sizes.shape, element, name="sizes")
        return result

    def tensors(self) -> list[te.Tensor]:
        """Return all inputs as tensors."""
        return [self.tensor(k) for k in range(len(self.inputs))]

    def sequence(self, position: int) -> TensorSequence:
        """Return an input that is a sequence.

        Raises:
            ModelError: If the input is not a sequence.
        """
        value = self.inputs[position]
        if not isinstance(value, TensorSequence):
            raise self.error("the input {position} is not a sequence", position=position)
        return value

    def known(self, position: int) -> Array:
        """Return the array of an input that must be known when the model is loaded.

        Raises:
            UndeterminedError: If the input is computed.
            ModelError: If the input is absent.
        """
        value = self.inputs[position] if position < len(self.inputs) else None
        if value is None:
            raise self.error("the input {position} is missing", position=position)
        if not isinstance(value, np.ndarray):
            error = UndeterminedError(
                "onnx: node {node} ({operator}): {problem}", kind="unsupported-node",
                node=self.name, operator=self.kind,
                problem=f"the input {position} decides a shape, but depends on data",
            )
            error.position = position
            raise error
        return value

    def numbers(self, position: int, default: Any = None) -> Any:
        """Return the elements of a known input as a list, or the default if it is absent."""
        return self.known(position).reshape(-1).tolist() if self.has(position) else default

    def number(self, position: int, default: Any = None) -> Any:
        """Return the only element of a known input, or the default if it is absent.

        Raises:
            ModelError: If the input does not have one element.
        """
        if not self.has(position):
            return default
        value = self.known(position)
        if value.size != 1:
            raise self.error(
                "the input {position} must have one element, got {count}", position=position,
                count=value.size)
        return value.reshape(-1)[0] if value.dtype == object else value.item()

    def axes(self, position: int = 1) -> list[int] | None:
        """Return the axes, which older operator sets have as an attribute."""
        found = self.attribute("axes")
        return list(found) if found is not None else self.numbers(position)

    def axis(self, rank: int, default: int = 0, name: str = "axis") -> int:
        """Return an attribute that is an axis, counted from the first.

        Raises:
            ModelError: If the axis is out of bounds.
        """
        axis = self.attribute(name, default)
        if not -rank <= axis < max(rank, 1):
            raise self.error(
                "the axis {axis} is out of bounds for {rank} axes", axis=axis, rank=rank)
        return int(axis % rank) if rank else 0

    def dtype_attribute(self, name: str, default: str) -> str:
        """Return an attribute that is an element type of ONNX, as a dtype."""
        given = self.attribute(name)
        return default if not given else str(onnx.helper.tensor_dtype_to_np_dtype(given))

    def error(self, problem: str, **parameters: object) -> ModelError:
        """Return an error that names the node."""
        return ModelError(
            "onnx: node {node} ({operator}): {problem}", kind="unsupported-node", node=self.name,
            operator=self.kind, problem=problem.format(**parameters),
        )


Operator: TypeAlias = Callable[[OpNode], "Value | Sequence[Value | None]"]
HostFunction: TypeAlias = Callable[[OpNode, Sequence[Any]], "Any"]
"""Function of a node and the arrays of its inputs, which returns the output, or a list of them."""
Types: TypeAlias = "list[tuple[str, tuple[Any, ...]] | None]"
"""Dtype and shape of each output of a host function, or None; unknown sizes are None."""


@dataclass(frozen=True)
class HostOperator:
    """Operator that NumPy computes between programs.

    Attributes:
        function: Function of arrays.
        types: Function that returns the types of the outputs, or None if data decides their rank.
    """

    function: HostFunction
    types: Callable[[OpNode], Types | None]


OPERATORS: dict[tuple[str, str, int], Operator] = {}
"""Functions of nodes, by domain (empty for `ai.onnx`), operator and first operator set."""
HOST_OPERATORS: dict[tuple[str, str, int], HostOperator] = {}
"""Functions that run between programs, with the keys of `OPERATORS`."""


def operator(*names: str, domain: str = "", since: int = 1) -> Callable[[Operator], Operator]:
    """Register a function as the definition of operators."""
    def register(function: Operator) -> Operator:
        OPERATORS.update({(domain, name, since): function for name in names})
        return function

    return register


def host_operator(
    *names: str, domain: str = "", types: Callable[[OpNode], Types | None] = lambda _: None
) -> Callable[[HostFunction], HostFunction]:
    """Register a function of arrays as the definition of operators."""
    def register(function: HostFunction) -> HostFunction:
        HOST_OPERATORS.update({(domain, name, 1): HostOperator(function, types) for name in names})
        return function

    return register


def find_definition(
    table: Mapping[tuple[str, str, int], Any], domain: str, name: str, opset: int
) -> Any:
    """Return the newest definition of an operator that a version of its domain has, or None."""
    versions = [key for key in table if key[:2] == (domain, name) and key[2] <= opset]
    return table[max(versions, key=lambda key: key[2])] if versions else None


def apply(kind: str, node: OpNode, inputs: Sequence[Value | None], **attributes: Any) -> te.Tensor:
    """Return the result of another operator of `ai.onnx` for a node."""
    found = find_definition(OPERATORS, "", kind, node.opset)(
        OpNode(kind, node.name, inputs, attributes, 1, node.opset, node.constants))
    assert isinstance(found, te.Tensor)
    return found


# Values

def fold_node(node: OpNode, proto: Any, opsets: Mapping[str, int]) -> list[Value] | None:
    """Compute a node whose inputs are known, or return None if it has no constant value.

    Raises:
        ModelError: If the result is too large.
        UnknownConstantError: If the evaluator of ONNX fails.
    """
    is_random = node.kind.startswith("Random") or node.kind in ("Bernoulli", "Multinomial") or (
        node.kind == "Dropout" and len(node.inputs) > 2)
    is_graph = any(item.HasField("g") or item.graphs for item in proto.attribute)
    if is_random or is_graph or node.domain not in ("", LEARNING) or node.kind == "Optional":
        return None
    if not all(isinstance(x, np.ndarray) and x.dtype != object
               for x in node.inputs if x is not None):
        return None
    feeds = {name: x.astype(object) if x.dtype.kind == "U" else x
             for name, x in zip(proto.input, node.inputs, strict=True)
             if name and isinstance(x, np.ndarray)}
    _check_constant_size(node, feeds)
    try:
        with np.errstate(all="ignore"):
            found = ReferenceEvaluator(proto, opsets=dict(opsets)).run(None, feeds)
    except Exception as error:  # the evaluator has exceptions of several packages
        text = " ".join(str(error).split())[:200]
        raise UnknownConstantError(
            "onnx: node {node} ({operator}): {problem}", kind="unsupported-node", node=node.name,
            operator=node.kind, problem=f"its constant value cannot be computed: {text}") from None
    if any(is_host(x) and x.dtype.kind not in "OTU" for x in found if isinstance(x, np.ndarray)):
        return None
    return [TensorSequence(map(as_plain, x)) if isinstance(x, list) else as_plain(x)
            for x in found]


def _check_constant_size(node: OpNode, feeds: Mapping[str, Array]) -> None:
    """Raise if the result of a node with known inputs is too large for a constant."""
    if node.kind not in _EXPANDING:
        return
    sizes = [abs(n) for n in node.attribute("shape", [])]
    arrays = [x for x in feeds.values() if x.dtype.kind in "iuf"]
    if node.kind == "Range" and len(arrays) == 3 and all(x.size == 1 for x in arrays):
        start, limit, delta = (float(x.reshape(-1)[0]) for x in arrays)
        sizes = [int(min(abs((limit - start) / delta), 2.0**62)) if delta else 2**62]
    else:
        for x in arrays:
            if x.ndim <= 1 and x.size <= 64:
                wide = np.abs(np.nan_to_num(x.astype(float)))
                sizes += [int(n) for n in wide.flat if n > 1]
    if prod(sizes) > _MAX_KNOWN_ELEMENTS:
        raise node.error("its constant value is too large")


def as_plain(value: Any) -> Array:
    """Return a value as an array, in which strings have the kind `U`."""
    x = np.asarray(value)
    if x.dtype.kind in "OT" and all(isinstance(text, str) for text in x.flat):
        return x.astype(str) if x.size else np.zeros(x.shape, "U1")
    return x


def evaluate_sizes(sizes: Array, known: Mapping[str, int]) -> Array:
    """Return an array of sizes for values of the size variables, by name."""
    numbers = [n if isinstance(n, int) else extent_at(n, known) for n in sizes.reshape(-1)]
    return np.array(numbers, np.int64).reshape(sizes.shape)


def is_function(domain: str, name: str) -> bool:
    """Return whether ONNX defines an operator by others."""
    if not onnx.defs.has(name, domain):
        return False
    schema = onnx.defs.get_schema(name, domain)
    return bool(schema.has_function or schema.has_context_dependent_function)


def is_host(value: Value | None) -> bool:
    """Return whether kernels lack the dtype of a value."""
    if isinstance(value, TensorSequence):
        return any(map(is_host, value))
    return isinstance(value, HostValue) or (
        isinstance(value, np.ndarray) and value.dtype != object
        and str(value.dtype) not in KERNEL_DTYPES)


def has_symbols(value: Value | None) -> bool:
    """Return whether a value has symbolic sizes."""
    if isinstance(value, TensorSequence):
        return any(map(has_symbols, value))
    if isinstance(value, np.ndarray):
        return bool(value.dtype == object)
    return value is not None and any(not isinstance(n, int) for n in value.shape)


def with_sizes(value: Value | None, size: int) -> Value | None:
    """Return a value in which all size variables have one value."""
    if isinstance(value, TensorSequence):
        return TensorSequence(with_sizes(item, size) for item in value)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return evaluate_sizes(value, _same_size(value.flat, size))
    if not isinstance(value, te.Tensor) or not has_symbols(value):
        return value
    known = _same_size(value.shape, size)
    shape: list[Any] = [n if isinstance(n, int) else extent_at(n, known) for n in value.shape]
    tensor: te.Tensor = te.placeholder(tuple(shape), str(value.dtype), name=value.name)
    return tensor


def _same_size(extents: Iterable[Any], size: int) -> dict[str, int]:
    return {identifier(var.name): size for n in extents if isinstance(n, Expr)
            for var in free_variables(n)}
