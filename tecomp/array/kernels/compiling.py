"""Run pending operations by what is compiled for them."""

from __future__ import annotations

from importlib import import_module

from tecomp.array.graph.devices import is_apart
from tecomp.array.graph.pending import Pending
from tecomp.array.kernels.copies import copy
from tecomp.array.kernels.kernel import Recipe, computed
from tecomp.array.kernels.plans import Plan, run_plan
from tecomp.array.kernels.programs import run_program
from tecomp.array.kernels.recipes import recipe_of


def run(work: Pending) -> None:
    """Compute what is wanted by kernels for all sizes, or else by a program for these."""
    if is_apart(work.nodes[work.outputs[0]].type.device):
        import_module("tecomp.array.kernels.placed_programs").run_placed(work)
        return
    recipe = recipe_of(work)
    if recipe is None or not recipe.is_worth_it:
        run_program(work)
    elif isinstance(recipe, Plan):
        run_plan(recipe, work)
    else:
        _run_kernel(recipe, work)


def _run_kernel(recipe: Recipe, work: Pending) -> None:
    given = [node.data for node in work.leaves if node.data is not None]
    is_direct = work.into is not None and recipe.back is None
    results = computed(
        recipe, given, [work.memory(place) for place in work.outputs] if is_direct else None)
    for place, result in zip(work.outputs, results, strict=True):
        if not is_direct and work.into is not None and place in work.into:
            copy(result, work.into[place])
            result = work.into[place]
        work.nodes[place].computed(result)
