"""Figures of user-visible objects: one module per kind, with a function that returns SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.viz.iteration_domain import domain_of, steps, sums
    from tecomp.viz.loop_nest import LoopRow, draw_nest

__getattr__, __dir__ = lazy_names(__name__)
