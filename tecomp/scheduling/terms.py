"""The primitive cache_terms: the terms of a reduction become a stage, which others read too."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.compute.terms import axes_instead, has_term
from tecomp.errors import ScheduleError
from tecomp.ir.language.expr import Expr
from tecomp.ir.traversal.rewrite import substitute, top_down, walk
from tecomp.scheduling.caches import read_as_defined, whole_reduction
from tecomp.scheduling.factors import Sum, stage_of, sums_of
from tecomp.scheduling.place import check_scope
from tecomp.scheduling.state import State, initial_stage


def cache_terms(
    state: State, tensor: Tensor, scope: str, readers: Sequence[Operation]
) -> tuple[State, Tensor]:
    """Compute the terms of a reduction first, each once for all stages that compute them.

    See `Schedule.cache_terms`.

    Returns:
        The new state; the terms.
    """
    stage = state.stage(tensor.op)
    where = f"s.cache_terms({stage.name}, {scope!r})"
    check_scope(scope, where)
    reduce = whole_reduction(
        stage, where, "only terms that are all computed can be computed first")
    term = reduce.source[0]
    sums = sums_of(term)
    if isinstance(term, TensorLoad) or not sums:
        raise ScheduleError(
            f"{where}: each term is `{term}`; there is nothing to compute first, so leave it",
            kind="not-this-form",
        )
    others = tuple(dict.fromkeys(state.stage(key).key for key in readers))
    for key in others:
        if not has_term(state.stage(key).compute, term):
            raise ScheduleError(
                f"{where}: {state.stage(key).name} computes no `{term}` for any axes of the same "
                "extents; leave it out",
                kind="not-this-form",
            )
    made = stage_of(stage, term, sums, f"{stage.name}_terms")
    reading = {stage.key, *others}
    first = next(each.key for each in state if each.key in reading)
    state = state.insert(initial_stage(made.op, is_output=False, scope=scope), before=first)
    for key in (stage.key, *others):
        reader = state.stage(key)
        state = state.redefine(reader, reader.compute.rewritten(
            lambda value: top_down(value, lambda node: _element(node, term, made, sums))))
    for key in (stage.key, *others):
        state = read_as_defined(state, state.stage(key))
    return state, made


def _element(node: object, term: Expr, made: Tensor, sums: Sequence[Sum]) -> Expr | None:
    """The element of the new stage that a value is, if it is such a term."""
    axes = axes_instead(node, term)
    if axes is None or not isinstance(node, Expr):
        return None
    indices = tuple(substitute(each.index, axes) for each in sums)
    location = next(part.location for part in walk(node) if isinstance(part, TensorLoad))
    return TensorLoad(made, indices, location)
