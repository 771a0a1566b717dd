"""Schedules for targets with scratchpads: placement, blocks, work division."""
