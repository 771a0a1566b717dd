"""Which kernel computes pending operations: looked up by what they are and how their arrays lie."""

from __future__ import annotations

from functools import partial
from typing import Any

from tecomp.array.graph.pending import Pending
from tecomp.array.kernels.gathers import gather_recipe
from tecomp.array.kernels.kernel import Recipe
from tecomp.array.kernels.plans import Plan, plan_of
from tecomp.array.kernels.pointwise import pointwise_recipe
from tecomp.array.kernels.pushed import pushed
from tecomp.array.kernels.reductions import reduction_recipe
from tecomp.array.kernels.turned import turned
from tecomp.array.recent import Recent

_recipes: Recent[Any, Recipe | Plan | None] = Recent(1024)
_NEW = object()


def recipe_of(work: Pending) -> Recipe | Plan | None:
    """How pending operations are computed by kernels for all sizes; None if that is not known.

    By one if it can be, or else by several.
    """
    key = (
        work.steps, work.outputs,
        tuple([(node.type, node.data.strides) for node in work.leaves]),  # type: ignore[union-attr]
    )
    found = _recipes.get(key, _NEW)
    if found is _NEW:
        return _recipes.keep(key, _recipe(work) or plan_of(work, partial(_recipe, in_order=True)))
    return found  # type: ignore[return-value]


def recipes_of(found: Recipe | Plan) -> list[Recipe]:
    """Those of the kernels that are called."""
    return found.recipes if isinstance(found, Plan) else [found]


def _recipe(work: Pending, in_order: bool = False) -> Recipe | None:
    """How pending operations are computed by one kernel; `in_order` if others read its results.

    These know that there are no gaps, and that is all they know.
    """
    found = _along_memory(work, in_order)
    if found is not None:
        return found
    without = pushed(work)
    if without is None:
        return None
    found = _along_memory(without.work, in_order)
    if found is not None:
        views = found.sources or tuple([(k, ()) for k in range(len(without.sources))])
        found.sources = tuple([
            (without.sources[k][0], without.sources[k][1] + chain) for k, chain in views
        ])
    return found


def _along_memory(work: Pending, in_order: bool) -> Recipe | None:
    """The kernel whose loops go through axes in the order that they have in memory."""
    other = turned(work)
    if other is None or (in_order and other.back is not None):
        return _of_arrays(work)
    found = _of_arrays(other.work)
    if found is not None:
        found.sources, found.back = other.sources, other.back
    return found


def _of_arrays(work: Pending) -> Recipe | None:
    """The same where nothing is moved."""
    return pointwise_recipe(work) or reduction_recipe(work) or gather_recipe(work)
