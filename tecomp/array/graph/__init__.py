"""Recorded operation graph: nodes, pending subgraphs, and evaluation."""
