"""Traversal of IR graphs: rewriting, verification, analyses and serialization."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.ir.traversal.rewrite import fold

__getattr__, __dir__ = lazy_names(__name__)
