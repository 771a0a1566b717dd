"""Functions of the namespace, one file for each group of the standard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.array.functions.extensions import explain

__getattr__, __dir__ = lazy_names(__name__)
