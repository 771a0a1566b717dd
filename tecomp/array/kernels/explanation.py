"""Data of `explain`: operations, kernels, loops and cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tecomp.array.graph.node import CallResult, Node
from tecomp.array.graph.pending import PendingGraph
from tecomp.array.kernels.execution_plan import recipes_of, select_kernel
from tecomp.array.kernels.kernel import KernelRecipe
from tecomp.array.kernels.static_programs import placed_program_of, program_of
from tecomp.array.kernels.strided_operands import dense
from tecomp.driver.static_shapes import extent_at
from tecomp.errors import LowerError
from tecomp.ir.nodes.expr import Var
from tecomp.ir.nodes.printer import format_count
from tecomp.ir.nodes.stmt import Buffer, PrimFunc
from tecomp.ptensor.devices import is_apart
from tecomp.ptensor.function import Apply, Function, Parameter
from tecomp.ptensor.lowering.lower import lower_ptensor
from tecomp.ptensor.lowering.lowered_ir import LoweredFunction


@dataclass(frozen=True, slots=True)
class ExecutionExplanation:
    """Description of the computation of arrays.

    Attributes:
        function: Recorded operations.
        lowered: Operations lowered to plain tensors.
        schedules: Schedule of each kernel, as text.
        loops: Loops of each kernel, as text.
        report: Cost of the kernels.
        messages: Messages that ranks exchange first, with their purpose.
    """

    function: Function
    lowered: LoweredFunction
    schedules: tuple[str, ...]
    loops: tuple[str, ...]
    report: str
    messages: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Explanation of {format_count(len(self.loops), 'kernel')}>"

    def __str__(self) -> str:
        parts = [("operations", str(self.function)), ("lowered", str(self.lowered))]
        for k, (schedule, loops) in enumerate(zip(self.schedules, self.loops, strict=True)):
            parts += [(f"schedule of kernel {k}", schedule), (f"loops of kernel {k}", loops)]
        parts.append(("cost", self.report))
        if self.messages:
            parts.insert(0, ("communication", "\n".join(self.messages)))
        return "\n\n".join(f"{title}\n{'-' * len(title)}\n{text}" for title, text in parts)


def explain_execution(
    work: PendingGraph, messages: tuple[str, ...] = (), nodes: Sequence[Node] = ()
) -> ExecutionExplanation:
    """Describe the computation of pending operations.

    Args:
        work: Pending operations.
        messages: Messages that ranks exchange first.
        nodes: Explained values, some of which may be computed.
    """
    function = function_of(work, nodes)
    lowered = lower_ptensor(function)
    if not work.nodes:
        return ExecutionExplanation(
            function, lowered, (), (), "nothing to compute", messages
        )
    is_on_device = is_apart(work.nodes[0].type.device)
    recipe = None if is_on_device else select_kernel(work)
    if recipe is not None and recipe.is_worth_it:
        return _of_kernels(function, lowered, recipes_of(recipe), messages)
    program = placed_program_of(work).program if is_on_device else program_of(work)
    parts = [call.kernel for call in program.kernels]
    schedules = tuple([str(part.build.schedule.trace) for part in parts])
    loops = tuple([str(part.lowered.final) for part in parts])
    return ExecutionExplanation(
        function, lowered, schedules, loops, _cost(program.report), messages
    )


def _of_kernels(
    function: Function, lowered: LoweredFunction, recipes: Sequence[KernelRecipe],
    messages: tuple[str, ...]
) -> ExecutionExplanation:
    schedules = tuple([str(recipe.kernel.schedule.trace) for recipe in recipes])
    loops = tuple([str(recipe.kernel.lowered.final) for recipe in recipes])
    costs = [_cost(partial(recipe.kernel.report, **_sizes(recipe))) for recipe in recipes]
    return ExecutionExplanation(function, lowered, schedules, loops, "\n".join(costs), messages)


def _sizes(recipe: KernelRecipe) -> dict[str, int]:
    """Return the values of the size parameters of a kernel in the explained call.

    Strides are set to contiguous rows: costs count bytes, which gaps do not change.
    """
    func: PrimFunc = recipe.kernel.lowered.final
    numbers = () if recipe.is_built_in else recipe.extents
    sizes = {f"n{k}": n for k, n in enumerate(numbers) if recipe.known[k] is None}
    for buffer in func.params:
        if not isinstance(buffer, Buffer) or buffer.strides is None:
            continue
        distances = dense([extent_at(extent, sizes) or 0 for extent in buffer.shape])
        for stride, distance in zip(buffer.strides, distances, strict=True):
            if isinstance(stride, Var):
                sizes[stride.name] = distance
    return sizes


def _cost(report: Callable[[], object]) -> str:
    try:
        return str(report())
    except LowerError as error:  # the iteration domain is too large to count
        return f"not counted: {error.message}"


def function_of(work: PendingGraph, nodes: Sequence[Node] = ()) -> Function:
    """Return pending operations as a function of the leaves.

    Values computed by a library function are results of a call of it, with further parameters.
    """
    requested = [node for node in dict.fromkeys(nodes) if isinstance(node, CallResult)]
    # Results with unknown declared extents are parameters: their readers have known extents.
    read = [n for n in work.leaves if isinstance(n, CallResult) and None not in n.declared.shape]
    called = [*dict.fromkeys([*read, *(node for node in requested if node not in work.leaves)])]
    inputs = [node for node in work.leaves if node not in read]
    named = {id(node): f"x{k}" for k, node in enumerate(inputs)}
    named |= {id(node): f"called{k}" for k, node in enumerate(called)}
    parameters = [Parameter(named[id(node)], node.type) for node in inputs]
    body: list[Apply] = []
    for call in dict.fromkeys([node.call for node in called]):
        first = len(parameters)
        operands = [Parameter(f"x{first + k}", ptype) for k, ptype in enumerate(call.operands)]
        parameters += operands
        names = {node.number: named[id(node)] for node in called if node.call is call}
        results = [
            Parameter(names.get(k, f"unused{len(body)}_{k}"), ptype)
            for k, ptype in enumerate(call.results)
        ]
        body.append(Apply(
            results[0].name, call.op, tuple([operand.name for operand in operands]), call.operands,
            results[0].type, tuple(results[1:]),
        ))

    def name(index: int) -> str:
        return str(index) if index >= 0 else named[id(work.leaves[-1 - index])]

    types = [node.type for node in work.nodes]
    body += [
        Apply(
            str(k), op, tuple([name(index) for index in operands]),
            tuple([types[p] if p >= 0 else work.leaves[-1 - p].type for p in operands]), types[k],
        )
        for k, (op, operands) in enumerate(work.steps)
    ]
    outputs = [name(index) for index in work.outputs] + [named[id(node)] for node in requested]
    return Function("array", tuple(parameters), tuple(body), tuple(outputs))
