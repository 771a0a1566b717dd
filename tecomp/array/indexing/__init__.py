"""Indexing: reads, assignments, views, and tracking of shared elements."""
