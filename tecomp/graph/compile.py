"""`compile`: operations to kernels, their memory, and the one function that runs them all."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tecomp.codegen.functions.sequence import Given, Held
from tecomp.codegen.llvm.emit import Options
from tecomp.codegen.runtime.structures import ALIGNMENT
from tecomp.compute.define import placeholder
from tecomp.compute.operation import PlaceholderOp
from tecomp.compute.rebuilt import rebuilt
from tecomp.compute.tensor import Tensor
from tecomp.driver.cached import Build
from tecomp.driver.sequence import Part, linked_sequence, part_of
from tecomp.errors import DefinitionError, TargetError
from tecomp.graph.constants import Folded, Store, checked, fold
from tecomp.graph.dag import Graph, graph_of
from tecomp.graph.groups import Group, groups_of
from tecomp.graph.keys import definition_key
from tecomp.graph.memory import plan_memory
from tecomp.graph.program import Call, Program
from tecomp.ir.language.dtype import DType
from tecomp.ir.language.given import check_kind, check_list
from tecomp.ir.language.stmt import Buffer
from tecomp.machine.descriptor import Target
from tecomp.schedules.auto import auto


def compile_program(
    outputs: Tensor | Sequence[Tensor],
    inputs: Sequence[Tensor],
    target: str | Path | Target,
    *,
    constants: Mapping[Tensor, Any],
    name: str,
) -> Program:
    """What `tecomp.compile` gives; its arguments and errors are described there."""
    machine = target if isinstance(target, Target) else Target.load(target)
    if machine.core is None:
        raise TargetError(
            f"compile: {machine.name} describes no core of a processor, and programs run on one so "
            "far; build its kernels one by one"
        )
    wanted: Any = [outputs] if isinstance(outputs, Tensor) else outputs
    _check(wanted, inputs, constants, name)
    graph = graph_of(wanted, inputs, list(constants))
    values = checked(constants)
    groups = groups_of(graph)
    known: dict[str, _Kernel] = {}
    kernels = [_kernel(group, machine, values, known) for group in groups]
    plan = plan_memory(_lifetimes(graph, groups), ALIGNMENT)
    given = {tensor: Given(k) for k, tensor in enumerate((*graph.inputs, *graph.outputs))}
    last, store = len(given), Store(ALIGNMENT, [], 0, {})

    def operand(tensor: Tensor) -> Given | Held:
        if tensor in values:
            return Given(last, store.offset(tensor, values[tensor]))
        return given[tensor] if tensor in given else Held(plan.offset(tensor))

    def operands(group: Group, kernel: _Kernel) -> list[Given | Held]:
        border = _border(group)
        found = [operand(border[k]) for k in kernel.reads]
        for number, folded in enumerate(kernel.folded):
            sources = [border[k] for k in folded.sources]
            key = (id(kernel), number, *sources)
            found.append(Given(last, store.offset(key, folded.value([values[x] for x in sources]))))
        return [*found, *(operand(x) for x in group.result.outputs)]

    runs = [(k.part, operands(group, k)) for group, k in zip(groups, kernels, strict=True)]
    data = store.array()
    params = [_buffer(tensor) for tensor in (*graph.inputs, *graph.outputs)]
    params.append(Buffer("constants", (data.size,), DType("uint8")))
    kernel = linked_sequence(
        name, [each.part for each in known.values()], runs,
        params, params[len(graph.inputs) : last], plan.bytes,
    )
    calls = [Call(group, k.part) for group, k in zip(groups, kernels, strict=True)]
    return Program(kernel, graph.inputs, graph.outputs, calls, plan, data, machine)


def _check(outputs: object, inputs: object, constants: object, name: object) -> None:
    cure = "give an array for each placeholder"
    check_kind(constants, Mapping, "compile: constants", cure, DefinitionError)
    assert isinstance(constants, Mapping)
    for what, given in (("outputs", outputs), ("inputs", inputs), ("constants", [*constants])):
        check_list(given, Tensor, f"compile: {what}", "give tensors", DefinitionError)
    if not isinstance(name, str) or not name.isidentifier():
        raise DefinitionError(f"compile: the name of a program is an identifier, not {name!r}")


@dataclass(frozen=True, slots=True)
class _Kernel:
    """The kernel of groups that are alike.

    Attributes:
        part: its code.
        reads: the positions, among what a group reads, of what it takes.
        folded: what follows from constants alone, which it takes then.
    """

    part: Part
    reads: tuple[int, ...]
    folded: tuple[Folded, ...]


def _border(group: Group) -> list[Tensor]:
    """What a group reads of others."""
    inside = set(group.operations)
    reads = (x for op in group.operations for x in op.input_tensors if x.op not in inside)
    return list(dict.fromkeys(reads))


def _kernel(
    group: Group, target: Target, constants: Container[Tensor], known: dict[str, _Kernel]
) -> _Kernel:
    """The kernel of a group, the same for all that are alike."""
    border = _border(group)
    own = {x: placeholder(x.shape, x.dtype, x.name) for x in border}
    folding = "".join(str(int(x in constants)) for x in border)
    key = folding + definition_key(group.operations, border)
    if key in known and known[key].part.module.sites:
        # An error at run time says where the user wrote what fails.
        key = folding + definition_key(group.operations, border, with_places=True)
    if key not in known:
        moved = rebuilt(group.operations, own)
        results = [moved.get(x, x) for x in group.result.outputs]
        name = f"{group.result.name}_{len(known)}"
        args = [*own.values(), *results]
        asked = Build(auto(results, target), args, name, target, Options())
        asked, folded = fold(asked, [own[x] for x in border if x in constants])
        reads = tuple(k for k, x in enumerate(own.values()) if x in asked.args)
        known[key] = _Kernel(part_of(asked), reads, folded)
    return known[key]


def _lifetimes(graph: Graph, groups: Sequence[Group]) -> dict[Tensor, tuple[int, int]]:
    """The first and the last kernel that needs each value between kernels."""
    number = {op: k for k, group in enumerate(groups) for op in group.operations}
    found: dict[Tensor, tuple[int, int]] = {}
    for k, group in enumerate(groups):
        last = max((number[reader] for reader in graph.readers[group.result]), default=k)
        for tensor in group.result.outputs:
            if tensor not in graph.outputs and not isinstance(tensor.op, PlaceholderOp):
                found[tensor] = (k, last)
    return found


def _buffer(tensor: Tensor) -> Buffer:
    return Buffer(tensor.name, tensor.shape, tensor.dtype)
