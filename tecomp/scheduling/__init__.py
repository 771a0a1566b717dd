"""Schedules: pure primitives on a frozen state, and the objects that record their calls."""
