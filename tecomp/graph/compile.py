"""`compile`: operations to kernels, their memory, and the one function that runs them all."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
from tecomp.graph.constants import Array, Folded, Store, checked, fold
from tecomp.graph.dag import Graph, graph_of
from tecomp.graph.groups import Group, border_of, groups_of
from tecomp.graph.keys import definition_key
from tecomp.graph.memory import plan_memory
from tecomp.graph.program import Asked, Call, Program
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
    passed = (*graph.inputs, *graph.outputs)
    where: dict[Tensor, Given | Held] = {x: Given(k) for k, x in enumerate(passed)}
    where |= {value.tensor: Held(value.offset) for value in plan.values}
    places = _Places(where, values, len(passed), Store(ALIGNMENT, [], 0, {}))
    runs = [(k.part, places.of(group, k)) for group, k in zip(groups, kernels, strict=True)]
    data = places.store.array()
    params = [_buffer(tensor) for tensor in passed]
    results = params[len(graph.inputs) :]
    params.append(Buffer("constants", (data.size,), DType("uint8")))
    parts = [each.part for each in known.values()]
    kernel = linked_sequence(name, parts, runs, params, results, plan.bytes)
    calls = [Call(group, k.part) for group, k in zip(groups, kernels, strict=True)]
    asked = Asked(tuple(wanted), tuple(inputs), machine, constants, name)
    return Program(asked, kernel, calls, plan, data, places.store.end)


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


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the values of a program are when its kernels run.

    Attributes:
        places: of what the caller passes, and of the values between kernels.
        values: of its constants.
        last: position of the argument that has the constants.
        store: the constants that kernels read, as they are asked for.
    """

    places: Mapping[Tensor, Given | Held]
    values: Mapping[Tensor, Array]
    last: int
    store: Store

    def of(self, group: Group, kernel: _Kernel) -> list[Given | Held]:
        """The arguments of a kernel for one of its groups."""
        border = border_of(group)
        found = [self._of(border[k]) for k in kernel.reads]
        for number, folded in enumerate(kernel.folded):
            sources = [border[k] for k in folded.sources]
            make = partial(folded.value, [self.values[x] for x in sources])
            found.append(self._constant((id(kernel), number, *sources), make))
        return [*found, *(self._of(x) for x in group.result.outputs)]

    def _of(self, tensor: Tensor) -> Given | Held:
        if tensor in self.values:
            return self._constant(tensor, lambda: self.values[tensor])
        return self.places[tensor]

    def _constant(self, key: object, make: Callable[[], Array]) -> Given:
        return Given(self.last, self.store.offset(key, make))


def _check(outputs: object, inputs: object, constants: object, name: object) -> None:
    cure = "give an array for each placeholder"
    check_kind(constants, Mapping, "compile: constants", cure, DefinitionError)
    assert isinstance(constants, Mapping)
    for what, given in (("outputs", outputs), ("inputs", inputs), ("constants", [*constants])):
        check_list(given, Tensor, f"compile: {what}", "give a list of tensors", DefinitionError)
    if not isinstance(name, str) or not name.isidentifier():
        raise DefinitionError(f"compile: the name of a program is an identifier, not {name!r}")


def _kernel(
    group: Group, target: Target, constants: Container[Tensor], known: dict[str, _Kernel]
) -> _Kernel:
    """The kernel of a group, the same for all that are alike."""
    border = border_of(group)
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
