"""IR node classes and their pretty printer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.ir.nodes.dtype import SCALARS
    from tecomp.ir.nodes.graph_utils import fold, preorder

__getattr__, __dir__ = lazy_names(__name__)
