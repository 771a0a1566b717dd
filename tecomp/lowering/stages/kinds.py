"""How the loops of a stage run, from its marks and threads."""

from __future__ import annotations

from collections.abc import Mapping

from tecomp.compute.axis import IterVar
from tecomp.ir.language.expr import Expr, Var
from tecomp.ir.language.stmt import ForKind
from tecomp.scheduling.state import StageState
from tecomp.scheduling.threads import is_grid_axis, is_parallel

_CALLS = {ForKind.PARALLEL: "parallel", ForKind.VECTORIZED: "vectorize"}


def loop_kinds(stage: StageState) -> dict[Var, ForKind]:
    """The kind of every loop that is not an ordinary one."""
    kinds: dict[Var, ForKind] = {leaf: kind for leaf, kind in stage.marks.items()}
    for leaf, tag in stage.threads.items():
        kinds.setdefault(leaf, ForKind.PARALLEL if is_parallel(tag) else ForKind.SERIAL)
    return kinds


def grid_axes(stage: StageState) -> dict[Var, str]:
    """The axis of the grid of cores of every loop that is bound to one."""
    return {leaf: tag for leaf, tag in stage.threads.items() if is_grid_axis(tag)}


def concurrent(stage: StageState, loops: Mapping[IterVar, Expr]) -> list[tuple[Var, str]]:
    """The variables of the loops whose iterations run at the same time, with the call."""
    kinds = loop_kinds(stage)
    found = []
    for leaf, value in loops.items():
        kind = kinds.get(leaf, ForKind.SERIAL)
        if isinstance(value, Var) and kind in _CALLS:
            call = _CALLS[kind] if leaf in stage.marks else "bind"
            found.append((value, f"s[{stage.name}].{call}({leaf.name})"))
    return found
