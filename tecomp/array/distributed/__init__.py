"""Distributed arrays, sharded over the ranks of a team."""
