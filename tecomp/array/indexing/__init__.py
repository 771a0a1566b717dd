"""Indexing: reads, assignments, views, and tracking of shared elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.array.indexing.aliasing import write_through

__getattr__, __dir__ = lazy_names(__name__)
