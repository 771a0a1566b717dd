"""`compile`: operations to kernels, their memory, and the one function that runs them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tecomp.codegen.runtime.structures import ALIGNMENT
from tecomp.compute.tensor import Tensor
from tecomp.driver.codes import codes
from tecomp.driver.progress import progress
from tecomp.graph.asked import Asked, asked_for
from tecomp.graph.constants import known_once
from tecomp.graph.dag import graph_of
from tecomp.graph.groups import groups_of
from tecomp.graph.kernels import Kernels
from tecomp.graph.memory import lifetimes_of, plan_memory
from tecomp.graph.native import native_of
from tecomp.graph.program import Call, Program
from tecomp.machine.descriptor import Target


def compile_program(
    outputs: Tensor | Sequence[Tensor],
    inputs: Sequence[Tensor],
    target: str | Path | Target,
    *,
    constants: Mapping[Tensor, Any],
    name: str,
) -> Program:
    """What `tecomp.compile` gives; its arguments and errors are described there."""
    return _compiled(asked_for(outputs, inputs, target, constants, name))


def _compiled(asked: Asked) -> Program:
    graph = graph_of(asked.outputs, asked.inputs, list(asked.constants))
    groups = groups_of(graph)
    known = known_once(graph, groups)
    each = [group for group in groups if not known.issuperset(group.result.outputs)]
    plan = plan_memory(lifetimes_of(graph, each), ALIGNMENT)
    with progress(f"compile {asked.name}", len(groups)) as shown, codes() as made:
        kernels = Kernels(asked.target, made)
        found = []
        for group in groups:
            found.append((group, kernels.of(group, known)))
            shown.step()
        native = native_of(asked.name, graph, found, known, plan, made)
    calls = [Call(group, kernel.part) for group, kernel in found if group in each]
    return Program(asked, native, calls, plan)
