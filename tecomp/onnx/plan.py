"""Plans of models: calls of programs and of host functions, and parts that are compiled late."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tecomp
from tecomp.driver import CompiledProgram
from tecomp.errors import TecompError
from tecomp.graph.layout_candidates import has_layouts
from tecomp.onnx.node import Array, OpNode, evaluate_sizes

MAX_PLANS = 64
"""Plans kept per deferred part of a model."""


@dataclass(frozen=True)
class Argument:
    """Place of a value when a plan runs.

    Attributes:
        name: Name in the environment; empty for values that are known.
        value: Known array, or None.
        items: Elements of a sequence.
        sizes: Input and axis of each size variable of an array of sizes.
    """

    name: str = ""
    value: Any = None
    items: tuple[Argument, ...] | None = None
    sizes: Mapping[str, tuple[str, int]] | None = None

    def read(self, env: Mapping[str, Any]) -> Any:
        """Return the value."""
        if self.items is not None:
            return [item.read(env) for item in self.items]
        if self.sizes is not None:
            known = {name: env[x].shape[axis] for name, (x, axis) in self.sizes.items()}
            return evaluate_sizes(self.value, known)
        return env[self.name] if self.name else self.value


@dataclass
class ProgramStep:
    """Call of a program.

    Attributes:
        program: The program.
        inputs: Names of its inputs.
        outputs: Names of its outputs.
    """

    program: CompiledProgram
    inputs: Sequence[str]
    outputs: Sequence[str]

    def run(self, env: dict[str, Any]) -> None:
        """Add the outputs to an environment."""
        found = self.program(*(env[name] for name in self.inputs))
        env.update(zip(self.outputs, found if isinstance(found, tuple) else (found,), strict=True))


@dataclass
class HostStep:
    """Call of a host function.

    Attributes:
        node: OpNode, whose inputs are known when the step runs.
        function: Function of the node and the values of its inputs.
        arguments: Values of the inputs.
        outputs: Names of the outputs; empty for unused ones.
    """

    node: OpNode
    function: Callable[[OpNode, Sequence[Any]], Any]
    arguments: Sequence[Argument]
    outputs: Sequence[str]

    def run(self, env: dict[str, Any]) -> None:
        """Add the outputs to an environment.

        Raises:
            ModelError: If the values do not fit the operator.
        """
        inputs = [argument.read(env) for argument in self.arguments]
        try:
            found = self.function(self.node, inputs)
        except (ValueError, IndexError, TypeError, KeyError, AttributeError) as error:
            if isinstance(error, TecompError):
                raise
            text = " ".join(str(error).split())[:200]
            raise self.node.error("it cannot be computed: {text}", text=text) from None
        results = found if isinstance(found, tuple) else (found,)
        env.update({
            name: np.ascontiguousarray(x).reshape(x.shape) if isinstance(x, np.ndarray) else x
            for name, x in zip(self.outputs, results, strict=False) if name})


@dataclass
class Plan:
    """Steps that compute the outputs of a graph.

    Attributes:
        steps: Steps, in order.
        outputs: Values of the outputs.
        notes: Operator, node and remark of nodes that are not part of a program.
    """

    steps: list[Any] = field(default_factory=list)
    outputs: list[Argument] = field(default_factory=list)
    notes: list[tuple[str, str, str]] = field(default_factory=list)

    def run(self, env: dict[str, Any]) -> list[Any]:
        """Return the outputs for an environment of inputs."""
        for step in self.steps:
            step.run(env)
        return [output.read(env) for output in self.outputs]


@dataclass(frozen=True, eq=False)
class ModelContext:
    """Properties of a model that all of its graphs share.

    Attributes:
        target: Target.
        functions: Functions of the model, by domain and name.
        compiles: Whether programs are compiled; False to find unsupported nodes only.
        infers: Whether sizes that data decides become symbolic; otherwise nodes that depend on
            them are compiled when the data is present.
    """

    target: Any = "cpu"
    functions: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    compiles: bool = True
    infers: bool = True

    @property
    def is_processor(self) -> bool:
        """Whether the target compiles symbolic sizes: it has no layouts."""
        return not has_layouts(tecomp.Target.of(self.target))


class DeferredPart:
    """Nodes that are compiled when their inputs are present, once per type and shape.

    Sizes that differ between calls become symbolic, so that few plans serve all calls. Values that
    decide shapes are constants of a plan.

    Attributes:
        build: Function of the part and the values that it reads, which returns a plan.
        live: Values that the nodes read.
        fixed: Names of values that decide shapes.
        outputs: Names of the results.
        plans: Plan of each signature.
    """

    def __init__(
        self, build: Callable[[DeferredPart, Mapping[str, Any]], Plan],
        live: Mapping[str, Argument], fixed: Iterable[str], outputs: Sequence[str],
        generalizes: bool,
    ) -> None:
        self.build = build
        self.live = live
        self.fixed = {*fixed}
        self.outputs = outputs
        self.plans: dict[Any, Plan] = {}
        self.shapes: dict[Any, tuple[int, ...]] = {}
        self.symbolic: set[tuple[Any, int]] = set()
        self.generalizes = generalizes

    def run(self, env: dict[str, Any]) -> None:
        """Add the outputs to an environment.

        Raises:
            ModelError: If nodes are not supported for these values.
        """
        values = {name: argument.read(env) for name, argument in self.live.items()}
        env.update(zip(self.outputs, self.compute(values), strict=True))

    def compute(self, values: Mapping[str, Any]) -> list[Any]:
        """Return the outputs for the values that the nodes read.

        Raises:
            ModelError: If nodes are not supported for these values.
        """
        inner: dict[str, Any] = {}
        for name, value in values.items():
            self._collect(name, value, inner)
        key = self._signature(values, inner)
        if key not in self.plans:
            self._notice_shapes(inner)
            key = self._signature(values, inner)
        if key not in self.plans:
            if len(self.plans) >= MAX_PLANS:
                del self.plans[next(iter(self.plans))]
            self.plans[key] = self._plan(values)
        return self.plans[key].run(inner)

    def _collect(self, name: str, value: Any, inner: dict[str, Any]) -> None:
        """Add the arrays of a value to an environment."""
        if isinstance(value, list):
            for k, item in enumerate(value):
                self._collect(f"{name}[{k}]", item, inner)
        elif value is not None:
            inner[name] = value if isinstance(value, np.ndarray) else np.asarray(value)

    def _signature(self, values: Mapping[str, Any], inner: Mapping[str, Array]) -> Any:
        def of_value(name: str, value: Any) -> Any:
            if isinstance(value, list):
                return tuple(of_value(f"{name}[{k}]", item) for k, item in enumerate(value))
            if value is None:
                return None
            x = inner[name]
            if name.partition("[")[0] in self.fixed:
                return str(x.dtype), x.shape, x.tobytes() if x.dtype.kind != "O" else tuple(x.flat)
            return str(x.dtype), tuple(self.extents(name, x))

        return tuple(
            of_value(name, value) for name, value in values.items() if self.varies(name))

    def varies(self, name: str) -> bool:
        """Return whether a value differs between calls."""
        argument = self.live[name]
        return bool(argument.name or argument.items or argument.sizes)

    def extents(self, name: str, x: Array) -> list[int | None]:
        """Return the extents of an array; None for those that are symbolic."""
        # The sizes 0 and 1 have rules of their own, such as broadcasting.
        return [None if n > 1 and (name, axis) in self.symbolic else n
                for axis, n in enumerate(x.shape)]

    def _notice_shapes(self, inner: Mapping[str, Array]) -> None:
        """Make the axes symbolic whose sizes differ from those of an earlier call."""
        for name, x in inner.items():
            earlier = self.shapes.setdefault(name, x.shape)
            if self.generalizes and len(earlier) == x.ndim:
                self.symbolic |= {
                    (name, axis) for axis, (a, b) in enumerate(zip(earlier, x.shape, strict=True))
                    if a != b}

    def _plan(self, values: Mapping[str, Any]) -> Plan:
        if self.generalizes and self.symbolic:
            try:
                return self.build(self, values)
            except TecompError:  # some operator requires constant sizes
                self.generalizes = False
                self.symbolic.clear()
        return self.build(self, values)
