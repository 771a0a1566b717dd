"""Run pending operations by what is compiled for them."""

from __future__ import annotations

from importlib import import_module

from tecomp.array.graph.devices import is_apart
from tecomp.array.graph.pending import Pending
from tecomp.array.kernels.kernel import run as run_kernel
from tecomp.array.kernels.programs import run_program
from tecomp.array.kernels.recipes import recipe_of


def run(work: Pending) -> None:
    """Compute what is wanted by one kernel for all sizes, or else by a program for these."""
    if is_apart(work.nodes[work.outputs[0]].type.device):
        import_module("tecomp.array.kernels.placed_programs").run_placed(work)
        return
    recipe = recipe_of(work)
    if recipe is None:
        run_program(work)
    else:
        run_kernel(recipe, work)
