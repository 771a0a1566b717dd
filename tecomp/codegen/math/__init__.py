"""Vector math functions: range reductions and polynomials in portable instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.codegen.math.registry import has_formula

__getattr__, __dir__ = lazy_names(__name__)
