"""Report what a target supports of an ONNX model, and what the model costs there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import tecomp
from tecomp.driver import CompiledProgram
from tecomp.errors import ModelError, TecompError
from tecomp.ir.nodes.expr import Expr
from tecomp.ir.nodes.printer import identifier
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.onnx.control_flow import subgraphs_of
from tecomp.onnx.model import read_model, translate_model
from tecomp.onnx.node import UnsupportedNodesError
from tecomp.onnx.plan import ModelContext


@dataclass(frozen=True, slots=True)
class NodeRemark:
    """Node that is not part of a program, or not supported.

    Attributes:
        name: Name of the node.
        operator: Operator.
        remark: Reason, or place where the node runs.
    """

    name: str
    operator: str
    remark: str


@dataclass(frozen=True, slots=True)
class KernelCost:
    """Cost of a kernel.

    Attributes:
        name: Name of the kernel.
        operations: Operations of the kernel.
        bytes: Number of bytes read and written.
        cycles: Lower bound of the time in cycles of the target.
        seconds: Measured time, or else the lower bound; None if unknown.
        share: Part of the time of all kernels.
    """

    name: str
    operations: tuple[str, ...]
    bytes: int
    cycles: float
    seconds: float | None
    share: float


@dataclass(frozen=True, slots=True)
class ModelReport:
    """Support and cost of a model on a target; `print` shows a table.

    Attributes:
        target: Name of the target.
        operators: Number of nodes of each operator.
        unsupported: Nodes that are not supported.
        remarks: Nodes that run on the host, or are compiled when data is present.
        error: Reason for which the target does not run the model; empty if it does.
        kernels: Kernels in descending order of time.
        cycles: Lower bound of the time of all kernels in cycles.
        seconds: Time of all kernels; None if unknown.
        is_measured: Whether times are measured.
        peak_bytes: Memory of intermediate values.
        constant_bytes: Memory of constants.
    """

    target: str
    operators: Mapping[str, int]
    unsupported: tuple[NodeRemark, ...] = ()
    remarks: tuple[NodeRemark, ...] = ()
    error: str = ""
    kernels: tuple[KernelCost, ...] = ()
    cycles: float = 0.0
    seconds: float | None = None
    is_measured: bool = False
    peak_bytes: int = 0
    constant_bytes: int = 0

    @property
    def is_supported(self) -> bool:
        """Whether the target runs the model."""
        return not self.unsupported and not self.error

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values of JSON."""
        found = asdict(self)
        return {"target": found.pop("target"), "is_supported": self.is_supported, **found}

    def __str__(self) -> str:
        count = sum(self.operators.values())
        state = "supported" if self.is_supported else "not supported"
        lines = [f"{self.target}: {count} nodes, {state}"]
        for title, nodes in (("not supported", self.unsupported), ("remarks", self.remarks)):
            if nodes:
                lines.append(f"{title}:")
                lines += [f"  {x.name} ({x.operator}): {x.remark}" for x in nodes]
        if self.error:
            lines.append(f"error: {self.error}")
        if self.kernels:
            unit = "measured" if self.is_measured else "at least"
            time = "" if self.seconds is None else f", {unit} {1e6 * self.seconds:.1f} us"
            lines.append(
                f"{len(self.kernels)} kernels, {self.cycles:.0f} cycles{time}, {self.peak_bytes:_} "
                f"bytes between kernels, {self.constant_bytes:_} bytes of constants")
            lines += [
                f"  {100 * x.share:5.1f}%  {x.name}: {' '.join(x.operations)}"
                for x in self.kernels]
        return "\n".join(lines)


def check(
    model: Any, target: str | tecomp.Target = "cpu",
    shapes: Mapping[str, Sequence[int]] = MappingProxyType({}),
    *, sizes: Mapping[str, int] = MappingProxyType({}), measured: bool = False,
) -> ModelReport:
    """Return which nodes of a model a target supports, and the cost of the kernels.

    Args:
        model: Path of a file, its bytes, or an `onnx.ModelProto`.
        target: Target.
        shapes: Shapes of inputs, by name, in place of those of the model. Default: none.
        sizes: Values of symbolic dimensions for the cost, by name. Default: 1. Targets other than
            processors compile the model for these sizes.
        measured: If True, measure the kernels on this machine.

    Raises:
        ModelError: If the model is malformed.

    >>> from onnx import TensorProto, helper
    >>> x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [64]) for n in "xy")
    >>> graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "g", [x], [y])
    >>> report = check(helper.make_model(graph))
    >>> report.is_supported, report.operators, len(report.kernels)
    (True, {'Exp': 1}, 1)
    """
    proto = read_model(model)
    name = str(getattr(target, "name", target))
    operators = _operators_of(proto.graph)
    context = ModelContext(target)
    if not context.is_processor:
        shapes = _constant_shapes(proto.graph, sizes) | dict(shapes)
    try:
        found = translate_model(proto, context, shapes)
    except UnsupportedNodesError as error:
        return ModelReport(name, operators, _remarks(error.nodes))
    except ModelError:
        raise
    except TecompError as error:
        return ModelReport(name, operators, error=error.message)
    remarks = _remarks((who, kind, text) for kind, who, text in found.plan.notes)
    return _with_costs(
        ModelReport(name, operators, remarks=remarks), found.programs, sizes, measured)


def _remarks(rows: Any) -> tuple[NodeRemark, ...]:
    return tuple(NodeRemark(*row) for row in rows)


def _constant_shapes(graph: Any, sizes: Mapping[str, int]) -> dict[str, Sequence[int]]:
    """Return the shapes of the inputs for values of symbolic dimensions."""
    return {
        value.name: [d.dim_value if d.HasField("dim_value") else int(sizes.get(d.dim_param, 1))
                     for d in value.type.tensor_type.shape.dim]
        for value in graph.input if value.type.tensor_type.HasField("shape")}


def _operators_of(graph: Any) -> dict[str, int]:
    """Return the number of nodes of each operator, also in inner graphs."""
    found: dict[str, int] = {}
    pending = [graph]
    while pending:
        for node in pending.pop().node:
            domain = "" if node.domain in ("", "ai.onnx") else f"{node.domain}."
            key = f"{domain}{node.op_type}"
            found[key] = found.get(key, 0) + 1
            pending += subgraphs_of(node)
    return dict(sorted(found.items()))


def _with_costs(
    report: ModelReport, programs: Sequence[CompiledProgram], sizes: Mapping[str, int],
    is_measured: bool,
) -> ModelReport:
    rows: list[tuple[Any, float | None]] = []
    peak, constants = 0, 0
    for program in programs:
        names = {identifier(var.name) for x in program.inputs for extent in x.shape
                 if isinstance(extent, Expr) for var in free_variables(extent)}
        values = {key: int(sizes.get(key, 1)) for key in sorted(names)}
        costs = program.report(measured=is_measured, **values)
        rows += [(kernel, kernel.seconds if is_measured else kernel.bound)
                 for kernel in costs.kernels]
        peak, constants = max(peak, costs.max_live_bytes), constants + costs.constants
    known = [seconds for _, seconds in rows if seconds is not None]
    has_times = len(known) == len(rows) and bool(rows)
    weights = [seconds if has_times and seconds is not None else kernel.cycles
               for kernel, seconds in rows]
    total = sum(weights) or 1.0
    kernels = [
        KernelCost(kernel.name, tuple(kernel.operations), kernel.reads + kernel.writes,
                   float(kernel.cycles), seconds, weight / total)
        for (kernel, seconds), weight in zip(rows, weights, strict=True)]
    return ModelReport(
        report.target, report.operators, report.unsupported, report.remarks, report.error,
        tuple(sorted(kernels, key=lambda x: -x.share)), float(sum(x.cycles for x in kernels)),
        sum(known) if has_times else None, is_measured, peak, constants)
