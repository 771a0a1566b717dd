"""Fusion of stages: groups, and their loop nests on CPUs and scratchpad targets."""
