"""Operation classes, one file per group of the RFC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.ptensor.operations.reduction import ReduceOp

__getattr__, __dir__ = lazy_names(__name__)
