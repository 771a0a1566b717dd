"""Operand constraints of targets, checked for operations and schedules; layout hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.constraints.check import satisfies_constraints
    from tecomp.constraints.operation_view import computation, loads_of
    from tecomp.constraints.user_hints import DivisionHint, Hint
else:
    __getattr__, __dir__ = lazy_names(__name__)
