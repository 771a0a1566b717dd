"""Select kernels and run the sequence of kernels that evaluates a graph."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from sys import maxsize
from typing import Any, Protocol

import numpy as np

from tecomp.array.graph.node import Buffer
from tecomp.array.graph.pending import PendingGraph
from tecomp.array.graph.views import Chain, is_view
from tecomp.array.kernels.anchor_kernels import reduction_recipe
from tecomp.array.kernels.data_movement_kernels import concatenate_by, copy, gather_recipe
from tecomp.array.kernels.decompositions import decompose
from tecomp.array.kernels.fusion import (
    KernelRegion,
    chain_of,
    must_materialize,
    partition_into_kernels,
    view_among,
)
from tecomp.array.kernels.kernel import (
    KernelRecipe,
    apply_views,
    call_kernel,
    specialization_threshold,
)
from tecomp.array.kernels.pointwise_kernels import pointwise_recipe
from tecomp.array.kernels.static_programs import run_program
from tecomp.array.kernels.view_normalization import permute_to_memory_order, push_views_to_leaves
from tecomp.caches import LRUCache
from tecomp.ptensor.devices import is_apart


class PlanAction(Protocol):
    """Callable that computes one stage."""

    def __call__(self, leaves: Sequence[Buffer]) -> Sequence[Buffer]:
        """Return the results for the elements of the leaves."""


@dataclass(frozen=True, slots=True)
class KernelStep:
    """Stage that a kernel computes."""

    recipe: KernelRecipe

    def __call__(self, leaves: Sequence[Buffer]) -> Sequence[Buffer]:
        """Return the results for the elements of the leaves."""
        return call_kernel(self.recipe, leaves)


@dataclass(frozen=True, slots=True)
class ViewStep:
    """Stage that is a view of one leaf."""

    chain: Chain

    def __call__(self, leaves: Sequence[Buffer]) -> Sequence[Buffer]:
        """Return the view of the leaf."""
        return (apply_views(self.chain, leaves[0]),)


@dataclass(frozen=True, slots=True)
class CopyStep:
    """Reshape of row-major elements that is not a view of memory."""

    shape: tuple[int, ...]

    def __call__(self, leaves: Sequence[Buffer]) -> Sequence[Buffer]:
        """Return the elements in new memory."""
        result = np.empty(leaves[0].shape, leaves[0].dtype)
        copy(leaves[0], result)
        return (result.reshape(self.shape),)


@dataclass(frozen=True, slots=True)
class PlanStage:
    """Step of a plan.

    Attributes:
        sources: Positions of its inputs in the plan.
        action: Callable that computes the stage.
        outputs: Positions of its results in the plan.
        last: Positions of values that later stages do not read.
    """

    sources: tuple[int, ...]
    action: PlanAction
    outputs: tuple[int, ...]
    last: tuple[int, ...]


@dataclass(slots=True)
class ExecutionPlan:
    """Sequence of kernels that evaluates pending operations; depends on strides, not on sizes.

    Attributes:
        stages: Stages in order.
        outputs: Positions of the results.
        constants: Constant leaves that the decomposition added.
        most_calls: Number of runs after which a program for these shapes is compiled instead.
        calls: Number of runs so far.
        recipes: Recipes of the kernels.
    """

    stages: tuple[PlanStage, ...]
    outputs: tuple[int, ...]
    constants: tuple[Buffer, ...]
    most_calls: int
    calls: int = 0
    recipes: list[KernelRecipe] = field(init=False)

    def __post_init__(self) -> None:
        actions = [stage.action for stage in self.stages]
        self.recipes = [action.recipe for action in actions if isinstance(action, KernelStep)]

    @property
    def is_worth_it(self) -> bool:
        """Whether the plan is still preferable to a program compiled for these shapes."""
        return self.calls < self.most_calls and all([recipe.is_worth_it for recipe in self.recipes])


def plan_of(
    work: PendingGraph, recipe_of: Callable[[PendingGraph], KernelRecipe | None]
) -> ExecutionPlan | None:
    """Return a plan of several size-polymorphic kernels, or None if an operation has no kernel.

    Args:
        work: Pending operations.
        recipe_of: Function that returns the recipe of one kernel for a part, or None.
    """
    num_leaves = len(work.leaves)
    work = decompose(work)
    stored = must_materialize(work)
    while True:
        parts = partition_into_kernels(work, stored)
        read = {position for part in parts for position in part.sources}
        actions = [_action(part, recipe_of, read) for part in parts]
        missing = [part for part, action in zip(parts, actions, strict=True) if action is None]
        if not missing:
            stages = [
                PlanStage(part.sources, action, part.outputs, ())
                for part, action in zip(parts, actions, strict=True)
                if action is not None
            ]
            constants = [node.data for node in work.leaves[num_leaves:] if node.data is not None]
            max_calls = _most_calls(parts, stages)
            stages = _with_last_reads(work, _fold_views(work, stages))
            return ExecutionPlan(tuple(stages), work.outputs, tuple(constants), max_calls)
        inside = [part.split_positions for part in missing]
        if not all(inside):
            return None
        stored.update(*inside)


def _action(
    part: KernelRegion, recipe_of: Callable[[PendingGraph], KernelRecipe | None],
    read: Container[int]
) -> PlanAction | None:
    """Return the action for a part, or None; results at positions in `read` must be row-major."""
    work = part.work
    if all(is_view(op) for op, _ in work.steps):
        return _view(work)
    if len(work.steps) == 1 and (
        concatenation := concatenate_by(work, part.outputs[0] in read)
    ) is not None:
        return concatenation
    recipe = recipe_of(work)
    return None if recipe is None else KernelStep(recipe)


def _most_calls(parts: Sequence[KernelRegion], stages: Sequence[PlanStage]) -> int:
    """Return the number of runs that pay off; unlimited for plans of copies and views only."""
    if all(isinstance(stage.action, CopyStep | ViewStep) for stage in stages):
        return maxsize
    points = []
    for part, stage in zip(parts, stages, strict=True):
        if isinstance(stage.action, KernelStep):
            points.append(stage.action.recipe.points)
        elif not isinstance(stage.action, ViewStep):
            points.append(part.work.nodes[-1].type.size)
    return specialization_threshold(max(len(points), 1), sum(points)) - 1


def _view(work: PendingGraph) -> PlanAction | None:
    if view_among(work) is not None:
        return ViewStep(chain_of(work))
    # A reshape that is not a view must form a part of its own.
    return CopyStep(work.nodes[0].type.shape) if len(work.steps) == 1 else None


def _fold_views(work: PendingGraph, stages: Sequence[PlanStage]) -> list[PlanStage]:
    """Return the stages with views as part of the kernels that read them.

    A kernel prepares each operand by one NumPy call, for any number of views.
    """
    views: dict[int, tuple[int, Chain]] = {}
    for stage in stages:
        if isinstance(stage.action, ViewStep):
            source, chain = views.get(stage.sources[0], (stage.sources[0], ()))
            views[stage.outputs[0]] = source, chain + stage.action.chain
        elif isinstance(stage.action, KernelStep):
            stage.action.recipe.read_through(
                [views.get(source, (source, ()))[1] for source in stage.sources])
    folded = [
        replace(stage, sources=tuple([views.get(p, (p, ()))[0] for p in stage.sources]))
        if isinstance(stage.action, KernelStep) else stage
        for stage in stages
    ]
    remaining: list[PlanStage] = []
    needed = {*work.outputs}
    for stage in reversed(folded):
        if not isinstance(stage.action, ViewStep) or not needed.isdisjoint(stage.outputs):
            remaining.append(stage)
            needed.update(stage.sources)
    return remaining[::-1]


def _with_last_reads(work: PendingGraph, stages: Sequence[PlanStage]) -> list[PlanStage]:
    """Return the stages with the values that later stages do not read."""
    needed = {*work.outputs}
    found: list[PlanStage] = []
    for stage in reversed(stages):
        touched = {*stage.sources, *stage.outputs}
        last = tuple([p for p in touched if p >= 0 and p not in needed])
        found.append(replace(stage, last=last))
        needed |= touched
    return found[::-1]


def execute_plan(plan: ExecutionPlan, work: PendingGraph) -> None:
    """Run the stages of a plan and set the elements of the results."""
    plan.calls += 1
    values: dict[int, Any] = {}
    for k, data in enumerate((*[node.data for node in work.leaves], *plan.constants)):
        values[-1 - k] = data
    for stage in plan.stages:
        results = stage.action([values[p] for p in stage.sources])
        values.update(zip(stage.outputs, results, strict=True))
        for position in stage.last:
            del values[position]
    for position, planned in zip(work.outputs, plan.outputs, strict=True):
        result = values[planned]
        if work.into is not None and position in work.into:
            copy(result, work.into[position])
            result = work.into[position]
        work.nodes[position].computed(result)


_recipes: LRUCache[Any, KernelRecipe | ExecutionPlan | None] = LRUCache("array.recipes")
_NEW = object()


def select_kernel(work: PendingGraph) -> KernelRecipe | ExecutionPlan | None:
    """Return the recipe of one kernel, or the plan of several kernels; None if there is neither.

    All kernels are size-polymorphic. One kernel is preferred.
    """
    key = (
        work.steps, work.outputs,
        tuple([(node.type, node.data.strides) for node in work.leaves]),  # type: ignore[union-attr]
    )
    found = _recipes.get(key, _NEW)
    if found is _NEW:
        found = _recipe(work)
        if found is None:
            plan = plan_of(work, partial(_recipe, in_order=True))
            found = _single_kernel(plan) or plan
        return _recipes.keep(key, found)
    return found  # type: ignore[return-value]


def _single_kernel(plan: ExecutionPlan | None) -> KernelRecipe | None:
    """Return the recipe of a plan that is one kernel of the leaves, such as a product, or None."""
    if plan is None or len(plan.stages) != 1 or plan.constants:
        return None
    (stage,) = plan.stages
    if not isinstance(stage.action, KernelStep) or stage.outputs != tuple(plan.outputs):
        return None
    recipe = stage.action.recipe
    sources = recipe.sources or tuple([(k, ()) for k in range(len(recipe.operands))])
    recipe.sources = tuple([(-1 - stage.sources[k], chain) for k, chain in sources])
    return recipe


def recipes_of(found: KernelRecipe | ExecutionPlan) -> list[KernelRecipe]:
    """Return the recipes of the kernels that are called."""
    return found.recipes if isinstance(found, ExecutionPlan) else [found]


def _recipe(work: PendingGraph, in_order: bool = False) -> KernelRecipe | None:
    """Return the recipe of one kernel for pending operations, or None.

    With `in_order`, later kernels read the results and assume that these are contiguous and
    row-major.
    """
    found = _along_memory(work, in_order)
    if found is not None:
        return found
    without = push_views_to_leaves(work)
    if without is None:
        return None
    found = _along_memory(without.work, in_order)
    if found is not None:
        views = found.sources or tuple([(k, ()) for k in range(len(without.sources))])
        found.sources = tuple([
            (without.sources[k][0], without.sources[k][1] + chain) for k, chain in views
        ])
    return found


def _along_memory(work: PendingGraph, in_order: bool) -> KernelRecipe | None:
    """Return the recipe of a kernel whose loops follow the axis order of memory."""
    other = permute_to_memory_order(work)
    if other is None or (in_order and other.result_permutation is not None):
        return _of_arrays(work)
    found = _of_arrays(other.work)
    if found is not None:
        found.sources, found.result_permutation = other.sources, other.result_permutation
    return found


def _of_arrays(work: PendingGraph) -> KernelRecipe | None:
    """Return the recipe of a kernel for operations without views."""
    return pointwise_recipe(work) or reduction_recipe(work) or gather_recipe(work)


def run(work: PendingGraph) -> None:
    """Evaluate operations with size-polymorphic kernels, or else a program for the shapes."""
    if is_apart(work.nodes[work.outputs[0]].type.device):
        from tecomp.array.kernels.static_programs import run_placed

        run_placed(work)
        return
    recipe = select_kernel(work)
    if recipe is None or not recipe.is_worth_it:
        run_program(work)
    elif isinstance(recipe, ExecutionPlan):
        execute_plan(recipe, work)
    else:
        _run_kernel(recipe, work)


def _run_kernel(recipe: KernelRecipe, work: PendingGraph) -> None:
    inputs = [node.data for node in work.leaves if node.data is not None]
    is_direct = work.into is not None and recipe.result_permutation is None
    results = call_kernel(
        recipe, inputs, [work.memory(position) for position in work.outputs] if is_direct else None)
    for position, result in zip(work.outputs, results, strict=True):
        if not is_direct and work.into is not None and position in work.into:
            copy(result, work.into[position])
            result = work.into[position]
        work.nodes[position].computed(result)
