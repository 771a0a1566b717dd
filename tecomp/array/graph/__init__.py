"""Recorded operation graph: nodes, pending subgraphs, and evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.array.graph.access_regions import Box, OpGraph, RegionGraph, size_of
    from tecomp.array.graph.evaluate import MOST, computable, data_of
    from tecomp.array.graph.node import Node, materialized_node, record, type_of
    from tecomp.array.graph.pending import PendingGraph, pending_graph_of
    from tecomp.array.graph.views import is_view, view_of

__getattr__, __dir__ = lazy_names(__name__)
