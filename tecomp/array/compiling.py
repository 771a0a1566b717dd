"""Run pending operations by what is compiled for them."""

from __future__ import annotations

from tecomp.array.graph import Pending
from tecomp.array.kernels import run as run_kernel
from tecomp.array.programs import run_program
from tecomp.array.recipes import recipe_of


def run(work: Pending) -> None:
    """Compute what is wanted by one kernel for all sizes, or else by a program for these."""
    recipe = recipe_of(work)
    if recipe is None:
        run_program(work)
    else:
        run_kernel(recipe, work)
